// The cheapest way through a grid from its first row to each cell of the last, where a step leads to the next row, at
// most one column aside: dynamic programming over rows, as Rodinia's pathfinder launches it.
//
// A block of 256 threads loads a strip of the row above with a ghost zone of `steps` cells on each side, takes `steps`
// rows in shared memory, and writes the inner cells, which only depend on cells of the strip.

#define BLOCK 256

extern "C" __global__ void pathfinder(
    const int *costs, const int *from, int *to, int columns, int first_row, int steps)
{
    __shared__ int now[BLOCK];
    __shared__ int next[BLOCK];
    const int x = threadIdx.x;
    const int column = (int)blockIdx.x * (BLOCK - 2 * steps) - steps + x;
    const bool on_grid = column >= 0 && column < columns;

    if (on_grid) {
        now[x] = from[column];
    }
    __syncthreads();

    const int left = column > 0 ? x - 1 : x;
    const int right = column < columns - 1 ? x + 1 : x;
    for (int step = 1; step <= steps; step++) {
        const bool valid = on_grid && x >= step && x < BLOCK - step;
        if (valid) {
            const int cheapest = min(now[x], min(now[left], now[right]));
            next[x] = cheapest + costs[(first_row + step - 1) * columns + column];
        }
        __syncthreads();
        if (valid) {
            now[x] = next[x];
        }
        __syncthreads();
    }

    if (on_grid && x >= steps && x < BLOCK - steps) {
        to[column] = now[x];
    }
}
