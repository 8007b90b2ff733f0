// Functions with addresses, in a file that was linked. For ../modules.rs.
//
// nvcc -arch=sm_75 -rdc=true -cubin, then nvlink -arch=sm_75 (13.5)

typedef int (*Function)(int);

__device__ int values[10];

extern "C" __device__ __noinline__ int scale(int x) {
    __shared__ int exchange[32];
    exchange[threadIdx.x & 31] = x;
    __syncthreads();
    return x * 3 + values[x] + exchange[(threadIdx.x + 1) & 31];
}
extern "C" __device__ __noinline__ int negate(int x) { return ~x; }
extern "C" __device__ Function functions[2] = {scale, negate};
extern "C" __device__ __noinline__ int alone(int x) { return x * x; }
extern "C" __device__ void nobody_has_it();

extern "C" __global__ void call(int *out, int n) { out[0] = functions[n & 1](n) + values[n]; }
extern "C" __global__ void call_by_name(int *out, int n) { out[0] = alone(n); }
extern "C" __global__ void larger(int *out, int n) {
    __shared__ int exchange[64];
    exchange[threadIdx.x] = scale(n);
    __syncthreads();
    out[threadIdx.x] = exchange[threadIdx.x ^ 1] + alone(n);
}
