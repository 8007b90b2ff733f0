"""Runs the simulator, and the rows that the tables are made of."""

import json
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOST = pathlib.Path(__file__).resolve().parent / "host.py"
KERNELS = pathlib.Path(__file__).resolve().parent / "kernels"

V100, P100 = "v100_sxm2_node", "p100_node"
CLOCK = 1.38  # GHz, of the V100 that was measured and of V100
CALIBRATED, PREDICTED = "calibrated", "predicted"


@dataclass
class Row:
    """A figure measured on hardware, and how the simulator is asked for the same."""
    name: str
    topology: str
    workload: str
    unit: str
    hardware: float
    source: str
    kind: str
    measure: Callable[["Simulator"], float]
    # Its kernel is PTX of this folder that has to be assembled, as the measured one was.
    assembled: bool = False
    # The card of cards.py that was measured, in microbenchmarks_by_card.csv.
    card: str = ""


class Simulator:
    """Runs the program and reads its result document."""

    def __init__(self, program, ptxas=None):
        self.program = program
        self.ptxas = ptxas

    def workload(self, topology, workload, ptx=None, verify=True, settings=()):
        """The document of a built-in workload, with `ptx` in the place of its kernels."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--workload", workload, *set_options(settings)]
            if ptx is not None:
                arguments += ["--ptx", written(folder, ptx)]
            return self.document([], topology, folder, arguments, verify)[0]

    def launch(self, ptx, kernel, grid, block, arguments, shared=0, launches=1, topology=V100, settings=()):
        """The document of a kernel's launches, and the first word of its first buffer. See host.py for the arguments."""
        with tempfile.TemporaryDirectory() as folder:
            module = written(folder, ptx)
            return self.hosted(topology, folder, ["launch", module, kernel, grid, block, shared, launches, *arguments], settings)

    def chase(self, topology, ptx, kernel, nodes, stride):
        """The cycles that a kernel finds for a walk over `nodes` indices, one every `stride` bytes."""
        with tempfile.TemporaryDirectory() as folder:
            return self.hosted(topology, folder, ["chase", written(folder, ptx), kernel, nodes, stride])[1]

    def copy(self, topology, size, times):
        """The simulated time of a program that copies so often, in ps."""
        with tempfile.TemporaryDirectory() as folder:
            return self.hosted(topology, folder, ["copy", size, times])[0]["sim_time_ps"]

    def hosted(self, topology, folder, arguments, settings=()):
        program = [*set_options(settings), "--", sys.executable, HOST, *arguments]
        document, printed = self.document(["run"], topology, folder, program)
        return document, int(printed) if printed.strip() else None

    def document(self, command, topology, folder, arguments, verify=True):
        assembler = ["--ptxas", self.ptxas] if self.ptxas else []
        command = [self.program, *command, "--topology", ROOT / "topologies" / f"{topology}.ron", "--quiet", "--output", folder,
                   *assembler, *arguments]
        command = [str(argument) for argument in command]
        done = subprocess.run(command, capture_output=True, text=True)
        document = pathlib.Path(folder) / "stats.json"
        if (done.returncode != 0 and verify) or not document.exists():
            sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return json.loads(document.read_text()), done.stdout


def set_options(settings):
    return [word for setting in settings for word in ("--set", setting)]


def written(folder, ptx):
    source = pathlib.Path(folder) / "kernel.ptx"
    source.write_text(ptx)
    return str(source)


def kernel_text(name, **parts):
    """A PTX file of kernels/, with each word `<part>` in it replaced."""
    text = (KERNELS / f"{name}.ptx").read_text()
    for part, replacement in parts.items():
        text = text.replace(f"<{part}>", str(replacement))
    return text


def result(name):
    """The value `name` that a workload reports."""
    return lambda document: next(row["value"] for row in document["results"] if row["name"] == name)


def cycles_of_all(document):
    """Cycles of all kernels together."""
    return sum(kernel["cycles"] for kernel in document["kernels"])


def cycles_of_last(document):
    """Cycles of the last launch, which finds the caches as a launch before left them."""
    return document["kernels"][-1]["cycles"]


def simple(name, workload, unit, hardware, source, kind, value, topology=V100, settings=()):
    """A row that is one value of one run of a built-in workload."""
    def measure(simulator):
        return value(simulator.workload(topology, workload, settings=settings))

    return Row(name, topology, workload, unit, hardware, source, kind, measure)
