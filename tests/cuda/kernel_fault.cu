// A kernel that writes to an address that nobody allocated: the code, and that every later call has it. Before it, what
// cudaDeviceReset does to a device in order.
#include "check.h"

__device__ int generation = 1;

__global__ void increment(int *out) { *out = ++generation; }
__global__ void write_to(int *address) { *address = 1; }

int main() {
    int *data, value = 0;
    CHECK(cudaMalloc(&data, 4096));
    increment<<<1, 1>>>(data);
    CHECK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
    REQUIRE(value == 2, "value %d", value);
    CHECK(cudaDeviceReset());
    // Allocations are gone, and variables have their initial values.
    CHECK(cudaMalloc(&data, 4096));
    increment<<<1, 1>>>(data);
    CHECK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
    REQUIRE(value == 2, "value %d after the reset", value);

    write_to<<<1, 1>>>(reinterpret_cast<int *>(0x1000));
    CHECK(cudaPeekAtLastError()); // The launch itself is in order.
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT(cudaPeekAtLastError(), cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
    void *more = nullptr;
    EXPECT(cudaMalloc(&more, 16), cudaErrorIllegalAddress);
    EXPECT(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    write_to<<<1, 1>>>(data);
    EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices)); // What does not ask the device goes on.
    return passed("kernel fault: %s", cudaGetErrorName(cudaErrorIllegalAddress));
}
