"""Compiles one CUDA source to PTX with NVRTC, through its C interface.

usage: nvrtc.py LIBNVRTC SOURCE ARCHITECTURE OUTPUT

ARCHITECTURE is a virtual one, such as compute_70. The output has no comments but a header that names the source and
the compiler's version, so that the same source and compiler give the same bytes on every machine.
"""

import ctypes
import pathlib
import sys


def check(library, code, what):
    if code != 0:
        text = library.nvrtcGetErrorString(code).decode()
        raise SystemExit(f"{what}: {text}")


def load(path):
    # NVRTC looks for its built-ins beside the real file, not beside a link to it.
    library = ctypes.CDLL(str(pathlib.Path(path).resolve()))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def compile_to_ptx(library, source, name, architecture):
    program = ctypes.c_void_p()
    check(
        library,
        library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        ),
        "nvrtcCreateProgram",
    )
    options = [f"--gpu-architecture={architecture}", "--std=c++17"]
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
    check(library, result, f"{name} for {architecture}")

    check(library, library.nvrtcGetPTXSize(program, ctypes.byref(size)), "PTX size")
    text = ctypes.create_string_buffer(size.value)
    check(library, library.nvrtcGetPTX(program, text), "PTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


def version(library):
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "version")
    return f"{major.value}.{minor.value}"


def tidy(ptx, header):
    """Drops whole-line comments, trailing blanks and runs of empty lines."""
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
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    library_path, source_path, architecture, output_path = sys.argv[1:]
    library = load(library_path)
    source = pathlib.Path(source_path)
    ptx = compile_to_ptx(library, source.read_text(), source.name, architecture)
    header = f"// {source.name} for {architecture}, built by NVRTC {version(library)}"
    pathlib.Path(output_path).write_text(tidy(ptx, header))


if __name__ == "__main__":
    main()
