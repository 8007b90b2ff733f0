// The sum of two vectors, in more threads than there are elements.
#include "check.h"
#include <vector>

__global__ void add(const float *a, const float *b, float *sum, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

int main() {
    const int count = 10000;
    const size_t bytes = count * sizeof(float);
    std::vector<float> a(count), b(count), sum(count, -1.0f);
    for (int i = 0; i < count; ++i) {
        a[i] = static_cast<float>(i);
        b[i] = static_cast<float>(2 * i);
    }
    float *device_a, *device_b, *device_sum;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_sum, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_sum, 0xff, bytes));
    add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));
    double total = 0;
    for (int i = 0; i < count; ++i) {
        REQUIRE(sum[i] == 3.0f * i, "element %d is %f", i, sum[i]);
        total += sum[i];
    }
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_sum));
    return passed("vectoradd: %d elements, total %.0f", count, total);
}
