// Constant and __device__ variables: copies to and from symbols, parts of them, addresses, sizes, initial values.
#include "check.h"
#include <cstring>

struct Settings {
    double scale;
    int offset;
    char name[12];
};

__constant__ int weights[16] = {1, 2, 3, 4};
__constant__ Settings settings = {1.5, 7, "initial"};
__device__ int results[16];
__device__ unsigned long long calls = 5;
static __device__ float hidden = 0.25f;
namespace nested {
__device__ short small[3] = {-1, -2, -3};
}

__global__ void compute(char *name) {
    const int i = threadIdx.x;
    results[i] = weights[i] * i + settings.offset + static_cast<int>(settings.scale * 100);
    if (i < 12) name[i] = settings.name[i];
    atomicAdd(&calls, 1ULL);
    if (i == 0) hidden *= 2;
    if (i < 3) nested::small[i] *= 10;
}

// Constant variables as memory: a function that is not inlined reads whatever its pointer means.
__device__ __noinline__ int sum(const int *values, int count) {
    int all = 0;
    for (int i = 0; i < count; ++i) all += values[i];
    return all;
}

__global__ void sums(int count, int *found) {
    found[0] = sum(weights, count);
    found[1] = sum(weights + 1, count - 1);
    found[2] = sum(results, count);
}

int main() {
    char *name, host_name[12];
    int found[16], new_weights[16];
    CHECK(cudaMalloc(&name, 12));
    // The initial values.
    compute<<<1, 16>>>(name);
    CHECK(cudaMemcpyFromSymbol(found, results, sizeof found));
    for (int i = 0; i < 16; ++i) REQUIRE(found[i] == (i < 4 ? (i + 1) * i : 0) + 157, "result %d is %d", i, found[i]);
    CHECK(cudaMemcpy(host_name, name, 12, cudaMemcpyDeviceToHost));
    REQUIRE(strcmp(host_name, "initial") == 0, "name %.12s", host_name);

    // Whole and in part.
    for (int i = 0; i < 16; ++i) new_weights[i] = 100 - i;
    CHECK(cudaMemcpyToSymbol(weights, new_weights, sizeof new_weights));
    const int replaced = -50;
    CHECK(cudaMemcpyToSymbol(weights, &replaced, sizeof replaced, 5 * sizeof(int)));
    new_weights[5] = replaced;
    const Settings other = {-2.0, 1000, "other"};
    CHECK(cudaMemcpyToSymbolAsync(settings, &other, sizeof other, 0, cudaMemcpyHostToDevice, 0));
    compute<<<1, 16>>>(name);
    CHECK(cudaMemcpyFromSymbol(found, results, sizeof found));
    for (int i = 0; i < 16; ++i) REQUIRE(found[i] == new_weights[i] * i + 800, "result %d is %d", i, found[i]);
    CHECK(cudaMemcpy(host_name, name, 12, cudaMemcpyDeviceToHost));
    REQUIRE(strcmp(host_name, "other") == 0, "name %.12s", host_name);
    int one = 0;
    CHECK(cudaMemcpyFromSymbol(&one, results, sizeof one, 3 * sizeof(int)));
    REQUIRE(one == found[3], "a part of the symbol is %d", one);

    int *sums_of, sums_found[3], expected[3] = {0, 0, 0};
    CHECK(cudaMalloc(&sums_of, sizeof sums_found));
    sums<<<1, 1>>>(16, sums_of);
    CHECK(cudaMemcpy(sums_found, sums_of, sizeof sums_found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; ++i) {
        expected[0] += new_weights[i];
        expected[1] += i > 0 ? new_weights[i] : 0;
        expected[2] += found[i];
    }
    for (int i = 0; i < 3; ++i) REQUIRE(sums_found[i] == expected[i], "sum %d is %d, expected %d", i, sums_found[i], expected[i]);

    unsigned long long count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, calls, sizeof count));
    REQUIRE(count == 5 + 32, "%llu calls", count);
    float shown = 0;
    CHECK(cudaMemcpyFromSymbol(&shown, hidden, sizeof shown));
    REQUIRE(shown == 1.0f, "the static variable is %f", shown);
    short shorts[3];
    CHECK(cudaMemcpyFromSymbol(shorts, nested::small, sizeof shorts));
    REQUIRE(shorts[0] == -100 && shorts[2] == -300, "%d %d", shorts[0], shorts[2]);

    // Its address is memory like any other.
    void *address;
    size_t bytes;
    CHECK(cudaGetSymbolAddress(&address, results));
    CHECK(cudaGetSymbolSize(&bytes, results));
    REQUIRE(bytes == sizeof found, "%zu bytes", bytes);
    CHECK(cudaGetSymbolSize(&bytes, settings));
    REQUIRE(bytes == sizeof(Settings), "%zu bytes", bytes);
    CHECK(cudaMemset(address, 0, sizeof found));
    CHECK(cudaMemcpyFromSymbol(found, results, sizeof found));
    for (int value : found) REQUIRE(value == 0, "%d after a memset", value);

    EXPECT(cudaMemcpyToSymbol(weights, new_weights, sizeof new_weights + 4), cudaErrorInvalidValue);
    EXPECT(cudaMemcpyFromSymbol(found, results, 4, sizeof found), cudaErrorInvalidValue);
    EXPECT(cudaGetSymbolAddress(&address, &one), cudaErrorInvalidSymbol);
    return passed("symbols: %llu calls", count);
}
