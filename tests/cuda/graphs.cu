// Graphs: captured from streams and built node by node, launched again, parameters changed after instantiation.
#include "check.h"
#include <vector>

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }
__global__ void multiply(int *data, int factor) { data[blockIdx.x * blockDim.x + threadIdx.x] *= factor; }
__global__ void combine(const int *a, const int *b, int *sum) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    sum[i] = a[i] - b[i];
}

static void CUDART_CB count_call(void *data) { ++*static_cast<int *>(data); }

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec;
#if CUDART_VERSION >= 12000
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
#else
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
#endif
    return exec;
}

static cudaKernelNodeParams kernel_node(void *function, int count, void **arguments) {
    cudaKernelNodeParams parameters = {};
    parameters.func = function;
    parameters.gridDim = dim3(count / 64);
    parameters.blockDim = dim3(64);
    parameters.kernelParams = arguments;
    return parameters;
}

int main() {
    const int count = 256;
    const size_t bytes = count * sizeof(int);
    int *a, *b, *sum;
    for (int **data : {&a, &b, &sum}) CHECK(cudaMalloc(data, bytes));
    std::vector<int> input(count), output(count);
    for (int i = 0; i < count; ++i) input[i] = i;
    cudaStream_t stream, side;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&side));

    // Captured: nothing runs while it is recorded. The side stream is drawn in by an event, and joins again.
    cudaEvent_t fork, join;
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaMemset(a, 0, bytes));
    CHECK(cudaMemset(b, 0, bytes));
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add<<<count / 64, 64, 0, stream>>>(a, 10);
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    multiply<<<count / 64, 64, 0, stream>>>(a, 2);
    add<<<count / 64, 64, 0, side>>>(b, 1);
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    combine<<<count / 64, 64, 0, stream>>>(a, b, sum);
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(stream, &status));
    REQUIRE(status == cudaStreamCaptureStatusActive, "status %d", status);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(output.data(), a, bytes, cudaMemcpyDeviceToHost));
    REQUIRE(output[0] == 0, "a captured kernel has run");
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(captured, nullptr, &nodes));
    REQUIRE(nodes == 4, "%zu nodes", nodes);
    cudaGraphExec_t exec = instantiate(captured);
    int expected_a = 0, expected_b = 0;
    for (int launch = 0; launch < 3; ++launch) {
        CHECK(cudaGraphLaunch(exec, stream));
        expected_a = (expected_a + 10) * 2;
        expected_b += 1;
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(output.data(), sum, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i)
        REQUIRE(output[i] == expected_a - expected_b, "element %d is %d, expected %d", i, output[i], expected_a - expected_b);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(captured));

    // Built by hand: copy in -> add -> multiply -> copy out, and a host function behind it.
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t copy_in, add_node, multiply_node, copy_out, host_node;
    CHECK(cudaGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, a, input.data(), bytes, cudaMemcpyHostToDevice));
    int value = 3, factor = 5, calls = 0;
    void *add_arguments[] = {&a, &value}, *multiply_arguments[] = {&a, &factor};
    cudaKernelNodeParams adding = kernel_node(reinterpret_cast<void *>(add), count, add_arguments);
    cudaKernelNodeParams multiplying = kernel_node(reinterpret_cast<void *>(multiply), count, multiply_arguments);
    CHECK(cudaGraphAddKernelNode(&add_node, graph, &copy_in, 1, &adding));
    CHECK(cudaGraphAddKernelNode(&multiply_node, graph, nullptr, 0, &multiplying));
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddDependencies(graph, &add_node, &multiply_node, nullptr, 1));
#else
    CHECK(cudaGraphAddDependencies(graph, &add_node, &multiply_node, 1));
#endif
    CHECK(cudaGraphAddMemcpyNode1D(&copy_out, graph, &multiply_node, 1, output.data(), a, bytes, cudaMemcpyDeviceToHost));
    cudaHostNodeParams host_parameters = {};
    host_parameters.fn = count_call;
    host_parameters.userData = &calls;
    CHECK(cudaGraphAddHostNode(&host_node, graph, &copy_out, 1, &host_parameters));
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(add_node, &type));
    REQUIRE(type == cudaGraphNodeTypeKernel, "type %d", type);
    exec = instantiate(graph);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) REQUIRE(output[i] == (i + 3) * 5, "element %d is %d", i, output[i]);
    REQUIRE(calls == 1, "%d calls of the host function", calls);

    // The values of arguments were taken when the node was made.
    value = -1;
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    REQUIRE(output[1] == 20 && calls == 2, "%d after the second launch", output[1]);
    // Of one node anew: only what was instantiated changes.
    value = 100;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, add_node, &adding));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) REQUIRE(output[i] == (i + 100) * 5, "element %d is %d", i, output[i]);
    // In the graph, then the whole instantiation after it.
    factor = 7;
    CHECK(cudaGraphKernelNodeSetParams(multiply_node, &multiplying));
#if CUDART_VERSION >= 12000
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaGraphExecUpdate(exec, graph, &result));
    REQUIRE(result.result == cudaGraphExecUpdateSuccess, "result %d", result.result);
#else
    cudaGraphNode_t failing;
    cudaGraphExecUpdateResult result;
    CHECK(cudaGraphExecUpdate(exec, graph, &failing, &result));
    REQUIRE(result == cudaGraphExecUpdateSuccess, "result %d", result);
#endif
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) REQUIRE(output[i] == (i + 3) * 7, "element %d is %d", i, output[i]);
    REQUIRE(calls == 4, "%d calls of the host function", calls);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));

    // A capture is broken by a call that would have to wait.
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(stream, &captured), cudaErrorStreamCaptureInvalidated);
    return passed("graphs: %d calls of the host function", calls);
}
