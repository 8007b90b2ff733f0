// Fast Fourier transforms of `batch` signals of n = 2^k complex numbers (Stockham's form: no bit reversal).

// One radix-2 step over all signals: `half` is n / 2, `span` how many results of shorter transforms lie together.
extern "C" __global__ void fftStep(const float2 *source, float2 *target, unsigned half, unsigned span, float sign)
{
    const unsigned pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= half) {
        return;
    }
    const size_t signal = (size_t)blockIdx.y * 2 * half;
    const unsigned within = pair & (span - 1);
    float sine, cosine;
    sincospif(sign * within / span, &sine, &cosine);
    const float2 even = source[signal + pair];
    const float2 odd = source[signal + pair + half];
    const float2 turned = make_float2(odd.x * cosine - odd.y * sine, odd.x * sine + odd.y * cosine);
    const size_t place = signal + 2 * pair - within;
    target[place] = make_float2(even.x + turned.x, even.y + turned.y);
    target[place + span] = make_float2(even.x - turned.x, even.y - turned.y);
}

// A whole transform of 1024 numbers in shared memory, a block each.
extern "C" __global__ void fft1024(float2 *signals, float sign)
{
    __shared__ float2 values[2][1024];
    float2 *const signal = signals + (size_t)blockIdx.x * 1024;
    for (unsigned place = threadIdx.x; place < 1024; place += 256) {
        values[0][place] = signal[place];
    }
    unsigned from = 0;
    for (unsigned span = 1; span < 1024; span *= 2) {
        __syncthreads();
        for (unsigned pair = threadIdx.x; pair < 512; pair += 256) {
            const unsigned within = pair & (span - 1);
            float sine, cosine;
            sincospif(sign * within / span, &sine, &cosine);
            const float2 even = values[from][pair];
            const float2 odd = values[from][pair + 512];
            const float2 turned = make_float2(odd.x * cosine - odd.y * sine, odd.x * sine + odd.y * cosine);
            const unsigned place = 2 * pair - within;
            values[1 - from][place] = make_float2(even.x + turned.x, even.y + turned.y);
            values[1 - from][place + span] = make_float2(even.x - turned.x, even.y - turned.y);
        }
        from = 1 - from;
    }
    __syncthreads();
    for (unsigned place = threadIdx.x; place < 1024; place += 256) {
        signal[place] = values[from][place];
    }
}
