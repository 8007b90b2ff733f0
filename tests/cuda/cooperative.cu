// Cooperative groups: a grid that synchronises, tiles of a warp, and the launch's limits.
#include "check.h"
#include <cooperative_groups.h>
#include <vector>
namespace cg = cooperative_groups;

// Sums an array: each block a part, then, behind the barrier of the grid, the first thread the parts.
__global__ void grid_sum(const int *data, int count, int *parts, int *sum) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) mine += data[i];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) mine += tile.shfl_down(mine, offset);
    __shared__ int block_sum;
    if (block.thread_rank() == 0) block_sum = 0;
    block.sync();
    if (tile.thread_rank() == 0) atomicAdd(&block_sum, mine);
    block.sync();
    if (block.thread_rank() == 0) parts[blockIdx.x] = block_sum;
    grid.sync();
    if (grid.thread_rank() == 0) {
        int total = 0;
        for (unsigned i = 0; i < gridDim.x; ++i) total += parts[i];
        *sum = total;
    }
}

// Each round every block reads what its neighbour wrote in the round before.
__global__ void rotate(int *values, int rounds) {
    cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < rounds; ++round) {
        const int next = values[(blockIdx.x + 1) % gridDim.x];
        grid.sync();
        if (threadIdx.x == 0) values[blockIdx.x] = next;
        grid.sync();
    }
}

int main() {
    int device = 0, supported = 0, multiprocessors = 0, blocks_per_multiprocessor = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
    REQUIRE(supported == 1, "no cooperative launch");
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int threads = 128;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_multiprocessor, grid_sum, threads, 0));
    REQUIRE(blocks_per_multiprocessor > 0, "no block fits");
    const int most = multiprocessors * blocks_per_multiprocessor;
    const int blocks = multiprocessors < 8 ? multiprocessors : 8;

    int count = 10000;
    std::vector<int> host(count);
    int expected = 0;
    for (int i = 0; i < count; ++i) expected += host[i] = i % 17;
    int *data, *parts, *sum, found = 0;
    CHECK(cudaMalloc(&data, count * sizeof(int)));
    CHECK(cudaMalloc(&parts, most * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof(int)));
    CHECK(cudaMemcpy(data, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    void *arguments[] = {&data, &count, &parts, &sum};
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_sum), dim3(blocks), dim3(threads), arguments, 0, 0));
    CHECK(cudaMemcpy(&found, sum, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(found == expected, "sum %d, expected %d", found, expected);

    int rounds = 3;
    std::vector<int> values(blocks);
    for (int i = 0; i < blocks; ++i) values[i] = 100 + i;
    CHECK(cudaMemcpy(parts, values.data(), blocks * sizeof(int), cudaMemcpyHostToDevice));
    void *rotation[] = {&parts, &rounds};
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(rotate), dim3(blocks), dim3(32), rotation, 0, 0));
    CHECK(cudaMemcpy(values.data(), parts, blocks * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks; ++i)
        REQUIRE(values[i] == 100 + (i + rounds) % blocks, "value %d is %d", i, values[i]);

    // More blocks than can be resident are refused: they could never meet.
    EXPECT(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_sum), dim3(most + 1), dim3(threads), arguments, 0, 0),
           cudaErrorCooperativeLaunchTooLarge);
    EXPECT(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
    return passed("cooperative groups: sum %d", found);
}
