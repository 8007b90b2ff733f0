// Memory that is registered while other threads write beside it, in the same pages: no write is lost.
#include "check.h"
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

static const int COUNT = 1000, WRITERS = 2, ROUNDS = 30, PAGE = 4096;

__global__ void increment(int *data, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += 1;
}

// A memset node of a graph fills registered memory by the program's own address, and its parameters keep that address.
static void graph_fills(unsigned *registered, int count) {
    for (int i = 0; i < count; ++i) registered[i] = 0;
    CHECK(cudaHostRegister(registered, count * sizeof(unsigned), cudaHostRegisterMapped));
    cudaMemsetParams fill = {};
    fill.dst = registered;
    fill.value = 0x12345678;
    fill.elementSize = sizeof(unsigned);
    fill.width = count - 1;
    fill.height = 1;
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, 0));
    CHECK(cudaDeviceSynchronize());
    cudaMemsetParams found = {};
    CHECK(cudaGraphMemsetNodeGetParams(node, &found));
    REQUIRE(found.dst == registered, "the node has %p", found.dst);
    for (int i = 0; i < count; ++i) {
        REQUIRE(registered[i] == (i < count - 1 ? 0x12345678u : 0u), "element %d is %x", i, registered[i]);
    }
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaHostUnregister(registered));
}

int main() {
    // Two pages: the writers have the start of the first, the end of it is registered, and most of the second.
    char *base = static_cast<char *>(aligned_alloc(PAGE, 2 * PAGE));
    int *registered = reinterpret_cast<int *>(base + PAGE - 1024);
    std::atomic<bool> stop(false);
    std::atomic<int> lost(0);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < WRITERS; ++writer) {
        volatile unsigned *word = reinterpret_cast<volatile unsigned *>(base + 128 * writer);
        *word = 0;
        writers.emplace_back([&, word] {
            for (unsigned count = 0; !stop; *word = ++count) {
                if (*word != count) {
                    ++lost;
                    return;
                }
            }
        });
    }
    for (int round = 0; round < ROUNDS; ++round) {
        CHECK(cudaHostRegister(registered, COUNT * sizeof(int), cudaHostRegisterMapped));
        for (int i = 0; i < COUNT; ++i) registered[i] = i;
        int *data;
        CHECK(cudaHostGetDevicePointer(&data, registered, 0));
        increment<<<(COUNT + 255) / 256, 256>>>(data, COUNT);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < COUNT; ++i) REQUIRE(registered[i] == i + 1, "element %d is %d", i, registered[i]);
        CHECK(cudaHostUnregister(registered));
        for (int i = 0; i < COUNT; ++i) REQUIRE(registered[i] == i + 1, "element %d is %d afterwards", i, registered[i]);
    }
    stop = true;
    for (std::thread &writer : writers) writer.join();
    REQUIRE(lost == 0, "%d of %d writers", lost.load(), WRITERS);
    graph_fills(reinterpret_cast<unsigned *>(base), COUNT);
    free(base);
    return passed("registered memory");
}
