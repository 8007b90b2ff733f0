// Collectives of lanes that name other member masks: a warp's lanes are divided at random, and each group's answer is its own. What is right is
// worked out here, from the masks and the values.
#include "check.h"
#include <cooperative_groups.h>
#include <cstring>
namespace cg = cooperative_groups;

const int LANES = 32;

// What a lane is given: the mask of its group, a value, whether it takes part, and whether it comes by the other branch.
struct Lane {
    unsigned mask, value;
    bool here, aside;
};

// What the collectives gave a lane.
struct Answers {
    unsigned all, any, uniform, ballot, match_any, match_all, matched, next, exchanged;
};

__device__ Answers answers(unsigned mask, unsigned value) {
    Answers found;
    const unsigned lane = threadIdx.x % LANES;
    const bool odd = value % 2;
    int matched;
    found.all = __all_sync(mask, odd);
    found.any = __any_sync(mask, odd);
    found.ballot = __ballot_sync(mask, odd);
    found.match_any = __match_any_sync(mask, value);
    found.match_all = __match_all_sync(mask, value, &matched);
    found.matched = matched;
    // The lane of the group that comes after this one, the first after the last.
    const unsigned above = lane == LANES - 1 ? 0 : mask & 0xfffffffeu << lane;
    found.next = __shfl_sync(mask, value, __ffs(above ? above : mask) - 1);
    found.uniform = found.all || !found.any;
    found.exchanged = 0;
    return found;
}

__global__ void by_masks(const Lane *lanes, Answers *results) {
    __shared__ unsigned exchange[128];
    const int thread = threadIdx.x;
    const Lane lane = lanes[blockIdx.x * blockDim.x + thread];
    exchange[thread] = 0xdead;
    __syncthreads();
    if (!lane.here) return;
    Answers found;
    if (lane.aside) {
        found = answers(lane.mask, lane.value + 0);
    } else {
        found = answers(lane.mask, lane.value);
    }
    // What the lanes of a group have written is there behind the group's barrier.
    exchange[thread] = lane.value;
    __syncwarp(lane.mask);
    unsigned sum = 0;
    for (int other = 0; other < LANES; ++other)
        if (lane.mask >> other & 1) sum += exchange[thread / LANES * LANES + other];
    found.exchanged = sum;
    results[blockIdx.x * blockDim.x + thread] = found;
}

template <int SIZE> __global__ void by_tiles(const unsigned *values, unsigned *results) {
    auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block());
    const unsigned value = values[threadIdx.x];
    unsigned *of_thread = results + 6 * threadIdx.x;
    of_thread[0] = tile.any(value % 4 == 3);
    of_thread[1] = tile.all(value % 4 != 3);
    of_thread[2] = tile.ballot(value % 2);
    of_thread[3] = tile.match_any(value % 4);
    of_thread[4] = tile.shfl_xor(value, SIZE / 2);
    of_thread[5] = tile.shfl_down(value, 1);
}

__global__ void by_labels(const unsigned *values, unsigned *results) {
    auto warp = cg::tiled_partition<LANES>(cg::this_thread_block());
    auto group = cg::labeled_partition(warp, values[threadIdx.x] % 5);
    unsigned *of_thread = results + 4 * threadIdx.x;
    of_thread[0] = group.size();
    of_thread[1] = group.thread_rank();
    of_thread[2] = group.shfl(values[threadIdx.x], group.size() - 1);
    of_thread[3] = group.any(values[threadIdx.x] % 7 == 0);
}

static unsigned long long state = 39;
static unsigned next_number() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(state >> 33);
}

static int count(unsigned mask) { return __builtin_popcount(mask); }

static void divide(Lane *warp) {
    int group[LANES];
    const int groups = 1 + next_number() % 9;
    const bool tiles = next_number() % 3 == 0, some_are_absent = next_number() % 2;
    const unsigned sides = next_number();
    for (int lane = 0; lane < LANES; ++lane) {
        group[lane] = tiles ? lane * groups / LANES : next_number() % groups;
        warp[lane].here = !some_are_absent || next_number() % 4;
        warp[lane].aside = sides >> group[lane] & 1;
        warp[lane].value = next_number() % 3;
    }
    for (int lane = 0; lane < LANES; ++lane) {
        warp[lane].mask = 0;
        for (int other = 0; other < LANES; ++other)
            if (group[other] == group[lane] && warp[other].here) warp[lane].mask |= 1u << other;
    }
}

