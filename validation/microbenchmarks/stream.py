"""Bandwidth of DRAM over occupancy: every point of gpu-stream on a V100, and some points on other cards."""

from .cards import V100_PCIE, measured
from .simulator import CALIBRATED, PREDICTED, Row, cycles_of_last, kernel_text

SOURCE = "RRZE gpu-benches, gpu-stream, V100 PCIe 16GB"
# Elements of the launches whose difference is measured, of operations that store nothing. The difference removes what a launch costs from a
# run that lasts 16 times longer on hardware.
LARGE, SMALL = 3 << 20, 1 << 20


def sum_of_neighbours(factors):
    """a[i] = the sum of factors[k] * b[i + k]."""
    lines = [f"ld.global.nc.f64 %fd{position + 9}, [%rd11+{8 * offset}];" for position, offset in enumerate(factors)]
    lines.append("mov.f64 %fd2, 0d0000000000000000;")
    for position, factor in enumerate(factors.values()):
        lines.append(f"fma.rn.f64 %fd2, %fd{position + 9}, 0d{factor}, %fd2;")
    return "\n\t".join(lines + ["st.global.f64 [%rd10], %fd2;"])


MINUS_ONE, HALF, QUARTER = "BFF0000000000000", "3FE0000000000000", "3FD0000000000000"
# Name: words that an element moves, as gpu-stream counts them; elements at each end that are left out; what a thread does.
OPERATIONS = {
    "init": (1, 0, "st.global.f64 [%rd10], 0d3FCD70A3D70A3D71;"),
    "read": (1, 0, """ld.global.nc.f64 %fd2, [%rd11];
	setp.neu.f64 %p4, %fd2, 0d405EC00000000000;
	@%p4 bra $end;
	st.global.f64 [%rd10], %fd2;"""),
    "scale": (2, 0, """ld.global.nc.f64 %fd2, [%rd11];
	mul.f64 %fd3, %fd2, 0d3FF3333333333333;
	st.global.f64 [%rd10], %fd3;"""),
    "triad": (4, 0, """ld.global.nc.f64 %fd2, [%rd11];
	ld.global.nc.f64 %fd3, [%rd13];
	ld.global.nc.f64 %fd4, [%rd12];
	fma.rn.f64 %fd5, %fd2, %fd3, %fd4;
	st.global.f64 [%rd10], %fd5;"""),
    "3pt": (2, 1, sum_of_neighbours({-1: HALF, 0: MINUS_ONE, 1: HALF})),
    "5pt": (2, 2, sum_of_neighbours({-2: QUARTER, -1: QUARTER, 0: MINUS_ONE, 1: HALF, 2: HALF})),
    "triad of three arrays": (3, 0, """ld.global.nc.f64 %fd2, [%rd11];
	ld.global.nc.f64 %fd3, [%rd12];
	fma.rn.f64 %fd4, %fd2, 0d3FF3333333333333, %fd3;
	st.global.f64 [%rd10], %fd4;"""),
}

# Threads of a block, blocks an SM; GB/s of the operations in the order above.
MEASURED = """
  16 1  39  19  34  64  33  32
  32 1  78  36  67 123  63  61
  48 1 116  54  98 175  93  90
  64 1 155  70 130 230 123 119
  80 1 192  87 157 269 151 147
  96 1 229 103 184 316 178 173
 112 1 267 119 212 352 204 198
  64 2 306 139 246 400 233 226
 160 1 369 165 281 452 272 263
  96 2 454 200 335 524 325 318
 128 2 599 263 426 638 406 397
 160 2 724 322 487 682 478 464
 192 2 850 376 555 722 540 527
 224 2 897 432 612 737 599 585
 256 2 897 491 675 759 648 635
 288 2 897 539 700 755 689 675
 320 2 897 557 733 764 720 708
 352 2 897 608 749 765 740 731
 384 2 897 647 765 774 753 744
 416 2 897 686 769 770 763 755
 448 2 897 708 776 772 770 764
 480 2 897 728 780 773 776 771
 512 2 897 746 784 777 778 774
 544 2 897 749 787 774 783 778
 576 2 897 752 790 776 786 782
 608 2 897 755 792 776 789 785
 640 2 897 773 794 781 789 785
 672 2 897 787 796 779 792 788
 704 2 897 804 797 780 794 790
 736 2 897 813 799 780 796 792
 768 2 897 824 801 783 796 794
 800 2 897 829 802 782 799 795
 832 2 897 838 803 784 800 796
 864 2 897 842 805 784 801 797
 896 2 897 850 805 785 801 798
 928 2 897 854 807 785 803 800
 960 2 897 859 807 787 804 801
 992 2 897 863 808 787 804 801
1024 2 897 867 809 788 804 801
"""


# Of the other cards: threads of a block, blocks an SM; operations.
OCCUPANCIES = {(16, 1), (32, 2), (64, 1), (128, 2), (256, 2), (512, 2), (1024, 2)}
OPERATIONS_BY_CARD = ("init", "read", "scale", "triad")
# These were measured before the triad of gpu-stream got a fourth array, in December 2024.
TRIAD_OF_THREE_ARRAYS = {"A100 40GB", "H100 PCIe"}


def elements_on(card, operation):
    """Elements of two launches. The first launch of an operation that stores is so large that the L2 is full of lines to write back when it
    ends. Stores alone fill it as fast as they are ahead of DRAM: six times the L2 is enough for all cards, three times is too little for a
    GH200."""
    if operation == "read":
        return LARGE, SMALL
    words = OPERATIONS[operation][0]
    small = card.l2 * (1 << 20) // 8 * (6 if operation == "init" else 5 / 4) // words
    return int(small) + (3 << 20) // words, int(small)


def point(card, operation, block, blocks, hardware):
    words, margin, body = OPERATIONS[operation]
    shared = card.shared_memory_of_block(blocks)
    large, small = elements_on(card, operation)

    def measure(simulator):
        text = kernel_text("stream", operation=body, first=margin, beyond=margin)

        def cycles(elements):
            arguments = [f"buffer:{elements * 8}"] * 4 + [f"u64:{elements}", "u32:0"]
            document, _ = simulator.launch(text, "stream", elements // block + 1, block, arguments, shared, topology=card.topology,
                                           settings=card.settings)
            return cycles_of_last(document)

        return (large - small) * 8 * words / ((cycles(large) - cycles(small)) / card.clock)

    kind = CALIBRATED if (card, operation, block, blocks) == (V100_PCIE, "init", 16, 1) else PREDICTED
    return Row(f"DRAM {operation}, {blocks} x {block} threads an SM", card.topology, f"stream.ptx: {large} elements less {small}", "GB/s",
               hardware, SOURCE, kind, measure, assembled=True)


def rows():
    for line in MEASURED.split("\n"):
        if line:
            block, blocks, *bandwidths = map(int, line.split())
            for operation, bandwidth in zip(OPERATIONS, bandwidths):
                yield point(V100_PCIE, operation, block, blocks, bandwidth)


def rows_by_card():
    for card, row in measured("stream.csv"):
        block, blocks = int(row["block"]), int(row["blocks_per_sm"])
        if (block, blocks) in OCCUPANCIES:
            for column in OPERATIONS_BY_CARD:
                operation = "triad of three arrays" if column == "triad" and card.name in TRIAD_OF_THREE_ARRAYS else column
                yield card.row(point(card, operation, block, blocks, float(row[column])), row["source"])
