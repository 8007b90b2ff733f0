// Half precision: conversions, arithmetic, comparisons and pairs, against the host's own arithmetic on exact values.
#include "check.h"
#include <cmath>
#include <cuda_fp16.h>
#include <vector>

__global__ void compute(const float *a, const float *b, float *out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const __half x = __float2half(a[i]), y = __float2half(b[i]);
    float *mine = out + 6 * i;
    mine[0] = __half2float(__hadd(x, y));
    mine[1] = __half2float(__hmul(x, y));
    mine[2] = __half2float(__hfma(x, y, __float2half(1.0f)));
    mine[3] = __hlt(x, y) ? 1.0f : 0.0f;
    const __half2 sum = __hadd2(__halves2half2(x, y), __floats2half2_rn(2.0f, -2.0f));
    mine[4] = __low2float(sum);
    mine[5] = __high2float(sum);
}

__global__ void round_trip(const float *in, float *out, unsigned short *bits) {
    const __half value = __float2half_rn(in[threadIdx.x]);
    out[threadIdx.x] = __half2float(value);
    bits[threadIdx.x] = __half_as_ushort(value);
}

int main() {
    // Integers below 32: products and sums of them have no rounding error in half precision.
    const int count = 200;
    std::vector<float> a(count), b(count), out(6 * count);
    for (int i = 0; i < count; ++i) {
        a[i] = static_cast<float>(i % 29 - 14);
        b[i] = static_cast<float>(i % 31 - 15) / 2;
    }
    float *device_a, *device_b, *device_out;
    CHECK(cudaMalloc(&device_a, count * sizeof(float)));
    CHECK(cudaMalloc(&device_b, count * sizeof(float)));
    CHECK(cudaMalloc(&device_out, 6 * count * sizeof(float)));
    CHECK(cudaMemcpy(device_a, a.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    compute<<<(count + 63) / 64, 64>>>(device_a, device_b, device_out, count);
    CHECK(cudaMemcpy(out.data(), device_out, 6 * count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) {
        const float expected[6] = {a[i] + b[i], a[i] * b[i], a[i] * b[i] + 1, a[i] < b[i] ? 1.0f : 0.0f, a[i] + 2, b[i] - 2};
        for (int k = 0; k < 6; ++k)
            REQUIRE(out[6 * i + k] == expected[k], "result %d of %d is %f, expected %f", k, i, out[6 * i + k], expected[k]);
    }

    // Rounding to nearest even, the largest number, infinity, subnormal numbers, zero below the smallest.
    const float in[8] = {2049.0f, 2051.0f, 65504.0f, 65520.0f, 5.9604645e-8f, 2.9802322e-8f, -0.0f, 1.0f / 3};
    const float rounded[8] = {2048.0f, 2052.0f, 65504.0f, INFINITY, 5.9604645e-8f, 0.0f, -0.0f, 0.333251953125f};
    const unsigned short expected_bits[8] = {0x6800, 0x6802, 0x7bff, 0x7c00, 0x0001, 0x0000, 0x8000, 0x3555};
    unsigned short *device_bits, bits[8];
    CHECK(cudaMalloc(&device_bits, sizeof bits));
    CHECK(cudaMemcpy(device_a, in, sizeof in, cudaMemcpyHostToDevice));
    round_trip<<<1, 8>>>(device_a, device_out, device_bits);
    CHECK(cudaMemcpy(out.data(), device_out, sizeof in, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(bits, device_bits, sizeof bits, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i) {
        REQUIRE(out[i] == rounded[i], "%g became %g, expected %g", in[i], out[i], rounded[i]);
        REQUIRE(bits[i] == expected_bits[i], "%g became %04x, expected %04x", in[i], bits[i], expected_bits[i]);
    }
    return passed("half precision: %d values", count);
}
