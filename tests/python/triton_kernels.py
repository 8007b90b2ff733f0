"""Kernels of Triton, which come to the GPU as machine code."""

import ctypes

import numpy
import triton
import triton.language as tl
from triton_driver import launch, to_device, to_host


@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def row_sums(matrix, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(matrix + row * columns + at, mask=at < columns, other=0)
    tl.store(out + row, tl.sum(values, axis=0))


x = numpy.arange(1000, dtype=numpy.float32)
result = to_device(numpy.zeros_like(x))
signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "count": "i32"}
launch(add, signature, {"BLOCK": 256}, 4, to_device(x), to_device(2 * x), result, ctypes.c_int(1000))
assert numpy.array_equal(to_host(result, numpy.zeros_like(x)), 3 * x)
print("PASS vector addition")

# Sums of whole numbers below 2^24 are exact in any order.
matrix = numpy.arange(8 * 700, dtype=numpy.float32).reshape(8, 700) % 997
result = to_device(numpy.zeros(8, dtype=numpy.float32))
signature = {"matrix": "*fp32", "out": "*fp32", "columns": "i32"}
launch(row_sums, signature, {"BLOCK": 1024}, 8, to_device(matrix), result, ctypes.c_int(700))
assert numpy.array_equal(to_host(result, numpy.zeros(8, dtype=numpy.float32)), matrix.sum(axis=1))
print("PASS sums of rows")
