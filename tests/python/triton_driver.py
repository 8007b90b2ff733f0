"""The driver API for kernels of Triton, whose own way to the driver needs PyTorch: Triton's compiler makes machine code of a kernel with a ptxas
of its own, and `launch` launches it."""

import ctypes

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    assert error == 0, f"{name}: error {error}"


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
    return value.value


def to_device(values):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(values.nbytes))
    call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes))
    return address


def to_host(address, values):
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), address, ctypes.c_size_t(values.nbytes))
    return values


def launch(kernel, signature, constants, blocks, *arguments):
    """Compiles a kernel for the device, loads its cubin, and launches it."""
    signature = {**signature, **{name: "constexpr" for name in constants}}
    target = GPUTarget("cuda", 10 * attribute(75) + attribute(76), 32)
    compiled = triton.compile(ASTSource(fn=kernel, signature=signature, constexprs=constants), target=target)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), compiled.asm["cubin"])
    call("cuModuleGetFunction", ctypes.byref(function), module, compiled.metadata.name.encode())
    # Behind the kernel's own parameters Triton puts a pointer to memory for its launch, which these kernels need none of.
    values = [*arguments, ctypes.c_uint64(0)]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    threads, shared = 32 * compiled.metadata.num_warps, compiled.metadata.shared
    # Beyond 48 KiB a kernel has to ask: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
    call("cuFuncSetAttribute", function, 8, shared)
    call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, pointers, None)
    call("cuCtxSynchronize")


device, context = ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
