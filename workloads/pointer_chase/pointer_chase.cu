// Latency of global memory: each load gives the address of the next one. One warp; all its threads follow the same
// pointers. The loads are inline assembly: the cache operator is the variant, and the compiler keeps every one.
//
// result[0]: cycles of the measured loads, result[1]: the address at which the chase ended.
// `warm_up` loads go first, unmeasured. Both counts are multiples of 16.

typedef unsigned long long address;

#define LOAD_CA(p) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory")
#define LOAD_CG(p) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p)::"memory")
#define FOUR(load, p) load(p); load(p); load(p); load(p)
#define SIXTEEN(load, p) FOUR(load, p); FOUR(load, p); FOUR(load, p); FOUR(load, p)

// Reads the clock once `p` is there: an instruction that needs it goes before, and instructions issue in order.
__device__ __forceinline__ unsigned long long clock_after(address p)
{
    unsigned long long cycles;
    asm volatile("{\n\t.reg .u64 arrived;\n\tadd.u64 arrived, %1, 1;\n\tmov.u64 %0, %%clock64;\n\t}"
                 : "=l"(cycles) : "l"(p) : "memory");
    return cycles;
}

#define CHASE(load)                                        \
    address p = start;                                     \
    for (unsigned i = 0; i < warm_up; i += 16) {           \
        SIXTEEN(load, p);                                  \
    }                                                      \
    const unsigned long long begin = clock_after(p);       \
    for (unsigned i = 0; i < steps; i += 16) {             \
        SIXTEEN(load, p);                                  \
    }                                                      \
    const unsigned long long end = clock_after(p);         \
    if (threadIdx.x == 0) {                                \
        result[0] = end - begin;                           \
        result[1] = p;                                     \
    }

extern "C" __global__ void chase_ca(address start, unsigned warm_up, unsigned steps, unsigned long long *result)
{
    CHASE(LOAD_CA)
}

extern "C" __global__ void chase_cg(address start, unsigned warm_up, unsigned steps, unsigned long long *result)
{
    CHASE(LOAD_CG)
}
