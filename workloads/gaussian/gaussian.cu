// Gaussian elimination of a system of equations without pivoting, a pair of launches a column: the kernels of Rodinia's
// gaussian. The host substitutes back.

// The factors of the rows below row `pivot`.
extern "C" __global__ void gaussian_factors(const float *matrix, float *factors, int size, int pivot)
{
    const int row = pivot + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < size) {
        factors[row * size + pivot] = __fdiv_rn(matrix[row * size + pivot], matrix[pivot * size + pivot]);
    }
}

// Subtracts the multiples of row `pivot`: x a column from the pivot's on, y a row below it.
extern "C" __global__ void gaussian_eliminate(
    float *matrix, float *right_side, const float *factors, int size, int pivot)
{
    const int column = pivot + blockIdx.x * blockDim.x + threadIdx.x;
    const int row = pivot + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= size || column >= size) {
        return;
    }
    const float factor = -factors[row * size + pivot];
    matrix[row * size + column] = __fmaf_rn(factor, matrix[pivot * size + column], matrix[row * size + column]);
    if (column == pivot) {
        right_side[row] = __fmaf_rn(factor, right_side[pivot], right_side[row]);
    }
}
