// Product of a dense matrix, stored row after row, and a vector, with one thread for each row. A thread walks along its
// row, so that the lanes of a warp read addresses a whole row apart: each load of the matrix touches as many sectors as
// there are lanes. A lane uses the rest of its sector in its next steps, if the cache still holds it then. All lanes read
// the same element of the vector. The order of additions is fixed, so a host can repeat it.

extern "C" __global__ void row_walk(const float *matrix, const float *x, float *y, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const float *entries = matrix + (size_t)row * columns;
        float sum = 0.0f;
        for (int j = 0; j < columns; j++) {
            sum = __fmaf_rn(entries[j], x[j], sum);
        }
        y[row] = sum;
    }
}
