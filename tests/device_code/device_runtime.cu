// Kernels that call the device runtime, for tests/tests/device_runtime.rs.
// Its PTX is what tools/compile_ptx.py gives with nvcc for compute capability 7.5.
#include <cassert>
#include <cstdio>
#include <cstdlib>

extern "C" __global__ void print_lines(const int* values)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const int printed = printf("block %3d thread %2u: %+.3f %s %c%%\n", blockIdx.x, threadIdx.x, values[at] / 8.0,
                               at % 2 ? "odd" : "even", 'a' + at % 26);
    if (printed != 5) printf("%d arguments\n", printed);
    if (threadIdx.x == 0) printf("%lld of block %d\n", (1ll << 40) + blockIdx.x, blockIdx.x);
}

extern "C" __global__ void print_much(int lines)
{
    for (int line = 0; line < lines; ++line) printf("line %07d of thread %07d\n", line, threadIdx.x);
}

// Every thread takes a block of its own, writes it, and reads what its neighbour has written.
extern "C" __global__ void allocate(unsigned long long* addresses, int* sums, int words, int bytes)
{
    __shared__ int* blocks[64];
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    int* block = static_cast<int*>(malloc(bytes));
    addresses[at] = reinterpret_cast<unsigned long long>(block);
    blocks[threadIdx.x] = block;
    if (block) {
        for (int word = 0; word < words; ++word) block[word] = at + word;
    }
    __syncthreads();
    const int* other = blocks[(threadIdx.x + 1) % blockDim.x];
    int sum = other ? 0 : -1;
    for (int word = 0; other && word < words; ++word) sum += other[word];
    sums[at] = sum;
    __syncthreads();
    free(block);
}

extern "C" __global__ void free_twice(int again)
{
    void* block = malloc(100);
    free(block);
    if (again && threadIdx.x == 3) free(block);
}

extern "C" __global__ void check(const int* values, int limit)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    assert(values[at] < limit);
}

extern "C" __global__ void stop()
{
    if (threadIdx.x == 7) __trap();
}
