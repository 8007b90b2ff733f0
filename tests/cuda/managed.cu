// Managed memory: host and device touch the same bytes in turn, hints, prefetches, __managed__ variables.
#include "check.h"

__global__ void scale(int *data, int count, int factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] *= factor;
}

#ifdef __NVCC__
// Clang has no __managed__ variables for CUDA.
__managed__ int counter = 40;
__managed__ int table[4] = {1, 2, 3, 4};
__global__ void count_up() {
    atomicAdd(&counter, 1);
    if (threadIdx.x < 4) atomicAdd(&table[threadIdx.x], 10);
}
#endif

struct Node {
    int value;
    Node *next;
};

// Walks a list that the host has built, by the host's own pointers.
__global__ void sum_list(const Node *head, int *sum) {
    int total = 0;
    for (const Node *node = head; node; node = node->next) total += node->value;
    *sum = total;
}

int main() {
    const int count = 4000;
    int device = 0;
    CHECK(cudaGetDevice(&device));
    int *data;
    CHECK(cudaMallocManaged(&data, count * sizeof(int)));
    for (int i = 0; i < count; ++i) data[i] = i;
    for (int round = 0; round < 3; ++round) {
        scale<<<(count + 127) / 128, 128>>>(data, count, 2);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < count; ++i) data[i] += 1; // on the host
    }
    for (int i = 0; i < count; ++i) REQUIRE(data[i] == 8 * i + 7, "element %d is %d", i, data[i]);

#if CUDART_VERSION >= 13000
    cudaMemLocation on_device{}, on_host{};
    on_device.type = cudaMemLocationTypeDevice;
    on_device.id = device;
    on_host.type = cudaMemLocationTypeHost;
    CHECK(cudaMemAdvise(data, count * sizeof(int), cudaMemAdviseSetPreferredLocation, on_device));
    CHECK(cudaMemPrefetchAsync(data, count * sizeof(int), on_device, 0, 0));
#else
    CHECK(cudaMemAdvise(data, count * sizeof(int), cudaMemAdviseSetPreferredLocation, device));
    CHECK(cudaMemPrefetchAsync(data, count * sizeof(int), device, 0));
#endif
    scale<<<(count + 127) / 128, 128>>>(data, count, 3);
#if CUDART_VERSION >= 13000
    CHECK(cudaMemPrefetchAsync(data, count * sizeof(int), on_host, 0, 0));
#else
    CHECK(cudaMemPrefetchAsync(data, count * sizeof(int), cudaCpuDeviceId, 0));
#endif
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) REQUIRE(data[i] == 24 * i + 21, "element %d is %d", i, data[i]);

    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, data + 10));
    REQUIRE(attributes.type == cudaMemoryTypeManaged, "type %d", attributes.type);
    REQUIRE(attributes.devicePointer == data + 10 && attributes.hostPointer == data + 10, "not the same address");
    CHECK(cudaMemset(data, 0, count * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    REQUIRE(data[count - 1] == 0, "%d after a memset", data[count - 1]);

    const int nodes = 100;
    Node *list;
    int *sum;
    CHECK(cudaMallocManaged(&list, nodes * sizeof(Node)));
    CHECK(cudaMallocManaged(&sum, sizeof(int)));
    for (int i = 0; i < nodes; ++i) list[i] = Node{i, i + 1 < nodes ? &list[i + 1] : nullptr};
    sum_list<<<1, 1>>>(list, sum);
    CHECK(cudaDeviceSynchronize());
    REQUIRE(*sum == nodes * (nodes - 1) / 2, "sum %d", *sum);

#ifdef __NVCC__
    counter += 2;
    count_up<<<2, 32>>>();
    CHECK(cudaDeviceSynchronize());
    REQUIRE(counter == 40 + 2 + 64, "counter %d", counter);
    for (int i = 0; i < 4; ++i) REQUIRE(table[i] == i + 21, "table[%d] = %d", i, table[i]);
#endif
    CHECK(cudaFree(data));
    CHECK(cudaFree(list));
    CHECK(cudaFree(sum));
    return passed("managed memory");
}
