// Residency in the L2: the limit, windows of streams, launches and nodes of graphs, the reset; on GPUs before 8.0 that there is none.
#include "check.h"
#include <cstring>

__global__ void sum(const int *data, int elements, int *result) {
    int total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) total += data[i];
    atomicAdd(result, total);
}

constexpr int BLOCKS = 256, THREADS = 256;

static int *ones(size_t bytes) {
    int *data, *host = static_cast<int *>(malloc(bytes));
    for (size_t i = 0; i < bytes / sizeof(int); i++) host[i] = 1;
    CHECK(cudaMalloc(&data, bytes));
    CHECK(cudaMemcpy(data, host, bytes, cudaMemcpyHostToDevice));
    free(host);
    return data;
}

static cudaAccessPolicyWindow window_of(void *data, size_t bytes, float ratio, cudaAccessProperty hit) {
    cudaAccessPolicyWindow window = {};
    window.base_ptr = data;
    window.num_bytes = bytes;
    window.hitRatio = ratio;
    window.hitProp = hit;
    window.missProp = cudaAccessPropertyStreaming;
    return window;
}

static cudaError_t set_window(cudaStream_t stream, cudaAccessPolicyWindow window) {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow = window;
    return cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
}

static bool same(const cudaAccessPolicyWindow &one, const cudaAccessPolicyWindow &other) {
    return one.base_ptr == other.base_ptr && one.num_bytes == other.num_bytes && one.hitRatio == other.hitRatio &&
           one.hitProp == other.hitProp && one.missProp == other.missProp;
}

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    int attribute = -1;
    CHECK(cudaDeviceGetAttribute(&attribute, cudaDevAttrMaxPersistingL2CacheSize, 0));
    const size_t most = properties.persistingL2CacheMaxSize;
    REQUIRE(attribute == static_cast<int>(most), "%d and %zu", attribute, most);
    if (properties.major < 8) {
        REQUIRE(most == 0 && properties.accessPolicyMaxWindowSize == 0, "%zu", most);
        EXPECT(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20), cudaErrorUnsupportedLimit);
        return passed("L2 residency");
    }
    REQUIRE(most > 0 && most < static_cast<size_t>(properties.l2CacheSize), "%zu of %d", most, properties.l2CacheSize);
    size_t limit = 1;
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitPersistingL2CacheSize));
    REQUIRE(limit == 0, "%zu", limit);
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most));
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitPersistingL2CacheSize));
    REQUIRE(limit == most, "%zu of %zu", limit, most);

    // A quarter of the L2 is read again and again, with three times the L2 between.
    const size_t kept_bytes = properties.l2CacheSize / 4, once_bytes = 3ul * properties.l2CacheSize;
    int *kept = ones(kept_bytes), *once = ones(once_bytes), *result;
    CHECK(cudaMalloc(&result, sizeof(int)));
    CHECK(cudaMemset(result, 0, sizeof(int)));
    const auto persisting = window_of(kept, kept_bytes, 1.0f, cudaAccessPropertyPersisting);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    int launches = 0;
    // Reads both, and then gives the time that the data to keep takes once more.
    const auto again = [&](cudaLaunchAttribute *launch_attribute) {
        const int kept_elements = kept_bytes / sizeof(int), once_elements = once_bytes / sizeof(int);
        const auto read_kept = [&] {
            cudaLaunchConfig_t configuration = {};
            configuration.gridDim = BLOCKS;
            configuration.blockDim = THREADS;
            configuration.stream = stream;
            configuration.attrs = launch_attribute;
            configuration.numAttrs = launch_attribute ? 1 : 0;
            CHECK(cudaLaunchKernelEx(&configuration, sum, static_cast<const int *>(kept), kept_elements, result));
            launches++;
        };
        read_kept();
        sum<<<BLOCKS, THREADS, 0, stream>>>(once, once_elements, result);
        CHECK(cudaEventRecord(begin, stream));
        read_kept();
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaStreamSynchronize(stream));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        CHECK(cudaCtxResetPersistingL2Cache());
        return milliseconds;
    };
    const float plain = again(nullptr);

    CHECK(set_window(stream, persisting));
    cudaStreamAttrValue value;
    CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    REQUIRE(same(value.accessPolicyWindow, persisting), "the stream has another window");
    const float of_stream = again(nullptr);

    // The launch's window counts, not the stream's.
    cudaLaunchAttribute attributes = {};
    attributes.id = cudaLaunchAttributeAccessPolicyWindow;
    attributes.val.accessPolicyWindow = window_of(kept, kept_bytes, 1.0f, cudaAccessPropertyNormal);
    const float of_normal_launch = again(&attributes);
    CHECK(set_window(stream, window_of(nullptr, 0, 0.0f, cudaAccessPropertyNormal)));
    attributes.val.accessPolicyWindow = persisting;
    const float of_launch = again(&attributes);
    REQUIRE(of_stream < 0.8f * plain && of_launch < 0.8f * plain && of_normal_launch > 0.9f * plain,
            "%f ms, windows of the stream %f, of the launch %f, normal %f", plain, of_stream, of_launch, of_normal_launch);

    // A captured launch has the stream's window; a node can get another one.
    CHECK(set_window(stream, persisting));
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    sum<<<BLOCKS, THREADS, 0, stream>>>(kept, static_cast<int>(kept_bytes / sizeof(int)), result);
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphNode_t node;
    size_t nodes = 1;
    CHECK(cudaGraphGetNodes(graph, &node, &nodes));
    cudaKernelNodeAttrValue of_node;
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributeAccessPolicyWindow, &of_node));
    REQUIRE(same(of_node.accessPolicyWindow, persisting), "the node has another window than its stream");
    of_node.accessPolicyWindow = window_of(kept, 4096, 0.5f, cudaAccessPropertyStreaming);
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeAccessPolicyWindow, &of_node));
    memset(&value, 0, sizeof value);
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributeAccessPolicyWindow, &value));
    REQUIRE(same(value.accessPolicyWindow, of_node.accessPolicyWindow), "the node has kept its window");
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    launches++;

    // Too large, no ratio, misses that persist.
    const size_t largest = properties.accessPolicyMaxWindowSize;
    EXPECT(set_window(stream, window_of(kept, largest + 1, 1.0f, cudaAccessPropertyPersisting)), cudaErrorInvalidValue);
    EXPECT(set_window(stream, window_of(kept, 4096, 1.5f, cudaAccessPropertyPersisting)), cudaErrorInvalidValue);
    auto wrong = persisting;
    wrong.missProp = cudaAccessPropertyPersisting;
    EXPECT(set_window(stream, wrong), cudaErrorInvalidValue);

    int found = 0;
    CHECK(cudaMemcpy(&found, result, sizeof(int), cudaMemcpyDeviceToHost));
    const size_t expected = launches * (kept_bytes / sizeof(int)) + 4 * (once_bytes / sizeof(int));
    REQUIRE(static_cast<size_t>(found) == expected, "%d of %zu", found, expected);
    return passed("L2 residency");
}
