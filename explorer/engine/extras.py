"""Libraries that only some installs hold, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(module: str, need: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Return a module; ImportError says who needs it, and which extra brings it."""
    try:
        import_module(module.partition(".")[0])  # a part of it may be there without the whole
        return import_module(module)
    except ImportError as error:
        why = f"{need} ({error}): pip install margin-explorer[{extra}]"
        raise ImportError(why, name=error.name) from error
