// What a program asks about its device: the properties agree with the attributes, and with the kernels themselves.
#include "check.h"
#include <cstring>

__global__ void special(unsigned *found) {
    unsigned count = 0;
    asm("mov.u32 %0, %%nsmid;" : "=r"(count));
    found[0] = warpSize;
    found[1] = count;
}

static int attribute(cudaDeviceAttr which) {
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    int runtime = 0, driver = 0, device = -1;
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    REQUIRE(runtime / 1000 == CUDART_VERSION / 1000, "runtime version %d", runtime);
    REQUIRE(driver >= runtime, "driver version %d", driver);
    CHECK(cudaGetDevice(&device));
    REQUIRE(device == 0, "device %d", device);
    CHECK(cudaSetDevice(0));
    cudaDeviceProp properties;
    memset(&properties, 0xff, sizeof properties);
    CHECK(cudaGetDeviceProperties(&properties, 0));
    REQUIRE(strnlen(properties.name, sizeof properties.name) > 0 && properties.name[255] == 0, "no name");
    REQUIRE(properties.major == attribute(cudaDevAttrComputeCapabilityMajor), "major %d", properties.major);
    REQUIRE(properties.minor == attribute(cudaDevAttrComputeCapabilityMinor), "minor %d", properties.minor);
    REQUIRE(properties.warpSize == 32, "warps of %d", properties.warpSize);
    REQUIRE(properties.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount), "multiprocessors");
    REQUIRE(properties.maxThreadsPerBlock == 1024, "%d threads", properties.maxThreadsPerBlock);
    REQUIRE(properties.maxThreadsDim[2] == 64 && properties.maxThreadsDim[0] == 1024, "block limits");
    REQUIRE(properties.maxGridSize[0] == 2147483647 && properties.maxGridSize[1] == 65535, "grid limits");
    REQUIRE(properties.maxThreadsPerMultiProcessor == attribute(cudaDevAttrMaxThreadsPerMultiProcessor), "threads");
    REQUIRE(properties.sharedMemPerBlock == 49152, "%zu bytes shared", properties.sharedMemPerBlock);
    REQUIRE(properties.sharedMemPerMultiprocessor ==
                static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)), "shared memory");
    REQUIRE(properties.sharedMemPerBlockOptin == static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
            "shared memory");
    REQUIRE(properties.regsPerBlock == 65536 && properties.regsPerMultiprocessor == 65536, "registers");
    REQUIRE(properties.totalConstMem == 65536, "%zu bytes constant", properties.totalConstMem);
    REQUIRE(properties.l2CacheSize == attribute(cudaDevAttrL2CacheSize) && properties.l2CacheSize > 0, "L2");
    REQUIRE(properties.memoryBusWidth == attribute(cudaDevAttrGlobalMemoryBusWidth), "bus");
    REQUIRE(properties.unifiedAddressing == 1 && properties.canMapHostMemory == 1, "unified addressing");
    REQUIRE(properties.managedMemory == 1 && properties.cooperativeLaunch == 1, "managed memory");
    REQUIRE(properties.concurrentKernels == 1 && properties.asyncEngineCount > 0, "concurrency");
    REQUIRE(properties.maxBlocksPerMultiProcessor == attribute(cudaDevAttrMaxBlocksPerMultiprocessor), "blocks");
    REQUIRE(properties.pciBusID == attribute(cudaDevAttrPciBusId), "bus id");
    size_t free_bytes = 0, total_bytes = 0, after = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    REQUIRE(total_bytes <= properties.totalGlobalMem && total_bytes > properties.totalGlobalMem / 2, "%zu bytes", total_bytes);
    void *memory;
    const size_t bytes = 64 << 20;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemGetInfo(&after, &total_bytes));
    REQUIRE(free_bytes - after >= bytes, "%zu bytes fewer", free_bytes - after);
    CHECK(cudaFree(memory));
    CHECK(cudaMemGetInfo(&after, &total_bytes));
    REQUIRE(after == free_bytes, "%zu bytes free, %zu before", after, free_bytes);

    unsigned found[2], *on_device;
    CHECK(cudaMalloc(&on_device, sizeof found));
    special<<<1, 1>>>(on_device);
    CHECK(cudaMemcpy(found, on_device, sizeof found, cudaMemcpyDeviceToHost));
    REQUIRE(found[0] == 32, "warps of %u in a kernel", found[0]);
    REQUIRE(found[1] == static_cast<unsigned>(properties.multiProcessorCount), "%u multiprocessors in a kernel", found[1]);
    char bus[32];
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    REQUIRE(device == 0, "device %d has the bus id of device 0", device);
    return passed("device properties");
}
