// Kernels of clusters of blocks. clusters.ptx and clusters.sm_90.cubin are made from it by CUDA 13.5:
//
//     nvcc -arch=sm_90 -ptx clusters.cu -o clusters.ptx && ptxas -arch=sm_90 clusters.ptx -o clusters.sm_90.cubin

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// A histogram whose bins lie in the shared memory of all blocks of a cluster.
extern "C" __global__ void histogram(const unsigned *in, unsigned n, unsigned *out, unsigned bins)
{
    extern __shared__ unsigned mine[];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned size = cluster.num_blocks(), each = bins / size;
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x)
        mine[i] = 0;
    cluster.sync();
    unsigned clusters = gridDim.x / size, number = blockIdx.x / size;
    unsigned first = cluster.thread_rank() + number * cluster.num_threads();
    for (unsigned i = first; i < n; i += cluster.num_threads() * clusters) {
        unsigned bin = in[i] % bins;
        atomicAdd(cluster.map_shared_rank(mine, bin / each) + bin % each, 1u);
    }
    cluster.sync();
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x)
        atomicAdd(out + cluster.block_rank() * each + i, mine[i]);
}

// Each block reads and writes what others have, in several widths; eight words of each thread.
extern "C" __global__ void ring(int *out)
{
    __shared__ int words[128];
    __shared__ short halves[128];
    __shared__ int4 wide[128];
    __shared__ unsigned long long token;
    __shared__ int sums[4];
    cg::cluster_group cluster = cg::this_cluster();
    int size = cluster.num_blocks(), rank = cluster.block_rank(), t = threadIdx.x;
    int next = (rank + 1) % size;
    words[t] = 1000 * blockIdx.x + t;
    halves[t] = -(100 * rank + t);
    wide[t] = make_int4(rank, t, rank + t, rank - t);
    if (t < 4)
        sums[t] = 0;
    if (t == 0)
        token = 77 + rank;
    cluster.sync();
    int *to = out + 8 * (blockIdx.x * blockDim.x + t);
    to[0] = cluster.map_shared_rank(words, next)[t];
    to[1] = cluster.map_shared_rank(halves, next)[t];
    int4 four = cluster.map_shared_rank(wide, next)[t ^ 1];
    to[2] = four.x + 10 * four.y + 100 * four.z + 1000 * four.w;
    // Some lanes access their own block, others the others.
    to[3] = cluster.map_shared_rank(words, (rank + t) % size)[127 - t];
    cluster.sync();
    cluster.map_shared_rank(words, (rank + t) % size)[t] = 5 * rank + t;
    atomicAdd(cluster.map_shared_rank(sums, (rank + t) % size) + t % 4, t + 1);
    unsigned long long old = t == 0 ? atomicExch(cluster.map_shared_rank(&token, next), 1000ull + rank) : 0;
    cluster.sync();
    to[4] = words[t];
    to[5] = sums[t % 4];
    to[6] = (int)old;
    to[7] = (int)token;
}

