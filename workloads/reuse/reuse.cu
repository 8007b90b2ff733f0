// One iteration over data that the host and the GPU use in turn.
//
// Built: clang.sm_35

extern "C" __global__ void reuse_update(double *a, unsigned n)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        a[i] = __fma_rn(0.5, a[i], 1.0);
    }
}
