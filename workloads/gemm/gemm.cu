// Single-precision matrix product C = A * B, row major: A is m x k, B is k x n, C is m x n.
//
// A block of 256 threads computes a 64x64 tile of C from 64x16 and 16x64 tiles of A and B in shared memory; a thread
// keeps a 4x4 tile in registers: two vector loads from shared memory feed 16 multiply-adds. Sizes that are no multiples
// of the tile are padded with zeros in shared memory. Each element is one chain of fused multiply-adds over ascending k.

#define TILE 64
#define DEPTH 16
#define PER_THREAD 4
#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS) gemm(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
    // A lies transposed: a thread reads its four rows of one column as one vector. The padding keeps the vectors
    // aligned and spreads the stores over the banks.
    __shared__ __align__(16) float tile_a[DEPTH][TILE + 4];
    __shared__ __align__(16) float tile_b[DEPTH][TILE];

    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int first_row = blockIdx.y * TILE;
    const int first_column = blockIdx.x * TILE;

    float sum[PER_THREAD][PER_THREAD] = {};

    for (int first_depth = 0; first_depth < k; first_depth += DEPTH) {
#pragma unroll
        for (int i = 0; i < TILE * DEPTH / THREADS; i++) {
            const int element = thread + i * THREADS;
            const int row = element / DEPTH;
            const int depth = element % DEPTH;
            const bool inside = first_row + row < m && first_depth + depth < k;
            tile_a[depth][row] = inside ? a[(size_t)(first_row + row) * k + first_depth + depth] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < TILE * DEPTH / THREADS; i++) {
            const int element = thread + i * THREADS;
            const int depth = element / TILE;
            const int column = element % TILE;
            const bool inside = first_depth + depth < k && first_column + column < n;
            tile_b[depth][column] = inside ? b[(size_t)(first_depth + depth) * n + first_column + column] : 0.0f;
        }
        __syncthreads();

#pragma unroll
        for (int depth = 0; depth < DEPTH; depth++) {
            const float4 rows = *reinterpret_cast<const float4 *>(&tile_a[depth][threadIdx.y * PER_THREAD]);
            const float4 columns = *reinterpret_cast<const float4 *>(&tile_b[depth][threadIdx.x * PER_THREAD]);
            const float left[PER_THREAD] = {rows.x, rows.y, rows.z, rows.w};
            const float right[PER_THREAD] = {columns.x, columns.y, columns.z, columns.w};
#pragma unroll
            for (int i = 0; i < PER_THREAD; i++) {
#pragma unroll
                for (int j = 0; j < PER_THREAD; j++) {
                    sum[i][j] = __fmaf_rn(left[i], right[j], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }

    const int row = first_row + threadIdx.y * PER_THREAD;
    const int column = first_column + threadIdx.x * PER_THREAD;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        if (row + i >= m) {
            break;
        }
        float *target = c + (size_t)(row + i) * n + column;
        if (n % PER_THREAD == 0) {
            if (column < n) {
                *reinterpret_cast<float4 *>(target) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < PER_THREAD; j++) {
                if (column + j < n) {
                    target[j] = sum[i][j];
                }
            }
        }
    }
}
