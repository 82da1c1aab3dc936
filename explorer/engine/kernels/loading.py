"""The modules of compiled loops, loaded when they are first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def compiled_module(name: str) -> ModuleType | None:
    """Return the module `explorer.engine.kernels.<name>`; None where its loops cannot be had.

    That is where numba is missing, does not import, or has no place to keep what it compiles. The
    caller then takes torch's own calls: the same steps, to rounding. What is compiled is kept on
    disk, beside the module or in numba's folder of the user, so that one process compiles for all.
    """
    try:
        return import_module(f"explorer.engine.kernels.{name}")
    except Exception:  # whatever a broken numba raises: ImportError, RuntimeError, OSError, ...
        return None
