// Virtual functions, function pointers and recursion: what a compiler cannot inline.

#ifndef __CUDACC_RTC__
#include <new>
#endif

// A shape whose size is a whole number; sums stay exact.
struct Shape {
    unsigned size;
    __device__ explicit Shape(unsigned size) : size(size) {}
    __device__ virtual unsigned area() const = 0;
    __device__ virtual unsigned corners() const { return 0; }
};

struct Square : Shape {
    __device__ explicit Square(unsigned size) : Shape(size) {}
    __device__ unsigned area() const override { return size * size; }
    __device__ unsigned corners() const override { return 4; }
};

struct Circle : Shape {
    __device__ explicit Circle(unsigned size) : Shape(size) {}
    __device__ unsigned area() const override { return 355 * size * size / 113; }
};

struct Triangle : Shape {
    unsigned height;
    __device__ Triangle(unsigned size, unsigned height) : Shape(size), height(height) {}
    __device__ unsigned area() const override { return size * height / 2; }
    __device__ unsigned corners() const override { return 3; }
};

#define SHAPE_BYTES 32

// Constructs a shape of one of three kinds in each place of the storage.
extern "C" __global__ void construct(unsigned char *storage, const unsigned *sizes, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned char *const place = storage + (size_t)SHAPE_BYTES * index;
    const unsigned size = sizes[index];
    switch (size % 3) {
    case 0: new (place) Square(size); break;
    case 1: new (place) Circle(size); break;
    default: new (place) Triangle(size, size + 1); break;
    }
}

// Asks each shape through its virtual functions: lanes of a warp go to different ones.
extern "C" __global__ void measure(const unsigned char *storage, unsigned *results, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) {
        const Shape *const shape = (const Shape *)(storage + (size_t)SHAPE_BYTES * index);
        results[index] = shape->area() + shape->corners();
    }
}

typedef unsigned (*Operation)(unsigned);

__device__ __noinline__ unsigned twice(unsigned value) { return 2 * value; }
__device__ __noinline__ unsigned square(unsigned value) { return value * value; }
__device__ __noinline__ unsigned collatz(unsigned value)
{
    unsigned steps = 0;
    while (value > 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        steps++;
    }
    return steps;
}
__device__ __noinline__ unsigned fibonacci(unsigned value)
{
    return value < 2 ? value : fibonacci(value - 1) + fibonacci(value - 2);
}

__device__ Operation const operations[4] = {twice, square, collatz, fibonacci};

// Calls one of four functions through a table; the last one is recursive.
extern "C" __global__ void dispatch(const unsigned *values, unsigned *results, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) {
        const unsigned value = values[index];
        const unsigned which = (value >> 8) & 3;
        results[index] = operations[which](which == 3 ? value & 7 : value & 0xff);
    }
}