// What a block of a two-dimensional cluster knows of it, twelve words of each block.
extern "C" __global__ void __cluster_dims__(2, 3, 1) plane(unsigned *out)
{
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned *to = out + 12 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    dim3 index = cluster.block_index(), size = cluster.dim_blocks();
    unsigned clusters[2], place[2], is_explicit;
    asm volatile("mov.u32 %0, %%nclusterid.x; mov.u32 %1, %%nclusterid.y;" : "=r"(clusters[0]), "=r"(clusters[1]));
    asm volatile("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%clusterid.y;" : "=r"(place[0]), "=r"(place[1]));
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(is_explicit));
    unsigned *peer = cluster.map_shared_rank(&word, cluster.num_blocks() - 1 - cluster.block_rank());
    to[0] = index.x + 10 * index.y + 100 * index.z;
    to[1] = size.x + 10 * size.y + 100 * size.z;
    to[2] = clusters[0] + 10 * clusters[1];
    to[3] = place[0] + 10 * place[1];
    to[4] = cluster.block_rank();
    to[5] = cluster.num_blocks();
    to[6] = is_explicit;
    to[7] = cluster.query_shared_rank(peer);
    to[8] = cluster.query_shared_rank(&word);
    unsigned spaces[3];
    asm volatile("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(spaces[0]) : "l"(peer));
    asm volatile("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(spaces[1]) : "l"(peer));
    asm volatile("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(spaces[2]) : "l"(&word));
    to[9] = spaces[0] + 10 * spaces[1] + 100 * spaces[2];
    // Generic pointers to own memory go from block to block.
    __shared__ unsigned *passed;
    word = 7 * cluster.block_rank() + 1;
    *cluster.map_shared_rank(&passed, (cluster.block_rank() + 1) % cluster.num_blocks()) = &word;
    cluster.sync();
    to[10] = *passed;
    to[11] = *(volatile unsigned *)peer;
    cluster.sync();
}

// A block ends, and another one reads its shared memory.
extern "C" __global__ void late(unsigned *out)
{
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    word = 1;
    cluster.sync();
    if (cluster.block_rank() == 1)
        return;
    for (int i = 0; i < 100; i++)
        __nanosleep(1000);
    *out = *cluster.map_shared_rank(&word, 1);
}

// Blocks of a cluster that end are not waited for; those that are left meet again and again.
extern "C" __global__ void leave(unsigned *out)
{
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ unsigned count;
    count = 0;
    for (unsigned round = 0; round < cluster.num_blocks(); round++) {
        cluster.sync();
        if (threadIdx.x == 0)
            atomicAdd(cluster.map_shared_rank(&count, cluster.num_blocks() - 1), 1u);
        cluster.sync();
        if (cluster.block_rank() == round && round + 1 < cluster.num_blocks())
            return;
    }
    if (threadIdx.x == 0)
        out[blockIdx.x / cluster.num_blocks()] = count;
}

// A chain of dependent reads of the next block's shared memory by one thread: cycles of one read.
extern "C" __global__ void latency(unsigned *out)
{
    __shared__ unsigned chain[32];
    cg::cluster_group cluster = cg::this_cluster();
    chain[threadIdx.x] = (threadIdx.x + 1) % 32;
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        unsigned *next = cluster.map_shared_rank(chain, 1), at = 0;
        long long begin = clock64();
        for (int i = 0; i < 64; i++)
            at = next[at];
        out[0] = (unsigned)(clock64() - begin) / 64;
        out[1] = at;
    }
    cluster.sync();
}

// Each thread sends words of every width to a block of its own choice, and combines some there; the blocks wait for the bytes alone.
extern "C" __global__ void tell(unsigned *out)
{
    struct Received {
        uint4 quads[64];
        ulonglong2 wide_pairs[64];
        unsigned long long wide[64];
        uint2 pairs[64];
        unsigned words[64];
        unsigned long long wide_sum;
        unsigned sum, most, up, down, common, any, odd;
        int least;
    };
    __shared__ Received mine;
    __shared__ unsigned long long barrier;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned size = cluster.num_blocks(), rank = cluster.block_rank(), t = threadIdx.x;
    unsigned to = (rank + t) % size;
    unsigned at = (unsigned)__cvta_generic_to_shared(&mine), bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (t == 0) {
        mine.wide_sum = 1;
        mine.sum = mine.most = mine.up = mine.down = mine.any = mine.odd = 0;
        mine.common = ~0u;
        mine.least = 5;
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(64 * 92));
    }
    cluster.sync();
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(to));
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(bar) : "r"(to));
#define STORE "st.async.shared::cluster.mbarrier::complete_tx::bytes"
#define REDUCE "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
#define PLACE(member) at + (unsigned)__builtin_offsetof(Received, member)
    unsigned word = 1000 * rank + t;
    unsigned long long wide = (unsigned long long)word << 32 | t;
    asm volatile(STORE ".b32 [%0], %1, [%2];" ::"r"(PLACE(words) + 4 * t), "r"(word), "r"(bar));
    asm volatile(STORE ".b64 [%0], %1, [%2];" ::"r"(PLACE(wide) + 8 * t), "l"(wide), "r"(bar));
    asm volatile(STORE ".v2.b32 [%0], {%1, %2}, [%3];" ::"r"(PLACE(pairs) + 8 * t), "r"(word), "r"(t), "r"(bar));
    asm volatile(STORE ".v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(PLACE(quads) + 16 * t), "r"(t), "r"(rank), "r"(word), "r"(~t), "r"(bar));
    asm volatile(STORE ".v2.b64 [%0], {%1, %2}, [%3];" ::"r"(PLACE(wide_pairs) + 16 * t), "l"(wide), "l"(~wide), "r"(bar));
    asm volatile(REDUCE ".add.u32 [%0], %1, [%2];" ::"r"(PLACE(sum)), "r"(t + 1), "r"(bar));
    asm volatile(REDUCE ".add.u64 [%0], %1, [%2];" ::"r"(PLACE(wide_sum)), "l"((1ull << 33) + t * rank), "r"(bar));
    asm volatile(REDUCE ".min.s32 [%0], %1, [%2];" ::"r"(PLACE(least)), "r"(-(int)word), "r"(bar));
    asm volatile(REDUCE ".max.u32 [%0], %1, [%2];" ::"r"(PLACE(most)), "r"(word), "r"(bar));
    asm volatile(REDUCE ".inc.u32 [%0], %1, [%2];" ::"r"(PLACE(up)), "r"(40), "r"(bar));
    asm volatile(REDUCE ".dec.u32 [%0], %1, [%2];" ::"r"(PLACE(down)), "r"(40), "r"(bar));
    asm volatile(REDUCE ".and.b32 [%0], %1, [%2];" ::"r"(PLACE(common)), "r"(~(1u << t % 16)), "r"(bar));
    asm volatile(REDUCE ".or.b32 [%0], %1, [%2];" ::"r"(PLACE(any)), "r"(256u << t % 16), "r"(bar));
    asm volatile(REDUCE ".xor.b32 [%0], %1, [%2];" ::"r"(PLACE(odd)), "r"(t * 2654435761u), "r"(bar));
    unsigned own = (unsigned)__cvta_generic_to_shared(&barrier), done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(own) : "memory");
    const unsigned *from = (const unsigned *)&mine;
    for (unsigned i = t; i < sizeof(Received) / 4; i += blockDim.x)
        out[blockIdx.x * (unsigned)(sizeof(Received) / 4) + i] = from[i];
    cluster.sync();
}
