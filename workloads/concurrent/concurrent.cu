// Small kernels for several streams at once.

// Each element goes through `rounds` steps of a linear congruential generator: time without memory traffic.
extern "C" __global__ void scramble(unsigned *values, unsigned n, unsigned rounds)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned value = values[i];
        for (unsigned round = 0; round < rounds; round++) {
            value = value * 1664525u + 1013904223u;
        }
        values[i] = value;
    }
}

// target[i] += source[i]
extern "C" __global__ void accumulate(unsigned *target, const unsigned *source, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] += source[i];
    }
}
