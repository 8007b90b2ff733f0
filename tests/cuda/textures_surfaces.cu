// Texture objects (linear memory, 1D and 2D arrays, pitched memory; filters, address modes) and surfaces.
#include "check.h"
#include <cstring>
#include <vector>

__global__ void fetch_1d(cudaTextureObject_t texture, int *output, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] = tex1Dfetch<int>(texture, count - 1 - i);
}

__global__ void sample_1d(cudaTextureObject_t texture, float *output, int count, float step) {
    const int i = threadIdx.x;
    if (i < count) output[i] = tex1D<float>(texture, i * step);
}

__global__ void sample_2d(cudaTextureObject_t texture, float *output, int width, int height, float scale_x,
                          float scale_y, float offset) {
    const int x = threadIdx.x, y = threadIdx.y;
    if (x < width && y < height)
        output[y * width + x] = tex2D<float>(texture, (x + offset) * scale_x, (y + offset) * scale_y);
}

__global__ void sample_vector(cudaTextureObject_t texture, float4 *output) {
    output[threadIdx.x] = tex2D<float4>(texture, threadIdx.x + 0.5f, 0.5f);
}

#ifdef __NVCC__
// Clang has no surface functions before version 20.
__global__ void write_surface(cudaSurfaceObject_t surface, int width, int height) {
    const int x = threadIdx.x, y = threadIdx.y;
    if (x >= width || y >= height) return;
    float old;
    surf2Dread(&old, surface, x * static_cast<int>(sizeof(float)), y);
    surf2Dwrite(old * 2 + 1000 * y, surface, x * static_cast<int>(sizeof(float)), y);
}
#endif

static cudaTextureObject_t make_texture(const cudaResourceDesc &resource, cudaTextureFilterMode filter,
                                        cudaTextureAddressMode address, cudaTextureReadMode read, int normalized) {
    cudaTextureDesc description;
    memset(&description, 0, sizeof description);
    for (cudaTextureAddressMode &mode : description.addressMode) mode = address;
    description.filterMode = filter;
    description.readMode = read;
    description.normalizedCoords = normalized;
    cudaTextureObject_t texture = 0;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    return texture;
}

