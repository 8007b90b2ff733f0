// Jacobi iterations of a one-dimensional heat equation in one cooperative launch: the grid meets after each.

#include <cooperative_groups.h>

extern "C" __global__ void relax(float *first, float *second, unsigned count, unsigned iterations)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const unsigned threads = gridDim.x * blockDim.x;
    float *source = first;
    float *target = second;
    for (unsigned iteration = 0; iteration < iterations; iteration++) {
        for (unsigned cell = blockIdx.x * blockDim.x + threadIdx.x; cell < count; cell += threads) {
            const float left = cell > 0 ? source[cell - 1] : source[cell];
            const float right = cell + 1 < count ? source[cell + 1] : source[cell];
            target[cell] = __fmaf_rn(0.5f, source[cell], __fmul_rn(0.25f, __fadd_rn(left, right)));
        }
        grid.sync();
        float *const other = source;
        source = target;
        target = other;
    }
}
