// The ranks of an MPI program on the GPUs of one node: each sums its part of a series on a GPU, reads its left neighbour's part
// through a memory handle, and the sums are reduced. With the argument "kill", the last rank is killed while its kernel runs.
#include "../cuda/check.h"
#include <csignal>
#include <cstring>
#include <mpi.h>
#include <vector>

const int COUNT = 4096;

__global__ void series(int *part, int first) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) part[i] = first + i;
}

__global__ void sum(const int *part, unsigned long long *total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) atomicAdd(total, static_cast<unsigned long long>(part[i]));
}

__global__ void endless(volatile int *flag) {
    while (*flag == 0) {
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, devices = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaSetDevice(rank % devices));

    int *part;
    unsigned long long *total, own = 0, all = 0;
    CHECK(cudaMalloc(&part, COUNT * sizeof(int)));
    CHECK(cudaMallocManaged(&total, 2 * sizeof(*total)));
    total[0] = total[1] = 0;
    series<<<COUNT / 256, 256>>>(part, rank * COUNT);
    sum<<<COUNT / 256, 256>>>(part, total);
    CHECK(cudaDeviceSynchronize());

    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == ranks - 1) {
            CHECK(cudaMemset(part, 0, 4));
            endless<<<1, 1>>>(part);
            raise(SIGKILL);
        }
    }

    // The part of the left neighbour, on whichever GPU it is.
    cudaIpcMemHandle_t mine, theirs;
    CHECK(cudaIpcGetMemHandle(&mine, part));
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, (rank + 1) % ranks, 0, &theirs, sizeof theirs, MPI_BYTE,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (ranks > 1) {
        int *left;
        CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&left), theirs, cudaIpcMemLazyEnablePeerAccess));
        sum<<<COUNT / 256, 256>>>(left, total + 1);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaIpcCloseMemHandle(left));
        const unsigned long long first = static_cast<unsigned long long>((rank + ranks - 1) % ranks) * COUNT;
        const unsigned long long expected = first * COUNT + static_cast<unsigned long long>(COUNT) * (COUNT - 1) / 2;
        REQUIRE(total[1] == expected, "rank %d read %llu of its neighbour", rank, total[1]);
    }
    own = total[0];
    MPI_Reduce(&own, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    // Nobody frees what another rank may still read.
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(cudaFree(part));
    CHECK(cudaFree(total));
    MPI_Finalize();
    if (rank == 0) return passed("%d ranks: total %llu", ranks, all);
    return 0;
}
