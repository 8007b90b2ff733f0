"""Rooflines."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import _frames
from ._frames import Frame, FrameKind
from ._program import PathLike, call
from ._run import Run, _sets


class Roofline:
    """What ``balar-actors roofline`` has measured, from its folder. A notebook shows its chart."""

    #: The folder.
    path: Path

    def __init__(self, path: PathLike, _keep: Optional["tempfile.TemporaryDirectory[str]"] = None) -> None:
        self.path = Path(path)
        if not (self.path / "roofline.json").is_file():
            raise FileNotFoundError(f"{self.path} is no folder of a roofline: it has no roofline.json")
        self._keep = _keep

    @property
    def document(self) -> Dict[str, Any]:
        """roofline.json, as the Empirical Roofline Toolkit has it."""
        document: Dict[str, Any] = json.loads((self.path / "roofline.json").read_text())
        return document

    @property
    def svg(self) -> str:
        """The chart."""
        return (self.path / "roofline.svg").read_text()

    def _repr_svg_(self) -> str:
        return self.svg

    def table(self, name: str, frame: Optional[FrameKind] = None) -> Frame:
        """One of its tables: ceilings, placement, bandwidth, throughput, parallelism, reuse."""
        file = self.path / f"{name}.csv"
        if not file.is_file():
            there = ", ".join(sorted(found.stem for found in self.path.glob("*.csv")))
            raise FileNotFoundError(f"there is no table {name!r}; there are {there}")
        return _frames.of_csv(file, frame)

    def ceilings(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each ceiling: measured, and textbook."""
        return self.table("ceilings", frame)

    def placement(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each program or kernel that is placed."""
        return self.table("placement", frame)

    def plot(self, ax: Any = None) -> Any:
        """Draws the ceilings and what is placed into matplotlib axes, new ones without any, and gives them."""
        import matplotlib.pyplot as pyplot

        if ax is None:
            _, ax = pyplot.subplots()
        measured = self.document["empirical"]
        levels, peaks = measured["gbytes"]["data"], measured["gflops"]["data"]
        top = max((peak for _, peak in peaks), default=1.0)
        for name, bandwidth in levels:
            ax.plot([0.01, top / bandwidth], [0.01 * bandwidth, top], label=f"{name} {bandwidth:.0f} GB/s")
        for name, peak in peaks:
            ax.axhline(peak, color="black", linewidth=1)
            ax.annotate(f"{name} {peak:.0f}", (100.0, peak), ha="right", va="bottom")
        if (self.path / "placement.csv").is_file():
            rows = self.placement()
            columns = ("name", "flops_per_dram_byte", "gigaflops")
            for name, intensity, rate in zip(*(list(rows[column]) for column in columns)):
                # Kernels without operations, or without bytes, are nowhere.
                if intensity and rate and intensity == intensity and intensity > 0 and rate > 0:
                    ax.plot([intensity], [rate], "o")
                    ax.annotate(str(name), (intensity, rate))
        ax.set(xscale="log", yscale="log", xlim=(0.01, 100.0), xlabel="FLOP/byte", ylabel="GFLOP/s")
        ax.legend()
        return ax


def read_roofline(path: PathLike) -> Roofline:
    """Reads the folder that ``balar-actors roofline --output`` has written."""
    return Roofline(path)


def roofline(
    topology: PathLike,
    *,
    workloads: Sequence[str] = (),
    runs: Sequence[Run] = (),
    by_kernel: bool = False,
    settings: Optional[Mapping[str, Any]] = None,
    output: Optional[PathLike] = None,
    options: Sequence[PathLike] = (),
) -> Roofline:
    """Measures the ceilings of a topology, and places workloads and finished runs below them.

    Raises RunFailed where the program does not end with exit code 0.
    """
    keep = None
    if output is None:
        keep = tempfile.TemporaryDirectory(prefix="balar-actors-")
        output = keep.name
    arguments: List[PathLike] = ["roofline", "--topology", topology, "--output", output, "--quiet", *_sets(settings)]
    arguments += [word for workload in workloads for word in ("--workload", workload)]
    for run in runs:
        arguments += ["--run", run.path]
    if by_kernel:
        arguments.append("--by-kernel")
    call([*arguments, *options])
    return Roofline(output, keep)
