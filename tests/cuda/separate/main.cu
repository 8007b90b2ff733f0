// Separate compilation: kernels here call functions and use variables of another file, through a pointer too.
#include "../check.h"
#include "library.h"

__global__ void use(int *output) {
    output[threadIdx.x] = apply(threadIdx.x, threadIdx.x);
    atomicAdd(&shared_counter, 1);
}

int main() {
    int *output, found[8];
    CHECK(cudaMalloc(&output, sizeof found));
    use<<<1, 8>>>(output);
    CHECK(cudaMemcpy(found, output, sizeof found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i) REQUIRE(found[i] == 2 * i + 10 * (i % 4 + 1), "element %d is %d", i, found[i]);
    run_select_thrice();
    const int table[4] = {1, 2, 3, 4};
    CHECK(cudaMemcpyToSymbol(shared_table, table, sizeof table));
    use<<<1, 8>>>(output);
    CHECK(cudaMemcpy(found, output, sizeof found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i) REQUIRE(found[i] == 3 * i + i % 4 + 1, "element %d is %d", i, found[i]);
    int counter = 0;
    CHECK(cudaMemcpyFromSymbol(&counter, shared_counter, sizeof counter));
    REQUIRE(counter == 3 + 16, "counter %d", counter);
    return passed("separate compilation: counter %d", counter);
}
