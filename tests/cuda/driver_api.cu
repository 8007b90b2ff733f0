// The driver API: contexts, a module from PTX text, functions, variables, launches with both forms of arguments.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <vector>

static void expect(CUresult found, CUresult expected, const char *call, int line) {
    if (found == expected) return;
    const char *name = "?", *wanted = "?";
    cuGetErrorName(found, &name);
    cuGetErrorName(expected, &wanted);
    fprintf(stderr, "%s:%d: %s gave %d (%s), expected %d (%s)\n", __FILE__, line, call, found, name, expected, wanted);
    exit(1);
}
#define EXPECT(call, code) expect(call, code, #call, __LINE__)
#define CHECK(call) EXPECT(call, CUDA_SUCCESS)
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

// data[i] = data[i] * factor + bias[0], for i below count; and the number of blocks in a variable.
static const char *const TEXT = R"(
.version 6.0
.target sm_60
.address_size 64
.global .align 4 .u32 blocks = 0;
.const .align 4 .s32 bias[2] = {100, 0};
.visible .entry scale(.param .u64 data_pointer, .param .u32 count, .param .s32 factor)
{
    .reg .pred %p<3>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data_pointer];
    ld.param.u32 %r1, [count];
    ld.param.s32 %r2, [factor];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra COUNTED;
    atom.global.add.u32 %r6, [blocks], 1;
COUNTED:
    mad.lo.u32 %r7, %r3, %r4, %r5;
    setp.ge.u32 %p2, %r7, %r1;
    @%p2 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r7, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.s32 %r8, [%rd4];
    ld.const.s32 %r9, [bias];
    mad.lo.s32 %r10, %r8, %r2, %r9;
    st.global.s32 [%rd4], %r10;
DONE:
    ret;
}
)";

int main() {
    CUdevice device, none;
    CUcontext context, current;
    EXPECT(cuCtxGetCurrent(&current), CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuInit(0));
    int version = 0, devices = 0, major = 0, threads = 0;
    CHECK(cuDriverGetVersion(&version));
    REQUIRE(version >= CUDA_VERSION);
    CHECK(cuDeviceGetCount(&devices));
    REQUIRE(devices >= 1);
    CHECK(cuDeviceGet(&device, 0));
    EXPECT(cuDeviceGet(&none, devices), CUDA_ERROR_INVALID_DEVICE);
    char name[100] = "";
    CHECK(cuDeviceGetName(name, sizeof name, device));
    REQUIRE(strlen(name) > 0);
    size_t memory = 0, free_memory = 0, total_memory = 0;
    CHECK(cuDeviceTotalMem(&memory, device));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    REQUIRE(major >= 6);
    CHECK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
    REQUIRE(threads == 1024);
    CUdeviceptr data = 0;
    EXPECT(cuMemAlloc(&data, 4), CUDA_ERROR_INVALID_CONTEXT); // No context is current yet.
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuCtxGetCurrent(&current));
    REQUIRE(current == context);
    CHECK(cuMemGetInfo(&free_memory, &total_memory));
    REQUIRE(free_memory <= total_memory && total_memory <= memory);

    CUmodule module, broken;
    CUfunction function, missing;
    CHECK(cuModuleLoadData(&module, TEXT));
    char log[2048] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *option_values[] = {log, reinterpret_cast<void *>(sizeof log)};
    EXPECT(cuModuleLoadDataEx(&broken, ".version 6.0\n.target sm_60\n.address_size 64\n.entry f() { nonsense; }\n", 2,
                              options, option_values),
           CUDA_ERROR_INVALID_PTX);
    REQUIRE(strlen(log) > 0);
    CHECK(cuModuleGetFunction(&function, module, "scale"));
    EXPECT(cuModuleGetFunction(&missing, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    int most = 0;
    CHECK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    REQUIRE(most > 0 && most <= 1024);

    unsigned count = 1000;
    int factor = 3;
    std::vector<int> host(count);
    for (unsigned i = 0; i < count; ++i) host[i] = static_cast<int>(i);
    CHECK(cuMemAlloc(&data, count * sizeof(int)));
    CHECK(cuMemcpyHtoD(data, host.data(), count * sizeof(int)));
    CUstream stream;
    CUevent start, stop;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    CHECK(cuEventRecord(start, stream));
    void *arguments[] = {&data, &count, &factor};
    CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
    CHECK(cuEventRecord(stop, stream));
    CHECK(cuStreamSynchronize(stream));
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(milliseconds > 0);

    // Module variables, and the arguments as one buffer.
    CUdeviceptr bias, blocks;
    size_t bias_bytes = 0, blocks_bytes = 0;
    CHECK(cuModuleGetGlobal(&bias, &bias_bytes, module, "bias"));
    CHECK(cuModuleGetGlobal(&blocks, &blocks_bytes, module, "blocks"));
    REQUIRE(bias_bytes == 8 && blocks_bytes == 4);
    EXPECT(cuModuleGetGlobal(&bias, &bias_bytes, module, "no_such_variable"), CUDA_ERROR_NOT_FOUND);
    const int new_bias = -1;
    CHECK(cuMemcpyHtoD(bias, &new_bias, sizeof new_bias));
    struct {
        CUdeviceptr data;
        unsigned count;
        int factor;
    } buffer = {data, count, 10};
    size_t buffer_bytes = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &buffer_bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, nullptr, extra));
    CHECK(cuMemcpyDtoHAsync(host.data(), data, count * sizeof(int), stream));
    CHECK(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < count; ++i) REQUIRE(host[i] == (static_cast<int>(i) * 3 + 100) * 10 - 1);
    unsigned block_count = 0;
    CHECK(cuMemcpyDtoH(&block_count, blocks, sizeof block_count));
    REQUIRE(block_count == 16);

    EXPECT(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, stream, arguments, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemsetD32(data, 7, count));
    CHECK(cuMemcpyDtoH(host.data(), data, count * sizeof(int)));
    for (unsigned i = 0; i < count; ++i) REQUIRE(host[i] == 7);
    CHECK(cuMemFree(data));
    CHECK(cuEventDestroy(start));
    CHECK(cuEventDestroy(stop));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    printf("PASS driver API: %u blocks\n", block_count);
    return 0;
}
