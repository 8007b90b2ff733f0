// Speckle-reducing anisotropic diffusion of an image, with the kernels of Rodinia's srad: for each step the sum of the
// pixels and of their squares, from which the host gets the speckle's scale, a stencil that gives each pixel's
// diffusion coefficient, and one that moves the pixels.
//
// Pixels beyond an edge are those at it. The operations are intrinsics, so that a host can repeat every rounding.

#define BLOCK 256

extern "C" __global__ void srad_prepare(const float *image, float *sums, float *squares, int pixels)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pixels) {
        const float pixel = image[i];
        sums[i] = pixel;
        squares[i] = __fmul_rn(pixel, pixel);
    }
}

// Each block of 256 threads replaces its values by their sum, in a tree. Launched again for the sums of the blocks.
extern "C" __global__ void srad_reduce(
    const float *sums, const float *squares, float *block_sums, float *block_squares, int count)
{
    __shared__ float sum[BLOCK];
    __shared__ float square[BLOCK];
    const int x = threadIdx.x;
    const int i = blockIdx.x * BLOCK + x;
    sum[x] = i < count ? sums[i] : 0.0f;
    square[x] = i < count ? squares[i] : 0.0f;
    __syncthreads();

    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (x < half) {
            sum[x] = __fadd_rn(sum[x], sum[x + half]);
            square[x] = __fadd_rn(square[x], square[x + half]);
        }
        __syncthreads();
    }
    if (x == 0) {
        block_sums[blockIdx.x] = sum[0];
        block_squares[blockIdx.x] = square[0];
    }
}

// The differences to the four neighbours and the diffusion coefficient of each pixel.
extern "C" __global__ void srad_coefficients(
    const float *image, float *norths, float *souths, float *wests, float *easts, float *coefficients, int rows,
    int columns, float scale)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= columns || row >= rows) {
        return;
    }
    const int i = row * columns + column;
    const float pixel = image[i];
    const float north = __fsub_rn(image[row > 0 ? i - columns : i], pixel);
    const float south = __fsub_rn(image[row < rows - 1 ? i + columns : i], pixel);
    const float west = __fsub_rn(image[column > 0 ? i - 1 : i], pixel);
    const float east = __fsub_rn(image[column < columns - 1 ? i + 1 : i], pixel);

    float gradient = __fmul_rn(north, north);
    gradient = __fmaf_rn(south, south, gradient);
    gradient = __fmaf_rn(west, west, gradient);
    gradient = __fmaf_rn(east, east, gradient);
    gradient = __fdiv_rn(gradient, __fmul_rn(pixel, pixel));
    const float laplacian = __fdiv_rn(__fadd_rn(__fadd_rn(north, south), __fadd_rn(west, east)), pixel);

    const float numerator = __fmaf_rn(-0.0625f, __fmul_rn(laplacian, laplacian), __fmul_rn(0.5f, gradient));
    const float denominator = __fmaf_rn(0.25f, laplacian, 1.0f);
    const float variation = __fdiv_rn(numerator, __fmul_rn(denominator, denominator));
    const float excess = __fdiv_rn(__fsub_rn(variation, scale), __fmul_rn(scale, __fadd_rn(1.0f, scale)));
    const float coefficient = __fdiv_rn(1.0f, __fadd_rn(1.0f, excess));

    norths[i] = north;
    souths[i] = south;
    wests[i] = west;
    easts[i] = east;
    coefficients[i] = fminf(fmaxf(coefficient, 0.0f), 1.0f);
}

// Moves each pixel by the divergence of the flow; `rate` is a quarter of the step.
extern "C" __global__ void srad_update(
    float *image, const float *norths, const float *souths, const float *wests, const float *easts,
    const float *coefficients, int rows, int columns, float rate)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= columns || row >= rows) {
        return;
    }
    const int i = row * columns + column;
    const float here = coefficients[i];
    const float south = coefficients[row < rows - 1 ? i + columns : i];
    const float east = coefficients[column < columns - 1 ? i + 1 : i];
    float divergence = __fmul_rn(here, norths[i]);
    divergence = __fmaf_rn(south, souths[i], divergence);
    divergence = __fmaf_rn(here, wests[i], divergence);
    divergence = __fmaf_rn(east, easts[i], divergence);
    image[i] = __fmaf_rn(rate, divergence, image[i]);
}
