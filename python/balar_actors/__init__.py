"""balar-actors: a simulator of GPU compute nodes.

Runs the program ``balar-actors``, which comes with this package, and reads what it writes. The module computes nothing itself.

>>> import balar_actors as balar
>>> run = balar.run("v100_node", workload="vectoradd", parameters={"elements": 4096})
>>> run.kernels()
"""

from ._frames import Frame, FrameKind
from ._program import RunFailed, binary, call, version
from ._roofline import Roofline, read_roofline, roofline
from ._run import Run, read_run, run
from ._sweep import Sweep, read_sweep, sweep

__all__ = [
    "Frame",
    "FrameKind",
    "Roofline",
    "Run",
    "RunFailed",
    "Sweep",
    "binary",
    "call",
    "read_roofline",
    "read_run",
    "read_sweep",
    "roofline",
    "run",
    "sweep",
    "version",
]
