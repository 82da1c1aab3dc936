"""How many processor threads this process computes with: one, as its matrices are small."""

from __future__ import annotations

import os

import torch


def limit_threads(count: int | None = None) -> None:
    """Let torch, and with threadpoolctl also NumPy and SciPy, compute with `count` threads.

    Without a count: OMP_NUM_THREADS, or one. On a busy machine more threads wait for each other,
    and another number of them rounds sums in another order, so that weights differ.
    """
    count = _thread_count() if count is None else count
    torch.set_num_threads(count)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # the engine runs without it
        return
    threadpool_limits(count, user_api="blas")


def _thread_count() -> int:
    """The number that OMP_NUM_THREADS says; it may hold one per level, such as 4,2."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) else 1
