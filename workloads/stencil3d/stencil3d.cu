// Seven-point stencil on a grid of n x n x n: a block walks along z with a plane in shared memory and the neighbours
// along z in registers. Border cells keep their values.

#define TILE_X 32
#define TILE_Y 8

extern "C" __global__ void stencil3d(const float *source, float *target, unsigned n, float centreWeight,
                                     float neighbourWeight)
{
    __shared__ float plane[TILE_Y + 2][TILE_X + 2];
    const unsigned x = blockIdx.x * TILE_X + threadIdx.x;
    const unsigned y = blockIdx.y * TILE_Y + threadIdx.y;
    const unsigned column = threadIdx.x + 1;
    const unsigned row = threadIdx.y + 1;
    const bool inside = x < n && y < n;
    const bool interior = x > 0 && y > 0 && x + 1 < n && y + 1 < n;
    const size_t layer = (size_t)n * n;
    const size_t place = (size_t)y * n + x;
    float below = 0.0f;
    float centre = inside ? source[place] : 0.0f;
    float above = inside && n > 1 ? source[place + layer] : 0.0f;
    if (inside) {
        target[place] = centre;
    }
    for (unsigned z = 1; z + 1 < n; z++) {
        below = centre;
        centre = above;
        above = inside ? source[place + (z + 1) * layer] : 0.0f;
        __syncthreads();
        plane[row][column] = centre;
        if (threadIdx.x == 0 && inside && x > 0) {
            plane[row][0] = source[place - 1 + z * layer];
        }
        if (threadIdx.x == TILE_X - 1 && inside && x + 1 < n) {
            plane[row][TILE_X + 1] = source[place + 1 + z * layer];
        }
        if (threadIdx.y == 0 && inside && y > 0) {
            plane[0][column] = source[place - n + z * layer];
        }
        if (threadIdx.y == TILE_Y - 1 && inside && y + 1 < n) {
            plane[TILE_Y + 1][column] = source[place + n + z * layer];
        }
        __syncthreads();
        if (interior) {
            // Each rounding is written out, so that every compiler gives the same bits.
            const float along_x = __fadd_rn(plane[row][column - 1], plane[row][column + 1]);
            const float along_y = __fadd_rn(plane[row - 1][column], plane[row + 1][column]);
            const float along_z = __fadd_rn(below, above);
            const float sum = __fadd_rn(__fadd_rn(along_x, along_y), along_z);
            target[place + z * layer] = __fmaf_rn(neighbourWeight, sum, __fmul_rn(centreWeight, centre));
        } else if (inside) {
            target[place + z * layer] = centre;
        }
    }
    if (inside && n > 1) {
        target[place + (n - 1) * layer] = above;
    }
}
