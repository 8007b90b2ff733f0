"""Latency over pages: the levels of a P100's TLB, as cuda-gpu-tlb walks them."""

from .simulator import CALIBRATED, P100, Row, kernel_text

SOURCE = "cuda-gpu-tlb, Tesla P100-PCIE-16GB (DaMoN 2017)"
MEBIBYTE = 1 << 20

# Stride in MiB: MiB of data, cycles. Some of each level, all about the ends of the two.
MEASURED = {
    1: [(16, 293), (32, 293), (34, 297), (48, 297), (80, 297)],
    2: [(16, 292), (32, 293), (34, 302), (36, 301), (80, 301)],
    4: [(32, 292), (64, 294), (68, 301), (80, 301)],
    16: [(1472, 302), (2080, 302), (2272, 302), (2288, 315), (2304, 351), (2320, 357), (4992, 357)],
    32: [(1472, 301), (2048, 314), (2080, 302), (2112, 315), (2176, 313), (2272, 314), (2304, 327), (2336, 412), (2368, 412), (4992, 412)],
    64: [(1472, 301), (4160, 302), (4224, 315), (4480, 316), (4608, 325), (4672, 412), (4992, 412)],
}


def point(stride, data, hardware):
    def measure(simulator):
        text = kernel_text("tlb_chase")
        return simulator.chase(P100, text, "tlb_chase", data // stride, stride * MEBIBYTE)

    return Row(f"latency, {data} MiB in strides of {stride} MiB", P100, "tlb_chase.ptx", "cycle", hardware, SOURCE, CALIBRATED, measure)


def rows():
    for stride, points in MEASURED.items():
        for data, hardware in points:
            yield point(stride, data, hardware)
