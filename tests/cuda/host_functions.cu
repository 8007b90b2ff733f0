// Host functions and callbacks in streams: their order among kernels and copies, what they are given.
#include "check.h"
#include <condition_variable>
#include <mutex>
#include <vector>

__global__ void add(int *data, int value) { data[threadIdx.x] += value; }

struct Record {
    std::vector<int> seen;
    const int *pinned;
    int number;
};

// Sees what the copy before it in the stream has brought.
static void CUDART_CB look(void *pointer) {
    Record *record = static_cast<Record *>(pointer);
    record->seen.push_back(record->pinned[0]);
}

static void CUDART_CB call_back(cudaStream_t stream, cudaError_t status, void *pointer) {
    Record *record = static_cast<Record *>(pointer);
    record->seen.push_back(stream != nullptr && status == cudaSuccess ? -1 : -2);
}

static void CUDART_CB change(void *pointer) { ++*static_cast<int *>(pointer); }

struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
};

static void CUDART_CB signal_it(void *pointer) {
    Signal *signal = static_cast<Signal *>(pointer);
    std::lock_guard<std::mutex> lock(signal->mutex);
    signal->is_set = true;
    signal->changed.notify_one();
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int *device, *pinned;
    CHECK(cudaMalloc(&device, 32 * sizeof(int)));
    CHECK(cudaMemset(device, 0, 32 * sizeof(int)));
    CHECK(cudaMallocHost(&pinned, 32 * sizeof(int)));
    Record record;
    record.pinned = pinned;
    for (int round = 1; round <= 4; ++round) {
        add<<<1, 32, 0, stream>>>(device, round);
        CHECK(cudaMemcpyAsync(pinned, device, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaLaunchHostFunc(stream, look, &record));
    }
    CHECK(cudaStreamAddCallback(stream, call_back, &record, 0));
    CHECK(cudaStreamSynchronize(stream));
    const int expected[] = {1, 3, 6, 10, -1};
    REQUIRE(record.seen.size() == 5, "%zu calls", record.seen.size());
    for (int i = 0; i < 5; ++i) REQUIRE(record.seen[i] == expected[i], "call %d saw %d", i, record.seen[i]);

    // What a host function writes to pinned memory, the copy behind it takes.
    pinned[0] = 41;
    CHECK(cudaLaunchHostFunc(stream, change, &pinned[0]));
    CHECK(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    int value = 0;
    CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    REQUIRE(value == 42, "value %d", value);
    CHECK(cudaLaunchHostFunc(0, change, &value)); // in the default stream
    CHECK(cudaDeviceSynchronize());
    REQUIRE(value == 43, "value %d", value);

    // A thread that waits for a host function without a CUDA call.
    Signal signal;
    add<<<1, 32, 0, stream>>>(device, 1);
    CHECK(cudaLaunchHostFunc(stream, signal_it, &signal));
    {
        std::unique_lock<std::mutex> lock(signal.mutex);
        signal.changed.wait(lock, [&] { return signal.is_set; });
    }
    return passed("host functions: %d calls", static_cast<int>(record.seen.size()));
}
