// The kernel of vectoradd with a function that is inlined, and with bank conflicts, for tests/tests/command_line/hot_spots.rs.
// lines.ptx is what tools/compile_ptx.py --line-info gives with nvrtc for compute capability 7.0, lines.sm_70.cubin what ptxas 12.9
// makes of it.

__device__ __forceinline__ float sum(float a, float b)
{
    return a + b;
}

extern "C" __global__ void vectorAdd(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile[512];
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    tile[threadIdx.x * 4 % 512] = i < n ? a[i] : 0.0f;
    __syncthreads();
    if (i < n)
        c[i] = sum(tile[threadIdx.x * 4 % 512], b[i]);
}
