#pragma once

typedef int (*Operation)(int);
extern __device__ int shared_counter;
extern __constant__ int shared_table[4];
extern __device__ Operation selected;
__device__ int apply(int index, int value);
void run_select_thrice();