static cudaResourceDesc array_resource(cudaArray_t array) {
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

int main() {
    const int count = 300;
    int *integers, *reversed;
    std::vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = 3 * i;
    CHECK(cudaMalloc(&integers, count * sizeof(int)));
    CHECK(cudaMalloc(&reversed, count * sizeof(int)));
    CHECK(cudaMemcpy(integers, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    cudaResourceDesc linear;
    memset(&linear, 0, sizeof linear);
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = integers;
    linear.res.linear.desc = cudaCreateChannelDesc<int>();
    linear.res.linear.sizeInBytes = count * sizeof(int);
    cudaTextureObject_t texture =
        make_texture(linear, cudaFilterModePoint, cudaAddressModeClamp, cudaReadModeElementType, 0);
    fetch_1d<<<3, 128>>>(texture, reversed, count);
    CHECK(cudaMemcpy(host.data(), reversed, count * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 3 * (count - 1 - i), "fetch %d gave %d", i, host[i]);
    CHECK(cudaDestroyTextureObject(texture));

    // One dimension, linear filter: the filter's weights have 8 bits of fraction, so that quarters are exact.
    float *output, samples[64];
    CHECK(cudaMalloc(&output, 64 * sizeof(float)));
    const float line[8] = {0, 16, 64, 32, 8, 128, 256, 512};
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t line_array;
    CHECK(cudaMallocArray(&line_array, &format, 8, 0));
    CHECK(cudaMemcpy2DToArray(line_array, 0, 0, line, sizeof line, sizeof line, 1, cudaMemcpyHostToDevice));
    texture = make_texture(array_resource(line_array), cudaFilterModeLinear, cudaAddressModeClamp,
                           cudaReadModeElementType, 0);
    sample_1d<<<1, 32>>>(texture, output, 32, 0.25f);
    CHECK(cudaMemcpy(samples, output, 32 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        const float place = i * 0.25f - 0.5f;
        const int below = static_cast<int>(place + 1) - 1;
        const float weight = place - below;
        const float left = line[below < 0 ? 0 : below], right = line[below + 1 > 7 ? 7 : below + 1];
        const float expected = left * (1 - weight) + right * weight;
        REQUIRE(samples[i] == expected, "sample %d is %f, expected %f", i, samples[i], expected);
    }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(line_array));

    // Two dimensions: points, then normalized coordinates that wrap around.
    const int width = 8, height = 4;
    float image[height * width];
    for (int i = 0; i < height * width; ++i) image[i] = static_cast<float>(i * i);
    cudaArray_t image_array;
    CHECK(cudaMallocArray(&image_array, &format, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(image_array, 0, 0, image, width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
    cudaChannelFormatDesc found_format;
    cudaExtent extent;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&found_format, &extent, &flags, image_array));
    REQUIRE(extent.width == width && extent.height == height && extent.depth == 0, "the array has another size");
    REQUIRE(found_format.x == 32 && found_format.y == 0 && found_format.f == cudaChannelFormatKindFloat, "another format");
    texture = make_texture(array_resource(image_array), cudaFilterModePoint, cudaAddressModeWrap, cudaReadModeElementType, 1);
    cudaResourceDesc found_resource;
    CHECK(cudaGetTextureObjectResourceDesc(&found_resource, texture));
    REQUIRE(found_resource.resType == cudaResourceTypeArray && found_resource.res.array.array == image_array, "resource");
    sample_2d<<<1, dim3(8, 8)>>>(texture, output, 8, 8, 1.0f / width, 1.0f / height, 0.5f);
    CHECK(cudaMemcpy(samples, output, 64 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 8; ++x)
            REQUIRE(samples[y * 8 + x] == image[(y % height) * width + x], "sample %d %d is %f", x, y, samples[y * 8 + x]);
    CHECK(cudaDestroyTextureObject(texture));

    // Bilinear, halfway between four texels.
    texture = make_texture(array_resource(image_array), cudaFilterModeLinear, cudaAddressModeClamp, cudaReadModeElementType, 0);
    sample_2d<<<1, dim3(8, 4)>>>(texture, output, 7, 3, 1, 1, 1.0f);
    CHECK(cudaMemcpy(samples, output, 21 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 7; ++x) {
            const float *corner = &image[y * width + x];
            const float expected = (corner[0] + corner[1] + corner[width] + corner[width + 1]) / 4;
            REQUIRE(samples[y * 7 + x] == expected, "sample %d %d is %f, expected %f", x, y, samples[y * 7 + x], expected);
        }
    CHECK(cudaDestroyTextureObject(texture));

    // Pitched memory, and bytes read as fractions of one.
    unsigned char *pitched, bytes[2 * 4] = {0, 51, 102, 255, 255, 204, 153, 0};
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, 4, 2));
    CHECK(cudaMemcpy2D(pitched, pitch, bytes, 4, 4, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc plane;
    memset(&plane, 0, sizeof plane);
    plane.resType = cudaResourceTypePitch2D;
    plane.res.pitch2D.devPtr = pitched;
    plane.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
    plane.res.pitch2D.width = 4;
    plane.res.pitch2D.height = 2;
    plane.res.pitch2D.pitchInBytes = pitch;
    texture = make_texture(plane, cudaFilterModePoint, cudaAddressModeClamp, cudaReadModeNormalizedFloat, 0);
    sample_2d<<<1, dim3(4, 2)>>>(texture, output, 4, 2, 1, 1, 0.5f);
    CHECK(cudaMemcpy(samples, output, 8 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i) {
        const float difference = samples[i] - bytes[i] / 255.0f;
        REQUIRE(difference < 1e-6f && difference > -1e-6f, "texel %d is %f", i, samples[i]);
    }
    CHECK(cudaDestroyTextureObject(texture));

    // Four channels.
    const cudaChannelFormatDesc four = cudaCreateChannelDesc<float4>();
    cudaArray_t vectors;
    float4 *vector_output, vector[4], vector_found[4];
    for (int i = 0; i < 4; ++i) vector[i] = make_float4(i, 10 + i, 20 + i, 30 + i);
    CHECK(cudaMallocArray(&vectors, &four, 4, 1));
    CHECK(cudaMemcpy2DToArray(vectors, 0, 0, vector, sizeof vector, sizeof vector, 1, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&vector_output, sizeof vector));
    texture = make_texture(array_resource(vectors), cudaFilterModePoint, cudaAddressModeClamp, cudaReadModeElementType, 0);
    sample_vector<<<1, 4>>>(texture, vector_output);
    CHECK(cudaMemcpy(vector_found, vector_output, sizeof vector, cudaMemcpyDeviceToHost));
    REQUIRE(memcmp(vector, vector_found, sizeof vector) == 0, "texels of four channels differ");
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(vectors));

#ifdef __NVCC__
    cudaSurfaceObject_t surface;
    const cudaResourceDesc resource = array_resource(image_array);
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    write_surface<<<1, dim3(8, 4)>>>(surface, width, height);
    float back[height * width];
    CHECK(cudaMemcpy2DFromArray(back, width * sizeof(float), image_array, 0, 0, width * sizeof(float), height,
                                cudaMemcpyDeviceToHost));
    for (int i = 0; i < height * width; ++i)
        REQUIRE(back[i] == 2 * image[i] + 1000 * (i / width), "texel %d is %f", i, back[i]);
    CHECK(cudaDestroySurfaceObject(surface));
#endif
    CHECK(cudaFreeArray(image_array));
    return passed("textures and surfaces");
}