static void check_masks() {
    const int threads = 128, blocks = 60, all = threads * blocks;
    static Lane lanes[all];
    static Answers found[all];
    for (int warp = 0; warp < all / LANES; ++warp) divide(lanes + warp * LANES);
    Lane *device_lanes;
    Answers *device_results;
    CHECK(cudaMalloc(&device_lanes, sizeof lanes));
    CHECK(cudaMalloc(&device_results, sizeof found));
    CHECK(cudaMemcpy(device_lanes, lanes, sizeof lanes, cudaMemcpyHostToDevice));
    by_masks<<<blocks, threads>>>(device_lanes, device_results);
    CHECK(cudaMemcpy(found, device_results, sizeof found, cudaMemcpyDeviceToHost));
    for (int thread = 0; thread < all; ++thread) {
        const Lane &lane = lanes[thread], *warp = lanes + thread / LANES * LANES;
        if (!lane.here) continue;
        const int own = thread % LANES;
        unsigned odd = 0, same = 0, sum = 0, next = own;
        for (int other = 0; other < LANES; ++other) {
            if (!(lane.mask >> other & 1)) continue;
            odd |= warp[other].value % 2 << other;
            same |= static_cast<unsigned>(warp[other].value == lane.value) << other;
            sum += warp[other].value;
        }
        do next = (next + 1) % LANES;
        while (!(lane.mask >> next & 1));
        const bool matched = same == lane.mask;
        const Answers right = {odd == lane.mask, odd != 0, odd == lane.mask || odd == 0, odd, same, matched ? lane.mask : 0, matched, warp[next].value, sum};
        const unsigned *a = reinterpret_cast<const unsigned *>(&found[thread]), *b = reinterpret_cast<const unsigned *>(&right);
        for (unsigned i = 0; i < sizeof right / sizeof *b; ++i)
            REQUIRE(a[i] == b[i], "answer %u of lane %d with mask %08x is %x, not %x", i, own, lane.mask, a[i], b[i]);
    }
    CHECK(cudaFree(device_lanes));
    CHECK(cudaFree(device_results));
}

template <int SIZE> static void check_tiles(const unsigned *values, const unsigned *device_values, unsigned *device_results) {
    unsigned found[6 * LANES];
    by_tiles<SIZE><<<1, LANES>>>(device_values, device_results);
    CHECK(cudaMemcpy(found, device_results, sizeof found, cudaMemcpyDeviceToHost));
    for (int lane = 0; lane < LANES; ++lane) {
        const int first = lane / SIZE * SIZE, rank = lane % SIZE;
        unsigned any = 0, all = 1, ballot = 0, same = 0;
        for (int other = 0; other < SIZE; ++other) {
            const unsigned value = values[first + other];
            any |= value % 4 == 3;
            all &= value % 4 != 3;
            ballot |= value % 2 << other;
            same |= static_cast<unsigned>(value % 4 == values[lane] % 4) << other;
        }
        const unsigned right[6] = {any, all, ballot, same, values[first + (rank ^ SIZE / 2)], values[rank == SIZE - 1 ? lane : lane + 1]};
        for (int i = 0; i < 6; ++i)
            REQUIRE(found[6 * lane + i] == right[i], "answer %d of lane %d in tiles of %d is %x, not %x", i, lane, SIZE, found[6 * lane + i], right[i]);
    }
}

static void check_labels(const unsigned *values, const unsigned *device_values, unsigned *device_results) {
    unsigned found[4 * LANES];
    by_labels<<<1, LANES>>>(device_values, device_results);
    CHECK(cudaMemcpy(found, device_results, sizeof found, cudaMemcpyDeviceToHost));
    for (int lane = 0; lane < LANES; ++lane) {
        unsigned group = 0, any = 0, last = 0;
        for (int other = 0; other < LANES; ++other) {
            if (values[other] % 5 != values[lane] % 5) continue;
            group |= 1u << other;
            any |= values[other] % 7 == 0;
            last = values[other];
        }
        const unsigned below = group & ((1u << lane) - 1);
        const unsigned right[4] = {static_cast<unsigned>(count(group)), static_cast<unsigned>(count(below)), last, any};
        for (int i = 0; i < 4; ++i)
            REQUIRE(found[4 * lane + i] == right[i], "answer %d of lane %d by labels is %x, not %x", i, lane, found[4 * lane + i], right[i]);
    }
}

int main() {
    check_masks();
    unsigned values[LANES], *device_values, *device_results;
    CHECK(cudaMalloc(&device_values, sizeof values));
    CHECK(cudaMalloc(&device_results, 6 * sizeof values));
    for (int round = 0; round < 4; ++round) {
        for (unsigned &value : values) value = next_number() % 64;
        CHECK(cudaMemcpy(device_values, values, sizeof values, cudaMemcpyHostToDevice));
        check_tiles<2>(values, device_values, device_results);
        check_tiles<4>(values, device_values, device_results);
        check_tiles<8>(values, device_values, device_results);
        check_tiles<16>(values, device_values, device_results);
        check_tiles<32>(values, device_values, device_results);
        check_labels(values, device_values, device_results);
    }
    return passed("collectives of masks, tiles and labels");
}
