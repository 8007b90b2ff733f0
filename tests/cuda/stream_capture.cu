// Stream capture: forks and joins, what it forbids and with which codes, pageable memory and memory nodes in graphs.
#include "check.h"
#include <vector>
__global__ void add(int *p, int v, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += v; }
static int calls = 0;
static void host(void *p) { ++calls; *(int *)p += 1; }
int main() {
    const int n = 256, bytes = n * 4;
    int *d; CHECK(cudaMalloc(&d, bytes)); CHECK(cudaMemset(d, 0, bytes));
    cudaStream_t a, b, nb; CHECK(cudaStreamCreate(&a)); CHECK(cudaStreamCreate(&b));
    CHECK(cudaStreamCreateWithFlags(&nb, cudaStreamNonBlocking));
    cudaEvent_t e, f; CHECK(cudaEventCreate(&e)); CHECK(cudaEventCreate(&f));
    cudaGraph_t g; cudaGraphExec_t x;
    // fork and join
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    add<<<1, n, 0, a>>>(d, 1, n);
    CHECK(cudaEventRecord(e, a)); CHECK(cudaStreamWaitEvent(b, e, 0));
    add<<<1, n, 0, b>>>(d, 2, n);
    cudaStreamCaptureStatus s; CHECK(cudaStreamIsCapturing(b, &s)); REQUIRE(s == cudaStreamCaptureStatusActive, "b");
    CHECK(cudaEventRecord(f, b)); CHECK(cudaStreamWaitEvent(a, f, 0));
    add<<<1, n, 0, a>>>(d, 4, n);
    CHECK(cudaStreamEndCapture(a, &g));
    CHECK(cudaStreamIsCapturing(b, &s)); REQUIRE(s == cudaStreamCaptureStatusNone, "b after");
    size_t count = 0; CHECK(cudaGraphGetNodes(g, nullptr, &count)); REQUIRE(count == 3, "%zu nodes", count);
    std::vector<cudaGraphNode_t> nodes(count); CHECK(cudaGraphGetNodes(g, nodes.data(), &count));
    cudaKernelNodeParams kp; CHECK(cudaGraphKernelNodeGetParams(nodes[1], &kp));
    REQUIRE(*(int *)kp.kernelParams[1] == 2, "%d", *(int *)kp.kernelParams[1]);
#if CUDART_VERSION >= 12000
    CHECK(cudaGraphInstantiate(&x, g, 0));
#else
    char log[100]; cudaGraphNode_t en; CHECK(cudaGraphInstantiate(&x, g, &en, log, 100));
#endif
    CHECK(cudaGraphLaunch(x, a)); CHECK(cudaGraphLaunch(x, nb));
    CHECK(cudaDeviceSynchronize());
    std::vector<int> h(n); CHECK(cudaMemcpy(h.data(), d, bytes, cudaMemcpyDeviceToHost)); REQUIRE(h[5] == 14, "%d", h[5]);
    int v = 10; void *args[] = {&d, &v, (void *)&n}; kp.kernelParams = args;
    CHECK(cudaGraphExecKernelNodeSetParams(x, nodes[1], &kp));
    CHECK(cudaGraphLaunch(x, a)); CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemcpy(h.data(), d, bytes, cudaMemcpyDeviceToHost)); REQUIRE(h[5] == 29, "%d", h[5]);
    // unjoined
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(e, a)); CHECK(cudaStreamWaitEvent(b, e, 0)); add<<<1, n, 0, b>>>(d, 2, n);
    cudaGraph_t bad; EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureUnjoined); REQUIRE(!bad, "graph");
    (void)cudaGetLastError();
    // a stream that ends within the capture, joined and not
    for (bool joins : {true, false}) {
        cudaStream_t brief; CHECK(cudaStreamCreate(&brief));
        CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
        CHECK(cudaEventRecord(e, a)); CHECK(cudaStreamWaitEvent(brief, e, 0)); add<<<1, n, 0, brief>>>(d, 2, n);
        CHECK(cudaEventRecord(f, brief));
        if (joins) CHECK(cudaStreamWaitEvent(a, f, 0));
        CHECK(cudaStreamDestroy(brief));
        EXPECT(cudaStreamEndCapture(a, &bad), joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
        REQUIRE((bad != nullptr) == joins, "graph");
        if (joins) CHECK(cudaGraphDestroy(bad));
        (void)cudaGetLastError();
    }
    // unsafe calls and synchronisation
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    EXPECT(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    int *q; EXPECT(cudaMalloc(&q, 4), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMalloc(&q, 4)); CHECK(cudaStreamEndCapture(a, &bad)); CHECK(cudaGraphDestroy(bad));
    // legacy stream
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    EXPECT(cudaMemcpy(h.data(), d, 4, cudaMemcpyDeviceToHost), cudaErrorStreamCaptureImplicit);
    EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureInvalidated);
    EXPECT(cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
    // isolation, merge, captured event
    CHECK(cudaEventRecord(e, b));
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    EXPECT(cudaStreamWaitEvent(a, e, 0), cudaErrorStreamCaptureIsolation);
    EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(e, a));
    EXPECT(cudaStreamWaitEvent(b, e, 0), cudaErrorStreamCaptureMerge);
    EXPECT(cudaStreamEndCapture(a, &bad), cudaErrorStreamCaptureInvalidated);
    EXPECT(cudaStreamEndCapture(b, &bad), cudaErrorStreamCaptureInvalidated);
    EXPECT(cudaEventQuery(e), cudaErrorCapturedEvent);
    EXPECT(cudaStreamEndCapture(b, &bad), cudaErrorIllegalState);
    // pageable memory in graphs with host functions, in order
    int pageable = 5, result = 0;
    (void)cudaGetLastError();
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(cudaLaunchHostFunc(a, host, &pageable));
    CHECK(cudaMemcpyAsync(d, &pageable, 4, cudaMemcpyHostToDevice, a));
    add<<<1, 1, 0, a>>>(d, 100, 1);
    CHECK(cudaMemcpyAsync(&result, d, 4, cudaMemcpyDeviceToHost, a));
    CHECK(cudaLaunchHostFunc(a, host, &result));
    CHECK(cudaStreamEndCapture(a, &g));
    CHECK(cudaGraphInstantiateWithFlags(&x, g, 0));
    for (int i = 0; i < 2; ++i) { CHECK(cudaGraphLaunch(x, a)); CHECK(cudaStreamSynchronize(a)); REQUIRE(result == 107 + i, "%d", result); }
    REQUIRE(calls == 4, "%d", calls);
    // child graph by launching in capture
    CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
    CHECK(cudaGraphLaunch(x, b)); add<<<1, 1, 0, b>>>(d, 1, 1);
    CHECK(cudaStreamEndCapture(b, &g)); CHECK(cudaGraphGetNodes(g, nullptr, &count)); REQUIRE(count == 2, "%zu", count);
    cudaGraphExec_t y; CHECK(cudaGraphInstantiateWithFlags(&y, g, 0)); CHECK(cudaGraphLaunch(y, b)); CHECK(cudaStreamSynchronize(b));
    REQUIRE(result == 109, "%d", result);
    // memory nodes by capture
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    int *m; CHECK(cudaMallocAsync(&m, bytes, a)); CHECK(cudaMemsetAsync(m, 0, bytes, a)); add<<<1, n, 0, a>>>(m, 3, n);
    CHECK(cudaMemcpyAsync(d, m, bytes, cudaMemcpyDeviceToDevice, a)); CHECK(cudaFreeAsync(m, a));
    CHECK(cudaStreamEndCapture(a, &g)); CHECK(cudaGraphInstantiateWithFlags(&x, g, 0));
    CHECK(cudaGraphLaunch(x, a)); CHECK(cudaGraphLaunch(x, a)); CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemcpy(h.data(), d, bytes, cudaMemcpyDeviceToHost)); REQUIRE(h[200] == 3, "%d", h[200]);
    CHECK(cudaGraphDebugDotPrint(g, "/dev/null", cudaGraphDebugDotFlagsVerbose));
    CHECK(cudaGraphExecDestroy(x)); CHECK(cudaGraphDestroy(g)); EXPECT(cudaGraphDestroy(g), cudaErrorInvalidValue);
    return passed("capture");
}
