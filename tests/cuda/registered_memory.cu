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
    free(base);
    return passed("registered memory");
}
