// Clusters of CTAs: one CTA brings a tile for all of them (multicast), each sends its own to the next one, and arrivals and bytes are told to
// barriers of other CTAs. Every CTA checks what it has.
#include "../cuda/check.h"

#include <cooperative_groups.h>
#include <cstdint>
#include <cuda.h>
#include <vector>

namespace cg = cooperative_groups;

constexpr int WORDS = 32 * 32;
constexpr unsigned BYTES = WORDS * sizeof(uint32_t);

__device__ unsigned place(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ unsigned mapped(const void *shared, unsigned rank) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(place(shared)), "r"(rank));
    return address;
}

__device__ void wait(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
                 ::"r"(place(barrier)), "r"(parity) : "memory");
}

__global__ void exchange(const __grid_constant__ CUtensorMap map, const uint32_t *plain, uint32_t *wrong) {
    __shared__ alignas(1024) uint32_t tile[WORDS];
    __shared__ alignas(128) uint32_t from_neighbour[WORDS];
    __shared__ alignas(128) uint32_t copied[WORDS];
    __shared__ uint64_t filled, received, arrivals;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), size = cluster.num_blocks(), first = blockIdx.x / size;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(&filled)));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(&received)));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place(&arrivals)), "r"(size));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(&filled)), "r"(2 * BYTES));
        // The neighbour's copy, and two numbers of its own.
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(&received)), "r"(BYTES + 8));
    }
    cluster.sync();
    const uint16_t all = (1u << size) - 1;
    if (rank == 0 && threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(place(tile)), "l"(&map), "r"(0), "r"(int(first) * 32), "r"(place(&filled)), "h"(all) : "memory");
    }
    if (rank == size - 1 && threadIdx.x == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                     ::"r"(place(copied)), "l"(plain), "r"(BYTES), "r"(place(&filled)), "h"(all) : "memory");
    }
    wait(&filled, 0);
    const unsigned next = (rank + 1) % size;
    unsigned bad = 0;
    for (int at = threadIdx.x; at < WORDS; at += blockDim.x) {
        // Chunks of 16 bytes of a row of 128 bytes are exchanged by the number of the row.
        const int row = at / 32, column = at % 32, there = row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4;
        bad += tile[there] != (first * 32 + row) * 1000u + column;
        bad += copied[at] != 7u * at;
        copied[at] += rank;
    }
    __syncthreads();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(mapped(from_neighbour, next)), "r"(place(copied)), "r"(BYTES), "r"(mapped(&received, next)) : "memory");
        for (unsigned other = 0; other < size; other++) {
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapped(&arrivals, other)) : "memory");
        }
        // Two numbers follow the copy's bytes on their own.
        asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 8;" ::"r"(mapped(&received, next)) : "memory");
    }
    wait(&received, 0);
    wait(&arrivals, 0);
    const unsigned before = (rank + size - 1) % size;
    for (int at = threadIdx.x; at < WORDS; at += blockDim.x) bad += from_neighbour[at] != 7u * at + before;
    // By generic addresses, too.
    bad += *cluster.map_shared_rank(&copied[threadIdx.x], next) != 7u * threadIdx.x + next;
    atomicAdd(wrong, bad);
    cluster.sync();
}

int main() {
    const int clusters = 5;
    std::vector<uint32_t> rows(clusters * WORDS), plain(WORDS);
    for (int at = 0; at < clusters * WORDS; at++) rows[at] = at / 32 * 1000 + at % 32;
    for (int at = 0; at < WORDS; at++) plain[at] = 7 * at;
    uint32_t *drows, *dplain, *dwrong, wrong = 0;
    CHECK(cudaMalloc(&drows, rows.size() * 4));
    CHECK(cudaMalloc(&dplain, BYTES));
    CHECK(cudaMalloc(&dwrong, 4));
    CHECK(cudaMemcpy(drows, rows.data(), rows.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dplain, plain.data(), BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dwrong, 0, 4));
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
    CUtensorMap map;
    const cuuint64_t sizes[2] = {32, clusters * 32}, strides[1] = {128};
    const cuuint32_t box[2] = {32, 32}, steps[2] = {1, 1};
    const CUresult encoded = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, drows, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    REQUIRE(encoded == CUDA_SUCCESS, "cuTensorMapEncodeTiled gave %d", encoded);
    for (unsigned size : {1u, 2u, 4u, 8u}) {
        cudaLaunchAttribute attribute;
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = size;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(clusters * size);
        config.blockDim = dim3(128);
        config.attrs = &attribute;
        config.numAttrs = 1;
        CHECK(cudaLaunchKernelEx(&config, exchange, map, static_cast<const uint32_t *>(dplain), dwrong));
        CHECK(cudaMemcpy(&wrong, dwrong, 4, cudaMemcpyDeviceToHost));
        REQUIRE(wrong == 0, "%u words differ in clusters of %u", wrong, size);
    }
    return passed("clusters of 1, 2, 4 and 8");
}
