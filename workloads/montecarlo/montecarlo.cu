// The price of a European call option by simulated paths, and the number of points inside the unit circle: each thread
// draws its own random numbers.

// A counter-based generator: mixes the thread's number and the draw's (the finaliser of MurmurHash3, twice).
static __device__ unsigned draw(unsigned thread, unsigned number)
{
    unsigned value = thread * 0x9e3779b9u + number * 0x85ebca6bu + 0x5bd1e995u;
    for (int round = 0; round < 2; round++) {
        value ^= value >> 16;
        value *= 0x85ebca6bu;
        value ^= value >> 13;
        value *= 0xc2b2ae35u;
        value ^= value >> 16;
    }
    return value;
}

// A float in (0, 1].
static __device__ float unit(unsigned bits)
{
    return ((bits >> 8) + 1) * (1.0f / 16777216.0f);
}

extern "C" __global__ void priceOption(double *sum, unsigned draws, float spot, float strike, float drift,
                                       float volatility)
{
    __shared__ double partial[256];
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    double payoff = 0.0;
    for (unsigned path = 0; path < draws; path++) {
        // Box and Muller: two uniform numbers give two normal ones.
        const float radius = sqrtf(-2.0f * logf(unit(draw(thread, 2 * path))));
        float sine, cosine;
        sincospif(2.0f * unit(draw(thread, 2 * path + 1)), &sine, &cosine);
        payoff += fmaxf(spot * expf(drift + volatility * radius * cosine) - strike, 0.0f);
        payoff += fmaxf(spot * expf(drift + volatility * radius * sine) - strike, 0.0f);
    }
    partial[threadIdx.x] = payoff;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        sum[blockIdx.x] = partial[0];
    }
}

extern "C" __global__ void countInside(unsigned long long *inside, unsigned draws)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned count = 0;
    for (unsigned point = 0; point < draws; point++) {
        // 16-bit coordinates: the comparison is exact.
        const unsigned bits = draw(thread ^ 0x55555555u, point);
        const unsigned long long x = bits & 0xffff, y = bits >> 16;
        count += x * x + y * y < 65535ull * 65535ull;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        count += __shfl_down_sync(0xffffffffu, count, distance);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(inside, (unsigned long long)count);
    }
}
