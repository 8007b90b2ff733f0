"""Runs: made, or read from the folder that one has written."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence

from . import _frames
from ._frames import Frame, FrameKind
from ._program import PathLike, call

#: The schema of stats.json that is read.
SCHEMA = 1


class Run:
    """A run, as its folder tells it.

    ``document`` is stats.json as Python's own types; docs/ of the simulator says what each field is.
    """

    #: The folder.
    path: Path
    #: stats.json.
    document: Dict[str, Any]

    def __init__(self, path: PathLike, _keep: Optional["tempfile.TemporaryDirectory[str]"] = None) -> None:
        self.path = Path(path)
        file = self.path / "stats.json"
        if not file.is_file():
            raise FileNotFoundError(f"{self.path} is no folder of a run: it has no stats.json")
        self.document = json.loads(file.read_text())
        schema = self.document.get("schema")
        if schema != SCHEMA:
            writer = self.document.get("version", "unknown")
            raise ValueError(f"{file} has schema {schema}, by version {writer}; expected schema {SCHEMA}")
        # A folder of its own lives as long as what was read of it.
        self._keep = _keep

    @property
    def topology(self) -> str:
        """Name of the topology."""
        return str(self.document["topology"])

    @property
    def completed(self) -> bool:
        """Whether the simulated program came to its end."""
        return bool(self.document["completed"])

    @property
    def verified(self) -> Optional[bool]:
        """Whether its result is right; None where it has no check."""
        value = self.document["verified"]
        return None if value is None else bool(value)

    @property
    def seconds(self) -> float:
        """Simulated time, seconds."""
        return float(self.document["sim_time_ps"]) * 1e-12

    @property
    def results(self) -> Dict[str, float]:
        """What the workload reports of itself, by name."""
        return {str(row["name"]): row["value"] for row in self.document.get("results", [])}

    def kernels(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each launch: name, grid, block, start and end, cycles, counters."""
        return _frames.of_rows(self.document["kernels"], frame)

    def statistics(self, frame: Optional[FrameKind] = None) -> Frame:
        """A row for each counter of each unit: location, what, value, unit."""
        return _frames.of_rows(self.document["statistics"], frame)

    def samples(self, of: Literal["node", "gpu", "launch"] = "node", frame: Optional[FrameKind] = None) -> Frame:
        """Time series of the node, of each GPU, or of each launch (``--sample-interval`` with ``--samples csv``)."""
        file = self.path / f"{of}_samples.csv"
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: run with options=['--sample-interval', '1us', '--samples', 'csv']")
        return _frames.of_csv(file, frame)

    def __repr__(self) -> str:
        workload = self.document.get("workload", {}).get("name", "")
        return f"<Run of {workload or 'a program'} on {self.topology}: {len(self.document['kernels'])} launches, {self.seconds * 1e6:.3f} us>"


def read_run(path: PathLike) -> Run:
    """Reads the folder that a run with ``--output`` has written."""
    return Run(path)


def _workload(name: str, parameters: Optional[Mapping[str, Any]]) -> str:
    given = ",".join(f"{key}={value}" for key, value in (parameters or {}).items())
    return f"{name}:{given}" if given else name


def _sets(settings: Optional[Mapping[str, Any]]) -> List[str]:
    return [word for path, value in (settings or {}).items() for word in ("--set", f"{path}={value}")]


def run(
    topology: PathLike,
    *,
    workload: Optional[str] = None,
    parameters: Optional[Mapping[str, Any]] = None,
    program: Optional[Sequence[PathLike]] = None,
    settings: Optional[Mapping[str, Any]] = None,
    threads: int = 1,
    output: Optional[PathLike] = None,
    options: Sequence[PathLike] = (),
) -> Run:
    """Runs a workload, or a CUDA program, on a topology.

    topology: a file, or the name of one that is built in. workload: a built-in one, with ``parameters``; the topology's own where neither
    it nor a program is named. program: an executable and its arguments. settings: overrides of the topology's parameters, as ``--set`` takes
    them. output: the folder to write; a temporary one without it, which goes with the result. options: more options of the command line.

    Raises RunFailed where the program does not end with exit code 0.
    """
    if workload is not None and program is not None:
        raise ValueError("either a workload or a program runs, not both")
    if workload is None and parameters:
        raise ValueError("parameters are a workload's: name one")
    keep = None
    if output is None:
        keep = tempfile.TemporaryDirectory(prefix="balar-actors-")
        output = keep.name
    arguments: List[PathLike] = ["run"] if program is not None else []
    arguments += ["--topology", topology, "--output", output, "--threads", str(threads), "--quiet", *_sets(settings), *options]
    if workload is not None:
        arguments += ["--workload", _workload(workload, parameters)]
    if program is not None:
        arguments += ["--", *(os.fspath(word) for word in program)]
    call(arguments)
    return Run(output, keep)
