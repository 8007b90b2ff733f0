// Functions and variables for the kernels of pieces_kernels.cu; made in the same way.

__device__ int counter = 40;
__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int *element = &table[3];
__constant__ int in_front[3] = {9, 9, 9};
__constant__ int factors[4] = {10, 20, 30, 40};
extern __shared__ int dynamic[];

inline __device__ int of_both = 77;
template <int N> __device__ __noinline__ int times(int value) {
    static __device__ int calls = 0;
    atomicAdd(&calls, 1);
    return value * N + 1;
}
static __device__ __noinline__ int of_its_file(int value) { return value + 200; }

__device__ int scaled(int value, int which) {
    return value * factors[which] + *element + times<3>(value) + of_its_file(value);
}

__device__ int chosen(int which, int value) {
    switch (which) {
    case 0: return value + 1;
    case 1: return value * 3;
    case 2: return value ^ 0x55;
    case 3: return value << 4;
    case 4: return __clz(value);
    case 5: return value * value;
    case 6: return __popc(value);
    case 7: return of_both - value;
    case 8: return value % 7;
    case 9: return value / 3;
    default: return -1;
    }
}

__device__ int exchanged(int value) {
    __shared__ int place[32];
    place[threadIdx.x] = value * 2;
    __syncthreads();
    return place[31 - threadIdx.x];
}

__device__ int summed() {
    int all = 0;
    for (int i = 0; i < 32; i++) all += dynamic[i];
    return all;
}

__device__ int fibonacci(int number) { return number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2); }

__device__ int add_one(int value) { return value + 1; }
__device__ int doubled(int value) { return value * 2; }
__device__ int squared(int value) { return value * value + table[1]; }
typedef int (*Operation)(int);
__device__ Operation operations[3] = {add_one, doubled, squared};

// A second kernel with shared memory of its own.
extern "C" __global__ void reverse(int *out) {
    __shared__ int own[32];
    own[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = scaled(own[31 - threadIdx.x], 2);
}
