// printf on the device: formats, order within a thread and between kernels, the result of printf, order with the host's.
#include "check.h"

__global__ void formats() {
    printf("int %d unsigned %u hex %x char %c percent %%\n", -5, 5u, 255, 'z');
    printf("float %.3f %8.2e width [%5d] [%-5d] [%05d]\n", 1.5, 12345.678, 42, 42, 42);
    printf("long %lld %llx string %s\n", -1234567890123LL, 0xdeadbeefcafeULL, "text");
}

__global__ void lanes() {
    const int printed = printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
    if (threadIdx.x == 0) printf("arguments %d\n", printed);
}

int main() {
    size_t fifo = 0;
    CHECK(cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize));
    REQUIRE(fifo >= 65536, "a buffer of %zu bytes", fifo);
    printf("host before\n");
    fflush(stdout);
    formats<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    printf("host between\n");
    fflush(stdout);
    lanes<<<1, 3>>>();
    lanes<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    return passed("device printf");
}
