// Finite differences in time and space for an electromagnetic wave in two dimensions: the electric field `ez` at the centres
// of size x size cells, the magnetic field on their edges. `hx` has a row more than the cells, and `hy` a column more. The
// source drives row 0 of `hx`; the other outer edges keep what they have. All fields are stored row after row.
//
// Three kernels make a time step, one thread a value. `courant` is the time step in units of what light needs for a cell. The
// operations are written as intrinsics, so that a host can repeat every rounding.

extern "C" __global__ void fdtd_hx(const float *source, const float *ez, float *hx, int size, int step, float courant)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= size || column >= size) {
        return;
    }
    const int place = row * size + column;
    if (row == 0) {
        hx[place] = source[step];
    } else {
        hx[place] = __fmaf_rn(courant, __fsub_rn(ez[place - size], ez[place]), hx[place]);
    }
}

extern "C" __global__ void fdtd_hy(const float *ez, float *hy, int size, float courant)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < size && column > 0 && column < size) {
        const int cell = row * size + column;
        const int edge = row * (size + 1) + column;
        hy[edge] = __fmaf_rn(courant, __fsub_rn(ez[cell], ez[cell - 1]), hy[edge]);
    }
}

extern "C" __global__ void fdtd_ez(const float *hx, const float *hy, float *ez, int size, float courant)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < size && column < size) {
        const int cell = row * size + column;
        const int west = row * (size + 1) + column;
        const float across = __fsub_rn(hy[west + 1], hy[west]);
        const float down = __fsub_rn(hx[cell], hx[cell + size]);
        ez[cell] = __fmaf_rn(courant, __fadd_rn(across, down), ez[cell]);
    }
}
