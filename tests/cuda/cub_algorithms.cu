// CUB: device-wide scan, reduction, radix sort and selection, and the block primitives.
#include "check.h"
#include <algorithm>
#include <cub/cub.cuh>
#include <vector>

__global__ void block_scan(const int *input, int *output) {
    typedef cub::BlockScan<int, 128> Scan;
    __shared__ typename Scan::TempStorage storage;
    int value;
    Scan(storage).ExclusiveSum(input[threadIdx.x], value);
    output[threadIdx.x] = value;
}

int main() {
    const int count = 5000;
    std::vector<int> host(count), back(count);
    for (int i = 0; i < count; ++i) host[i] = (i * 7919) % 1009;
    int *input, *output, *sum;
    CHECK(cudaMalloc(&input, count * sizeof(int)));
    CHECK(cudaMalloc(&output, count * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof(int)));
    CHECK(cudaMemcpy(input, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));

    size_t bytes = 0;
    void *scratch = nullptr;
    CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, input, output, count));
    REQUIRE(bytes > 0, "no scratch memory asked for");
    size_t needed = bytes;
    CHECK(cub::DeviceReduce::Sum(nullptr, bytes, input, sum, count));
    needed = std::max(needed, bytes);
    CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, input, output, count));
    needed = std::max(needed, bytes);
    CHECK(cudaMalloc(&scratch, needed));

    bytes = needed;
    CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, input, output, count));
    CHECK(cudaMemcpy(back.data(), output, count * sizeof(int), cudaMemcpyDeviceToHost));
    int expected = 0;
    for (int i = 0; i < count; ++i) {
        REQUIRE(back[i] == expected, "prefix %d is %d, expected %d", i, back[i], expected);
        expected += host[i];
    }
    bytes = needed;
    CHECK(cub::DeviceReduce::Sum(scratch, bytes, input, sum, count));
    int total = 0;
    CHECK(cudaMemcpy(&total, sum, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(total == expected, "sum %d, expected %d", total, expected);

    bytes = needed;
    CHECK(cub::DeviceRadixSort::SortKeys(scratch, bytes, input, output, count));
    CHECK(cudaMemcpy(back.data(), output, count * sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<int> sorted = host;
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < count; ++i) REQUIRE(back[i] == sorted[i], "element %d is %d, expected %d", i, back[i], sorted[i]);

    block_scan<<<1, 128>>>(input, output);
    CHECK(cudaMemcpy(back.data(), output, 128 * sizeof(int), cudaMemcpyDeviceToHost));
    expected = 0;
    for (int i = 0; i < 128; ++i) {
        REQUIRE(back[i] == expected, "block prefix %d is %d, expected %d", i, back[i], expected);
        expected += host[i];
    }
    return passed("cub: sum %d", total);
}
