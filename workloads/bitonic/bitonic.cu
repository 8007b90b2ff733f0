// Bitonic sort of 32-bit keys; their number is a power of two, a tile is two keys a thread.

#define TILE 512

// Orders two keys: the smaller first where `ascending`.
static __device__ __forceinline__ void order(unsigned &first, unsigned &second, bool ascending)
{
    if ((first > second) == ascending) {
        const unsigned other = first;
        first = second;
        second = other;
    }
}

// Sorts each tile in shared memory, every other one descending, so that pairs of tiles are bitonic.
extern "C" __global__ void sortTiles(unsigned *keys)
{
    __shared__ unsigned tile[TILE];
    unsigned *const own = keys + blockIdx.x * TILE;
    tile[threadIdx.x] = own[threadIdx.x];
    tile[threadIdx.x + TILE / 2] = own[threadIdx.x + TILE / 2];
    for (unsigned size = 2; size <= TILE; size *= 2) {
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const unsigned place = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            const bool ascending = size == TILE ? (blockIdx.x & 1) == 0 : (threadIdx.x & (size / 2)) == 0;
            order(tile[place], tile[place + stride], ascending);
        }
    }
    __syncthreads();
    own[threadIdx.x] = tile[threadIdx.x];
    own[threadIdx.x + TILE / 2] = tile[threadIdx.x + TILE / 2];
}

// One step of a merge whose strides are longer than a tile.
extern "C" __global__ void mergeStep(unsigned *keys, unsigned size, unsigned stride)
{
    const unsigned pair = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned place = 2 * pair - (pair & (stride - 1));
    order(keys[place], keys[place + stride], (pair & (size / 2)) == 0);
}

// The last steps of a merge, in shared memory.
extern "C" __global__ void mergeTiles(unsigned *keys, unsigned size)
{
    __shared__ unsigned tile[TILE];
    unsigned *const own = keys + blockIdx.x * TILE;
    tile[threadIdx.x] = own[threadIdx.x];
    tile[threadIdx.x + TILE / 2] = own[threadIdx.x + TILE / 2];
    const unsigned pair = blockIdx.x * (TILE / 2) + threadIdx.x;
    const bool ascending = (pair & (size / 2)) == 0;
    for (unsigned stride = TILE / 2; stride > 0; stride /= 2) {
        __syncthreads();
        const unsigned place = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        order(tile[place], tile[place + stride], ascending);
    }
    __syncthreads();
    own[threadIdx.x] = tile[threadIdx.x];
    own[threadIdx.x + TILE / 2] = tile[threadIdx.x + TILE / 2];
}
