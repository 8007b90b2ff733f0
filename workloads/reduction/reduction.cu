// Sums and counts over a vector. Each thread adds its grid-strided share; a warp combines its lanes by shuffles or
// votes, a block its warps through shared memory, and one thread a block adds to the total atomically.
// The block size is a multiple of 32, at most 1024.

#define FULL_WARP 0xffffffffu

extern "C" __global__ void reduce_integers(const unsigned *values, unsigned *total, int n)
{
    __shared__ unsigned warp_sums[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    unsigned sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(FULL_WARP, sum, distance);
    }
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();

    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
        for (int distance = 16; distance > 0; distance /= 2) {
            sum += __shfl_down_sync(FULL_WARP, sum, distance);
        }
        if (lane == 0) {
            atomicAdd(total, sum);
        }
    }
}

// The lanes exchange in a butterfly: afterwards each has the warp's sum.
extern "C" __global__ void reduce_floats(const float *values, float *total, int n)
{
    __shared__ float warp_sums[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    }
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();

    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f;
        for (int distance = 16; distance > 0; distance /= 2) {
            sum += __shfl_xor_sync(FULL_WARP, sum, distance);
        }
        if (lane == 0) {
            atomicAdd(total, sum);
        }
    }
}

// Counts the values of at least `threshold` by votes. Every lane of a warp takes part in every vote, so the loop runs
// while any lane has a value left.
extern "C" __global__ void count_at_least(const unsigned *values, unsigned *total, int n, unsigned threshold)
{
    __shared__ unsigned block_count;
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        block_count = 0;
    }
    __syncthreads();

    unsigned count = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; __any_sync(FULL_WARP, i < n); i += gridDim.x * blockDim.x) {
        const bool hit = i < n && values[i] >= threshold;
        count += __popc(__ballot_sync(FULL_WARP, hit));
    }
    if (lane == 0) {
        atomicAdd(&block_count, count);
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        atomicAdd(total, block_count);
    }
}
