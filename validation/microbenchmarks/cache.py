"""Bandwidth of loads over the working set: gpu-cache on a V100 and an A100, where one block an SM reads the buffer that all others read, and
gpu-l2-cache on other cards, where blocks go through different parts of a buffer."""

from dataclasses import dataclass
from typing import Callable

from .cards import V100_PCIE, measured
from .simulator import CALIBRATED, PREDICTED, V100, Row, cycles_of_last, kernel_text

SOURCE = "RRZE gpu-benches, gpu-cache, V100 PCIe 16GB"
# KiB, GB/s: some of each level, all about the end of the L1 and of the L2; beyond 17 MB a simulation takes minutes, and the curve is flat.
MEASURED = [(2, 13646.3), (4, 13874.2), (8, 13916.8), (16, 13873.9), (32, 13869.4), (64, 13873.4), (96, 13775.6), (112, 13716.2),
            (116, 13692.3), (120, 13710.9), (124, 12108.4), (128, 10855.5), (148, 10158.2), (172, 7932.0), (204, 4900.3), (236, 2135.1),
            (280, 2275.9), (328, 2363.3), (384, 2457.7), (612, 2414.6), (984, 2449.3), (1844, 2452.1), (3456, 2436.8), (5540, 2448.0),
            (6480, 2391.5), (7584, 2313.0), (10380, 2170.6), (16628, 2325.7)]

# KiB of the points of other cards by program, with those that a parameter was set by: the bandwidth of the L1 of an A100, of the L2 of an
# A100, and of the L2 of an H200.
POINTS = {"gpu-cache": (4, 16, 64, 128, 172, 236, 384, 984, 2160, 4044), "gpu-l2-cache": (8192, 25600, 36864, 83456)}
SET_BY = {("A100 80GB", "gpu-cache"): {64, 128, 984, 2160, 4044}, ("A100 80GB", "gpu-l2-cache"): set(), ("H100 PCIe", "gpu-l2-cache"): set(),
          ("H200", "gpu-l2-cache"): {8192, 25600}}


@dataclass(frozen=True)
class Program:
    """A version of gpu-cache: the type of the values, the bytes of one, and the constants of its kernel."""
    type: str
    bytes: int
    zero: str
    factor: str
    never: str
    # Threads of the block for so many bytes.
    block: Callable[[int], int]
    # The loads of a thread in one pass, for so many of them and threads.
    loads: Callable[[int, int], list]
    # Passes that the compiler unrolls, for so many loads of a thread.
    unrolled: Callable[[int], int]


def loop(number, row, step):
    """`number` times what `row` says for a number in a row: all in a row where they are fewer than 64, otherwise a loop of 32 and the rest.
    Each 32 are followed by a step of so many bytes."""
    step = f"add.s64 %rd5, %rd5, {step};"
    if number < 64:
        lines = []
        for first in range(0, number, 32):
            lines += row(min(32, number - first)) + [step]
        return lines
    lines = ["mov.u32 %r4, 0;", "$loads:", *row(32), step, "add.s32 %r4, %r4, 32;", f"setp.lt.u32 %p3, %r4, {number // 32 * 32};",
             "@%p3 bra $loads;"]
    return lines + row(number % 32)


def sums(number, block):
    """`number` loads of a thread, a block's width apart, and their sum."""
    def row(count):
        loads = [f"ld.global.nc.f64 %value{load + 2}, [%rd5+{load * block * 8}];" for load in range(count)]
        return loads + [f"add.f64 %value1, %value1, %value{load + 2};" for load in range(count)]

    return loop(number, row, 32 * block * 8)


