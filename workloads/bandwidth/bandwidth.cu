// Bandwidth of the levels of memory over the working set.
//
// Built: clang.sm_35

struct Sums {
    float low;
    float high;
};

// A warp reads 1 KiB.
__device__ __forceinline__ void readChunk(const float2 *__restrict__ a, unsigned chunk, Sums &sums)
{
    const float2 *const place = a + (size_t)chunk * 128 + threadIdx.x % 32;
    const float2 one = __ldg(place);
    const float2 two = __ldg(place + 32);
    const float2 three = __ldg(place + 64);
    const float2 four = __ldg(place + 96);
    sums.low += one.x;
    sums.high += one.y;
    sums.low += two.x;
    sums.high += two.y;
    sums.low += three.x;
    sums.high += three.y;
    sums.low += four.x;
    sums.high += four.y;
}

// `step` and `chunk` are less than `chunks`.
__device__ __forceinline__ unsigned next(unsigned chunk, unsigned step, unsigned chunks)
{
    chunk += step;
    return chunk >= chunks ? chunk - chunks : chunk;
}

// All warps go through the working set side by side, 1 KiB of it each at a time, and in each trial every block has what its neighbour had in
// the one before. So between two reads of the same place the working set goes by, for the GPU as a whole, and for each block after as many
// trials as it takes to meet all of it: it has the bandwidth of the smallest level that holds all of it.
// `shift` and `stride` are the warps of a block and of the grid, modulo `chunks`; `visits` how many times 1 KiB a warp reads in a trial.
extern "C" __global__ void bandwidth_read(const float2 *__restrict__ a, float *__restrict__ sums, unsigned chunks, unsigned shift,
                                          unsigned stride, unsigned visits, unsigned trials)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned first = thread / 32 % chunks;
    Sums mine = {0.0f, 0.0f};
    if (visits == 1) {
#pragma unroll 2
        for (unsigned trial = 0; trial < trials; trial++) {
            readChunk(a, first, mine);
            first = next(first, shift, chunks);
        }
    } else {
        for (unsigned trial = 0; trial < trials; trial++) {
            unsigned chunk = first;
            for (unsigned visit = 0; visit < visits; visit++) {
                readChunk(a, chunk, mine);
                chunk = next(chunk, stride, chunks);
            }
            first = next(first, shift, chunks);
        }
    }
    sums[thread] = mine.low + mine.high;
}

// Each thread reads and writes elements of its own, `trials` times over.
extern "C" __global__ void bandwidth_update(double *a, unsigned n, unsigned trials)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned trial = 0; trial < trials; trial++) {
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
            a[i] = __fma_rn(0.5, a[i], 1.0);
        }
    }
}

// The same in shared memory: a block has `part` elements of the working set.
extern "C" __global__ void bandwidth_shared(double *a, unsigned n, unsigned part, unsigned trials)
{
    extern __shared__ double held[];
    const unsigned first = blockIdx.x * part;
    const unsigned count = first < n ? min(part, n - first) : 0;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        held[i] = a[first + i];
    }
    for (unsigned trial = 0; trial < trials; trial++) {
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
            held[i] = __fma_rn(0.5, held[i], 1.0);
        }
    }
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        a[first + i] = held[i];
    }
}
