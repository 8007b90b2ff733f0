// Thrust: vectors, sort, reduce, transform, scan, copies to and from the host.
#include "check.h"
#include <algorithm>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <vector>

struct Square {
    __host__ __device__ long long operator()(int value) const { return static_cast<long long>(value) * value; }
};

int main() {
    const int count = 3000;
    thrust::host_vector<int> host(count);
    unsigned state = 12345;
    for (int i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        host[i] = static_cast<int>(state >> 16) % 1000;
    }
    thrust::device_vector<int> device = host;
    long long sum = thrust::reduce(device.begin(), device.end(), 0LL);
    long long expected_sum = 0;
    for (int value : host) expected_sum += value;
    REQUIRE(sum == expected_sum, "sum %lld, expected %lld", sum, expected_sum);

    thrust::device_vector<long long> squares(count);
    thrust::transform(device.begin(), device.end(), squares.begin(), Square());
    REQUIRE(squares[17] == static_cast<long long>(host[17]) * host[17], "a square is wrong");

    thrust::device_vector<int> prefix(count);
    thrust::exclusive_scan(device.begin(), device.end(), prefix.begin());
    REQUIRE(prefix[count - 1] == expected_sum - host[count - 1], "prefix %d", static_cast<int>(prefix[count - 1]));

    thrust::sort(device.begin(), device.end());
    std::vector<int> sorted(host.begin(), host.end());
    std::sort(sorted.begin(), sorted.end());
    thrust::host_vector<int> back = device;
    for (int i = 0; i < count; ++i) REQUIRE(back[i] == sorted[i], "element %d is %d, expected %d", i, back[i], sorted[i]);

    // By key, with a comparison of one's own (a merge sort).
    thrust::device_vector<int> keys = host, values(count);
    for (int i = 0; i < count; ++i) sorted[i] = i;
    thrust::copy(sorted.begin(), sorted.end(), values.begin());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin(), thrust::greater<int>());
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return host[a] > host[b]; });
    thrust::host_vector<int> order = values;
    for (int i = 0; i < count; ++i) REQUIRE(order[i] == sorted[i], "place %d holds %d, expected %d", i, order[i], sorted[i]);
    return passed("thrust: sum %lld", sum);
}
