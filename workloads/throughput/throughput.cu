// Arithmetic throughput over the operations on each element that is read and written: chains of fused multiply-adds, in which each result
// is an operand of the next, and so many of them independent as the name says.
//
// Built: clang.sm_35

__device__ __forceinline__ double step(double b, double x)
{
    return __fma_rn(b, x, 1.0);
}

__device__ __forceinline__ float step(float b, float x)
{
    return __fmaf_rn(b, x, 1.0f);
}

// Two halves.
struct Pair {
    unsigned bits;
};

#if __CUDA_ARCH__ >= 530
__device__ __forceinline__ Pair step(Pair b, Pair x)
{
    Pair sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum.bits) : "r"(b.bits), "r"(x.bits), "r"(0x3c003c00u));
    return sum;
}
#endif

// `a` has an element for each thread, chain and pass.
template <typename Element, int INDEPENDENT>
__device__ __forceinline__ void chains(Element *__restrict__ a, unsigned passes, unsigned steps)
{
    const unsigned threads = gridDim.x * blockDim.x;
    Element *place = a + blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned pass = 0; pass < passes; pass++) {
        Element x[INDEPENDENT];
        Element b[INDEPENDENT];
#pragma unroll
        for (int k = 0; k < INDEPENDENT; k++) {
            x[k] = place[(size_t)k * threads];
            b[k] = x[k];
        }
        unsigned left = steps;
#pragma unroll 1
        for (; left >= 32 / INDEPENDENT; left -= 32 / INDEPENDENT) {
#pragma unroll
            for (int more = 0; more < 32 / INDEPENDENT; more++) {
#pragma unroll
                for (int k = 0; k < INDEPENDENT; k++) {
                    b[k] = step(b[k], x[k]);
                }
            }
        }
#pragma unroll 1
        for (; left > 0; left--) {
#pragma unroll
            for (int k = 0; k < INDEPENDENT; k++) {
                b[k] = step(b[k], x[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < INDEPENDENT; k++) {
            place[(size_t)k * threads] = b[k];
        }
        place += (size_t)INDEPENDENT * threads;
    }
}

#define CHAINS(NAME, ELEMENT, INDEPENDENT)                                                                                      \
    extern "C" __global__ void throughput_##NAME##_##INDEPENDENT(ELEMENT *__restrict__ a, unsigned passes, unsigned steps)     \
    {                                                                                                                           \
        chains<ELEMENT, INDEPENDENT>(a, passes, steps);                                                                         \
    }

CHAINS(fp64, double, 1)
CHAINS(fp64, double, 2)
CHAINS(fp64, double, 4)
CHAINS(fp64, double, 8)
CHAINS(fp32, float, 1)
CHAINS(fp32, float, 2)
CHAINS(fp32, float, 4)
CHAINS(fp32, float, 8)
#if __CUDA_ARCH__ >= 530
CHAINS(fp16, Pair, 1)
CHAINS(fp16, Pair, 2)
CHAINS(fp16, Pair, 4)
CHAINS(fp16, Pair, 8)
#endif

// Products of 16 x 16 halves on tensor cores, summed in single precision. A warp reads and writes 256 halves for each chain. The two
// factors are the same eight numbers of each lane.
#if __CUDA_ARCH__ >= 700
template <int INDEPENDENT>
__device__ __forceinline__ void products(uint4 *__restrict__ a, unsigned passes, unsigned steps)
{
    const unsigned threads = gridDim.x * blockDim.x;
    uint4 *place = a + blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned pass = 0; pass < passes; pass++) {
        uint4 x[INDEPENDENT];
        float c[INDEPENDENT][8];
#pragma unroll
        for (int k = 0; k < INDEPENDENT; k++) {
            x[k] = place[(size_t)k * threads];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                c[k][i] = 0.0f;
            }
        }
#pragma unroll 1
        for (unsigned done = 0; done < steps; done++) {
#pragma unroll
            for (int k = 0; k < INDEPENDENT; k++) {
                asm("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                    "{%8, %9, %10, %11, %8, %9, %10, %11}, {%8, %9, %10, %11, %8, %9, %10, %11}, "
                    "{%0, %1, %2, %3, %4, %5, %6, %7};"
                    : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3]), "+f"(c[k][4]), "+f"(c[k][5]), "+f"(c[k][6]),
                      "+f"(c[k][7])
                    : "r"(x[k].x), "r"(x[k].y), "r"(x[k].z), "r"(x[k].w));
            }
        }
#pragma unroll
        for (int k = 0; k < INDEPENDENT; k++) {
            uint4 sums;
            sums.x = __float_as_uint(c[k][0] + c[k][4]);
            sums.y = __float_as_uint(c[k][1] + c[k][5]);
            sums.z = __float_as_uint(c[k][2] + c[k][6]);
            sums.w = __float_as_uint(c[k][3] + c[k][7]);
            place[(size_t)k * threads] = sums;
        }
        place += (size_t)INDEPENDENT * threads;
    }
}

#define PRODUCTS(INDEPENDENT)                                                                                                   \
    extern "C" __global__ void throughput_tensor_##INDEPENDENT(uint4 *__restrict__ a, unsigned passes, unsigned steps)         \
    {                                                                                                                           \
        products<INDEPENDENT>(a, passes, steps);                                                                                \
    }

PRODUCTS(1)
PRODUCTS(2)
PRODUCTS(4)
PRODUCTS(8)
#endif
