// Texture references, which CUDA 11 was the last to have: bound to linear memory, to pitched memory and to an array.
#include "check.h"

texture<int, 1, cudaReadModeElementType> numbers;
texture<float, 2, cudaReadModeElementType> plane;

__global__ void fetch(int *output, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] = tex1Dfetch(numbers, i) + 1;
}

__global__ void sample(float *output, int width, float offset) {
    output[threadIdx.y * width + threadIdx.x] = tex2D(plane, threadIdx.x + offset, threadIdx.y + offset);
}

int main() {
    const int count = 200, width = 8, height = 4;
    int host[count], *input, *output;
    for (int i = 0; i < count; ++i) host[i] = i * 5;
    CHECK(cudaMalloc(&input, sizeof host));
    CHECK(cudaMalloc(&output, sizeof host));
    CHECK(cudaMemcpy(input, host, sizeof host, cudaMemcpyHostToDevice));
    size_t offset = 1;
    CHECK(cudaBindTexture(&offset, numbers, input, sizeof host));
    REQUIRE(offset == 0, "offset %zu", offset);
    fetch<<<2, 128>>>(output, count);
    CHECK(cudaMemcpy(host, output, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 5 * i + 1, "fetch %d gave %d", i, host[i]);
    // Bound anew, the same kernel reads other memory.
    CHECK(cudaBindTexture(nullptr, numbers, output, sizeof host));
    fetch<<<2, 128>>>(input, count);
    CHECK(cudaMemcpy(host, input, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 5 * i + 2, "fetch %d gave %d", i, host[i]);
    CHECK(cudaUnbindTexture(numbers));

    float image[height][width], samples[height][width], *device_samples;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) image[y][x] = 10.0f * y + x * x;
    CHECK(cudaMalloc(&device_samples, sizeof samples));
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image, sizeof image[0], sizeof image[0], height, cudaMemcpyHostToDevice));
    plane.filterMode = cudaFilterModeLinear;
    plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeClamp;
    plane.normalized = false;
    CHECK(cudaBindTextureToArray(plane, array, format));
    sample<<<1, dim3(width, height)>>>(device_samples, width, 1.0f);
    CHECK(cudaMemcpy(samples, device_samples, sizeof samples, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const int right = x + 1 < width ? x + 1 : x, below = y + 1 < height ? y + 1 : y;
            const float expected = (image[y][x] + image[y][right] + image[below][x] + image[below][right]) / 4;
            REQUIRE(samples[y][x] == expected, "sample %d %d is %f, expected %f", x, y, samples[y][x], expected);
        }
    CHECK(cudaUnbindTexture(plane));

    float *pitched;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, sizeof image[0], height));
    CHECK(cudaMemcpy2D(pitched, pitch, image, sizeof image[0], sizeof image[0], height, cudaMemcpyHostToDevice));
    plane.filterMode = cudaFilterModePoint;
    CHECK(cudaBindTexture2D(nullptr, plane, pitched, format, width, height, pitch));
    sample<<<1, dim3(width, height)>>>(device_samples, width, 0.5f);
    CHECK(cudaMemcpy(samples, device_samples, sizeof samples, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            REQUIRE(samples[y][x] == image[y][x], "sample %d %d is %f", x, y, samples[y][x]);
    return passed("texture references");
}
