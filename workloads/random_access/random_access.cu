// Random accesses to global memory: few threads of many, each reads a word of its own, which tells it where to read a table and to
// write the results.

// `length` is that of the three arrays, a power of two. One thread of `active` does something.
extern "C" __global__ void random_access(
    const unsigned *operands, const unsigned *table, unsigned *results, unsigned length, unsigned active)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= length || thread % active != 0) {
        return;
    }
    const unsigned operand = operands[thread];
    const unsigned place = operand & (length - 1);
    results[place] = table[place] ^ operand;
}
