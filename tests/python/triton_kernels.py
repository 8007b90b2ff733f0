"""Triton's compiler, which makes machine code of a kernel with a ptxas of its own, and the driver API, which launches it: Triton's own way to
the driver needs PyTorch."""

import ctypes

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    assert error == 0, f"{name}: error {error}"


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
    return value.value


def to_device(values):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(values.nbytes))
    call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes))
    return address


def to_host(address, values):
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), address, ctypes.c_size_t(values.nbytes))
    return values


def launch(kernel, signature, constants, blocks, *arguments):
    """Compiles a kernel for the device, loads its cubin, and launches it."""
    signature = {**signature, **{name: "constexpr" for name in constants}}
    target = GPUTarget("cuda", 10 * attribute(75) + attribute(76), 32)
    compiled = triton.compile(ASTSource(fn=kernel, signature=signature, constexprs=constants), target=target)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), compiled.asm["cubin"])
    call("cuModuleGetFunction", ctypes.byref(function), module, compiled.metadata.name.encode())
    # Behind the kernel's own parameters Triton puts a pointer to memory for its launch, which these kernels need none of.
    values = [*arguments, ctypes.c_uint64(0)]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    threads, shared = 32 * compiled.metadata.num_warps, compiled.metadata.shared
    call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, pointers, None)
    call("cuCtxSynchronize")


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


device, context = ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)

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
