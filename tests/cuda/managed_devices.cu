// Managed memory of several devices: what one writes the other reads, with advice and prefetches, and both use parts of one array at once.
// On one device, that one stands for both.
#include "check.h"

const int N = 1 << 16;
const int BLOCKS = N / 256;

__global__ void fill(int *data, int first) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = first + i;
}

__global__ void add(int *out, const int *in, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] += in[i];
}

// The functions took the number of a device before CUDA 13.
#if CUDART_VERSION >= 13000
cudaMemLocation at(int device) {
    cudaMemLocation location = {};
    location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = device == cudaCpuDeviceId ? 0 : device;
    return location;
}
#else
int at(int device) { return device; }
#endif

cudaError_t advise(int *data, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(data, N * sizeof(int), advice, at(device));
}

cudaError_t prefetch(int *data, int device, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    return cudaMemPrefetchAsync(data, N * sizeof(int), at(device), 0, stream);
#else
    return cudaMemPrefetchAsync(data, N * sizeof(int), device, stream);
#endif
}

int main() {
    int count;
    CHECK(cudaGetDeviceCount(&count));
    const int other = count - 1;
    int *a, *b;
    // From one device each; any device may use both.
    CHECK(cudaSetDevice(0));
    CHECK(cudaMallocManaged(&a, N * sizeof(int)));
    CHECK(cudaSetDevice(other));
    CHECK(cudaMallocManaged(&b, N * sizeof(int)));

    CHECK(cudaSetDevice(0));
    fill<<<BLOCKS, 256>>>(a, 5);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(other));
    fill<<<BLOCKS, 256>>>(b, 0);
    add<<<BLOCKS, 256>>>(b, a, N);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N; ++i) REQUIRE(b[i] == 2 * i + 5, "b[%d] is %d", i, b[i]);

    // Both read it, and then one of them writes.
    CHECK(advise(a, cudaMemAdviseSetReadMostly, 0));
    for (int device : {0, other}) {
        CHECK(cudaSetDevice(device));
        add<<<BLOCKS, 256>>>(b, a, N);
        CHECK(cudaDeviceSynchronize());
    }
    fill<<<BLOCKS, 256>>>(a, 1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    add<<<BLOCKS, 256>>>(b, a, N);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N; ++i) REQUIRE(b[i] == 5 * i + 16, "b[%d] is %d", i, b[i]);
    CHECK(advise(a, cudaMemAdviseUnsetReadMostly, 0));

    // A stream of each device; what they do is ordered by an event.
    cudaStream_t first, second;
    cudaEvent_t ready;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaEventCreate(&ready));
    CHECK(prefetch(a, 0, first));
    fill<<<BLOCKS, 256, 0, first>>>(a, 100);
    CHECK(cudaEventRecord(ready, first));
    CHECK(cudaSetDevice(other));
    CHECK(cudaStreamCreate(&second));
    CHECK(advise(a, cudaMemAdviseSetPreferredLocation, other));
    CHECK(cudaStreamWaitEvent(second, ready, 0));
    CHECK(prefetch(a, other, second));
    fill<<<BLOCKS, 256, 0, second>>>(b, 0);
    add<<<BLOCKS, 256, 0, second>>>(b, a, N);
    CHECK(prefetch(b, cudaCpuDeviceId, second));
    CHECK(cudaStreamSynchronize(second));
    for (int i = 0; i < N; ++i) REQUIRE(b[i] == 2 * i + 100, "b[%d] is %d", i, b[i]);

    // Each device adds to one half, at the same time; a page in the middle is of both.
    const int middle = N / 2 + 100;
    CHECK(cudaSetDevice(0));
    add<<<BLOCKS, 256, 0, first>>>(b, a, middle);
    CHECK(cudaSetDevice(other));
    add<<<BLOCKS, 256, 0, second>>>(b + middle, a + middle, N - middle);
    CHECK(cudaStreamSynchronize(first));
    CHECK(cudaStreamSynchronize(second));
    for (int i = 0; i < N; ++i) REQUIRE(b[i] == 3 * i + 200, "b[%d] is %d", i, b[i]);

#if CUDART_VERSION >= 13000
    // Parts of both arrays in one call: the first of them to the first device, the others to the second one.
    void *parts[] = {a, b, b + N / 2};
    size_t sizes[] = {N * sizeof(int), N / 2 * sizeof(int), N / 2 * sizeof(int)};
    cudaMemLocation places[] = {at(0), at(other)};
    size_t from[] = {0, 1};
    CHECK(cudaMemPrefetchBatchAsync(parts, sizes, 3, places, from, 2, 0, second));
    add<<<BLOCKS, 256, 0, second>>>(b, a, N);
    CHECK(cudaStreamSynchronize(second));
    for (int i = 0; i < N; ++i) REQUIRE(b[i] == 4 * i + 300, "b[%d] is %d", i, b[i]);
    // What is discarded is written anew before it is read.
    CHECK(cudaMemDiscardAndPrefetchBatchAsync(parts, sizes, 1, places, from, 1, 0, second));
    CHECK(cudaMemDiscardBatchAsync(parts + 1, sizes + 1, 2, 0, second));
    fill<<<BLOCKS, 256, 0, second>>>(a, 1);
    fill<<<BLOCKS, 256, 0, second>>>(b, 2);
    CHECK(cudaStreamSynchronize(second));
    REQUIRE(a[N - 1] == N && b[N - 1] == N + 1, "the last are %d and %d", a[N - 1], b[N - 1]);
    EXPECT(cudaMemPrefetchBatchAsync(parts, sizes, 3, places, from, 2, 0, 0), cudaErrorInvalidValue);
    EXPECT(cudaMemDiscardBatchAsync(parts, sizes, 3, 1, second), cudaErrorInvalidValue);
#endif

    EXPECT(prefetch(a, count, second), cudaErrorInvalidDevice);
    CHECK(cudaEventDestroy(ready));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return passed("managed memory of several devices");
}
