// A thousand host threads make their first call at the same moment.
#include "check.h"
#include <atomic>
#include <thread>
#include <vector>

static const int THREADS = 1000;

static std::atomic<int> ready(0), failed(0);
static std::atomic<bool> go(false);
static std::atomic<long long> total(0);

static void work(int index) {
    ++ready;
    while (!go) std::this_thread::yield();
    void *memory = nullptr;
    if (cudaMalloc(&memory, 256) != cudaSuccess || cudaFree(memory) != cudaSuccess) ++failed;
    total += index;
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; ++i) threads.emplace_back(work, i);
    while (ready < THREADS) std::this_thread::yield();
    go = true;
    for (std::thread &thread : threads) thread.join();
    REQUIRE(failed == 0, "%d of %d threads", failed.load(), THREADS);
    CHECK(cudaDeviceSynchronize());
    return passed("many threads: total %lld", total.load());
}
