"""Numba: kernels, shared memory, atomics, reductions, ufuncs, random numbers, the device library, grid synchronisation."""

import math

import numba
import numpy
from ladder import end, step
from numba import cuda, float32, vectorize
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

print(f"numba {numba.__version__}, {cuda.get_current_device().name}", flush=True)
a = numpy.arange(1000, dtype=numpy.float32)


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def histogram(counts, values, largest):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(counts, values[i] % 16, 1)
        cuda.atomic.max(largest, 0, values[i])


@cuda.jit
def block_sums(values, total):
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


@cuda.jit
def uniform(states, out):
    i = cuda.grid(1)
    out[i] = xoroshiro128p_uniform_float32(states, i)


@cuda.jit(fastmath=True)
def damped(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.sin(x[i]) * math.exp(-x[i]) + math.sqrt(x[i])


@cuda.jit
def in_step(x):
    grid = cuda.cg.this_grid()
    grid.sync()
    x[cuda.grid(1)] += 1
    grid.sync()


def addition():
    c = cuda.device_array_like(a)
    add[8, 128](cuda.to_device(a), cuda.to_device(2 * a), c)
    return numpy.array_equal(c.copy_to_host(), 3 * a)


def shared_memory():
    total = cuda.to_device(numpy.zeros(1, numpy.float32))
    block_sums[8, 128](cuda.to_device(a), total)
    return total.copy_to_host()[0] == 499500


def atomics():
    values = (numpy.arange(1000) * 7919 % 1009).astype(numpy.int32)
    counts, largest = cuda.to_device(numpy.zeros(16, numpy.int32)), cuda.to_device(numpy.zeros(1, numpy.int32))
    histogram[8, 128](counts, cuda.to_device(values), largest)
    expected = numpy.bincount(values % 16, minlength=16)
    return numpy.array_equal(counts.copy_to_host(), expected) and largest.copy_to_host()[0] == values.max()


def ufunc():
    product = vectorize(["float32(float32, float32)"], target="cuda")(lambda x, y: x * y + 1)
    return numpy.allclose(product(a, a), a * a + 1)


def random_numbers():
    out = cuda.device_array(128, numpy.float32)
    uniform[1, 128](create_xoroshiro128p_states(128, seed=1), out)
    return 0.3 < out.copy_to_host().mean() < 0.7


def device_library():
    x = a / 100
    y = cuda.device_array_like(x)
    damped[8, 128](cuda.to_device(x), y)
    expected = numpy.sin(x) * numpy.exp(-x) + numpy.sqrt(x)
    return numpy.allclose(y.copy_to_host(), expected, rtol=1e-3, atol=1e-4)


def grid_synchronisation():
    x = cuda.to_device(numpy.zeros(256, numpy.int32))
    in_step[2, 128](x)
    return bool((x.copy_to_host() == 1).all())


step("addition", addition)
step("shared memory", shared_memory)
step("atomics", atomics)
step("cuda.reduce", lambda: cuda.reduce(lambda x, y: x if x > y else y)(a[::-1].astype(numpy.float64)) == 999)
step("vectorize", ufunc)
step("random numbers", random_numbers)
step("device library", device_library)
step("grid synchronisation", grid_synchronisation)
end()
