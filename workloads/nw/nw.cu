// Global alignment of two sequences after Needleman and Wunsch, in tiles of 16x16 cells: the launches of Rodinia's nw.
//
// Scores of a cell need those above, left and above left of it. The tiles of an anti-diagonal are independent: one
// launch each, first with growing diagonals, then with shrinking ones. Within a tile the same holds for its cells.
// Row 0 and column 0 of the matrices hold the scores of gaps at the start.

#define TILE 16

__device__ __forceinline__ int best(int diagonal, int left, int above)
{
    return max(diagonal, max(left, above));
}

// A block of 16 threads solves the tile in column `tile_x` and row `tile_y` of tiles.
__device__ __forceinline__ void solve_tile(
    const int *similarity, int *scores, int columns, int penalty, int tile_x, int tile_y)
{
    __shared__ int score[TILE + 1][TILE + 1];
    __shared__ int similar[TILE][TILE];
    const int lane = threadIdx.x;
    // The cell above left of the tile.
    const int corner = tile_y * TILE * columns + tile_x * TILE;

    for (int row = 0; row < TILE; row++) {
        similar[row][lane] = similarity[corner + (row + 1) * columns + lane + 1];
    }
    if (lane == 0) {
        score[0][0] = scores[corner];
    }
    score[0][lane + 1] = scores[corner + lane + 1];
    score[lane + 1][0] = scores[corner + (lane + 1) * columns];
    __syncthreads();

    for (int last = 0; last < TILE; last++) {
        if (lane <= last) {
            const int x = lane + 1;
            const int y = last - lane + 1;
            score[y][x] = best(
                score[y - 1][x - 1] + similar[y - 1][x - 1], score[y][x - 1] - penalty, score[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int last = TILE - 2; last >= 0; last--) {
        if (lane <= last) {
            const int x = lane + TILE - last;
            const int y = TILE - lane;
            score[y][x] = best(
                score[y - 1][x - 1] + similar[y - 1][x - 1], score[y][x - 1] - penalty, score[y - 1][x] - penalty);
        }
        __syncthreads();
    }

    for (int row = 0; row < TILE; row++) {
        scores[corner + (row + 1) * columns + lane + 1] = score[row + 1][lane + 1];
    }
}

// The tiles of anti-diagonal `diagonal` (the first is 1) up to the longest: as many blocks as its number.
extern "C" __global__ void nw_growing(const int *similarity, int *scores, int columns, int penalty, int diagonal)
{
    solve_tile(similarity, scores, columns, penalty, blockIdx.x, diagonal - 1 - blockIdx.x);
}

// Those after it: the diagonal with `diagonal` tiles, in a matrix of `tiles` by `tiles`.
extern "C" __global__ void nw_shrinking(
    const int *similarity, int *scores, int columns, int penalty, int diagonal, int tiles)
{
    solve_tile(similarity, scores, columns, penalty, blockIdx.x + tiles - diagonal, tiles - 1 - blockIdx.x);
}
