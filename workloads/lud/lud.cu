// In-place LU decomposition without pivoting, blocked in tiles of 16x16: the algorithm of Rodinia's lud.
//
// For each tile on the diagonal: `lud_diagonal` factors it, `lud_perimeter` solves the tiles to its right (rows of U)
// and below it (columns of L), `lud_internal` subtracts their product from the rest of the matrix.
// L has an implicit unit diagonal; L and U share the matrix.
//
// Products are written as explicit fused multiply-adds, so that a host can repeat every rounding.

#define TILE 16

// Rows FIRST to LAST of a tile, a column of it a thread. All loads go before the first store, as the assembler arranges
// them in machine code: PTX is in program order, and a store waits for its value.
template <int FIRST, int LAST>
__device__ __forceinline__ void load_tile(float (*tile)[TILE], const float *source, int dimension, int lane)
{
    float values[LAST - FIRST];
#pragma unroll
    for (int row = FIRST; row < LAST; row++) {
        values[row - FIRST] = source[row * dimension + lane];
    }
#pragma unroll
    for (int row = FIRST; row < LAST; row++) {
        tile[row][lane] = values[row - FIRST];
    }
}

// One block of 16 threads: factors the tile at (offset, offset).
extern "C" __global__ void lud_diagonal(float *matrix, int dimension, int offset)
{
    __shared__ float tile[TILE][TILE];
    const int lane = threadIdx.x;
    float *corner = matrix + offset * dimension + offset;

    load_tile<0, TILE>(tile, corner, dimension, lane);
    __syncthreads();

    for (int pivot = 0; pivot < TILE - 1; pivot++) {
        if (lane > pivot) {
            for (int k = 0; k < pivot; k++) {
                tile[lane][pivot] = __fmaf_rn(-tile[lane][k], tile[k][pivot], tile[lane][pivot]);
            }
            tile[lane][pivot] /= tile[pivot][pivot];
        }
        __syncthreads();

        if (lane > pivot) {
            for (int k = 0; k <= pivot; k++) {
                tile[pivot + 1][lane] = __fmaf_rn(-tile[pivot + 1][k], tile[k][lane], tile[pivot + 1][lane]);
            }
        }
        __syncthreads();
    }

    for (int row = 1; row < TILE; row++) {
        corner[row * dimension + lane] = tile[row][lane];
    }
}

// Blocks of 32 threads, one for each pair of tiles: the first half of the threads solves a tile of the row of tiles to
// the right of the diagonal tile, the second half the matching tile of the column of tiles below it.
extern "C" __global__ void lud_perimeter(float *matrix, int dimension, int offset)
{
    __shared__ float diagonal[TILE][TILE];
    __shared__ float upper[TILE][TILE];
    __shared__ float lower[TILE][TILE];
    const int distance = (blockIdx.x + 1) * TILE;
    float *corner = matrix + offset * dimension + offset;
    float *upper_tile = corner + distance;
    float *lower_tile = corner + distance * dimension;

    if (threadIdx.x < TILE) {
        const int lane = threadIdx.x;
        load_tile<0, TILE / 2>(diagonal, corner, dimension, lane);
        load_tile<0, TILE>(upper, upper_tile, dimension, lane);
    } else {
        const int lane = threadIdx.x - TILE;
        load_tile<TILE / 2, TILE>(diagonal, corner, dimension, lane);
        load_tile<0, TILE>(lower, lower_tile, dimension, lane);
    }
    __syncthreads();

    // Every index into the three tiles is known here, so the loops unroll and a solved row or column stays in registers.
    // In `lud_diagonal` one tile is read and written by indices of threads, and its loops hold barriers: they stay loops.
    if (threadIdx.x < TILE) {
        const int column = threadIdx.x;
#pragma unroll
        for (int row = 1; row < TILE; row++) {
#pragma unroll
            for (int k = 0; k < row; k++) {
                upper[row][column] = __fmaf_rn(-diagonal[row][k], upper[k][column], upper[row][column]);
            }
        }
    } else {
        const int row = threadIdx.x - TILE;
#pragma unroll
        for (int column = 0; column < TILE; column++) {
#pragma unroll
            for (int k = 0; k < column; k++) {
                lower[row][column] = __fmaf_rn(-lower[row][k], diagonal[k][column], lower[row][column]);
            }
            lower[row][column] /= diagonal[column][column];
        }
    }
    __syncthreads();

    if (threadIdx.x < TILE) {
        const int lane = threadIdx.x;
        for (int row = 1; row < TILE; row++) {
            upper_tile[row * dimension + lane] = upper[row][lane];
        }
    } else {
        const int lane = threadIdx.x - TILE;
        for (int row = 0; row < TILE; row++) {
            lower_tile[row * dimension + lane] = lower[row][lane];
        }
    }
}

// Blocks of 16x16 threads, one for each tile right of and below the diagonal tile: tile -= L tile * U tile.
extern "C" __global__ void lud_internal(float *matrix, int dimension, int offset)
{
    __shared__ float upper[TILE][TILE];
    __shared__ float lower[TILE][TILE];
    const int first_row = offset + (blockIdx.y + 1) * TILE;
    const int first_column = offset + (blockIdx.x + 1) * TILE;
    const int row = threadIdx.y;
    const int column = threadIdx.x;

    upper[row][column] = matrix[(offset + row) * dimension + first_column + column];
    lower[row][column] = matrix[(first_row + row) * dimension + offset + column];
    __syncthreads();

    float sum = 0.0f;
    for (int k = 0; k < TILE; k++) {
        sum = __fmaf_rn(lower[row][k], upper[k][column], sum);
    }
    matrix[(first_row + row) * dimension + first_column + column] -= sum;
}
