"""The program of the microbenchmarks that runs on the simulated node: `balar-actors run ... -- python3 host.py ...`.

usage: host.py launch MODULE KERNEL GRID BLOCK SHARED LAUNCHES ARGUMENT...
       host.py copy BYTES TIMES
       host.py chase MODULE KERNEL NODES STRIDE

launch: starts KERNEL of the PTX file MODULE, LAUNCHES times in a row. An argument is `buffer:BYTES`, or a number behind its type (`u32:7`,
`u64:7`, `f64:0.5`). Prints the first word of 64 bits of the first buffer.
copy: copies from pinned memory of the host to the device, and waits, TIMES times.
chase: writes one index of 32 bits every STRIDE bytes, each that of the next, starts KERNEL(data, NODES) twice, and prints the word behind
the last index.
"""

import ctypes
import sys

DRIVER = ctypes.CDLL("libcuda.so.1")
NUMBERS = {"u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "f64": ctypes.c_double}


def call(name, *arguments):
    result = getattr(DRIVER, name)(*arguments)
    if result != 0:
        sys.exit(f"{name}: error {result}")


def made(kind, name, *arguments):
    """What the driver's function `name` writes through its first argument."""
    value = kind()
    call(name, ctypes.byref(value), *arguments)
    return value


def allocated(size):
    return made(ctypes.c_uint64, "cuMemAlloc_v2", ctypes.c_size_t(size))


def function(module, kernel):
    with open(module, "rb") as file:
        image = made(ctypes.c_void_p, "cuModuleLoadData", file.read() + b"\0")
    return made(ctypes.c_void_p, "cuModuleGetFunction", image, kernel.encode())


def start(kernel, grid, block, shared, values):
    if shared > 48 * 1024:
        call("cuFuncSetAttribute", kernel, 8, shared)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    call("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, shared, None, addresses, None)


def launch(module, kernel, grid, block, shared, launches, *arguments):
    values, buffers = [], []
    for argument in arguments:
        kind, text = argument.split(":")
        if kind == "buffer":
            buffers.append(allocated(int(text)))
            values.append(buffers[-1])
        else:
            values.append(NUMBERS[kind](float(text) if kind == "f64" else int(text)))
    entry = function(module, kernel)
    for _ in range(int(launches)):
        start(entry, int(grid), int(block), int(shared), values)
    word = ctypes.c_uint64()
    call("cuMemcpyDtoH_v2", ctypes.byref(word), buffers[0], ctypes.c_size_t(8))
    print(word.value)


def copy(size, times):
    device = allocated(int(size))
    host = made(ctypes.c_void_p, "cuMemAllocHost_v2", ctypes.c_size_t(int(size)))
    for _ in range(int(times)):
        call("cuMemcpyHtoDAsync_v2", device, host, ctypes.c_size_t(int(size)), None)
        call("cuCtxSynchronize")


def chase(module, kernel, nodes, stride):
    nodes, stride = int(nodes), int(stride)
    data = allocated((nodes + 1) * stride)
    address = lambda node, offset=0: ctypes.c_uint64(data.value + node * stride + offset)
    for node in range(nodes):
        index = ctypes.c_uint32((node + 1) * stride // 4)
        call("cuMemcpyHtoD_v2", address(node), ctypes.byref(index), ctypes.c_size_t(4))
    entry = function(module, kernel)
    for _ in range(2):
        start(entry, 1, 1, 0, [data, ctypes.c_uint32(nodes)])
    word = ctypes.c_uint32()
    call("cuMemcpyDtoH_v2", ctypes.byref(word), address(nodes - 1, 4), ctypes.c_size_t(4))
    print(word.value)


def main():
    call("cuInit", 0)
    context = made(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", made(ctypes.c_int, "cuDeviceGet", 0))
    call("cuCtxSetCurrent", context)
    {"launch": launch, "copy": copy, "chase": chase}[sys.argv[1]](*sys.argv[2:])


main()
