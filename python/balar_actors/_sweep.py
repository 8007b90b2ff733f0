"""Sweeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

from . import _frames
from ._frames import Frame, FrameKind
from ._program import PathLike, call
from ._run import Run


class Sweep:
    """A sweep, as its folder tells it."""

    #: The folder.
    path: Path

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        if not (self.path / "results.csv").is_file():
            raise FileNotFoundError(f"{self.path} has no results.csv: `balar-actors sweep collect` writes it")

    def results(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each point: its settings, how it ended, its figures."""
        return _frames.of_csv(self.path / "results.csv", frame)

    def kernels(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each point and kernel."""
        return _frames.of_csv(self.path / "kernels.csv", frame)

    @property
    def svg(self) -> str:
        """The plot of a sweep of one or two parameters."""
        return (self.path / "plot.svg").read_text()

    def _repr_svg_(self) -> Optional[str]:
        return self.svg if (self.path / "plot.svg").is_file() else None

    def point(self, index: int) -> Run:
        """The run of a finished point, by its number."""
        folder = self.path / "points" / f"{index:04}"
        if not folder.is_dir():
            raise FileNotFoundError(f"point {index} of {self.path} is not finished")
        return Run(folder)


def read_sweep(path: PathLike) -> Sweep:
    """Reads the folder of a sweep."""
    return Sweep(path)


def _text(value: Any) -> str:
    """A value as --set takes it, quoted where commas would part it."""
    text = str(value)
    return f'"{text}"' if "," in text and text[0] not in "\"[{(" else text


def sweep(
    topology: PathLike,
    *,
    settings: Mapping[str, Sequence[Any]],
    output: PathLike,
    workload: Optional[str] = None,
    program: Optional[Sequence[PathLike]] = None,
    jobs: Optional[int] = None,
    options: Sequence[PathLike] = (),
    check: bool = True,
) -> Sweep:
    """Runs every combination of the values of ``settings``, and goes on where the folder has finished points already.

    settings: for each key its values; a key is what ``balar-actors sweep --set`` takes: a parameter of the topology ("gpu.clock"), of the
    workload ("workload.elements"), or what stands in braces in the program's arguments. check: whether a point that failed is an error; the
    others are there in any case, and ``results()`` has how each ended.

    Raises RunFailed where the sweep could not run, and with ``check`` where a point failed.
    """
    arguments: List[PathLike] = ["sweep", "--topology", topology, "--output", output, "--quiet"]
    for key, values in settings.items():
        arguments += ["--set", f"{key}={','.join(_text(value) for value in values)}"]
    if workload is not None:
        arguments += ["--workload", workload]
    if jobs is not None:
        arguments += ["--jobs", str(jobs)]
    arguments += options
    if program is not None:
        arguments += ["--", *(os.fspath(word) for word in program)]
    call(arguments, accepted=(0,) if check else (0, 1))
    return Sweep(output)
