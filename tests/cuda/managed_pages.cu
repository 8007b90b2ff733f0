// Managed memory page by page: the host writes a block of 2 MiB, a kernel uses all of its pages, and the host reads six leaves of 64 KiB
// backwards. On a node that moves pages, tests look at what was transferred.
#include "check.h"

const int PAGE_WORDS = 4096 / sizeof(int);
const int LEAF_WORDS = 16 * PAGE_WORDS;
const int PAGES = 512;

__global__ void add_one(int *data) { data[(blockIdx.x * blockDim.x + threadIdx.x) * PAGE_WORDS] += 1; }

int main() {
    int *data;
    CHECK(cudaMallocManaged(&data, PAGES * PAGE_WORDS * sizeof(int)));
    for (int i = 0; i < PAGES * PAGE_WORDS; ++i) data[i] = i;
    add_one<<<PAGES / 128, 128>>>(data);
    CHECK(cudaDeviceSynchronize());
    const int leaves[] = {16, 8, 4, 2, 1, 0};
    for (int leaf : leaves) {
        const int first = leaf * LEAF_WORDS;
        REQUIRE(data[first] == first + 1, "word %d is %d", first, data[first]);
        REQUIRE(data[first + 1] == first + 1, "word %d is %d", first + 1, data[first + 1]);
    }

    // Who may use it when changes nothing here; what CUDA refuses is refused.
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachSingle));
    CHECK(cudaStreamAttachMemAsync(stream, data, PAGES * PAGE_WORDS * sizeof(int), cudaMemAttachHost));
    CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachGlobal));
    EXPECT(cudaStreamAttachMemAsync(stream, data, 4096, cudaMemAttachGlobal), cudaErrorInvalidValue);
    EXPECT(cudaStreamAttachMemAsync(0, data, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
    EXPECT(cudaStreamAttachMemAsync(stream, data, 0, 8), cudaErrorInvalidValue);
    CHECK(cudaStreamSynchronize(stream));
    int *other;
    EXPECT(cudaMallocManaged(&other, 64, cudaMemAttachSingle), cudaErrorInvalidValue);
    CHECK(cudaMallocManaged(&other, 64, cudaMemAttachHost));
    CHECK(cudaFree(other));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(data));
    return passed("managed pages");
}
