// Random accesses to global memory: few threads, each reads a word of two tables and writes one of a third, all three at
// places that a generator draws from the thread's number. No two threads draw the same place of a table.

// A permutation of the numbers below a power of two: `mask` is the greatest of them, `shift` half of their bits.
__device__ __forceinline__ unsigned scatter(unsigned number, unsigned mask, unsigned shift)
{
    number = (number * 0x9e3779b9u + 0x6a09e667u) & mask;
    number ^= number >> shift;
    number = (number * 0xb7e15163u) & mask;
    return number ^ (number >> shift);
}

// `length` is that of the tables, a power of two. One thread of `active` does something.
extern "C" __global__ void random_access(
    const unsigned *table, const unsigned *operands, unsigned *results, unsigned length, unsigned shift, unsigned active)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= length || thread % active != 0) {
        return;
    }
    const unsigned mask = length - 1;
    const unsigned place = scatter(thread, mask, shift);
    const unsigned operand = scatter(place, mask, shift);
    const unsigned result = scatter(operand, mask, shift);
    results[result] = table[place] ^ operands[operand];
}
