"""Bandwidth of loads over the working set: gpu-cache on a V100, where one block an SM reads the buffer that all others read."""

from .simulator import CALIBRATED, CLOCK, PREDICTED, V100, Row, cycles_of_last, kernel_text

SOURCE = "RRZE gpu-benches, gpu-cache, V100 PCIe 16GB"
SMS, BLOCK = 80, 256  # blocks, threads
# Passes of 2 KiB to 8 KiB that the compiler unrolls, for they have few loads.
UNROLLED = 4

# KiB, GB/s: some of each level, all about the end of the L1 and of the L2; beyond 17 MB a simulation takes minutes, and the curve is flat.
MEASURED = [(2, 13646.3), (4, 13874.2), (8, 13916.8), (16, 13873.9), (32, 13869.4), (64, 13873.4), (96, 13775.6), (112, 13716.2),
            (116, 13692.3), (120, 13710.9), (124, 12108.4), (128, 10855.5), (148, 10158.2), (172, 7932.0), (204, 4900.3), (236, 2135.1),
            (280, 2275.9), (328, 2363.3), (384, 2457.7), (612, 2414.6), (984, 2449.3), (1844, 2452.1), (3456, 2436.8), (5540, 2448.0),
            (6480, 2391.5), (7584, 2313.0), (10380, 2170.6), (16628, 2325.7)]


def reads(number):
    """`number` loads of a thread, a block's width apart: all in a row where they are fewer than 64, otherwise a loop of 32 and the rest."""
    def row(count):
        loads = [f"ld.global.nc.f64 %fd{load + 2}, [%rd5+{load * BLOCK * 8}];" for load in range(count)]
        return loads + [f"add.f64 %fd1, %fd1, %fd{load + 2};" for load in range(count)]

    if number < 64:
        lines = []
        for first in range(0, number, 32):
            lines += row(min(32, number - first)) + [f"add.s64 %rd5, %rd5, {32 * BLOCK * 8};"]
        return lines
    loop = ["mov.u32 %r4, 0;", "$loads:", *row(32), f"add.s64 %rd5, %rd5, {32 * BLOCK * 8};", "add.s32 %r4, %r4, 32;",
            f"setp.lt.u32 %p3, %r4, {number // 32 * 32};", "@%p3 bra $loads;"]
    return loop + row(number % 32)


def loads_measured(kibibytes):
    """Loads of a thread whose time is measured, at least. About the end of the L1 warps drift apart, which takes long: those ahead
    find what they read themselves in the cache, and those behind find nothing."""
    return 2048 if kibibytes <= 120 else 8192 if kibibytes <= 236 else 512


def point(kibibytes, hardware):
    size = kibibytes * 1024
    number = size // 8 // BLOCK
    unrolled = UNROLLED if number <= 4 else 1
    one = [*reads(number), "mul.f64 %fd1, %fd1, 0d3FF4CCCCCCCCCCCD;"]
    again = ["add.s64 %rd2, %rd2, %rd3;", "mov.u64 %rd5, %rd2;"]
    text = kernel_text("cache_read", passes="\n\t".join((again + one) * unrolled), unrolled=unrolled)

    def measure(simulator):
        def cycles(passes):
            arguments = [f"buffer:{BLOCK * 8}", f"buffer:{size}", "u64:0", f"u32:{passes}"]
            return cycles_of_last(simulator.launch(text, "cache_read", SMS, BLOCK, arguments)[0])

        more = max(1, loads_measured(kibibytes) // number // unrolled * unrolled)
        first = max(1, more // 2 // unrolled * unrolled)
        return size * SMS * more / ((cycles(first + more) - cycles(first)) / CLOCK)

    return Row(f"cache read, {kibibytes} KiB", V100, "cache_read.ptx: many passes less some", "GB/s", hardware, SOURCE, PREDICTED,
               measure, assembled=True)


def l2_read():
    """Blocks that stay, two an SM, read 1.25 MiB past the L1: the difference of many passes and few removes what a launch costs."""
    elements, block = 163840, 1024

    def measure(simulator):
        def cycles(passes):
            arguments = [f"buffer:{elements * 8}", f"buffer:{elements * 8}", f"u32:{elements}"]
            text = kernel_text("l2_read", passes=passes)
            return cycles_of_last(simulator.launch(text, "l2_read", elements // block, block, arguments, launches=2)[0])

        return elements * 8 * 4 * (48 - 16) / (cycles(48) - cycles(16))

    return Row("L2 read bandwidth", V100, "l2_read.ptx: 48 passes less 16", "B/cycle", 1775, SOURCE, CALIBRATED, measure, assembled=True)


def rows():
    for kibibytes, hardware in MEASURED:
        yield point(kibibytes, hardware)
    yield l2_read()
