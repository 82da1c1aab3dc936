"""What workers of the sweep's tests run: importable from other processes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from time import sleep


@dataclass(frozen=True)
class Small:
    number: int
    folder: str = ""


def doubled(row: Small) -> dict[str, object]:
    if row.number < 0:
        raise ValueError(f"no double of {row.number}")
    return {"double": 2 * row.number, "pair": (row.number, float("inf"))}


def deadly(row: Small) -> dict[str, object]:
    """Number 3 kills its worker, every time; number 5 once."""
    marker = Path(row.folder) / "died"
    if row.number == 3 or (row.number == 5 and not marker.exists()):
        if row.number == 5:
            marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"double": 2 * row.number}


def slow(row: Small) -> dict[str, object]:
    sleep(0.15)
    return {"double": 2 * row.number, "pid": os.getpid()}
