// Stream-ordered allocation: the default pool, one of the program's own, their attributes, use across streams.
#include "check.h"
#include <cstring>
#include <vector>

__global__ void fill(int *data, int count, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = value + i;
}

static unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    unsigned long long value = ~0ULL;
    CHECK(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

int main() {
    const int count = 5000;
    const size_t bytes = count * sizeof(int);
    int supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    REQUIRE(supported == 1, "no memory pools");
    cudaStream_t stream, other;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&other));
    std::vector<int> host(count);

    // Allocated, used, freed in stream order; repeated, so that memory is used again.
    for (int round = 0; round < 4; ++round) {
        int *data;
        CHECK(cudaMallocAsync(&data, bytes, stream));
        fill<<<(count + 127) / 128, 128, 0, stream>>>(data, count, round);
        CHECK(cudaMemcpyAsync(host.data(), data, bytes, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaFreeAsync(data, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < count; ++i) REQUIRE(host[i] == round + i, "round %d, element %d is %d", round, i, host[i]);
    }
    cudaMemPool_t standard, current, own;
    CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
    CHECK(cudaDeviceGetMemPool(&current, 0));
    REQUIRE(standard == current, "the device's pool is not the default one");
    REQUIRE(attribute(standard, cudaMemPoolAttrUsedMemCurrent) == 0, "memory in use");
    REQUIRE(attribute(standard, cudaMemPoolAttrUsedMemHigh) >= bytes, "no memory was in use");
    REQUIRE(attribute(standard, cudaMemPoolAttrReleaseThreshold) == 0, "threshold");

    cudaMemPoolProps properties;
    memset(&properties, 0, sizeof properties);
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    CHECK(cudaMemPoolCreate(&own, &properties));
    unsigned long long threshold = 1ULL << 30;
    CHECK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    REQUIRE(attribute(own, cudaMemPoolAttrReleaseThreshold) == threshold, "threshold");
    int *a, *b;
    CHECK(cudaMallocFromPoolAsync(&a, bytes, own, stream));
    CHECK(cudaMallocFromPoolAsync(&b, bytes, own, stream));
    REQUIRE(a != b, "the same memory twice");
    CHECK(cudaStreamSynchronize(stream));
    const unsigned long long used = attribute(own, cudaMemPoolAttrUsedMemCurrent);
    REQUIRE(used >= 2 * bytes, "%llu bytes in use", used);
    REQUIRE(attribute(own, cudaMemPoolAttrReservedMemCurrent) >= used, "less reserved than used");
    // Freed in another stream, behind an event.
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    fill<<<(count + 127) / 128, 128, 0, stream>>>(a, count, 1);
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaStreamWaitEvent(other, done, 0));
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, other));
    CHECK(cudaFreeAsync(a, other));
    CHECK(cudaMemcpyAsync(host.data(), b, bytes, cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 1 + i, "element %d is %d", i, host[i]);
    CHECK(cudaFree(b)); // An allocation of a pool may be freed the old way.
    REQUIRE(attribute(own, cudaMemPoolAttrUsedMemCurrent) == 0, "memory in use");
    CHECK(cudaMemPoolTrimTo(own, 0));
    REQUIRE(attribute(own, cudaMemPoolAttrReservedMemCurrent) == 0, "memory reserved after the trim");
    CHECK(cudaMemPoolDestroy(own));

    // Graphs that free what they allocate share memory in one stream; it stays until it is trimmed.
    auto footprint = [&](cudaGraphMemAttributeType what) {
        size_t bytes = 1;
        if (cudaDeviceGetGraphMemAttribute(0, what, &bytes) != cudaSuccess) return ~size_t(0);
        return bytes;
    };
    const size_t block = 4 << 20;
    cudaGraphExec_t sharing[2];
    void *places[2];
    for (int i = 0; i < 2; ++i) {
        cudaGraph_t graph;
        cudaGraphNode_t allocation, again, end;
        cudaMemAllocNodeParams wanted = {};
        wanted.bytesize = block;
        wanted.poolProps.allocType = cudaMemAllocationTypePinned;
        wanted.poolProps.location.type = cudaMemLocationTypeDevice;
        CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
        places[i] = wanted.dptr;
        CHECK(cudaGraphAddMemFreeNode(&end, graph, &allocation, 1, wanted.dptr));
        CHECK(cudaGraphAddMemAllocNode(&again, graph, &end, 1, &wanted));
        REQUIRE(wanted.dptr == places[i], "an allocation after the end of another has its address");
        if (i == 0) CHECK(cudaGraphAddMemFreeNode(&end, graph, &again, 1, wanted.dptr));
        CHECK(cudaGraphInstantiateWithFlags(&sharing[i], graph, 0));
        CHECK(cudaGraphDestroy(graph));
    }
    REQUIRE(places[0] != places[1], "two graphs have one address");
    REQUIRE(footprint(cudaGraphMemAttrUsedMemCurrent) == 0, "graphs that were not launched have memory");
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaGraphLaunch(sharing[i], 0));
        REQUIRE(footprint(cudaGraphMemAttrUsedMemCurrent) == block, "launch %d does not share", i);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceGraphMemTrim(0));
    REQUIRE(footprint(cudaGraphMemAttrReservedMemCurrent) == block, "memory that is allocated was trimmed");
    // What a graph allocates outlives it.
    for (int i = 0; i < 2; ++i) CHECK(cudaGraphExecDestroy(sharing[i]));
    CHECK(cudaMemset(places[1], 1, block));
    CHECK(cudaFree(places[1]));
    EXPECT(cudaFree(places[1]), cudaErrorInvalidValue);
    REQUIRE(footprint(cudaGraphMemAttrUsedMemCurrent) == 0, "freed memory is used");
    REQUIRE(footprint(cudaGraphMemAttrReservedMemCurrent) == block, "memory is set aside until it is trimmed");
    CHECK(cudaDeviceGraphMemTrim(0));
    REQUIRE(footprint(cudaGraphMemAttrReservedMemCurrent) == 0, "nothing is left after a trim");
    REQUIRE(footprint(cudaGraphMemAttrUsedMemHigh) == block, "the most that was used");
    return passed("memory pools");
}
