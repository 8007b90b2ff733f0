"""Frames of pandas or polars, whichever is wanted or there."""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Literal, Mapping, Optional, Sequence

#: A frame of pandas or of polars.
Frame = Any
#: Whose frames.
FrameKind = Literal["pandas", "polars"]

_KINDS: "tuple[FrameKind, ...]" = ("pandas", "polars")


def _chosen(kind: Optional[FrameKind]) -> FrameKind:
    if kind is None:
        for name in _KINDS:
            if importlib.util.find_spec(name) is not None:
                return name
        raise ImportError("neither pandas nor polars is installed: pip install 'balar-actors[pandas]' or 'balar-actors[polars]'")
    if kind not in ("pandas", "polars"):
        raise ValueError(f"expected 'pandas' or 'polars', found {kind!r}")
    return kind


def of_rows(rows: Sequence[Mapping[str, Any]], kind: Optional[FrameKind]) -> Frame:
    """A frame of rows, a column for each key."""
    if _chosen(kind) == "pandas":
        import pandas

        return pandas.DataFrame(list(rows))
    import polars

    return polars.DataFrame(list(rows), infer_schema_length=None)


def of_csv(path: "os.PathLike[str]", kind: Optional[FrameKind]) -> Frame:
    """A frame of a file of comma-separated values with a header."""
    if _chosen(kind) == "pandas":
        import pandas

        return pandas.read_csv(path)
    import polars

    return polars.read_csv(os.fspath(path), infer_schema_length=None)
