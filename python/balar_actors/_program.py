"""The program: where it is, and how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Optional, Sequence, Union

#: A path, as functions of this package take it.
PathLike = Union[str, "os.PathLike[str]"]

#: Names the program to use in place of the one that comes with the package.
VARIABLE = "BALAR_ACTORS"

_MEANINGS = {
    1: "the run ended but its result is wrong",
    2: "bad arguments, topology, program or folder",
    3: "the simulated program failed",
    4: "deadlock or time limit",
    5: "a unit that does not come with balar-actors broke a rule",
    70: "a bug in balar-actors",
    130: "ended by Ctrl-C",
    143: "ended by SIGTERM",
}


class RunFailed(Exception):
    """The program ended with an exit code other than 0."""

    #: The exit code: ``balar-actors --help`` lists them. Of a CUDA program that was run, it may be the program's own.
    code: int
    #: What the program wrote to stderr.
    text: str

    def __init__(self, code: int, text: str) -> None:
        meaning = _MEANINGS.get(code, "see its text")
        super().__init__(f"balar-actors ended with exit code {code} ({meaning}):\n{text.rstrip()}")
        self.code = code
        self.text = text


def binary() -> Path:
    """The program: that of the environment variable ``BALAR_ACTORS``, the one installed with this package, or the first in PATH.

    Raises FileNotFoundError where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(f"{VARIABLE} names {named}, which is no file")
        return Path(named)
    installed = Path(sysconfig.get_path("scripts")) / "balar-actors"
    if installed.is_file():
        return installed
    found = shutil.which("balar-actors")
    if found is None:
        raise FileNotFoundError(f"there is no balar-actors: install the wheel, or let {VARIABLE} name the program")
    return Path(found)


def call(arguments: Sequence[PathLike], *, cwd: Optional[PathLike] = None, accepted: Sequence[int] = (0,)) -> str:
    """Runs the program with these arguments, and gives what it printed on stdout.

    Raises RunFailed where its exit code is not one of ``accepted``.
    """
    command = [str(binary()), *(os.fspath(argument) for argument in arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, check=False)
    if done.returncode not in accepted:
        raise RunFailed(done.returncode, done.stderr)
    return done.stdout


def version() -> str:
    """The version of the program: "0.2.0"."""
    return call(["--version"]).split()[-1]
