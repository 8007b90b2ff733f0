// Peer access and copies between GPUs; with one GPU, the codes that say so.
#include "check.h"
#include <vector>

__global__ void fill(int *data, int count, int base) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = base + i;
}

__global__ void read_other(const int *other, int *mine, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) mine[i] = other[i] * 2;
}

int main() {
    const int count = 1000;
    const size_t bytes = count * sizeof(int);
    int devices = 0, can = -1;
    CHECK(cudaGetDeviceCount(&devices));
    REQUIRE(devices > 0, "no device");
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
    REQUIRE(can == 0, "a device is its own peer");
    EXPECT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    EXPECT(cudaDeviceEnablePeerAccess(devices, 0), cudaErrorInvalidDevice);
    EXPECT(cudaDeviceCanAccessPeer(&can, 0, devices), cudaErrorInvalidDevice);
    EXPECT(cudaSetDevice(devices), cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);

    const int last = devices - 1;
    int *on_first, *on_last;
    std::vector<int> host(count);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&on_first, bytes));
    fill<<<(count + 127) / 128, 128>>>(on_first, count, 7);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(last));
    CHECK(cudaMalloc(&on_last, bytes));
    CHECK(cudaMemset(on_last, 0, bytes));
    CHECK(cudaMemcpyPeer(on_last, last, on_first, 0, bytes));
    CHECK(cudaMemcpy(host.data(), on_last, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 7 + i, "element %d is %d", i, host[i]);
    CHECK(cudaMemset(on_last, 0, bytes));
    CHECK(cudaMemcpyPeerAsync(on_last, last, on_first, 0, bytes, 0));
    CHECK(cudaMemcpy(host.data(), on_last, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) REQUIRE(host[i] == 7 + i, "element %d is %d", i, host[i]);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, on_last));
    REQUIRE(attributes.device == last && attributes.type == cudaMemoryTypeDevice, "device %d", attributes.device);

    if (devices > 1) {
        CHECK(cudaDeviceCanAccessPeer(&can, last, 0));
        if (can) {
            CHECK(cudaDeviceEnablePeerAccess(0, 0));
            EXPECT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
            read_other<<<(count + 127) / 128, 128>>>(on_first, on_last, count);
            CHECK(cudaMemcpy(host.data(), on_last, bytes, cudaMemcpyDeviceToHost));
            for (int i = 0; i < count; ++i) REQUIRE(host[i] == 2 * (7 + i), "element %d is %d", i, host[i]);
            CHECK(cudaDeviceDisablePeerAccess(0));
            EXPECT(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
        }
    }
    CHECK(cudaFree(on_last));
    CHECK(cudaFree(on_first));
    return passed("peer copies on %d device%s", devices, devices == 1 ? "" : "s");
}
