"""Copies to the device over PCI Express: every size of cuda-memcpy."""

from .simulator import PREDICTED, V100, Row

SOURCE = "RRZE gpu-benches, cuda-memcpy, V100 PCIe 16GB: bandwidth, which has more digits than the time"

# KiB, GB/s.
MEASURED = [(1, 0.03), (2, 0.06), (4, 0.12), (8, 0.24), (16, 0.44), (32, 0.93), (64, 1.77), (128, 3.46), (256, 5.27), (512, 7.53),
            (1024, 9.25), (2048, 10.50), (4096, 11.41), (8192, 11.86), (16384, 12.11), (32768, 12.23), (65536, 12.29), (131072, 12.32),
            (262144, 12.34)]


def point(kibibytes, hardware):
    size = kibibytes * 1024

    def measure(simulator):
        """What a second copy and wait add to the simulated time of a program."""
        twice, once = (simulator.copy(V100, size, times) for times in (2, 1))
        return size / (twice - once) * 1e3

    return Row(f"copy to the device, {kibibytes} KiB", V100, "cuMemcpyHtoDAsync and cuCtxSynchronize, pinned memory", "GB/s", hardware,
               SOURCE, PREDICTED, measure)


def rows():
    for kibibytes, hardware in MEASURED:
        yield point(kibibytes, hardware)
