// Kernels with more than 4 KiB of parameters, whose last parameters and elements by a number that the thread computes are read.
#include "check.h"

struct Numbers {
    int all[1500];
};

__global__ void sum(const __grid_constant__ Numbers numbers, int *out, int count) {
    int sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        sum += numbers.all[i];
    }
    atomicAdd(&out[0], sum);
    if (threadIdx.x == 0) {
        atomicAdd(&out[1], numbers.all[1499] + static_cast<int>(gridDim.x));
    }
}

int main() {
    Numbers numbers;
    for (int i = 0; i < 1500; i++) {
        numbers.all[i] = 3 * i + 1;
    }
    int *out, found[2];
    CHECK(cudaMalloc(&out, sizeof(found)));
    CHECK(cudaMemset(out, 0, sizeof(found)));
    sum<<<2, 64>>>(numbers, out, 1500);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, out, sizeof(found), cudaMemcpyDeviceToHost));
    REQUIRE(found[1] == 2 * (4498 + 2), "the last number and the grid give %d", found[1]);
    return passed("large parameters: sum %d", found[0]);
}
