// Look-ups in a B+ tree, one block a query and one thread a key of a node: the kernels of Rodinia's b+tree.
//
// Node n has its keys at keys[n * width], ascending and filled up with INT_MAX, and its children (in a leaf: the places
// of the records) at children[n * width]: the child at i has the keys from key i up to, not including, key i + 1. A
// block has `width` threads, and all leaves are `height` levels below the root, which is node 0.

// The value of each query's key.
extern "C" __global__ void btree_find(
    const int *keys, const int *children, const int *records, const int *queries, int *answers, int width, int height)
{
    __shared__ int node;
    __shared__ int child;
    const int slot = threadIdx.x;
    const int wanted = queries[blockIdx.x];
    if (slot == 0) {
        node = 0;
        child = 0;
    }
    __syncthreads();

    for (int level = 0; level < height; level++) {
        const int place = node * width + slot;
        const bool last = slot == width - 1;
        if (keys[place] <= wanted && (last || keys[place + 1] > wanted)) {
            child = children[place];
        }
        __syncthreads();
        if (slot == 0) {
            node = child;
        }
        __syncthreads();
    }
    const int place = node * width + slot;
    if (keys[place] == wanted) {
        answers[blockIdx.x] = records[children[place]];
    }
}

// How many keys lie from the first to the last of each query, both included, and the place of the first of them: two
// descents side by side.
extern "C" __global__ void btree_find_range(
    const int *keys, const int *children, const int *firsts, const int *lasts, int *starts, int *lengths, int width,
    int height)
{
    __shared__ int nodes[2];
    __shared__ int next[2];
    __shared__ int start;
    const int slot = threadIdx.x;
    const int first = firsts[blockIdx.x];
    const int last = lasts[blockIdx.x];
    if (slot < 2) {
        nodes[slot] = 0;
        next[slot] = 0;
    }
    __syncthreads();

    for (int level = 0; level < height; level++) {
        const bool at_end = slot == width - 1;
        const int low = nodes[0] * width + slot;
        const int high = nodes[1] * width + slot;
        if (keys[low] <= first && (at_end || keys[low + 1] > first)) {
            next[0] = children[low];
        }
        if (keys[high] <= last && (at_end || keys[high + 1] > last)) {
            next[1] = children[high];
        }
        __syncthreads();
        if (slot < 2) {
            nodes[slot] = next[slot];
        }
        __syncthreads();
    }

    // Both ends of the ranges are keys of the tree.
    const int low = nodes[0] * width + slot;
    const int high = nodes[1] * width + slot;
    if (keys[low] == first) {
        start = children[low];
        starts[blockIdx.x] = children[low];
    }
    __syncthreads();
    if (keys[high] == last) {
        lengths[blockIdx.x] = children[high] - start + 1;
    }
}
