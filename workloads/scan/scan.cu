// Exclusive prefix sums of a vector of any length, work-efficient (Blelloch): each block scans 512 values by an up- and
// a down-sweep in shared memory and leaves their sum; the sums are scanned in turn, and added to the blocks' results.

#define THREADS 256
#define VALUES (2 * THREADS)
// One unused word for each 32, so that the strides of the sweeps, powers of two, do not meet in one bank.
#define PLACE(i) ((i) + (i) / 32)

extern "C" __global__ void scan_blocks(const unsigned *values, unsigned *results, unsigned *block_sums, int count)
{
    __shared__ unsigned tree[PLACE(VALUES)];
    const int thread = threadIdx.x;
    const int first = blockIdx.x * VALUES + thread;
    const int second = first + THREADS;
    tree[PLACE(thread)] = first < count ? values[first] : 0;
    tree[PLACE(thread + THREADS)] = second < count ? values[second] : 0;

    int stride = 1;
    for (int active = THREADS; active > 0; active /= 2) {
        __syncthreads();
        if (thread < active) {
            const int left = stride * (2 * thread + 1) - 1;
            const int right = stride * (2 * thread + 2) - 1;
            tree[PLACE(right)] += tree[PLACE(left)];
        }
        stride *= 2;
    }
    if (thread == 0) {
        block_sums[blockIdx.x] = tree[PLACE(VALUES - 1)];
        tree[PLACE(VALUES - 1)] = 0;
    }
    for (int active = 1; active < VALUES; active *= 2) {
        stride /= 2;
        __syncthreads();
        if (thread < active) {
            const int left = stride * (2 * thread + 1) - 1;
            const int right = stride * (2 * thread + 2) - 1;
            const unsigned sum = tree[PLACE(left)];
            tree[PLACE(left)] = tree[PLACE(right)];
            tree[PLACE(right)] += sum;
        }
    }
    __syncthreads();

    if (first < count) {
        results[first] = tree[PLACE(thread)];
    }
    if (second < count) {
        results[second] = tree[PLACE(thread + THREADS)];
    }
}

extern "C" __global__ void scan_carry(unsigned *results, const unsigned *carries, int count)
{
    const unsigned carry = carries[blockIdx.x];
    const int first = blockIdx.x * VALUES + threadIdx.x;
    const int second = first + THREADS;
    if (first < count) {
        results[first] += carry;
    }
    if (second < count) {
        results[second] += carry;
    }
}
