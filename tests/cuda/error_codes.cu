// Bad input: every call returns the code of the real runtime, it is the last error until asked for, and work goes on.
#include "check.h"
#include <cstring>

__global__ void touch(int *data) { data[0] += 1; }
static void not_a_kernel() {}

// The call fails with the code, which is the last error too, once.
#define FAILS(call, code)                    \
    do {                                     \
        EXPECT(call, code);                  \
        EXPECT(cudaPeekAtLastError(), code); \
        EXPECT(cudaGetLastError(), code);    \
        CHECK(cudaGetLastError());           \
        ++failures;                          \
    } while (0)

// The same of a launch, which returns nothing.
#define LAUNCH_FAILS(launch, code)        \
    do {                                  \
        launch;                           \
        EXPECT(cudaGetLastError(), code); \
        CHECK(cudaGetLastError());        \
        ++failures;                       \
    } while (0)

int main() {
    int failures = 0;
    int *data, *more, host[4] = {1, 2, 3, 4};
    void *pointer = nullptr;
    CHECK(cudaMalloc(&data, 1024));
    CHECK(cudaMemset(data, 0, 1024));

    // Memory.
    CHECK(cudaMalloc(&more, 1024));
    CHECK(cudaFree(more));
    FAILS(cudaFree(more), cudaErrorInvalidValue);
    FAILS(cudaFree(host), cudaErrorInvalidValue);
    FAILS(cudaFree(data + 1), cudaErrorInvalidValue);
    CHECK(cudaFree(nullptr));
    CHECK(cudaMalloc(&pointer, 0));
    REQUIRE(pointer == nullptr, "an allocation of no bytes");
    FAILS(cudaMalloc(&pointer, static_cast<size_t>(1) << 50), cudaErrorMemoryAllocation);
    FAILS(cudaMalloc(static_cast<void **>(nullptr), 16), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(data, host, static_cast<size_t>(1) << 45, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemset(data, 0, static_cast<size_t>(1) << 45), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(data, host, sizeof host, static_cast<cudaMemcpyKind>(42)), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpy(nullptr, host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK(cudaMemcpy(data, host, 0, cudaMemcpyHostToDevice));
    FAILS(cudaMemcpy2D(data, 4, host, 16, 16, 1, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    FAILS(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);

    // Launches.
    LAUNCH_FAILS((touch<<<1, 2048>>>(data)), cudaErrorInvalidConfiguration);
    LAUNCH_FAILS((touch<<<1, dim3(1, 1, 65)>>>(data)), cudaErrorInvalidConfiguration);
    LAUNCH_FAILS((touch<<<0, 32>>>(data)), cudaErrorInvalidConfiguration);
    LAUNCH_FAILS((touch<<<1, 0>>>(data)), cudaErrorInvalidConfiguration);
    LAUNCH_FAILS((touch<<<dim3(1, 65536), 32>>>(data)), cudaErrorInvalidConfiguration);
    LAUNCH_FAILS((touch<<<1, 32, 1 << 20>>>(data)), cudaErrorInvalidValue);
    void *arguments[] = {&data};
    FAILS(cudaLaunchKernel(reinterpret_cast<const void *>(not_a_kernel), dim3(1), dim3(1), arguments, 0, 0),
          cudaErrorInvalidDeviceFunction);
    cudaFuncAttributes attributes;
    FAILS(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(not_a_kernel)), cudaErrorInvalidDeviceFunction);
    FAILS(cudaGetSymbolAddress(&pointer, static_cast<const void *>(host)), cudaErrorInvalidSymbol);

    // Devices, streams, events.
    int devices = 0, value = 0;
    CHECK(cudaGetDeviceCount(&devices));
    FAILS(cudaSetDevice(devices), cudaErrorInvalidDevice);
    FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    FAILS(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, devices), cudaErrorInvalidDevice);
    FAILS(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0), cudaErrorInvalidValue);
    cudaDeviceProp properties;
    FAILS(cudaGetDeviceProperties(&properties, devices), cudaErrorInvalidDevice);
    FAILS(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
    FAILS(cudaEventSynchronize(nullptr), cudaErrorInvalidResourceHandle);
    FAILS(cudaEventRecord(nullptr, 0), cudaErrorInvalidResourceHandle);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreateWithFlags(&stop, cudaEventDisableTiming));
    float milliseconds;
    FAILS(cudaEventElapsedTime(&milliseconds, start, start), cudaErrorInvalidResourceHandle); // not recorded yet
    CHECK(cudaEventRecord(start, 0));
    CHECK(cudaEventRecord(stop, 0));
    CHECK(cudaDeviceSynchronize());
    FAILS(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle); // has no time

    // Names and texts of codes.
    REQUIRE(strcmp(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration") == 0, "name");
    REQUIRE(strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument") == 0, "text");
    REQUIRE(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0, "text");
    REQUIRE(strcmp(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code") == 0, "name");

    // None of it hurt.
    touch<<<1, 1>>>(data);
    CHECK(cudaMemcpy(host, data, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(host[0] == 1, "value %d", host[0]);
    return passed("error codes: %d failures", failures);
}
