// Many launches that are alike, which the library need not wait for: order in a stream, also between threads, and errors at once.
#include "check.h"
#include <condition_variable>
#include <mutex>
#include <thread>

// The order of two steps matters.
__global__ void step(unsigned *value, unsigned factor, unsigned addend) { *value = *value * factor + addend; }

__global__ void with_shared(unsigned *value) {
    extern __shared__ unsigned words[];
    words[threadIdx.x] = *value;
    if (threadIdx.x == 0) *value = words[0] + 1;
}

static unsigned *device, expected = 1, launches;

static void launch(int count) {
    for (int i = 0; i < count; ++i) {
        const unsigned factor = 2 * launches + 3, addend = launches + 1;
        step<<<1, 1>>>(device, factor, addend);
        CHECK(cudaGetLastError());
        expected = expected * factor + addend;
        ++launches;
    }
}

static unsigned value() {
    unsigned value = 0;
    CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static cudaError_t launch_with_shared(int blocks, int threads, size_t bytes, cudaStream_t stream) {
    void *arguments[] = {&device};
    return cudaLaunchKernel(reinterpret_cast<void *>(with_shared), dim3(blocks), dim3(threads), arguments, bytes, stream);
}

int main() {
    CHECK(cudaMalloc(&device, sizeof *device));
    CHECK(cudaMemcpy(device, &expected, sizeof expected, cudaMemcpyHostToDevice));

    launch(300);
    REQUIRE(value() == expected, "after a loop");

    // Threads that begin when others have launched, one after another.
    for (int round = 0; round < 5; ++round) {
        launch(20);
        std::thread other([] { launch(9); });
        other.join();
        launch(3);
        std::thread last([round] {
            if (round % 2 == 0) launch(40);
            REQUIRE(value() == expected, "in a thread, round %d", round);
        });
        last.join();
    }
    REQUIRE(value() == expected, "after threads");

    // Two threads that take turns, of which one has launched alone before.
    std::mutex mutex;
    std::condition_variable changed;
    int turn = 0;
    const auto take_turns = [&](int own) {
        for (int round = 0; round < 10; ++round) {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return turn % 2 == own; });
            launch(7 + round);
            ++turn;
            changed.notify_all();
        }
    };
    launch(30);
    std::thread second(take_turns, 1);
    take_turns(0);
    second.join();
    REQUIRE(value() == expected, "after turns");

    // A launch that is refused is refused at once, however many like it were accepted.
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    const unsigned before = value();
    for (int i = 0; i < 10; ++i) CHECK(launch_with_shared(1, 64, 1024, stream));
    EXPECT(launch_with_shared(1, 2048, 1024, stream), cudaErrorInvalidConfiguration);
    EXPECT(launch_with_shared(0, 64, 1024, stream), cudaErrorInvalidConfiguration);
    EXPECT(launch_with_shared(1, 64, 64 << 10, stream), cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    for (int i = 0; i < 10; ++i) CHECK(launch_with_shared(1, 64, 64 << 10, stream));
    CHECK(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 0));
    EXPECT(launch_with_shared(1, 64, 64 << 10, stream), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK(cudaStreamSynchronize(stream));
    REQUIRE(value() == before + 20, "value %u, expected %u", value(), before + 20);
    CHECK(cudaStreamDestroy(stream));

    // Work that is not waited for is done before the program's resources are released.
    expected = value();
    launch(50);
    return passed("repeated launches: %u", launches);
}
