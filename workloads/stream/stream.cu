// Bandwidth of global memory: streaming kernels on doubles, one element a thread. Dynamic shared memory given at launch
// limits how many blocks an SM holds.

extern "C" __global__ void stream_copy(double *__restrict__ a, const double *__restrict__ b,
                                       const double *__restrict__ c, double scalar, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = b[i];
    }
}

extern "C" __global__ void stream_scale(double *__restrict__ a, const double *__restrict__ b,
                                        const double *__restrict__ c, double scalar, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = scalar * b[i];
    }
}

extern "C" __global__ void stream_triad(double *__restrict__ a, const double *__restrict__ b,
                                        const double *__restrict__ c, double scalar, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = __fma_rn(scalar, c[i], b[i]);
    }
}

// Only reads: the store waits for a value that the input does not hold.
extern "C" __global__ void stream_read(double *__restrict__ a, const double *__restrict__ b,
                                       const double *__restrict__ c, double scalar, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && b[i] == scalar) {
        a[0] = 1.0;
    }
}

extern "C" __global__ void stream_write(double *__restrict__ a, const double *__restrict__ b,
                                        const double *__restrict__ c, double scalar, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = scalar;
    }
}
