"""Latency of loads over the working set: gpu-latency on a V100 and on other cards, and the tuner's chases on a TITAN V."""

import re

from .cards import measured
from .simulator import CALIBRATED, PREDICTED, ROOT, V100, Row, result, simple

RRZE = "RRZE gpu-benches, gpu-latency, V100 PCIe 16GB at 1380 MHz"
TUNER = "Accel-Sim tuner, TITAN V"

# KiB, cycles: of the 285 points of the curve some of each level, all about the end of the L1, of the L2 and of the first TLB level.
L1, L2, DRAM, TLB = "L1", "L2", "DRAM", "first TLB level misses"
MEASURED = {
    L1: [(2, 27.9), (8.2, 27.9), (16.1, 28.0), (32.9, 28.1), (64.2, 28.2), (92.0, 28.4), (103.1, 28.5), (111.5, 28.5), (116.0, 28.5),
         (120.8, 28.6)],
    "end of the L1": [(125.4, 76.4), (130.5, 87.5), (135.6, 112.5), (140.9, 136.9), (146.2, 160.2), (152.1, 182.9), (158.2, 206.7)],
    L2: [(164.4, 212.3), (170.6, 212.3), (199.0, 212.2), (325.9, 212.3), (513.1, 212.1), (1046.5, 212.1), (2053.0, 212.1),
         (4023.4, 212.1), (5033.9, 212.1), (5424.0, 212.1), (5630.2, 212.1), (5844.4, 212.4), (6066.8, 212.6)],
    "end of the L2": [(6297.6, 297.5), (6537.1, 390.1), (6785.9, 420.4), (7044.0, 417.1), (7311.8, 424.2), (7589.8, 419.3)],
    DRAM: [(8178.1, 425.4), (9146.9, 425.4), (12328.6, 425.5), (16008.4, 425.5), (24129.5, 418.6), (28012.9, 425.4), (31329.8, 425.4),
           (32520.6, 425.4)],
    TLB: [(33756.8, 425.9), (35039.9, 426.1), (37753.8, 426.8), (42224.1, 427.5), (47223.2, 428.1), (52814.6, 428.9), (59067.9, 426.0),
          (66061.4, 429.9), (82630.0, 430.8), (99570.0, 431.4), (136996.5, 432.2), (203929.8, 432.9), (265865.0, 433.2)],
}
OTHER_HALF = "other half of the L2"
# KiB of the points of the other cards, of the 189 of each. Beyond a half of the L2, an SM finds lines in the other half.
POINTS_BY_CARD = {
    "A100 PCIe": {
        L1: (2, 33, 97, 149), "end of the L1": (169, 191), L2: (314, 2045, 10197, 17044), "end of the own half": (20758, 22460),
        OTHER_HALF: (27348, 34630), "end of the L2": (42154,), DRAM: (49331, 64947, 79040),
    },
    "H800 PCIe": {
        L1: (2, 33, 113, 203), "end of the L1": (240, 268), L2: (424, 2045, 10197, 20758), "end of the own half": (26292, 27348),
        OTHER_HALF: (33294, 42154), "end of the L2": (53364,), DRAM: (62446, 73069, 82205),
    },
    "RTX 4090": {
        L1: (1, 34, 65, 84), "end of the L1": (101, 113), L2: (244, 4900, 25654, 52021, 65836), "end of the L2": (83317,),
        DRAM: (105435, 450297),
    },
}
# Parameters were set by the latency of a level, not by where it ends; those of DRAM on the other cards by the ends of these curves.
SET_BY, SET_BY_CARD = {L1, L2, DRAM, TLB}, {L1, L2, DRAM}


def point(level, kibibytes, hardware, set_by=SET_BY, **node):
    # A pass over the working set first, and then one more or 16384 loads. Beyond 48 MiB one line in several is enough: pages count.
    stride = 128 * max(1, round(kibibytes / 32768)) if level == TLB else 128
    nodes = round(kibibytes * 1024 / stride)
    steps = min(16384, max(4096, nodes)) // 16 * 16
    return simple(f"latency, {kibibytes} KiB: {level}", f"pointer_chase:working_set={nodes * stride},stride={stride},steps={steps}",
                  "cycle", hardware, RRZE, CALIBRATED if level in set_by else PREDICTED, result("cycles_per_access"), **node)


def sequential():
    return simple("latency, DRAM, sequential, 32 B steps",
                  "pointer_chase:cache=cg,order=sequential,stride=32,working_set=16MiB,warm_up_passes=0,steps=16384", "cycle", 313.46,
                  TUNER, CALIBRATED, result("cycles_per_access"))


def shared():
    # The tuner's loop makes an address of each index it loads, which takes 8 cycles more (public_microbenchmarks.csv runs it).
    return simple("latency, shared memory", "shared_chase", "cycle", 19.01, TUNER + ": 27.01 less 8", CALIBRATED,
                  result("cycles_per_access"))


def atomic():
    """The pointer chase with each load replaced by an atomic addition of zero, which gives the same value."""
    workload = "pointer_chase:working_set=64KiB"

    def measure(simulator):
        text = (ROOT / "workloads/pointer_chase/pointer_chase.sm_70.ptx").read_text()
        text = re.sub(r"ld\.global\.c[ag]\.u64 (%rd\d+), \[(%rd\d+)\];", r"atom.global.add.u64 \1, [\2], 0;", text)
        return result("cycles_per_access")(simulator.workload(V100, workload, ptx=text))

    return Row("latency, global atomic add", V100, workload + " (atom.add 0 for the loads)", "cycle", 243.63, TUNER, CALIBRATED, measure,
               assembled=True)


def rows():
    for level, points in MEASURED.items():
        for kibibytes, hardware in points:
            yield point(level, kibibytes, hardware)
    yield from (sequential(), shared(), atomic())


def rows_by_card():
    """Ordinary loads. Those by the tensor memory accelerator, of kind TMA in measured/latency.csv, have no rows yet."""
    levels = {(card, kibibytes): level for card, points in POINTS_BY_CARD.items() for level, sizes in points.items() for kibibytes in sizes}
    for card, row in measured("latency.csv", kind="load"):
        kibibytes = int(row["working_set_kib"])
        level = levels.get((card.name, kibibytes))
        if level:
            node = {"topology": card.topology, "settings": card.settings}
            yield card.row(point(level, kibibytes, float(row["cycles"]), SET_BY_CARD, **node), row["source"])
