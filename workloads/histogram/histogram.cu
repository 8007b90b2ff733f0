// Histogram of bytes in 256 bins: each block counts in shared memory and adds its bins to the total, or every thread adds
// to the total at once. Each word holds four bytes.

#define BINS 256

extern "C" __global__ void histogram_shared(const unsigned *words, unsigned *bins, int count)
{
    __shared__ unsigned own[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        own[bin] = 0;
    }
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned word = words[i];
        atomicAdd(&own[word & 0xff], 1);
        atomicAdd(&own[word >> 8 & 0xff], 1);
        atomicAdd(&own[word >> 16 & 0xff], 1);
        atomicAdd(&own[word >> 24], 1);
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        atomicAdd(&bins[bin], own[bin]);
    }
}

extern "C" __global__ void histogram_global(const unsigned *words, unsigned *bins, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned word = words[i];
        atomicAdd(&bins[word & 0xff], 1);
        atomicAdd(&bins[word >> 8 & 0xff], 1);
        atomicAdd(&bins[word >> 16 & 0xff], 1);
        atomicAdd(&bins[word >> 24], 1);
    }
}
