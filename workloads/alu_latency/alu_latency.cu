// Latency of arithmetic: chains in which each instruction needs the result of the one before. The chains are inline
// assembly, so that the compiler neither shortens nor reorders them.
//
// result[0]: cycles of the chain, result[1]: the bits of its last value, so that a host can repeat the computation.
// `steps` is a multiple of 256: the loop's own instructions take about one hundredth of
// the time. Every thread runs the chain; the first one writes.

#define FOUR(operation) operation operation operation operation
#define SIXTEEN(operation) FOUR(operation) FOUR(operation) FOUR(operation) FOUR(operation)

#define FOUR_BY(operation) operation operation operation operation
#define SIXTEEN_BY(operation) FOUR_BY(operation) FOUR_BY(operation) FOUR_BY(operation) FOUR_BY(operation)
#define UNROLLED(operation) SIXTEEN_BY(SIXTEEN(operation))

#define CHAIN(type, constraint, assembly, touch)                                                   \
    type x = start;                                                                                \
    unsigned long long begin, end;                                                                 \
    SIXTEEN(asm volatile(assembly : "+" constraint(x) : constraint(a), constraint(b));)            \
    asm volatile(touch : "=l"(begin) : constraint(x), constraint(a) : "memory");                   \
    for (unsigned i = 0; i < steps; i += 256) {                                                    \
        UNROLLED(asm volatile(assembly : "+" constraint(x) : constraint(a), constraint(b));)       \
    }                                                                                              \
    asm volatile(touch : "=l"(end) : constraint(x), constraint(a) : "memory");

// The clock is read once the chain's last value is there: an instruction that needs it goes before.
#define AFTER_F32 "{\n\t.reg .f32 t;\n\tadd.rn.f32 t, %1, %2;\n\tmov.u64 %0, %%clock64;\n\t}"
#define AFTER_F64 "{\n\t.reg .f64 t;\n\tadd.rn.f64 t, %1, %2;\n\tmov.u64 %0, %%clock64;\n\t}"
#define AFTER_U32 "{\n\t.reg .u32 t;\n\tadd.u32 t, %1, %2;\n\tmov.u64 %0, %%clock64;\n\t}"

#define WRITE(bits)               \
    if (threadIdx.x == 0) {       \
        result[0] = end - begin;  \
        result[1] = (bits);       \
    }

extern "C" __global__ void chain_fp32_fma(unsigned long long *result, unsigned steps, float start, float a, float b)
{
    CHAIN(float, "f", "fma.rn.f32 %0, %0, %1, %2;", AFTER_F32)
    WRITE(__float_as_uint(x))
}

extern "C" __global__ void chain_fp32_add(unsigned long long *result, unsigned steps, float start, float a, float b)
{
    CHAIN(float, "f", "add.rn.f32 %0, %0, %1;", AFTER_F32)
    WRITE(__float_as_uint(x))
}

extern "C" __global__ void chain_fp64_fma(unsigned long long *result, unsigned steps, double start, double a, double b)
{
    CHAIN(double, "d", "fma.rn.f64 %0, %0, %1, %2;", AFTER_F64)
    WRITE((unsigned long long)__double_as_longlong(x))
}

extern "C" __global__ void chain_int_add(
    unsigned long long *result, unsigned steps, unsigned start, unsigned a, unsigned b)
{
    CHAIN(unsigned, "r", "add.u32 %0, %0, %1;", AFTER_U32)
    WRITE(x)
}

extern "C" __global__ void chain_int_mad(
    unsigned long long *result, unsigned steps, unsigned start, unsigned a, unsigned b)
{
    CHAIN(unsigned, "r", "mad.lo.u32 %0, %0, %1, %2;", AFTER_U32)
    WRITE(x)
}
