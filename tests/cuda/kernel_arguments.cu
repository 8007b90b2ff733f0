// Arguments of kernels of every size and alignment, templates, lambdas, and the arguments and exit code of the program.
#include "check.h"
#include <cstring>

struct Large {
    char head[3];
    double numbers[100];
    short tail;
};

struct Empty {};

template <typename T, int FACTOR>
__global__ void scale(T *data, T bias) {
    data[threadIdx.x] = data[threadIdx.x] * FACTOR + bias;
}

__global__ void mixed(char a, long long b, short c, float d, bool e, double f, Large large, Empty, float4 vector, int *out,
                      long long *wide) {
    out[0] = a;
    out[1] = c;
    out[2] = static_cast<int>(d * 4);
    out[3] = e;
    out[4] = static_cast<int>(f);
    out[5] = large.head[2];
    out[6] = static_cast<int>(large.numbers[99]);
    out[7] = large.tail;
    out[8] = static_cast<int>(vector.w);
    *wide = b;
}

__global__ void dimensions(unsigned *out) {
    if (threadIdx.x == blockDim.x - 1 && threadIdx.y == blockDim.y - 1 && threadIdx.z == blockDim.z - 1 &&
        blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1 && blockIdx.z == gridDim.z - 1) {
        out[0] = threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z;
        out[1] = blockIdx.x * 100 + blockIdx.y * 10 + blockIdx.z;
    }
}

int main(int count, char **arguments) {
    REQUIRE(count == 3 && strcmp(arguments[1], "--topology") == 0 && strcmp(arguments[2], "two words") == 0,
            "%d arguments", count);
    const char *variable = getenv("KERNEL_ARGUMENTS_TEST");
    REQUIRE(variable && strcmp(variable, "of the caller") == 0, "the environment was not handed on");

    int *out, found[9];
    long long *wide, found_wide = 0;
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMalloc(&wide, sizeof found_wide));
    Large large;
    memset(&large, 0, sizeof large);
    large.head[2] = 33;
    large.numbers[99] = -4.0;
    large.tail = 77;
    mixed<<<1, 1>>>('x', -(1LL << 40), -300, 2.5f, true, 1e6, large, Empty(), make_float4(1, 2, 3, 44), out, wide);
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&found_wide, wide, sizeof found_wide, cudaMemcpyDeviceToHost));
    const int expected[9] = {'x', -300, 10, 1, 1000000, 33, -4, 77, 44};
    for (int i = 0; i < 9; ++i) REQUIRE(found[i] == expected[i], "argument %d is %d, expected %d", i, found[i], expected[i]);
    REQUIRE(found_wide == -(1LL << 40), "%lld", found_wide);

    double doubles[4] = {1, 2, 3, 4}, *device_doubles;
    CHECK(cudaMalloc(&device_doubles, sizeof doubles));
    CHECK(cudaMemcpy(device_doubles, doubles, sizeof doubles, cudaMemcpyHostToDevice));
    scale<double, 3><<<1, 4>>>(device_doubles, 0.5);
    scale<double, -1><<<1, 4>>>(device_doubles, 0.0);
    CHECK(cudaMemcpy(doubles, device_doubles, sizeof doubles, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) REQUIRE(doubles[i] == -(3 * (i + 1) + 0.5), "element %d is %f", i, doubles[i]);

    unsigned *places, found_places[2];
    CHECK(cudaMalloc(&places, sizeof found_places));
    dimensions<<<dim3(4, 3, 2), dim3(5, 4, 3)>>>(places);
    CHECK(cudaMemcpy(found_places, places, sizeof found_places, cudaMemcpyDeviceToHost));
    REQUIRE(found_places[0] == 432 && found_places[1] == 321, "%u %u", found_places[0], found_places[1]);
    printf("PASS kernel arguments\n");
    return 7; // which the caller expects
}
