// Occupancy calculators and function attributes, against the device's own limits.
#include "check.h"
#include <algorithm>

__global__ void plain(int *data) { data[threadIdx.x] = 1; }

__global__ void __launch_bounds__(256) bounded(int *data) { data[threadIdx.x] = 2; }

// Takes so much shared memory that it alone limits how many blocks are resident.
__global__ void greedy(int *data) {
    __shared__ int buffer[10 * 1024];
    buffer[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = buffer[(threadIdx.x + 1) % blockDim.x];
}

__global__ void dynamic(int *data) {
    extern __shared__ int buffer[];
    for (int i = threadIdx.x; i < 15 * 1024; i += blockDim.x) buffer[i] = i;
    __syncthreads();
    data[threadIdx.x] = buffer[15 * 1024 - 1 - threadIdx.x];
}

static int attribute(cudaDeviceAttr which) {
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    const int threads_per_multiprocessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    const int blocks_per_multiprocessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    const int shared_per_multiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    const int reserved = attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    const int opt_in = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);

    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, plain));
    REQUIRE(attributes.numRegs > 0 && attributes.numRegs <= 64, "%d registers", attributes.numRegs);
    REQUIRE(attributes.sharedSizeBytes == 0, "%zu bytes of shared memory", attributes.sharedSizeBytes);
    REQUIRE(attributes.maxThreadsPerBlock == 1024, "%d threads", attributes.maxThreadsPerBlock);
    REQUIRE(attributes.ptxVersion > 0 && attributes.binaryVersion > 0, "versions");
    CHECK(cudaFuncGetAttributes(&attributes, bounded));
    REQUIRE(attributes.maxThreadsPerBlock == 256, "%d threads", attributes.maxThreadsPerBlock);
    CHECK(cudaFuncGetAttributes(&attributes, greedy));
    REQUIRE(attributes.sharedSizeBytes == 40 * 1024, "%zu bytes of shared memory", attributes.sharedSizeBytes);

    int blocks = 0;
    for (int threads : {32, 64, 256, 512, 1024}) {
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, threads, 0));
        const int expected = std::min(threads_per_multiprocessor / threads, blocks_per_multiprocessor);
        REQUIRE(blocks == expected, "%d blocks of %d threads, expected %d", blocks, threads, expected);
    }
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, greedy, 32, 0));
    REQUIRE(blocks == shared_per_multiprocessor / (40 * 1024 + reserved), "%d blocks with 40 KiB each", blocks);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, plain, 64, 16 * 1024, cudaOccupancyDefault));
    REQUIRE(blocks == std::min(shared_per_multiprocessor / (16 * 1024 + reserved), threads_per_multiprocessor / 64),
            "%d blocks with 16 KiB each", blocks);

    int grid = 0, block = 0;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, block, 0));
    REQUIRE(blocks * block == threads_per_multiprocessor, "%d blocks of %d threads", blocks, block);
    REQUIRE(grid == blocks * attribute(cudaDevAttrMultiProcessorCount), "a grid of %d blocks", grid);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
    REQUIRE(block <= 256, "blocks of %d threads, bounded to 256", block);

    // More dynamic shared memory than 48 KiB must be asked for.
    int *data, found[64];
    const int bytes = 60 * 1024;
    REQUIRE(opt_in >= 48 * 1024, "at most %d bytes", opt_in);
    CHECK(cudaMalloc(&data, sizeof found));
    if (opt_in >= bytes) {
        dynamic<<<1, 64, bytes>>>(data);
        EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
        CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        CHECK(cudaFuncGetAttributes(&attributes, dynamic));
        REQUIRE(attributes.maxDynamicSharedSizeBytes == bytes, "%d bytes", attributes.maxDynamicSharedSizeBytes);
        dynamic<<<1, 64, bytes>>>(data);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found, data, sizeof found, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 64; ++i) REQUIRE(found[i] == 15 * 1024 - 1 - i, "element %d is %d", i, found[i]);
    }
    EXPECT(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, opt_in + 1), cudaErrorInvalidValue);
    CHECK(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferShared));
    CHECK(cudaFuncSetAttribute(plain, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    return passed("occupancy and attributes");
}
