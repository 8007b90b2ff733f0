"""CuPy, whose CUDA runtime is linked statically: a kernel of its own source, elementwise kernels, and CUB's and Thrust's machine code."""

import cupy
import numpy

SOURCE = """extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}"""

a = (numpy.arange(1000) * 7919 % 1009).astype(numpy.float32)
b = a[::-1].copy()
A, B = cupy.asarray(a), cupy.asarray(b)

c = cupy.zeros_like(A)
cupy.RawKernel(SOURCE, "add")((8,), (128,), (A, B, c, 1000))
assert numpy.array_equal(cupy.asnumpy(c), a + b)
print("PASS RawKernel")

assert numpy.array_equal(cupy.asnumpy(A * B - A), a * b - a)
print("PASS elementwise kernels")

# Sums of whole numbers below 2^24 are exact in any order.
assert float(A.sum()) == a.sum(dtype=numpy.float64)
print("PASS sum")

assert numpy.array_equal(cupy.asnumpy(cupy.sort(A)), numpy.sort(a))
assert numpy.array_equal(cupy.asnumpy(cupy.argsort(A)), numpy.argsort(a, kind="stable"))
print("PASS sort and argsort")
