// Temperature of a chip over time: an explicit five-point stencil on a grid of cells, each with its own power.
//
// A block of 16x16 threads loads a tile of cells with a ghost zone of `steps` cells on each side, takes `steps` time
// steps in shared memory, and writes the inner (16 - 2 * steps)^2 cells, which only depend on cells of the tile.
// Cells at the edge of the chip see their own temperature beyond it. The operations are written as intrinsics, so that
// the compiler cannot fuse them differently and a host can repeat every rounding.

#define TILE 16

struct Coefficients {
    float per_capacity;
    float conductance_x;
    float conductance_y;
    float conductance_z;
    float ambient;
};

// A cell and its neighbours.
struct Cross {
    float center, north, south, west, east, power;
};

// A cell's temperature after a time step.
struct Single {
    static __device__ __forceinline__ float step(const Cross &cells, const Coefficients &chip)
    {
        const float vertical = __fmaf_rn(-2.0f, cells.center, __fadd_rn(cells.north, cells.south));
        const float horizontal = __fmaf_rn(-2.0f, cells.center, __fadd_rn(cells.west, cells.east));
        float flow = __fmaf_rn(vertical, chip.conductance_y, cells.power);
        flow = __fmaf_rn(horizontal, chip.conductance_x, flow);
        flow = __fmaf_rn(__fsub_rn(chip.ambient, cells.center), chip.conductance_z, flow);
        return __fmaf_rn(chip.per_capacity, flow, cells.center);
    }
};

// The same where the 2 is a constant of double precision, as in Rodinia's hotspot: what meets it is of double precision, too.
struct Mixed {
    static __device__ __forceinline__ float step(const Cross &cells, const Coefficients &chip)
    {
        const double vertical = __fma_rn(-2.0, (double)cells.center, (double)__fadd_rn(cells.north, cells.south));
        const double horizontal = __fma_rn(-2.0, (double)cells.center, (double)__fadd_rn(cells.west, cells.east));
        double flow = __fma_rn(vertical, (double)chip.conductance_y, (double)cells.power);
        flow = __fma_rn(horizontal, (double)chip.conductance_x, flow);
        flow = __dadd_rn((double)__fmul_rn(__fsub_rn(chip.ambient, cells.center), chip.conductance_z), flow);
        return __double2float_rn(__fma_rn((double)chip.per_capacity, flow, (double)cells.center));
    }
};

template <typename Arithmetic>
__device__ __forceinline__ void tile(
    const float *power, const float *temperature, float *result, int rows, int columns, int steps,
    const Coefficients &chip)
{
    __shared__ float now[TILE][TILE];
    __shared__ float next[TILE][TILE];

    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int inner = TILE - 2 * steps;
    const int column = (int)blockIdx.x * inner - steps + x;
    const int row = (int)blockIdx.y * inner - steps + y;
    const bool on_chip = row >= 0 && row < rows && column >= 0 && column < columns;

    float cell_power = 0.0f;
    if (on_chip) {
        now[y][x] = temperature[row * columns + column];
        cell_power = power[row * columns + column];
    }
    __syncthreads();

    // The neighbour beyond the chip's edge is the cell itself.
    const int north = row > 0 ? y - 1 : y;
    const int south = row < rows - 1 ? y + 1 : y;
    const int west = column > 0 ? x - 1 : x;
    const int east = column < columns - 1 ? x + 1 : x;

    for (int step = 1; step <= steps; step++) {
        const bool valid = on_chip && x >= step && x < TILE - step && y >= step && y < TILE - step;
        if (valid) {
            const Cross cells = {now[y][x], now[north][x], now[south][x], now[y][west], now[y][east], cell_power};
            next[y][x] = Arithmetic::step(cells, chip);
        }
        __syncthreads();
        if (valid) {
            now[y][x] = next[y][x];
        }
        __syncthreads();
    }

    if (on_chip && x >= steps && x < TILE - steps && y >= steps && y < TILE - steps) {
        result[row * columns + column] = now[y][x];
    }
}

extern "C" __global__ void hotspot(
    const float *power, const float *temperature, float *result, int rows, int columns, int steps, float per_capacity,
    float conductance_x, float conductance_y, float conductance_z, float ambient)
{
    const Coefficients chip = {per_capacity, conductance_x, conductance_y, conductance_z, ambient};
    tile<Single>(power, temperature, result, rows, columns, steps, chip);
}

extern "C" __global__ void hotspot_mixed(
    const float *power, const float *temperature, float *result, int rows, int columns, int steps, float per_capacity,
    float conductance_x, float conductance_y, float conductance_z, float ambient)
{
    const Coefficients chip = {per_capacity, conductance_x, conductance_y, conductance_z, ambient};
    tile<Mixed>(power, temperature, result, rows, columns, steps, chip);
}
