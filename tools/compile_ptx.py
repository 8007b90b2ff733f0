"""Compiles one CUDA source to PTX with a compiler of a toolchain that tools/cuda-toolchain set up.

usage: compile_ptx.py TOOLCHAIN COMPILER CAPABILITY SOURCE OUTPUT [--line-info]

COMPILER is nvrtc, nvcc or clang; CAPABILITY a compute capability without its point, such as 70. The output has no
comments but a header that names the source and the compiler's version, so that the same source and compiler give the
same bytes on every machine. With --line-info it names the lines of the source, without the folder that it is in.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile


def check(library, code, what):
    if code != 0:
        text = library.nvrtcGetErrorString(code).decode()
        raise SystemExit(f"{what}: {text}")


def load_nvrtc(path):
    # NVRTC looks for its built-ins beside the real file, not beside a link to it.
    library = ctypes.CDLL(str(path.resolve()))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def with_nvrtc(toolchain, capability, source, line_info):
    """The PTX and the compiler's version."""
    library = load_nvrtc(toolchain / "libnvrtc.so")
    program = ctypes.c_void_p()
    text, name = source.read_text().encode(), source.name.encode()
    check(library, library.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None), "nvrtcCreateProgram")
    include = (toolchain / "include").resolve()
    options = [f"--gpu-architecture=compute_{capability}", "--std=c++17", f"--include-path={include}"]
    if line_info:
        options.append("--generate-line-info")
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    result = library.nvrtcCompileProgram(program, len(options), array)

    size = ctypes.c_size_t()
    check(library, library.nvrtcGetProgramLogSize(program, ctypes.byref(size)), "log size")
    log = ctypes.create_string_buffer(size.value)
    check(library, library.nvrtcGetProgramLog(program, log), "log")
    # Every build for these architectures warns that they are deprecated: nothing to act on.
    message = [line for line in log.value.decode().splitlines() if line.strip() and "are deprecated and may" not in line]
    if message:
        print("\n".join(message), file=sys.stderr)
    check(library, result, f"{source.name} for compute_{capability}")

    check(library, library.nvrtcGetPTXSize(program, ctypes.byref(size)), "PTX size")
    ptx = ctypes.create_string_buffer(size.value)
    check(library, library.nvrtcGetPTX(program, ptx), "PTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "version")
    return ptx.value.decode(), f"NVRTC {major.value}.{minor.value}"


def run(command):
    """What a command prints; ends the program where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed")
    return done.stdout


def with_nvcc(toolchain, capability, source, line_info):
    nvcc = (toolchain / "nvcc").resolve()
    version = re.search(r"release (\d+\.\d+)", run([nvcc, "--version"])).group(1)
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "ptx"
        lines = ["-lineinfo"] if line_info else []
        run([nvcc, "-ptx", f"-arch=compute_{capability}", "-std=c++17", *lines, "-o", output, source])
        return output.read_text(), f"nvcc {version}"


def with_clang(toolchain, capability, source, line_info):
    clang = toolchain / "clang"
    version = re.search(r"clang version (\d+)", run([clang, "--version"])).group(1)
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "ptx"
        # The headers' newest version is one that clang knows in part: enough for device code.
        options = ["-x", "cuda", "--cuda-device-only", "-S", "-O3", "-std=c++17", "-Wno-unknown-cuda-version"]
        if line_info:
            options.append("-gline-tables-only")
        if int(capability) < 50:
            # What these headers, which no longer know the GPU, declare for it is as it was.
            options.append("--no-cuda-version-check")
        place = [f"--cuda-path={toolchain / 'cuda-12.6'}", f"--cuda-gpu-arch=sm_{capability}"]
        run([clang, *options, *place, "-o", output, source])
        return output.read_text(), f"clang {version}"


COMPILERS = {"nvrtc": with_nvrtc, "nvcc": with_nvcc, "clang": with_clang}


def tidy(ptx, header, source):
    """Drops whole-line comments, trailing blanks and runs of empty lines, and what differs from build to build."""
    # nvcc puts a hash of the translation unit, which no two builds share, into the names of what is local to it.
    ptx = re.sub(r"_INTERNAL_[0-9a-f]{8}_", "_INTERNAL_00000000_", ptx)
    ptx = re.sub(rf'(\.file\s+\d+\s+)"[^"]*/{re.escape(source.name)}"', rf'\1"{source.name}"', ptx)
    lines = [header]
    for line in ptx.splitlines():
        line = line.rstrip()
        if line.lstrip().startswith("//"):
            continue
        if not line and not lines[-1]:
            continue
        lines.append(line)
    while not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def main():
    line_info = sys.argv[-1] == "--line-info"
    arguments = sys.argv[1:-1] if line_info else sys.argv[1:]
    if len(arguments) != 5 or arguments[1] not in COMPILERS:
        raise SystemExit(__doc__)
    toolchain, compiler, capability, source, output = arguments
    source = pathlib.Path(source)
    ptx, version = COMPILERS[compiler](pathlib.Path(toolchain), capability, source, line_info)
    header = f"// {source.name} for compute_{capability}, built by {version}"
    pathlib.Path(output).write_text(tidy(ptx, header, source))


if __name__ == "__main__":
    main()
