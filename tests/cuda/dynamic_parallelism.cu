// Kernels that launch kernels: the order of the streams of a grid, tail launches, parameters of all sizes, recursion, refused launches.
#include "check.h"

const int threads = 64;

struct Large {
    int numbers[200];
};

__device__ int values[threads], failures[8], largest_depth, leaves, tail_saw;

__global__ void fill(int first) {
    values[threadIdx.x] = first + static_cast<int>(threadIdx.x);
}

__global__ void multiply(int factor) {
    values[threadIdx.x] *= factor;
}

__global__ void add(Large large, short more, int *where) {
    extern __shared__ int row[];
    row[threadIdx.x] = large.numbers[threadIdx.x] + more;
    __syncthreads();
    where[threadIdx.x] += row[blockDim.x - 1 - threadIdx.x];
}

// The threads of a block share its stream: what one launches follows what another has launched before it.
__global__ void in_order(int first) {
    if (threadIdx.x == 0) fill<<<1, threads>>>(first);
    __syncthreads();
    if (threadIdx.x == 1) multiply<<<1, threads>>>(3);
    __syncthreads();
    if (threadIdx.x == 2) {
        Large large;
        for (int i = 0; i < 200; ++i) large.numbers[i] = i;
        add<<<1, threads, threads * sizeof(int)>>>(large, 1000, values);
    }
}

// A stream waits for an event of another.
__global__ void by_events() {
    cudaStream_t first, second;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    fill<<<1, threads, 0, first>>>(7);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    multiply<<<1, threads, 0, second>>>(5);
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

__global__ void leaf() {
    atomicAdd(&leaves, 1);
}

__global__ void after_all(int expected) {
    tail_saw = leaves == expected;
    printf("tail after %d leaves\n", leaves);
}

// A grid is done when all is that it has launched, and its tail comes last.
__global__ void tree(int depth, int expected) {
    if (expected && threadIdx.x == 0 && blockIdx.x == 0) after_all<<<1, 1, 0, cudaStreamTailLaunch>>>(expected);
    if (threadIdx.x == 0) atomicMax(&largest_depth, depth);
    if (depth == 4) leaf<<<1, 1, 0, cudaStreamFireAndForget>>>();
    else tree<<<1, 2, 0, cudaStreamFireAndForget>>>(depth + 1, 0);
}

__global__ void mistakes() {
    leaf<<<1, 2048>>>();
    failures[0] = cudaGetLastError();
    failures[1] = cudaGetLastError();
    leaf<<<0, 1>>>();
    failures[2] = cudaPeekAtLastError();
    failures[3] = cudaGetLastError();
    leaf<<<1, 1, 1 << 20>>>();
    failures[4] = cudaGetLastError() != cudaSuccess;
    leaf<<<1, 1>>>();
    failures[5] = cudaGetLastError();
}

int main() {
    int found[threads], words[8], number = 0;
    in_order<<<1, threads>>>(10);
    CHECK(cudaMemcpyFromSymbol(found, values, sizeof found));
    for (int i = 0; i < threads; ++i) {
        REQUIRE(found[i] == 3 * (10 + i) + 1063 - i, "value %d is %d", i, found[i]);
    }
    by_events<<<1, 1>>>();
    CHECK(cudaMemcpyFromSymbol(found, values, sizeof found));
    for (int i = 0; i < threads; ++i) REQUIRE(found[i] == 5 * (7 + i), "value %d is %d", i, found[i]);
    // 3 blocks of 2 threads; each thread of depths 0 to 3 starts two threads more.
    tree<<<3, 2>>>(0, 96);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyFromSymbol(&number, tail_saw, sizeof number));
    REQUIRE(number == 1, "the tail came early");
    CHECK(cudaMemcpyFromSymbol(&number, largest_depth, sizeof number));
    REQUIRE(number == 4, "depth %d", number);
    mistakes<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyFromSymbol(words, failures, sizeof words));
    const int expected[] = {cudaErrorInvalidConfiguration, 0, cudaErrorInvalidConfiguration, cudaErrorInvalidConfiguration, 1, 0};
    for (int i = 0; i < 6; ++i) REQUIRE(words[i] == expected[i], "code %d is %d", i, words[i]);
    CHECK(cudaMemcpyFromSymbol(&number, leaves, sizeof number));
    return passed("dynamic parallelism: %d leaves", number);
}
