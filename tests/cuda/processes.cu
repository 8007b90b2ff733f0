// Several processes on one node: each has memory, streams and faults of its own; memory and events are shared by handles.
//
// The program starts itself several times, before it makes any CUDA call, with pipes between its processes.
#include "check.h"
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

const int COUNT = 1000;

__global__ void fill(int *data, int base) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) data[i] = base + i;
}

__global__ void twice(const int *from, int *to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) to[i] = 2 * from[i];
}

__global__ void store(int *address) { *address = 1; }

__global__ void endless(volatile int *flag) {
    while (*flag == 0) {
    }
}

// What the owner tells the others.
struct Shared {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
    int *pointer;
};

static void send(int pipe, const void *data, size_t bytes) {
    REQUIRE(write(pipe, data, bytes) == static_cast<ssize_t>(bytes), "a message is lost");
}

static void receive(int pipe, void *data, size_t bytes) {
    REQUIRE(read(pipe, data, bytes) == static_cast<ssize_t>(bytes), "no message comes");
}

// Makes memory and an event, shares them, and waits until the reader is done.
static int owner(int in, int out) {
    Shared shared;
    cudaEvent_t event, timed;
    CHECK(cudaMalloc(&shared.pointer, COUNT * sizeof(int)));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    CHECK(cudaEventCreate(&timed));
    EXPECT(cudaIpcGetEventHandle(&shared.event, timed), cudaErrorInvalidResourceHandle);
    CHECK(cudaIpcGetEventHandle(&shared.event, event));
    CHECK(cudaIpcGetMemHandle(&shared.memory, shared.pointer));
    void *again;
    EXPECT(cudaIpcOpenMemHandle(&again, shared.memory, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
    fill<<<8, 128>>>(shared.pointer, 5);
    CHECK(cudaEventRecord(event, 0));
    // The host does not wait: the reader's stream does.
    send(out, &shared, sizeof shared);
    char done;
    receive(in, &done, 1);
    std::vector<int> host(COUNT);
    CHECK(cudaMemcpy(host.data(), shared.pointer, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i) REQUIRE(host[i] == 4 * (5 + i), "element %d is %d", i, host[i]);
    CHECK(cudaFree(shared.pointer));
    return 0;
}

// Waits for the owner's event, and works on its memory.
static int reader(int in, int out) {
    Shared shared;
    receive(in, &shared, sizeof shared);
    int *mine, *theirs;
    cudaEvent_t event;
    CHECK(cudaMalloc(&mine, COUNT * sizeof(int)));
    REQUIRE(mine != shared.pointer, "two processes have the same memory");
    // Before it is opened it is not this process's.
    EXPECT(cudaMemset(shared.pointer, 0, 4), cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&theirs), shared.memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&event, shared.event));
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, theirs));
    REQUIRE(attributes.type == cudaMemoryTypeDevice, "type %d", static_cast<int>(attributes.type));
    CHECK(cudaStreamWaitEvent(0, event, 0));
    twice<<<8, 128>>>(theirs, mine);
    twice<<<8, 128>>>(mine, theirs);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> host(COUNT);
    CHECK(cudaMemcpy(host.data(), mine, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i) REQUIRE(host[i] == 2 * (5 + i), "element %d is %d", i, host[i]);
    EXPECT(cudaFree(theirs), cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaIpcCloseMemHandle(theirs));
    EXPECT(cudaIpcCloseMemHandle(theirs), cudaErrorInvalidValue);
    CHECK(cudaEventDestroy(event));
    send(out, "d", 1);
    return 0;
}

// Its kernels fault, and nobody else notices.
static int faulty() {
    int *own;
    CHECK(cudaMalloc(&own, 4));
    // The first segment of the memory, which is another process's or none's.
    int *foreign = reinterpret_cast<int *>(reinterpret_cast<size_t>(own) ^ (size_t{1} << 30));
    store<<<1, 1>>>(foreign);
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT(cudaMemset(own, 0, 4), cudaErrorIllegalAddress);
    return 0;
}

// Is killed while its kernel runs, which would never end.
static int killed(int out) {
    int *flag;
    CHECK(cudaMalloc(&flag, 4));
    CHECK(cudaMemset(flag, 0, 4));
    endless<<<1, 1>>>(flag);
    send(out, "k", 1);
    raise(SIGKILL);
    return 1;
}

static pid_t start(const char *self, const char *role, int in, int out) {
    const pid_t child = fork();
    if (child != 0) return child;
    char from[16], to[16];
    snprintf(from, sizeof from, "%d", in);
    snprintf(to, sizeof to, "%d", out);
    execl(self, self, role, from, to, static_cast<char *>(nullptr));
    _exit(127);
}

static int status_of(pid_t child) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child, "the child is gone");
    return status;
}

int main(int argc, char **argv) {
    if (argc == 4) {
        const int in = atoi(argv[2]), out = atoi(argv[3]);
        if (strcmp(argv[1], "owner") == 0) return owner(in, out);
        if (strcmp(argv[1], "reader") == 0) return reader(in, out);
        if (strcmp(argv[1], "killed") == 0) return killed(out);
        return faulty();
    }
    int there[2], back[2], dead[2];
    REQUIRE(pipe(there) == 0 && pipe(back) == 0 && pipe(dead) == 0, "no pipes");
    const pid_t dying = start(argv[0], "killed", dead[0], dead[1]);
    const int how = status_of(dying);
    REQUIRE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "it ended with %#x", how);
    const pid_t children[] = {
        start(argv[0], "owner", back[0], there[1]),
        start(argv[0], "reader", there[0], back[1]),
        start(argv[0], "faulty", 0, 0),
    };
    for (const pid_t child : children) {
        const int status = status_of(child);
        REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process ended with %#x", status);
    }
    return passed("processes");
}
