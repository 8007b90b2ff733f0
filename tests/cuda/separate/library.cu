// Device functions and variables that another file calls: needs -rdc=true.
#include "library.h"

__device__ int shared_counter = 3;
__constant__ int shared_table[4] = {10, 20, 30, 40};

__device__ int twice(int value) { return 2 * value; }
__device__ int thrice(int value) { return 3 * value; }
__device__ Operation selected = twice;

__device__ int apply(int index, int value) { return selected(value) + shared_table[index % 4]; }

__global__ void select_thrice() { selected = thrice; }

void run_select_thrice() { select_thrice<<<1, 1>>>(); }
