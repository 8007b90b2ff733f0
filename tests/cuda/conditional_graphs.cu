// Conditional nodes of graphs: if with and without else, while, switch, nested, set by kernels or by the launch, and by capture.
#include "check.h"
#include <string>

__device__ int trace[64], length;

__global__ void note(int what) {
    trace[length++] = what;
}

__global__ void choose(cudaGraphConditionalHandle handle, const unsigned *value) {
    cudaGraphSetConditional(handle, *value);
}

__global__ void count_down(cudaGraphConditionalHandle handle, unsigned *count) {
    cudaGraphSetConditional(handle, --*count != 0);
}

static cudaGraphConditionalHandle condition(cudaGraph_t graph, unsigned value = 0, unsigned flags = 0) {
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, value, flags));
    return handle;
}

static cudaGraphNode_t add(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphNodeParams &parameters) {
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, after ? 1 : 0, &parameters));
    return node;
}

template <typename... Parameters, typename... Arguments>
static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t after, void (*function)(Parameters...), Arguments... arguments) {
    void *list[] = {&arguments...};
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeKernel};
    parameters.kernel.func = reinterpret_cast<void *>(function);
    parameters.kernel.gridDim = parameters.kernel.blockDim = dim3(1);
    parameters.kernel.kernelParams = list;
    return add(graph, after, parameters);
}

static cudaGraphNode_t conditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                                   cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *bodies) {
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
    parameters.conditional.handle = handle;
    parameters.conditional.type = type;
    parameters.conditional.size = size;
    const cudaGraphNode_t node = add(graph, after, parameters);
    for (unsigned i = 0; i < size; ++i) bodies[i] = parameters.conditional.phGraph_out[i];
    return node;
}

// Launches a graph, and compares what its kernels have noted.
static int checks = 0;
static void runs(cudaGraphExec_t graph, cudaStream_t stream, const char *expected) {
    const int none = 0;
    int count, found[64];
    CHECK(cudaMemcpyToSymbol(length, &none, sizeof none));
    CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpyFromSymbol(&count, length, sizeof count));
    CHECK(cudaMemcpyFromSymbol(found, trace, sizeof found));
    char text[65] = {};
    for (int i = 0; i < count; ++i) text[i] = static_cast<char>('0' + found[i]);
    REQUIRE(std::string(text) == expected, "launch %d: '%s' instead of '%s'", checks, text, expected);
    ++checks;
}

static cudaGraphExec_t executable(cudaGraph_t graph) {
    cudaGraphExec_t result;
    CHECK(cudaGraphInstantiate(&result, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return result;
}

static void set(unsigned *place, unsigned value) {
    CHECK(cudaMemcpy(place, &value, sizeof value, cudaMemcpyHostToDevice));
}

int main() {
    cudaStream_t stream;
    cudaGraph_t graph, bodies[3], inner[2];
    unsigned *value;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&value, 2 * sizeof *value));

    // If and else, by a kernel.
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle = condition(graph);
    cudaGraphNode_t node = kernel(graph, nullptr, choose, handle, value);
    node = conditional(graph, node, handle, cudaGraphCondTypeIf, 2, bodies);
    kernel(bodies[0], kernel(bodies[0], nullptr, note, 1), note, 2);
    kernel(bodies[1], nullptr, note, 3);
    kernel(graph, node, note, 4);
    cudaGraphExec_t run = executable(graph);
    set(value, 1);
    runs(run, stream, "124");
    set(value, 0);
    runs(run, stream, "34");
    set(value, 5);
    runs(run, stream, "124");

    // A switch by the value of the launch.
    for (unsigned first = 0; first < 4; ++first) {
        CHECK(cudaGraphCreate(&graph, 0));
        handle = condition(graph, first, cudaGraphCondAssignDefault);
        node = conditional(graph, nullptr, handle, cudaGraphCondTypeSwitch, 3, bodies);
        for (int i = 0; i < 3; ++i) kernel(bodies[i], nullptr, note, i);
        kernel(graph, node, note, 4);
        run = executable(graph);
        const char *expected[] = {"04", "14", "24", "4"};
        runs(run, stream, expected[first]);
        runs(run, stream, expected[first]);
    }

    // An if in a while: three times around, the inner one by a value that is as before.
    CHECK(cudaGraphCreate(&graph, 0));
    handle = condition(graph, 1, cudaGraphCondAssignDefault);
    node = conditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1, bodies);
    const cudaGraphConditionalHandle within = condition(bodies[0]);
    cudaGraphNode_t last = kernel(bodies[0], nullptr, count_down, handle, value);
    last = kernel(bodies[0], last, choose, within, value);
    last = conditional(bodies[0], last, within, cudaGraphCondTypeIf, 1, inner);
    kernel(inner[0], nullptr, note, 5);
    kernel(bodies[0], last, note, 6);
    kernel(graph, node, note, 7);
    run = executable(graph);
    set(value, 3);
    runs(run, stream, "565667");
    set(value, 1);
    runs(run, stream, "67");

    // By capture.
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t *after;
    size_t count;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &after, nullptr, &count));
#else
    CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, &after, &count));
#endif
    handle = condition(graph, 1, cudaGraphCondAssignDefault);
    note<<<1, 1, 0, stream>>>(1);
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &after, nullptr, &count));
#else
    CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, &after, &count));
#endif
    REQUIRE(count == 1, "%zu nodes to wait for", count);
    node = conditional(graph, *after, handle, cudaGraphCondTypeWhile, 1, bodies);
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, 1, cudaStreamSetCaptureDependencies));
#endif
    note<<<1, 1, 0, stream>>>(3);
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCaptureToGraph(other, bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    note<<<1, 1, 0, other>>>(2);
    count_down<<<1, 1, 0, other>>>(handle, value);
    CHECK(cudaStreamEndCapture(other, nullptr));
    run = executable(graph);
    set(value, 2);
    runs(run, stream, "1223");

    // What cannot be.
    CHECK(cudaGraphCreate(&graph, 0));
    handle = condition(graph);
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
    parameters.conditional.handle = handle;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 2;
    EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
    parameters.conditional.size = 1;
    CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
    EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
    return passed("conditional graphs: %d launches", checks);
}
