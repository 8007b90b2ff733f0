"""The cards that were measured, and the nodes that stand for them."""

import csv
import pathlib
from dataclasses import dataclass, replace

from .simulator import CLOCK, V100

MEASURED = pathlib.Path(__file__).resolve().parent.parent / "measured"


@dataclass(frozen=True)
class Card:
    """A card as a table of measured/ names it."""
    name: str
    topology: str
    sms: int
    # GHz of the SMs.
    clock: float
    # MiB of its L2.
    l2: int
    # KiB that the L1 and the shared memory of an SM have together, and that the blocks of an SM can have as shared memory.
    unified_memory: int
    shared_memory: int
    # KiB of shared memory that the system takes of each block.
    reserved: int = 1
    # What of the node's parameters was otherwise on the card.
    settings: tuple = ()

    def shared_memory_of_block(self, blocks):
        """Bytes of shared memory with which an SM holds exactly this many blocks, up to four."""
        return self.shared_memory * 1024 // blocks - self.reserved * 1024

    def row(self, row, source):
        """A row of a group of microbenchmarks.csv as one of this card."""
        return replace(row, card=self.name, name=f"{self.name}: {row.name}", topology=self.topology,
                       workload=", ".join((row.workload, *self.settings)), source=source)


# The card of microbenchmarks.csv, whose figures are in the modules.
V100_PCIE = Card("V100 PCIe", V100, 80, CLOCK, 6, 128, 96, reserved=0)
CARDS = {card.name: card for card in (
    Card("A100 PCIe", "a100_sxm_40gb_node", 108, 1.395, 40, 192, 164, settings=("gpu.clock=1395 MHz",)),
    Card("A100 40GB", "a100_sxm_40gb_node", 108, 1.410, 40, 192, 164),
    Card("A100 80GB", "a100_sxm_80gb_node", 108, 1.410, 40, 192, 164),
    Card("H800 PCIe", "h100_pcie_node", 114, 1.755, 50, 256, 228),
    Card("H100 PCIe", "h100_pcie_node", 114, 1.755, 50, 256, 228),
    # Its L2 and its memory are those of an H100 NVL, and its SMs have another clock.
    Card("GH200 (H100 96GB)", "h100_nvl_node", 132, 1.980, 60, 256, 228, settings=("gpu.clock=1980 MHz",)),
    # Its L2 and its SMs are fewer than those of an L40, which has the same chip.
    Card("RTX 4090", "l40_node", 128, 2.235, 72, 128, 100,
         settings=("gpu.clock=2235 MHz", "gpu.sm.count=128", "gpu.l2[*].capacity=1536 KiB")),
    Card("H200", "h200_node", 132, 1.980, 60, 256, 228),
)}


def measured(file, **values):
    """The cards and rows of a table of measured/ which have a node, and these values in these columns."""
    with (MEASURED / file).open(newline="") as rows:
        for row in csv.DictReader(rows):
            if row["card"] in CARDS and all(row[column] == value for column, value in values.items()):
                yield CARDS[row["card"]], row
