"""How many processor threads this process computes with: one, as its matrices are small.

`limit_threads` sets it for a process that is ours alone: a command, a page. `few_threads` sets it
inside a call of the library, and puts back what it found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 - its BLAS is that of the compiled loops: `_pools` looks for it
import torch


def limit_threads(count: int | None = None) -> None:
    """Let torch, and with threadpoolctl also NumPy and SciPy, compute with `count` threads.

    Without a count: OMP_NUM_THREADS, or one. On a busy machine more threads wait for each other,
    and another number of them rounds sums in another order, so that weights differ.
    """
    count = thread_count() if count is None else count
    torch.set_num_threads(count)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # the engine runs without it
        return
    threadpool_limits(count, user_api="blas")


@contextmanager
def few_threads() -> Iterator[None]:
    """Compute with as many threads as `limit_threads` would set, then as before.

    A step multiplies small matrices, which many threads make slower, and on a busy machine a
    hundred times so. OMP_NUM_THREADS asks for more, as for wide networks. Loops call the BLAS of
    SciPy, which has threads of its own: with threadpoolctl they are limited too.
    """
    before, count = torch.get_num_threads(), thread_count()
    pools = [(pool, n) for pool in _pools() if (n := pool.get_num_threads()) > count]
    if before == count and not pools:
        yield
        return
    _set(before, count)
    for pool, _ in pools:
        pool.set_num_threads(count)
    try:
        yield
    finally:
        _set(count, before)
        for pool, n in pools:
            pool.set_num_threads(n)


def _set(now: int, count: int) -> None:
    if now != count:
        torch.set_num_threads(count)


@cache
def _pools() -> tuple[Any, ...]:
    """Return the BLAS libraries of this process, each with threads of its own."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return ()
    return tuple(lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas")


def thread_count() -> int:
    """Return what OMP_NUM_THREADS says, the first of such as 4,2; or one."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) else 1
