// Pitched, 2D and 3D copies and memsets, between host, device and arrays.
#include "check.h"
#include <cstring>
#include <vector>

__global__ void transform_2d(char *base, size_t pitch, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) reinterpret_cast<int *>(base + y * pitch)[x] += 1000 * y;
}

__global__ void transform_3d(cudaPitchedPtr volume, int width, int height, int depth) {
    const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    if (x >= width || y >= height || z >= depth) return;
    char *slice = static_cast<char *>(volume.ptr) + z * volume.pitch * height;
    reinterpret_cast<float *>(slice + y * volume.pitch)[x] *= 2;
}

int main() {
    const int width = 37, height = 19;
    std::vector<int> host(width * height), back(width * height);
    for (int i = 0; i < width * height; ++i) host[i] = i;
    char *plane, *other;
    size_t pitch, other_pitch;
    CHECK(cudaMallocPitch(&plane, &pitch, width * sizeof(int), height));
    CHECK(cudaMallocPitch(&other, &other_pitch, width * sizeof(int), height));
    REQUIRE(pitch >= width * sizeof(int) && pitch % 32 == 0, "pitch %zu", pitch);
    CHECK(cudaMemcpy2D(plane, pitch, host.data(), width * sizeof(int), width * sizeof(int), height, cudaMemcpyHostToDevice));
    transform_2d<<<dim3(2, 2), dim3(32, 16)>>>(plane, pitch, width, height);
    CHECK(cudaMemcpy2D(other, other_pitch, plane, pitch, width * sizeof(int), height, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy2D(back.data(), width * sizeof(int), other, other_pitch, width * sizeof(int), height,
                       cudaMemcpyDeviceToHost));
    for (int i = 0; i < width * height; ++i)
        REQUIRE(back[i] == host[i] + 1000 * (i / width), "element %d is %d", i, back[i]);

    // A window in the middle; the rest stays.
    CHECK(cudaMemset2D(plane, pitch, 0, width * sizeof(int), height));
    CHECK(cudaMemset2DAsync(plane + 3 * pitch + 2 * sizeof(int), pitch, 0x11, 5 * sizeof(int), 4, 0));
    CHECK(cudaMemcpy2DAsync(back.data(), width * sizeof(int), plane, pitch, width * sizeof(int), height,
                            cudaMemcpyDeviceToHost, 0));
    CHECK(cudaDeviceSynchronize());
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const bool inside = y >= 3 && y < 7 && x >= 2 && x < 7;
            REQUIRE(back[y * width + x] == (inside ? 0x11111111 : 0), "element %d %d is %x", x, y, back[y * width + x]);
        }
    EXPECT(cudaMemcpy2D(plane, 8, host.data(), 16, 16, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidPitchValue);

    // Three dimensions.
    const int w = 7, h = 5, d = 3;
    const cudaExtent extent = make_cudaExtent(w * sizeof(float), h, d);
    cudaPitchedPtr volume;
    CHECK(cudaMalloc3D(&volume, extent));
    std::vector<float> cube(w * h * d), cube_back(w * h * d, -1.0f);
    for (int i = 0; i < w * h * d; ++i) cube[i] = i + 0.5f;
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(cube.data(), w * sizeof(float), w, h);
    copy.dstPtr = volume;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    transform_3d<<<1, dim3(8, 8, 4)>>>(volume, w, h, d);
    CHECK(cudaGetLastError());
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = volume;
    copy.dstPtr = make_cudaPitchedPtr(cube_back.data(), w * sizeof(float), w, h);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (int i = 0; i < w * h * d; ++i) REQUIRE(cube_back[i] == 2 * cube[i], "element %d is %f", i, cube_back[i]);

    // A part of the volume by position.
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = volume;
    copy.srcPos = make_cudaPos(2 * sizeof(float), 1, 1);
    copy.dstPtr = make_cudaPitchedPtr(cube_back.data(), 2 * sizeof(float), 2, 2);
    copy.extent = make_cudaExtent(2 * sizeof(float), 2, 2);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3DAsync(&copy, 0));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; ++i) {
        const int x = 2 + i % 2, y = 1 + i / 2 % 2, z = 1 + i / 4;
        REQUIRE(cube_back[i] == 2 * cube[(z * h + y) * w + x], "part %d is %f", i, cube_back[i]);
    }

    // Through an array of three dimensions, whose extent counts elements.
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d), 0));
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(cube.data(), w * sizeof(float), w, h);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    memset(&copy, 0, sizeof copy);
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(cube_back.data(), w * sizeof(float), w, h);
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (int i = 0; i < w * h * d; ++i) REQUIRE(cube_back[i] == cube[i], "element %d of the array is %f", i, cube_back[i]);

    CHECK(cudaMemset3D(volume, 0, extent));
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = volume;
    copy.dstPtr = make_cudaPitchedPtr(cube_back.data(), w * sizeof(float), w, h);
    copy.extent = extent;
    copy.kind = cudaMemcpyDefault;
    CHECK(cudaMemcpy3D(&copy));
    for (int i = 0; i < w * h * d; ++i) REQUIRE(cube_back[i] == 0, "element %d is %f after a memset", i, cube_back[i]);
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(volume.ptr));
    CHECK(cudaFree(plane));
    CHECK(cudaFree(other));
    return passed("copies in two and three dimensions");
}
