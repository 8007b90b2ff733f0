"""Loads a cubin or a fatbin by the driver API and asks for the attributes of each of its kernels, as libraries do when they start: how long that
takes. `balar-actors run --topology v100_node -- python3 load_cubin.py FILE`."""

import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")

# CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, _LOCAL_SIZE_BYTES, _NUM_REGS
ATTRIBUTES = (1, 3, 4)


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    assert error == 0, f"{name}: error {error}"


image = open(sys.argv[1], "rb").read()
device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
begin = time.monotonic()
call("cuModuleLoadData", ctypes.byref(module), image)
loaded = time.monotonic()
count = ctypes.c_uint()
call("cuModuleGetFunctionCount", ctypes.byref(count), module)
functions = (ctypes.c_uint64 * count.value)()
call("cuModuleEnumerateFunctions", functions, count, module)
registers = 0
for function in functions:
    name, found, value = ctypes.c_char_p(), ctypes.c_uint64(), ctypes.c_int()
    call("cuFuncGetName", ctypes.byref(name), ctypes.c_uint64(function))
    call("cuModuleGetFunction", ctypes.byref(found), module, name)
    for attribute in ATTRIBUTES:
        call("cuFuncGetAttribute", ctypes.byref(value), attribute, found)
    registers = max(registers, value.value)
known = time.monotonic()
print(f"{count.value} kernels of up to {registers} registers: loaded in {loaded - begin:.2f} s, attributes in {known - loaded:.2f} s")
