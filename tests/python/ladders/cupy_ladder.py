"""CuPy: kernels that NVRTC compiles, Thrust and CUB, cuBLAS, cuSOLVER, cuFFT, cuSPARSE, cuRAND."""

import cupy
import numpy
from cupyx.scipy import sparse
from ladder import end, step

print(f"cupy {cupy.__version__}, runtime {cupy.cuda.runtime.runtimeGetVersion()}", flush=True)
a = numpy.random.RandomState(0).randn(1000).astype(numpy.float32)
b = a[::-1].copy()
A, B = cupy.asarray(a), cupy.asarray(b)
square, column = a[:900].reshape(30, 30), b[:30]


def close(result, expected, tolerance=1e-3):
    return bool(numpy.allclose(cupy.asnumpy(result), expected, rtol=tolerance, atol=tolerance))


def raw_kernel():
    source = """extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) c[i] = a[i] + b[i];
    }"""
    c = cupy.zeros_like(A)
    cupy.RawKernel(source, "add")((8,), (128,), (A, B, c, 1000))
    return bool((cupy.asnumpy(c) == a + b).all())


def elementwise_kernel():
    kernel = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_difference")
    return close(kernel(A, B), (a - b) ** 2)


def reduction_kernel():
    kernel = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    return close(kernel(A), numpy.sqrt((a * a).sum()))


step("copies", lambda: bool((cupy.asnumpy(A) == a).all()))
step("RawKernel", raw_kernel)
step("ElementwiseKernel", elementwise_kernel)
step("ReductionKernel", reduction_kernel)
step("addition", lambda: bool((cupy.asnumpy(A + B) == a + b).all()))
step("sum", lambda: close(A.sum(), a.sum()))
step("sort", lambda: bool((cupy.asnumpy(cupy.sort(A)) == numpy.sort(a)).all()))
step("argsort", lambda: bool((cupy.asnumpy(cupy.argsort(A)) == numpy.argsort(a)).all()))
step("cumsum", lambda: close(cupy.cumsum(A), numpy.cumsum(a)))
step("random", lambda: 0.4 < float(cupy.random.rand(1000).mean()) < 0.6)
step("matmul", lambda: close(A[:900].reshape(30, 30) @ B[:900].reshape(30, 30), square @ b[:900].reshape(30, 30)))
step("linalg.solve", lambda: close(cupy.linalg.solve(A[:900].reshape(30, 30), B[:30]), numpy.linalg.solve(square, column), 1e-1))
step("fft", lambda: close(cupy.fft.fft(A), numpy.fft.fft(a), 1e-2))
step("sparse", lambda: close(sparse.csr_matrix(cupy.eye(30, dtype=cupy.float32) * 2) @ B[:30], 2 * column))
end()
