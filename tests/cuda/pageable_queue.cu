// More asynchronous copies from pageable memory than there is room for at once, and one that is larger than all of it.
#include "check.h"
#include <vector>

int main() {
    const size_t bytes = 24 << 20;
    std::vector<char> host(4 * bytes), back(4 * bytes);
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<char>(i % 251);
    char *data;
    CHECK(cudaMalloc(&data, host.size()));
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < 2; ++round) {
        CHECK(cudaMemset(data, 0, host.size()));
        CHECK(cudaDeviceSynchronize());
        for (int part = 0; part < 4; ++part) {
            const cudaStream_t stream = streams[part % 2];
            CHECK(cudaMemcpyAsync(data + part * bytes, &host[part * bytes], bytes, cudaMemcpyHostToDevice, stream));
        }
        if (round == 1) {
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemset(data, 0, host.size()));
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemcpyAsync(data, host.data(), host.size(), cudaMemcpyHostToDevice, streams[0]));
        }
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(back.data(), data, host.size(), cudaMemcpyDeviceToHost));
        REQUIRE(back == host, "what comes back in round %d", round);
    }
    return passed("pageable queue");
}
