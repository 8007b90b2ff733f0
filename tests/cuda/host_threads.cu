// Several host threads, each with a stream of its own; built with --default-stream per-thread, with the default stream.
#include "check.h"
#include <thread>
#include <vector>

__global__ void accumulate(int *data, int count, int step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * 2 + step;
}

static const int THREADS = 4, COUNT = 512, ROUNDS = 5;

static void work(int index, long long *sum) {
    // The current device and the last error belong to the thread.
    CHECK(cudaGetLastError());
    if (index == 1) EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    cudaStream_t stream = cudaStreamPerThread;
#else
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#endif
    int *data;
    std::vector<int> host(COUNT, index);
    const size_t bytes = COUNT * sizeof(int);
    CHECK(cudaMalloc(&data, bytes));
    CHECK(cudaMemcpyAsync(data, host.data(), bytes, cudaMemcpyHostToDevice, stream));
    for (int round = 0; round < ROUNDS; ++round) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
        accumulate<<<COUNT / 128, 128>>>(data, COUNT, index + round);
#else
        accumulate<<<COUNT / 128, 128, 0, stream>>>(data, COUNT, index + round);
#endif
    }
    CHECK(cudaMemcpyAsync(host.data(), data, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    int expected = index;
    for (int round = 0; round < ROUNDS; ++round) expected = expected * 2 + index + round;
    *sum = 0;
    for (int i = 0; i < COUNT; ++i) {
        REQUIRE(host[i] == expected, "thread %d, element %d is %d, expected %d", index, i, host[i], expected);
        *sum += host[i];
    }
    CHECK(cudaFree(data));
    EXPECT(cudaGetLastError(), index == 1 ? cudaErrorInvalidDevice : cudaSuccess);
}

int main() {
    long long sums[THREADS];
    for (int repetition = 0; repetition < 2; ++repetition) {
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; ++i) threads.emplace_back(work, i, &sums[i]);
        for (std::thread &thread : threads) thread.join();
    }
    CHECK(cudaDeviceSynchronize());
    long long total = 0;
    for (long long sum : sums) total += sum;
    return passed("host threads: total %lld", total);
}
