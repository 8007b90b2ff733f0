"""Numba's compiler, and whichever way it has to the driver: a vector addition, and a reduction in shared memory."""

import numpy
from numba import cuda, float32


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def sum_of_blocks(values, total):
    shared = cuda.shared.array(128, float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[thread] = values[i] if i < values.size else 0
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        cuda.atomic.add(total, 0, shared[0])


a = numpy.arange(1000, dtype=numpy.float32)
b = 2 * a
c = cuda.device_array_like(a)
add[8, 128](cuda.to_device(a), cuda.to_device(b), c)
assert numpy.array_equal(c.copy_to_host(), 3 * a)
print("PASS vector addition")

total = cuda.to_device(numpy.zeros(1, dtype=numpy.float32))
sum_of_blocks[8, 128](cuda.to_device(a), total)
# Sums of whole numbers below 2^24 are exact in any order: 0 + 1 + ... + 999.
assert total.copy_to_host()[0] == 499500
print("PASS reduction in shared memory")

# Numba's own: shuffles within warps, and two kernels.
largest = cuda.reduce(lambda x, y: x if x > y else y)
assert largest(numpy.float64(a[::-1])) == 999
print("PASS cuda.reduce")
