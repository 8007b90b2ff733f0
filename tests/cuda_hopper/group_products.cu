// A product of matrices as libraries for Hopper make it: one warpgroup brings tiles with the tensor memory accelerator, another one multiplies
// them with warpgroup instructions, and barriers with bytes in shared memory hand the tiles over. The result goes back by a bulk copy.
// Each element is compared with the host's own sum.
#include "../cuda/check.h"

#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_bf16.h>
#include <vector>

constexpr int TILE_M = 64, TILE_N = 128, TILE_K = 64, STAGES = 3;
constexpr unsigned BYTES_OF_STAGE = (TILE_M + TILE_N) * TILE_K * sizeof(__nv_bfloat16);

struct Shared {
    alignas(1024) __nv_bfloat16 a[STAGES][TILE_M * TILE_K];
    alignas(1024) __nv_bfloat16 b[STAGES][TILE_N * TILE_K];
    alignas(128) __nv_bfloat16 result[TILE_M * TILE_N];
    alignas(8) uint64_t full[STAGES], empty[STAGES];
};

__device__ unsigned place(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void wait(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
                 ::"r"(place(barrier)), "r"(parity) : "memory");
}

__device__ void load(void *to, const CUtensorMap *map, int x, int y, uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(place(to)), "l"(map), "r"(x), "r"(y), "r"(place(barrier)) : "memory");
}

// A tile whose rows of 128 bytes are exchanged in groups of eight.
__device__ uint64_t descriptor(const void *tile) {
    return (place(tile) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ void multiply(float (&sum)[64], uint64_t a, uint64_t b, int adds) {
    asm volatile(
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
        "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
        "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, adds, 1, 1, 0, 0;\n}"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]),
          "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]),
          "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]),
          "+f"(sum[24]), "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31]),
          "+f"(sum[32]), "+f"(sum[33]), "+f"(sum[34]), "+f"(sum[35]), "+f"(sum[36]), "+f"(sum[37]), "+f"(sum[38]), "+f"(sum[39]),
          "+f"(sum[40]), "+f"(sum[41]), "+f"(sum[42]), "+f"(sum[43]), "+f"(sum[44]), "+f"(sum[45]), "+f"(sum[46]), "+f"(sum[47]),
          "+f"(sum[48]), "+f"(sum[49]), "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]), "+f"(sum[54]), "+f"(sum[55]),
          "+f"(sum[56]), "+f"(sum[57]), "+f"(sum[58]), "+f"(sum[59]), "+f"(sum[60]), "+f"(sum[61]), "+f"(sum[62]), "+f"(sum[63])
        : "l"(a), "l"(b), "r"(adds));
}

__global__ void __launch_bounds__(256, 1) product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                  const __grid_constant__ CUtensorMap c, int steps) {
    extern __shared__ unsigned char memory[];
    Shared &shared = *reinterpret_cast<Shared *>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
    const bool produces = threadIdx.x >= 128;
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(&shared.full[stage])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(place(&shared.empty[stage])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (produces) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 128) {
            for (int step = 0; step < steps; step++) {
                const int stage = step % STAGES;
                if (step >= STAGES) wait(&shared.empty[stage], (step / STAGES - 1) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(&shared.full[stage])), "r"(BYTES_OF_STAGE));
                load(shared.a[stage], &a, step * TILE_K, row, &shared.full[stage]);
                load(shared.b[stage], &b, step * TILE_K, column, &shared.full[stage]);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sum[64];
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        wait(&shared.full[stage], step / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int part = 0; part < TILE_K / 16; part++) {
            // 16 columns of a row are 32 bytes.
            multiply(sum, descriptor(shared.a[stage]) + 2 * part, descriptor(shared.b[stage]) + 2 * part, step + part > 0);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place(&shared.empty[stage])));
    }
    // A thread has two neighbours in each of two rows, eight columns further on again.
    const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * 16 + lane / 4;
    for (int part = 0; part < 32; part++) {
        const int at = (first_row + part % 2 * 8) * TILE_N + part / 2 * 8 + lane % 4 * 2;
        shared.result[at] = __float2bfloat16(sum[part * 2]);
        shared.result[at + 1] = __float2bfloat16(sum[part * 2 + 1]);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&c), "r"(column), "r"(row), "r"(place(shared.result)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

using Encode = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                            const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUtensorMap map_of(Encode encode, void *address, cuuint64_t columns, cuuint64_t rows, cuuint32_t box_columns, cuuint32_t box_rows,
                          CUtensorMapSwizzle swizzle) {
    CUtensorMap map;
    const cuuint64_t sizes[2] = {columns, rows}, strides[1] = {columns * sizeof(__nv_bfloat16)};
    const cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
    const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled gave %d", result);
    return map;
}

int main() {
    // Neither size is a whole number of tiles: what is outside is zero, and is not written.
    const int m = 136, n = 200, k = 328;
    std::vector<__nv_bfloat16> a(m * k), b(n * k), c(m * n);
    for (size_t at = 0; at < a.size(); at++) a[at] = __float2bfloat16(static_cast<int>(at * 7919 % 17) - 8);
    for (size_t at = 0; at < b.size(); at++) b[at] = __float2bfloat16(static_cast<int>(at * 104729 % 9) - 4);
    __nv_bfloat16 *da, *db, *dc;
    CHECK(cudaMalloc(&da, a.size() * sizeof a[0]));
    CHECK(cudaMalloc(&db, b.size() * sizeof b[0]));
    CHECK(cudaMalloc(&dc, c.size() * sizeof c[0]));
    CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof a[0], cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof b[0], cudaMemcpyHostToDevice));
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    const auto encode = reinterpret_cast<Encode>(entry);
    const CUtensorMap map_a = map_of(encode, da, k, m, TILE_K, TILE_M, CU_TENSOR_MAP_SWIZZLE_128B);
    const CUtensorMap map_b = map_of(encode, db, k, n, TILE_K, TILE_N, CU_TENSOR_MAP_SWIZZLE_128B);
    const CUtensorMap map_c = map_of(encode, dc, n, m, TILE_N, TILE_M, CU_TENSOR_MAP_SWIZZLE_NONE);
    const int bytes = sizeof(Shared) + 1024;
    CHECK(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const dim3 grid((n + TILE_N - 1) / TILE_N, (m + TILE_M - 1) / TILE_M);
    product<<<grid, 256, bytes>>>(map_a, map_b, map_c, (k + TILE_K - 1) / TILE_K);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, c.size() * sizeof c[0], cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int row = 0; row < m; row++) {
        for (int column = 0; column < n; column++) {
            // Sums of small whole numbers are exact, and rounded once.
            float sum = 0;
            for (int at = 0; at < k; at++) sum += __bfloat162float(a[row * k + at]) * __bfloat162float(b[column * k + at]);
            wrong += __bfloat162float(c[row * n + column]) != __bfloat162float(__float2bfloat16(sum));
        }
    }
    REQUIRE(wrong == 0, "%d of %d elements differ", wrong, m * n);
    return passed("products of warp groups: %d elements", m * n);
}
