// Kernels that need the functions and variables of pieces_functions.cu. For ../conformance/programs/pieces.rs, whose threads are one warp.
//
// For sm_75: nvcc -arch=sm_75 -rdc=true -cubin (13.5). For sm_70: nvcc -arch=compute_75 -rdc=true -ptx (13.5), its .version made 8.4 and
// its .target sm_70, then ptxas -arch=sm_70 --compile-only (12.9).

#include <cstdio>

typedef int (*Operation)(int);

extern __device__ int counter;
extern __device__ int table[8];
extern __device__ Operation operations[3];
extern __constant__ int factors[4];
extern __shared__ int dynamic[];
__device__ int scaled(int value, int which);
__device__ int chosen(int which, int value);
__device__ int exchanged(int value);
__device__ int summed();
__device__ int fibonacci(int number);

// What both files define.
inline __device__ int of_both = 77;
template <int N> __device__ __noinline__ int times(int value) {
    static __device__ int calls = 0;
    atomicAdd(&calls, 1);
    return value * N + 1;
}
static __device__ __noinline__ int of_its_file(int value) { return value + 100; }

__constant__ int own_factor = 5;

extern "C" __global__ void call(int *out) {
    int i = threadIdx.x;
    out[i] = scaled(i, i & 3) + own_factor + times<3>(i) + of_its_file(i);
}

extern "C" __global__ void read(int *out) {
    int i = threadIdx.x;
    atomicAdd(&counter, 1);
    out[i] = table[i & 7] * factors[i & 3] + of_both;
}

extern "C" __global__ void choose(int *out) { out[threadIdx.x] = chosen(threadIdx.x % 11, threadIdx.x); }

extern "C" __global__ void exchange(int *out) {
    __shared__ int own[32];
    int i = threadIdx.x;
    own[31 - i] = i * 10;
    int theirs = exchanged(i);
    __syncthreads();
    out[i] = own[i] + theirs;
}

extern "C" __global__ void sum(int *out) {
    __shared__ char own[5];
    own[threadIdx.x % 5] = threadIdx.x % 5;
    dynamic[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = summed() + own[threadIdx.x % 5];
}

extern "C" __global__ void point(int *out) { out[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x); }

extern "C" __global__ void recurse(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 10); }

extern "C" __global__ void print(int *out) { printf("%d\n", scaled(out[0], 1)); }
