// A failed assertion of the device: its text on stderr, the code of the next call, and that it stays.
#undef NDEBUG
#include "check.h"
#include <cassert>

__global__ void check_values(const int *values) { assert(values[threadIdx.x] != 5); }

int main() {
    int host[8], *values;
    CHECK(cudaMalloc(&values, sizeof host));
    for (int i = 0; i < 8; ++i) host[i] = 10 + i;
    CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
    check_values<<<1, 8>>>(values);
    CHECK(cudaDeviceSynchronize());
    host[6] = 5;
    CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
    check_values<<<1, 8>>>(values);
    CHECK(cudaGetLastError());
    EXPECT(cudaDeviceSynchronize(), cudaErrorAssert);
    EXPECT(cudaGetLastError(), cudaErrorAssert);
    EXPECT(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost), cudaErrorAssert);
    return passed("device assert: %s", cudaGetErrorString(cudaErrorAssert));
}
