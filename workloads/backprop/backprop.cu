// Training step of a neural network's first layer, with the launches and the layout of Rodinia's backprop: a forward pass that leaves a
// partial sum for each 16 inputs, and the adjustment of the weights. The hidden layer has 16 nodes.
//
// weights[i * ROW + h] leads from input i to hidden node h, both counted from 1; those of input 0 are the thresholds of the hidden nodes.
// Products and sums are intrinsics, so that a host can repeat every rounding.

#define HIDDEN 16
#define ROW (HIDDEN + 1)

// Blocks of 16x16 threads: x a hidden node, y one of the 16 inputs that the block sums. Each weight gives way to what its thread has
// of the sums.
extern "C" __global__ void backprop_forward(const float *inputs, float *weights, float *partial_sums)
{
    __shared__ float input[HIDDEN];
    __shared__ float products[HIDDEN][HIDDEN];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int i = HIDDEN * blockIdx.x + y + 1;
    const int place = i * ROW + x + 1;

    if (x == 0) {
        input[y] = inputs[i];
    }
    __syncthreads();
    products[y][x] = __fmul_rn(weights[place], input[y]);
    __syncthreads();

    for (int distance = 1; distance < HIDDEN; distance *= 2) {
        if (y % (2 * distance) == 0) {
            products[y][x] = __fadd_rn(products[y][x], products[y + distance][x]);
        }
        __syncthreads();
    }
    weights[place] = products[y][x];
    if (y == 0) {
        partial_sums[blockIdx.x * HIDDEN + x] = products[0][x];
    }
}

// Moves a weight by its gradient and a share of its previous step.
__device__ __forceinline__ void adjust(float *weights, float *steps, int place, float gradient, float momentum)
{
    const float step = __fmaf_rn(momentum, steps[place], gradient);
    weights[place] = __fadd_rn(weights[place], step);
    steps[place] = step;
}

// The same blocks. The first threads of the first block adjust the thresholds, too.
extern "C" __global__ void backprop_adjust(
    const float *inputs, const float *deltas, float *weights, float *steps, float rate, float momentum)
{
    const int x = threadIdx.x + 1;
    const int i = HIDDEN * blockIdx.x + threadIdx.y + 1;

    adjust(weights, steps, i * ROW + x, __fmul_rn(__fmul_rn(rate, deltas[x]), inputs[i]), momentum);
    if (blockIdx.x == 0 && threadIdx.y == 0) {
        adjust(weights, steps, x, __fmul_rn(rate, deltas[x]), momentum);
    }
}
