// Training step of a neural network's first layer, as Rodinia's backprop launches it: a forward pass that leaves a
// partial sum for each 16 inputs, and the adjustment of the weights. The hidden layer has 16 nodes.
//
// weights[i * 16 + h] leads from input i to hidden node h. Products and sums are intrinsics, so that a host can repeat
// every rounding.

#define HIDDEN 16

// Blocks of 16x16 threads: x a hidden node, y one of the 16 inputs that the block sums.
extern "C" __global__ void backprop_forward(const float *inputs, const float *weights, float *partial_sums)
{
    __shared__ float input[HIDDEN];
    __shared__ float products[HIDDEN][HIDDEN];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int first = HIDDEN * blockIdx.x;

    if (x == 0) {
        input[y] = inputs[first + y];
    }
    __syncthreads();
    products[y][x] = __fmul_rn(weights[(first + y) * HIDDEN + x], input[y]);
    __syncthreads();

    for (int distance = 1; distance < HIDDEN; distance *= 2) {
        if (y % (2 * distance) == 0) {
            products[y][x] = __fadd_rn(products[y][x], products[y + distance][x]);
        }
        __syncthreads();
    }
    if (y == 0) {
        partial_sums[blockIdx.x * HIDDEN + x] = products[0][x];
    }
}

// The same blocks: moves each weight by its gradient and a share of its previous step.
extern "C" __global__ void backprop_adjust(
    const float *inputs, const float *deltas, float *weights, float *steps, float rate, float momentum)
{
    const int x = threadIdx.x;
    const int i = HIDDEN * blockIdx.x + threadIdx.y;
    const int place = i * HIDDEN + x;

    const float gradient = __fmul_rn(__fmul_rn(rate, deltas[x]), inputs[i]);
    const float step = __fmaf_rn(momentum, steps[place], gradient);
    weights[place] = __fadd_rn(weights[place], step);
    steps[place] = step;
}
