// Latency of shared memory: each load gives the address of the next one. One thread builds a ring of `nodes` words,
// `stride` words apart, then follows it.
//
// result[0]: cycles of the measured loads, result[1]: the node at which the chase ended. `steps` is a multiple of 16.

#define WORDS 8192
#define LOAD(p) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p)::"memory")
#define FOUR(p) LOAD(p); LOAD(p); LOAD(p); LOAD(p)
#define SIXTEEN(p) FOUR(p); FOUR(p); FOUR(p); FOUR(p)

__device__ __forceinline__ unsigned long long clock_after(unsigned p)
{
    unsigned long long cycles;
    asm volatile("{\n\t.reg .u32 arrived;\n\tadd.u32 arrived, %1, 1;\n\tmov.u64 %0, %%clock64;\n\t}"
                 : "=l"(cycles) : "r"(p) : "memory");
    return cycles;
}

extern "C" __global__ void shared_chase(unsigned nodes, unsigned stride, unsigned steps, unsigned long long *result)
{
    __shared__ volatile unsigned ring[WORDS];
    const unsigned base = (unsigned)__cvta_generic_to_shared((void *)ring);
    if (threadIdx.x == 0) {
        for (unsigned node = 0; node < nodes; node++) {
            const unsigned next = node + 1 < nodes ? node + 1 : 0;
            ring[node * stride] = base + next * stride * 4;
        }
    }
    __syncthreads();

    unsigned p = base;
    SIXTEEN(p);
    const unsigned long long begin = clock_after(p);
    for (unsigned i = 0; i < steps; i += 16) {
        SIXTEEN(p);
    }
    const unsigned long long end = clock_after(p);
    if (threadIdx.x == 0) {
        result[0] = end - begin;
        result[1] = (p - base) / (stride * 4);
    }
}
