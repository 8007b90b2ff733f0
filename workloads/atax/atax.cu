// A matrix times a vector, and the transposed matrix times that: y = A^T (A x), the matrix stored row after row.
//
// In `atax_rows` a thread walks along its row, so that the lanes of a warp read addresses a whole row apart. In
// `atax_columns` a thread walks down its column: the lanes read neighbours, and each step goes one row further. The order
// of the additions is fixed, so a host can repeat it.

extern "C" __global__ void atax_rows(const float *matrix, const float *x, float *products, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const float *entries = matrix + (size_t)row * columns;
        float sum = 0.0f;
        for (int column = 0; column < columns; column++) {
            sum = __fmaf_rn(entries[column], x[column], sum);
        }
        products[row] = sum;
    }
}

extern "C" __global__ void atax_columns(const float *matrix, const float *products, float *y, int rows, int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        float sum = 0.0f;
        for (int row = 0; row < rows; row++) {
            sum = __fmaf_rn(matrix[(size_t)row * columns + column], products[row], sum);
        }
        y[column] = sum;
    }
}
