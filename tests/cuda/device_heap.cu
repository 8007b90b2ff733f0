// malloc and free on the device: lists that outlive the kernel that made them, new and delete, an exhausted heap.
#include "check.h"
#include <new>

struct Node {
    int value;
    Node *next;
};

__device__ Node *heads[64];

__global__ void build(int length) {
    Node *head = nullptr;
    for (int i = 0; i < length; ++i) {
        Node *node = static_cast<Node *>(malloc(sizeof(Node)));
        if (!node) return;
        node->value = threadIdx.x + i;
        node->next = head;
        head = node;
    }
    heads[threadIdx.x] = head;
}

__global__ void sum_and_free(int *sums) {
    int sum = 0;
    for (Node *node = heads[threadIdx.x]; node;) {
        Node *next = node->next;
        sum += node->value;
        free(node);
        node = next;
    }
    sums[threadIdx.x] = sum;
}

__global__ void scratch(int *sums, int count) {
    int *array = new int[count];
    for (int i = 0; i < count; ++i) array[i] = i * static_cast<int>(threadIdx.x);
    int sum = 0;
    for (int i = count - 1; i >= 0; --i) sum += array[i];
    delete[] array;
    sums[threadIdx.x] = sum;
}

__device__ void *asked; // which keeps the compiler from taking the allocation away

__global__ void ask_too_much(int *got) {
    asked = malloc(static_cast<size_t>(1) << 40);
    *got = asked != nullptr;
    free(asked);
}

int main() {
    size_t heap = 0;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    REQUIRE(heap >= 16 << 20, "heap of %zu bytes", heap);
    const int threads = 64, length = 10;
    int *sums, found[threads];
    CHECK(cudaMalloc(&sums, sizeof found));
    build<<<1, threads>>>(length);
    sum_and_free<<<1, threads>>>(sums);
    CHECK(cudaMemcpy(found, sums, sizeof found, cudaMemcpyDeviceToHost));
    int total = 0;
    for (int i = 0; i < threads; ++i) {
        REQUIRE(found[i] == length * i + length * (length - 1) / 2, "sum %d is %d", i, found[i]);
        total += found[i];
    }
    scratch<<<1, threads>>>(sums, 20);
    CHECK(cudaMemcpy(found, sums, sizeof found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; ++i) REQUIRE(found[i] == 190 * i, "sum %d is %d", i, found[i]);
    ask_too_much<<<1, 1>>>(sums);
    CHECK(cudaMemcpy(found, sums, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(found[0] == 0, "a terabyte was there");
    return passed("device heap: total %d", total);
}
