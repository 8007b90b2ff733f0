// A program that compiles its kernel at run time with NVRTC, for the GPU that it finds, and loads the machine code.
#include "check.h"

#include <cuda.h>
#include <nvrtc.h>
#include <string>
#include <vector>

#define CHECK_NVRTC(call)                                                  \
    do {                                                                   \
        const nvrtcResult result_ = (call);                                \
        REQUIRE(result_ == NVRTC_SUCCESS, "%s", nvrtcGetErrorString(result_)); \
    } while (0)
#define CHECK_DRIVER(call)                                      \
    do {                                                        \
        const CUresult result_ = (call);                        \
        REQUIRE(result_ == CUDA_SUCCESS, "error %d", static_cast<int>(result_)); \
    } while (0)

static const char *const SOURCE = R"(
template <typename T> __global__ void scale(T *values, T factor, int count) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) {
        values[index] = values[index] * factor + T(index);
    }
}
)";

int main() {
    CHECK(cudaFree(nullptr));
    int major = 0, minor = 0;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    std::string architecture = "--gpu-architecture=sm_" + std::to_string(major * 10 + minor);

    nvrtcProgram program;
    CHECK_NVRTC(nvrtcCreateProgram(&program, SOURCE, "scale.cu", 0, nullptr, nullptr));
    CHECK_NVRTC(nvrtcAddNameExpression(program, "scale<double>"));
    const char *options[] = {architecture.c_str(), "--std=c++17"};
    CHECK_NVRTC(nvrtcCompileProgram(program, 2, options));
    const char *name = nullptr;
    CHECK_NVRTC(nvrtcGetLoweredName(program, "scale<double>", &name));
    std::size_t bytes = 0;
    CHECK_NVRTC(nvrtcGetCUBINSize(program, &bytes));
    std::vector<char> code(bytes);
    CHECK_NVRTC(nvrtcGetCUBIN(program, code.data()));

    CUmodule module;
    CUfunction function;
    CHECK_DRIVER(cuModuleLoadData(&module, code.data()));
    CHECK_DRIVER(cuModuleGetFunction(&function, module, name));
    CHECK_NVRTC(nvrtcDestroyProgram(&program));

    const int count = 1000;
    double *values = nullptr;
    double factor = 2.5;
    std::vector<double> host(count);
    for (int i = 0; i < count; i++) {
        host[i] = i * 0.5;
    }
    CHECK(cudaMalloc(&values, count * sizeof(double)));
    CHECK(cudaMemcpy(values, host.data(), count * sizeof(double), cudaMemcpyHostToDevice));
    int number = count;
    void *arguments[] = {&values, &factor, &number};
    CHECK_DRIVER(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaMemcpy(host.data(), values, count * sizeof(double), cudaMemcpyDeviceToHost));
    double total = 0;
    for (int i = 0; i < count; i++) {
        total += host[i];
    }
    CHECK_DRIVER(cuModuleUnload(module));
    CHECK(cudaFree(values));
    return passed("NVRTC: total %.1f", total);
}
