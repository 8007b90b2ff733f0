// What device code prints.

#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

extern "C" __global__ void greet(unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count && index % 3 == 0) {
        printf("thread %u of block %d: %s, %5.2f, %c, %llx\n", threadIdx.x, (int)blockIdx.x,
               index % 2 ? "odd" : "even", index * 0.25, 'a' + (int)(index % 26), 0x100000000ull + index);
    }
}

// Only the text: no argument.
extern "C" __global__ void finish()
{
    if (threadIdx.x == 0) {
        printf("100%% done\n");
    }
}