def products(number, block):
    """`number` loads of a thread in pairs, one of each half of the buffer, and the sum of the products."""
    half = number // 2 * block * 4

    def row(count):
        lines = []
        for pair in range(count):
            lines += [f"ld.global.nc.f32 %value2, [%rd5+{half + pair * block * 4}];", f"ld.global.nc.f32 %value3, [%rd5+{pair * block * 4}];",
                      "fma.rn.f32 %value1, %value3, %value2, %value1;"]
        return lines

    return loop(number // 2, row, 32 * block * 4)


# As the V100 was measured in January 2023. The compiler unrolls passes of 2 KiB to 8 KiB, for they have few loads.
SUMS = Program("f64", 8, "0d0000000000000000", "0d3FF4CCCCCCCCCCCD", "0d4093440000000000", lambda size: 256, sums,
               lambda number: 4 if number <= 4 else 1)
# As the A100 was measured in February 2025.
PRODUCTS = Program("f32", 4, "0f00000000", "0f3FA66666", "0f449A2000", lambda size: min(512, size // 8), products,
                   lambda number: max(1, 32 // (number // 2)))


def loads_measured(card, kibibytes):
    """Loads of a thread whose time is measured, at least. About the end of the L1 warps drift apart, which takes long: those ahead
    find what they read themselves in the cache, and those behind find nothing."""
    return 2048 if kibibytes <= card.unified_memory - 8 else 8192 if kibibytes <= card.unified_memory * 2 - 16 else 512


def point(card, program, kibibytes, hardware, calibrated=False):
    size = kibibytes * 1024
    block = program.block(size)
    number = size // program.bytes // block
    unrolled = program.unrolled(number)
    one = [*program.loads(number, block), f"mul.{program.type} %value1, %value1, {program.factor};"]
    again = ["add.s64 %rd2, %rd2, %rd3;", "mov.u64 %rd5, %rd2;"]
    text = kernel_text("cache_read", passes="\n\t".join((again + one) * unrolled), unrolled=unrolled, type=program.type,
                       bytes=program.bytes, zero=program.zero, never=program.never)

    def measure(simulator):
        def cycles(passes):
            arguments = [f"buffer:{block * 8}", f"buffer:{size}", "u64:0", f"u32:{passes}"]
            document, _ = simulator.launch(text, "cache_read", card.sms, block, arguments, topology=card.topology, settings=card.settings)
            return cycles_of_last(document)

        more = max(1, loads_measured(card, kibibytes) // number // unrolled * unrolled)
        first = max(1, more // 2 // unrolled * unrolled)
        return size * card.sms * more / ((cycles(first + more) - cycles(first)) / card.clock)

    return Row(f"cache read, {kibibytes} KiB", card.topology, "cache_read.ptx: many passes less some", "GB/s", hardware, SOURCE,
               CALIBRATED if calibrated else PREDICTED, measure, assembled=True)


def chunks(card, kibibytes, hardware, calibrated):
    """Blocks read a chunk of 512 KiB each, as many at a time as the card holds: many less some remove what a launch costs, and what the
    first blocks find missing."""
    chunk, block, blocks_per_sm = 512, 1024, 2
    part = ["ld.global.nc.f64 %fd2, [%rd4+8192];", "ld.global.nc.f64 %fd3, [%rd4];", "fma.rn.f64 %fd1, %fd3, %fd2, %fd1;",
            "add.s64 %rd4, %rd4, %rd5;"]
    text = kernel_text("l2_chunks", parts="\n\t".join(part * (chunk * 1024 // 8 // block // 2)))
    small, large = (times * card.sms * blocks_per_sm for times in (2, 4))

    def measure(simulator):
        def cycles(blocks):
            arguments = [f"buffer:{block * 8}", f"buffer:{kibibytes * 1024}", f"u32:{kibibytes // chunk}"]
            document, _ = simulator.launch(text, "l2_chunks", blocks, block, arguments, topology=card.topology, settings=card.settings)
            return cycles_of_last(document)

        return chunk * 1024 * (large - small) / ((cycles(large) - cycles(small)) / card.clock)

    return Row(f"L2 read by chunks, {kibibytes} KiB", card.topology, f"l2_chunks.ptx: {large} blocks less {small}", "GB/s", hardware, SOURCE,
               CALIBRATED if calibrated else PREDICTED, measure, assembled=True)


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
        yield point(V100_PCIE, SUMS, kibibytes, hardware)
    yield l2_read()


def rows_by_card():
    for card, row in measured("cache_bandwidth.csv"):
        kibibytes, hardware, program = int(row["working_set_kib"]), float(row["gigabytes_per_second"]), row["program"]
        if kibibytes in POINTS[program]:
            calibrated = kibibytes in SET_BY[card.name, program]
            if program == "gpu-l2-cache":
                made = chunks(card, kibibytes, hardware, calibrated)
            else:
                made = point(card, PRODUCTS, kibibytes, hardware, calibrated)
            yield card.row(made, row["source"])
