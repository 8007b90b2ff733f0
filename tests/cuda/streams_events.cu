// Streams and events: order inside a stream, waits between streams, time between events, overlap, queries, priorities.
#include "check.h"
#include <vector>

// Adds the step to every element, slowly.
__global__ void add_slowly(int *data, int count, int step, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned value = data[i];
    for (int round = 0; round < rounds; ++round) value = value * 3 + step;
    for (int round = 0; round < rounds; ++round) value = (value - step) * 0xaaaaaaabu; // 1/3 modulo 2^32
    data[i] = static_cast<int>(value + step);
}

__global__ void copy(const int *from, int *to, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i];
}

int main() {
    const int count = 1024, rounds = 400;
    const size_t bytes = count * sizeof(int);
    cudaStream_t first, second;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    unsigned flags = 99;
    CHECK(cudaStreamGetFlags(second, &flags));
    REQUIRE(flags == cudaStreamNonBlocking, "flags %u", flags);
    int *host, *data[2];
    CHECK(cudaMallocHost(&host, 2 * bytes));
    for (int i = 0; i < 2 * count; ++i) host[i] = i;
    for (int *&part : data) CHECK(cudaMalloc(&part, bytes));

    cudaEvent_t start, middle, stop, untimed;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&middle));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CHECK(cudaEventQuery(start)); // An event that was never recorded is complete.
    float milliseconds = -1;
    EXPECT(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);

    // A kernel between two events, a copy after it; none is done when the calls return.
    CHECK(cudaEventRecord(start, first));
    CHECK(cudaMemcpyAsync(data[0], host, bytes, cudaMemcpyHostToDevice, first));
    add_slowly<<<count / 128, 128, 0, first>>>(data[0], count, 5, rounds);
    CHECK(cudaEventRecord(stop, first));
    EXPECT(cudaStreamQuery(first), cudaErrorNotReady);
    EXPECT(cudaEventQuery(stop), cudaErrorNotReady);
    EXPECT(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorNotReady);
    // The second stream waits for the first by an event and takes what it left.
    CHECK(cudaEventRecord(untimed, first));
    CHECK(cudaStreamWaitEvent(second, untimed, 0));
    copy<<<count / 128, 128, 0, second>>>(data[0], data[1], count);
    CHECK(cudaMemcpyAsync(host + count, data[1], bytes, cudaMemcpyDeviceToHost, second));
    CHECK(cudaStreamSynchronize(second));
    CHECK(cudaEventQuery(stop));
    CHECK(cudaStreamQuery(first));
    CHECK(cudaStreamQuery(second));
    for (int i = 0; i < count; ++i) REQUIRE(host[count + i] == i + 5, "element %d is %d", i, host[count + i]);
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(milliseconds > 0 && milliseconds < 1000, "%f ms", milliseconds);
    EXPECT(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);

    // The same two small kernels in one stream, then in two: they overlap.
    float serial = 0, parallel = 0;
    CHECK(cudaEventRecord(start, first));
    add_slowly<<<1, 128, 0, first>>>(data[0], 128, 7, 4 * rounds);
    add_slowly<<<1, 128, 0, first>>>(data[1], 128, 7, 4 * rounds);
    CHECK(cudaEventRecord(stop, first));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&serial, start, stop));
    CHECK(cudaEventRecord(start, first));
    CHECK(cudaStreamWaitEvent(second, start, 0));
    add_slowly<<<1, 128, 0, first>>>(data[0], 128, 7, 4 * rounds);
    add_slowly<<<1, 128, 0, second>>>(data[1], 128, 7, 4 * rounds);
    CHECK(cudaEventRecord(middle, second));
    CHECK(cudaStreamWaitEvent(first, middle, 0));
    CHECK(cudaEventRecord(stop, first));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&parallel, start, stop));
    REQUIRE(parallel < 0.75f * serial, "%f ms in two streams, %f ms in one", parallel, serial);

    // The legacy default stream waits for blocking streams.
    CHECK(cudaMemset(data[0], 0, bytes));
    add_slowly<<<count / 128, 128, 0, first>>>(data[0], count, 9, rounds);
    copy<<<count / 128, 128>>>(data[0], data[1], count);
    CHECK(cudaMemcpy(host, data[1], bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 9, "element %d is %d", i, host[i]);

    int least, greatest, priority;
    cudaStream_t urgent;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    REQUIRE(least >= greatest, "priorities %d to %d", least, greatest);
    CHECK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamGetPriority(urgent, &priority));
    REQUIRE(priority == greatest, "priority %d", priority);
    for (cudaStream_t stream : {first, second, urgent}) CHECK(cudaStreamDestroy(stream));
    for (cudaEvent_t event : {start, middle, stop, untimed}) CHECK(cudaEventDestroy(event));
    for (int *part : data) CHECK(cudaFree(part));
    CHECK(cudaFreeHost(host));
    return passed("streams and events");
}
