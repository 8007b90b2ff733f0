// Kernels that read textures and write surfaces, for tests/tests/textures.rs.
// Its PTX is what tools/compile_ptx.py gives with nvcc for compute capability 7.5.
#include <cuda_runtime.h>

// Blends a picture into a surface of another size.
extern "C" __global__ void resize(cudaTextureObject_t picture, cudaSurfaceObject_t result, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float value = tex2D<float>(picture, (x + 0.5f) / width, (y + 0.5f) / height);
    surf2Dwrite(value, result, x * static_cast<int>(sizeof(float)), y);
}

// Reads linear memory through a texture, past its ends.
extern "C" __global__ void gather(cudaTextureObject_t table, int* results, int count)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) results[at] = tex1Dfetch<int>(table, 3 * at - 7);
}

// A layered texture of bytes, read as floats from 0 to 1.
extern "C" __global__ void layers(cudaTextureObject_t picture, float4* results)
{
    results[threadIdx.x] = tex2DLayered<float4>(picture, threadIdx.x % 4, threadIdx.x / 4 % 2, threadIdx.x / 8);
}

extern "C" __global__ void outside(cudaSurfaceObject_t surface)
{
    surf2Dwrite(1.0f, surface, 4 * threadIdx.x, 0);
}
