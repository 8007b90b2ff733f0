// Transposition of a matrix in several ways that differ in how they use memory, and a copy to compare with. Blocks of
// 32x8 threads move tiles of 32x32.

#define TILE 32
#define ROWS 8

extern "C" __global__ void copy(const float *from, float *to, int rows, int columns)
{
    const int x = blockIdx.x * TILE + threadIdx.x;
    const int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (x < columns && y + i < rows) {
            to[(y + i) * columns + x] = from[(y + i) * columns + x];
        }
    }
}

// Reads along rows, and writes along columns: each store of a warp goes to 32 lines.
extern "C" __global__ void transpose_naive(const float *from, float *to, int rows, int columns)
{
    const int x = blockIdx.x * TILE + threadIdx.x;
    const int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (x < columns && y + i < rows) {
            to[x * rows + y + i] = from[(y + i) * columns + x];
        }
    }
}

// Turns a tile in shared memory whose rows are WIDTH words apart. Where that is 32, a column lies in a single bank.
template <int WIDTH>
__device__ __forceinline__ void transpose_tile(const float *from, float *to, int rows, int columns)
{
    __shared__ float tile[TILE][WIDTH];
    const int x = blockIdx.x * TILE + threadIdx.x;
    const int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (x < columns && y + i < rows) {
            tile[threadIdx.y + i][threadIdx.x] = from[(y + i) * columns + x];
        }
    }
    __syncthreads();

    const int to_x = blockIdx.y * TILE + threadIdx.x;
    const int to_y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS) {
        if (to_x < rows && to_y + i < columns) {
            to[(to_y + i) * rows + to_x] = tile[threadIdx.x][threadIdx.y + i];
        }
    }
}

extern "C" __global__ void transpose_tiled(const float *from, float *to, int rows, int columns)
{
    transpose_tile<TILE>(from, to, rows, columns);
}

extern "C" __global__ void transpose_padded(const float *from, float *to, int rows, int columns)
{
    transpose_tile<TILE + 1>(from, to, rows, columns);
}
