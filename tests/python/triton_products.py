"""Kernels of Triton that multiply matrices: a product with an epilogue, and attention. Each is compared with NumPy. On Hopper the compiler makes
products of warp groups of them, on Ampere copies past the registers."""

import ctypes
import math

import numpy
import triton
import triton.language as tl
from triton_driver import launch, to_device, to_host


@triton.jit
def product(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) // tl.cdiv(N, BLOCK_N) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) % tl.cdiv(N, BLOCK_N) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + row[:, None] * K + (start + depth)[None, :], mask=(row[:, None] < M) & ((start + depth)[None, :] < K), other=0.0)
        right = tl.load(b + (start + depth)[:, None] * N + column[None, :], mask=((start + depth)[:, None] < K) & (column[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    total = tl.maximum(total, 0.0)
    tl.store(c + row[:, None] * N + column[None, :], total, mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def attention(q, k, v, out, LENGTH, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, DEPTH)
    queries = tl.load(q + row[:, None] * DEPTH + depth[None, :])
    most = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, DEPTH), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        keys = tl.load(k + column[None, :] * DEPTH + depth[:, None])
        scores = tl.dot(queries, keys) * scale
        scores = tl.where(row[:, None] >= column[None, :], scores, float("-inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        parts = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(most - new)
        weight = weight * shrink + tl.sum(parts, 1)
        values = tl.load(v + column[:, None] * DEPTH + depth[None, :])
        total = tl.dot(parts.to(values.dtype), values, total * shrink[:, None])
        most = new
    tl.store(out + row[:, None] * DEPTH + depth[None, :], total / weight[:, None])


def bfloat16(values):
    """The bits of the nearest numbers of bfloat16, and these numbers."""
    bits = values.astype(numpy.float32).view(numpy.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits.astype(numpy.uint16), (bits << 16).astype(numpy.uint32).view(numpy.float32)


def check(name, found, expected, tolerance):
    error = numpy.abs(found - expected).max()
    assert error <= tolerance, f"{name}: error {error}"
    print(f"PASS {name}", flush=True)


def main():
    random = numpy.random.default_rng(5)
    M, N, K = 200, 152, 264
    left, right = random.standard_normal((M, K)), random.standard_normal((K, N))
    for name, kind, pick in (("fp16", "*fp16", lambda x: (x.astype(numpy.float16),) * 2), ("bf16", "*bf16", bfloat16), ("tf32", "*fp32", lambda x: (x.astype(numpy.float32),) * 2)):
        (a, exact_a), (b, exact_b) = pick(left), pick(right)
        c = to_device(numpy.zeros((M, N), numpy.float32))
        signature = {"a": kind, "b": kind, "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
        constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
        launch(product, signature, constants, math.ceil(M / 64) * math.ceil(N / 64), to_device(a), to_device(b), c, *map(ctypes.c_int32, (M, N, K)))
        expected = numpy.maximum(exact_a.astype(numpy.float64) @ exact_b.astype(numpy.float64), 0)
        check(f"product in {name}", to_host(c, numpy.zeros((M, N), numpy.float32)), expected, 0.1 if name == "tf32" else 1e-3)
    LENGTH, DEPTH = 256, 64
    q, k, v = (random.standard_normal((LENGTH, DEPTH)).astype(numpy.float16) for _ in range(3))
    out = to_device(numpy.zeros((LENGTH, DEPTH), numpy.float32))
    signature = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "LENGTH": "i32", "scale": "fp32"}
    scale = ctypes.c_float(math.log2(math.e) / math.sqrt(DEPTH))
    launch(attention, signature, {"BLOCK_M": 64, "BLOCK_N": 64, "DEPTH": DEPTH}, LENGTH // 64, to_device(q), to_device(k), to_device(v), out, ctypes.c_int32(LENGTH), scale)
    q, k, v = (values.astype(numpy.float64) for values in (q, k, v))
    scores = numpy.where(numpy.tri(LENGTH, dtype=bool), q @ k.T / math.sqrt(DEPTH), -numpy.inf)
    weights = numpy.exp(scores - scores.max(1, keepdims=True))
    check("attention", to_host(out, numpy.zeros((LENGTH, DEPTH), numpy.float32)), weights @ v / weights.sum(1, keepdims=True), 4e-3)


if __name__ == "__main__":
    main()
