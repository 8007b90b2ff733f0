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


#: By level of memory: its colour and the mark of points, as the program's own chart has them.
_LEVELS = {"L1": ("#0072B2", "s"), "L2": ("#009E73", "^"), "DRAM": ("#D55E00", "o")}
#: Those of other levels.
_OTHER_LEVEL = ("#CC79A7", "s")


def _is_shown(value: Any) -> bool:
    """Whether a logarithmic axis has a place for it: an absent figure is None or no number."""
    return value is not None and value == value and 0 < value < float("inf")


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
        """Draws the ceilings and what is placed into matplotlib axes, new ones without any, and gives them.

        A program has a mark for each level of memory whose bytes it moved. Those without any are named below the axis.
        """
        import matplotlib.pyplot as pyplot

        if ax is None:
            _, ax = pyplot.subplots()
        measured = self.document["empirical"]
        levels, peaks = measured["gbytes"]["data"], measured["gflops"]["data"]
        top = max((peak for _, peak in peaks), default=1.0)
        for name, bandwidth in levels:
            colour, _ = _LEVELS.get(name, _OTHER_LEVEL)
            label = f"{name} {bandwidth:.0f} GB/s"
            ax.plot([0.01, top / bandwidth], [0.01 * bandwidth, top], color=colour, label=label)
        for name, peak in peaks:
            ax.axhline(peak, color="black", linewidth=1)
            ax.annotate(f"{name} {peak:.0f}", (100.0, peak), ha="right", va="bottom")
        left_out = self._plot_placed(ax, [name for name, _ in levels])
        below = f"FLOP/byte\nnot drawn: {', '.join(left_out)}" if left_out else "FLOP/byte"
        ax.set(xscale="log", yscale="log", xlim=(0.01, 100.0), xlabel=below, ylabel="GFLOP/s")
        ax.legend()
        return ax

    def _plot_placed(self, ax: Any, levels: List[str]) -> List[str]:
        """Draws what is placed, and gives the names of what has no place: it has no operations, or moved no bytes."""
        left_out: List[str] = []
        if not (self.path / "placement.csv").is_file():
            return left_out
        rows = self.placement()
        of_levels = [(level, list(rows[f"flops_per_{level.lower()}_byte"])) for level in levels if level in _LEVELS]
        for at, (name, rate) in enumerate(zip(list(rows["name"]), list(rows["gigaflops"]))):
            marks = [(level, values[at]) for level, values in of_levels if _is_shown(values[at])]
            if not _is_shown(rate) or not marks:
                left_out.append(str(name))
                continue
            ax.plot([intensity for _, intensity in marks], [rate] * len(marks), color="gray", linewidth=1)
            for level, intensity in marks:
                colour, mark = _LEVELS[level]
                ax.plot([intensity], [rate], mark, color=colour)
            beside = (marks[-1][1], rate)
            ax.annotate(str(name), beside, xytext=(6, 0), textcoords="offset points", va="center")
        return left_out


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
