// C = A B on tensor cores: half-precision A (row-major) and B (row-major), single-precision C. Sizes are multiples of 64.

// Not built: sm_60 (it has no tensor cores)
#include <mma.h>
#include <cuda_fp16.h>

using namespace nvcuda;

#define TILE 64

// A block of four warps computes a tile of 64 x 64, each warp 32 x 32 of it, from 64 x 16 and 16 x 64 in shared memory.
extern "C" __global__ void tensorGemm(const half *a, const half *b, float *c, unsigned m, unsigned n, unsigned k)
{
    __shared__ half tileA[TILE][16 + 8];
    __shared__ half tileB[16][TILE + 8];
    const unsigned warp = threadIdx.x / 32;
    const unsigned warpRow = warp / 2 * 32;
    const unsigned warpColumn = warp % 2 * 32;
    const unsigned firstRow = blockIdx.y * TILE;
    const unsigned firstColumn = blockIdx.x * TILE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            wmma::fill_fragment(sum[i][j], 0.0f);
        }
    }
    for (unsigned step = 0; step < k; step += 16) {
        for (unsigned place = threadIdx.x; place < TILE * 16; place += 128) {
            tileA[place / 16][place % 16] = a[(size_t)(firstRow + place / 16) * k + step + place % 16];
            tileB[place / TILE][place % TILE] = b[(size_t)(step + place / TILE) * n + firstColumn + place % TILE];
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right[2];
        for (int i = 0; i < 2; i++) {
            wmma::load_matrix_sync(left[i], &tileA[warpRow + 16 * i][0], 16 + 8);
            wmma::load_matrix_sync(right[i], &tileB[0][warpColumn + 16 * i], TILE + 8);
        }
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 2; j++) {
                wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            float *const place = c + (size_t)(firstRow + warpRow + 16 * i) * n + firstColumn + warpColumn + 16 * j;
            wmma::store_matrix_sync(place, sum[i][j], n, wmma::mem_row_major);
        }
    }
}
