// Product of a sparse matrix, its rows compressed, and a vector: with a thread a row, and with a warp a row, whose
// lanes read neighbouring entries and add up by shuffles. The order of additions is fixed, so a host can repeat it.

#define FULL_WARP 0xffffffffu

extern "C" __global__ void spmv_scalar(
    const int *first_entries, const int *columns, const float *entries, const float *x, float *y, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        const int end = first_entries[row + 1];
        for (int i = first_entries[row]; i < end; i++) {
            sum = __fmaf_rn(entries[i], x[columns[i]], sum);
        }
        y[row] = sum;
    }
}

extern "C" __global__ void spmv_vector(
    const int *first_entries, const int *columns, const float *entries, const float *x, float *y, int rows)
{
    const int lane = threadIdx.x % 32;
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    const int end = first_entries[row + 1];
    for (int i = first_entries[row] + lane; i < end; i += 32) {
        sum = __fmaf_rn(entries[i], x[columns[i]], sum);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        sum = __fadd_rn(sum, __shfl_down_sync(FULL_WARP, sum, distance));
    }
    if (lane == 0) {
        y[row] = sum;
    }
}
