// Pinned host memory: kernels read and write it in place; memory of the program's own registered; attributes, codes.
#include "check.h"
#include <cstring>

__global__ void triple(const int *in, int *out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = 3 * in[i];
}

int main() {
    const int count = 2000;
    const size_t bytes = count * sizeof(int);
    int *in, *out, *device_in, *device_out;
    CHECK(cudaHostAlloc(&in, bytes, cudaHostAllocMapped));
    CHECK(cudaHostAlloc(&out, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaHostGetDevicePointer(&device_in, in, 0));
    CHECK(cudaHostGetDevicePointer(&device_out, out, 0));
    for (int i = 0; i < count; ++i) in[i] = i;
    memset(out, 0, bytes);
    triple<<<(count + 127) / 128, 128>>>(device_in, device_out, count);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) REQUIRE(out[i] == 3 * i, "element %d is %d", i, out[i]);
    unsigned flags = 0;
    CHECK(cudaHostGetFlags(&flags, out));
    REQUIRE((flags & cudaHostAllocMapped) && (flags & cudaHostAllocPortable), "flags %u", flags);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, in + 5));
    REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == in + 5, "type %d", attributes.type);
    REQUIRE(attributes.devicePointer == device_in + 5, "another device pointer");

    // Memory of the program's own, registered: what was in it stays, and it is the program's again afterwards.
    const size_t page = 4096, registered_bytes = 4 * page;
    void *own = nullptr;
    REQUIRE(posix_memalign(&own, page, registered_bytes) == 0, "no memory");
    int *numbers = static_cast<int *>(own), *device_numbers;
    for (int i = 0; i < count; ++i) numbers[i] = 7 - i;
    CHECK(cudaHostRegister(own, registered_bytes, cudaHostRegisterMapped));
    REQUIRE(numbers[100] == -93, "registering changed the memory");
    EXPECT(cudaHostRegister(own, registered_bytes, cudaHostRegisterMapped), cudaErrorHostMemoryAlreadyRegistered);
    CHECK(cudaHostGetDevicePointer(&device_numbers, own, 0));
    triple<<<(count + 127) / 128, 128>>>(device_numbers, device_numbers, count);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) REQUIRE(numbers[i] == 3 * (7 - i), "element %d is %d", i, numbers[i]);
    numbers[0] = 11; // seen by the next kernel
    triple<<<1, 1>>>(device_numbers, device_out, 1);
    CHECK(cudaDeviceSynchronize());
    REQUIRE(out[0] == 33, "element 0 is %d", out[0]);
    CHECK(cudaHostUnregister(own));
    REQUIRE(numbers[1] == 18, "unregistering changed the memory");
    numbers[1] = 5;
    EXPECT(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    free(own);

    // Asynchronous copies read pinned memory when they run.
    int *device, value = 0;
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMemcpyAsync(device, in, bytes, cudaMemcpyHostToDevice, 0));
    CHECK(cudaStreamSynchronize(0));
    CHECK(cudaMemcpy(&value, device + 1234, sizeof value, cudaMemcpyDefault));
    REQUIRE(value == 1234, "value %d", value);

    // Memory that CUDA knows nothing of.
    CHECK(cudaPointerGetAttributes(&attributes, &value));
    REQUIRE(attributes.type == cudaMemoryTypeUnregistered, "type %d", attributes.type);
    EXPECT(cudaFreeHost(&value), cudaErrorInvalidValue);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    CHECK(cudaFreeHost(nullptr));
    return passed("pinned and mapped memory");
}
