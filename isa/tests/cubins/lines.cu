// Functions that are inlined in others, with line information. For ../../src/source_lines.rs.
//
// nvcc -lineinfo -arch=sm_75 -ptx (13.5), the folder taken out of its .file, then ptxas -arch=sm_75: lines.sm_75.cubin;
// with --compile-only: lines_piece.sm_75.cubin

__device__ __forceinline__ float square(float x)
{
    return x * x;
}

__device__ __forceinline__ float repeated(float x, int n)
{
    for (int i = 0; i < n; i++)
        x = square(x) - n;
    return x;
}

__device__ __noinline__ float apart(float x) { return square(x) + 2.0f; }

extern "C" __global__ void first(float *out)
{
    out[threadIdx.x] = repeated(out[threadIdx.x], 3) + apart(out[0]);
}

extern "C" __global__ void second(float *out)
{
    if (out[threadIdx.x] > 2.0f)
        out[threadIdx.x] = repeated(out[threadIdx.x], 7);
}
