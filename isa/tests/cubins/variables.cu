// Variables of all kinds, calls through pointers, the device runtime. For ../modules.rs.
//
// nvcc -arch=compute_75 -ptx (13.5), its .version and .target made 8.8 and sm_70, then ptxas -arch=sm_70 (12.9)
#include <cstdio>

typedef int (*Function)(int);

__managed__ int counter = 5;
__managed__ double scratch[100];
__device__ int values[10];
__device__ int *third = &values[3];
__constant__ int table[4] = {1, 2, 3, 4};
__constant__ int *first = &values[1];

__device__ __noinline__ int scale(int x) { return x * 3 + values[x]; }
__device__ __noinline__ int mix(int x) { return x ^ table[x & 3]; }
__device__ Function functions[2] = {scale, mix};

extern "C" __global__ void __launch_bounds__(96) compute(int *out, int n) {
    __shared__ int exchange[64];
    exchange[threadIdx.x] = n;
    __syncthreads();
    out[threadIdx.x] = functions[n & 1](exchange[threadIdx.x ^ 1]) + *third + *first + (int)scratch[n];
    atomicAdd(&counter, 1);
    if (n == 77) printf("%d\n", n);
}

extern "C" __global__ void allocate(int *out) {
    int *fresh = (int *)malloc(64);
    out[0] = fresh[0];
    free(fresh);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recurse(int *out, int n) { out[0] = fibonacci(n); }

extern "C" __global__ void divide(double *out) { out[0] = out[1] / out[2]; }
