"""Where the rows of a sweep run: threads, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures import CancelledError as Cancelled
from contextlib import contextmanager
from threading import Thread
from typing import Any

from explorer.engine.extras import library

Make = Callable[[], Executor]
LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError")  # Dask's, by name: not imported


def threads(workers: int = 2) -> Make:
    """Return a function that makes threads of this process.

    There is no start-up, but Python runs one of them at a time.

    Args:
        workers: how many.

    Returns:
        What `sweep` takes as its executor.

    Example:
        >>> from explorer.research.sweep import threads
        >>> with threads(1)() as pool:
        ...     pool.submit(sum, [1, 2]).result()
        3
    """
    return lambda: ThreadPoolExecutor(workers)


def processes(workers: int = 2) -> Make:
    """Return a function that makes processes of this machine.

    They are started afresh: a fork would copy torch's threads half-way. They end with this one.

    Args:
        workers: how many.

    Returns:
        What `sweep` takes as its executor.

    Example:
        >>> from explorer.research.sweep import processes
        >>> make = processes(2)  # no process is started before it is called
        >>> callable(make)
        True
    """
    context = multiprocessing.get_context("spawn")
    return lambda: ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent)


def dask_client(address: str | None = None, workers: int = 2) -> Any:  # noqa: ANN401 - untyped
    """Return a Dask client of the scheduler at `address`, or of worker processes started here.

    Its `get_executor` makes executors; close it when done. ImportError names the extra.
    """
    dask = library("distributed", "Dask is needed", "cluster")
    if address is not None:
        return dask.Client(address)
    return dask.Client(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )


class Pool:
    """The executor of the moment; a new one is made when it breaks.

    An executor given ready-made belongs to its giver: it is neither replaced nor shut down.
    """

    def __init__(self, source: Executor | Make) -> None:
        """Take an executor, or a function that makes one."""
        if not (isinstance(source, Executor) or callable(source)):
            raise TypeError(
                "expected an executor of concurrent.futures, or a function that makes one, such as "
                f"processes(2) or threads(2); got {source!r}"
            )
        self._make = None if isinstance(source, Executor) else source
        self._now = source if isinstance(source, Executor) else None

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:  # noqa: ANN401
        """Hand in a call; BrokenExecutor where the pool has lost a worker."""
        if self._now is None:
            assert self._make is not None  # one that was given ready-made is never put aside
            self._now = self._make()
        with _unheard():  # the first calls start processes
            return self._now.submit(call, *args)

    def drop(self) -> None:
        """Give up the present executor: the next call goes to a new one."""
        if self._now is not None and self._make is not None:
            self._now.shutdown(wait=False)
            self._now = None

    @property
    def replaceable(self) -> bool:
        """Return whether a new executor can be made."""
        return self._make is not None

    def close(self, pending: Iterable[Future[Any]], at_once: bool) -> None:
        """Give up pending calls and shut down; at once ends processes in the middle of theirs."""
        # Only private names lead to the processes of a pool before Python 3.14.
        running = list((getattr(self._now, "_processes", None) or {}).values())
        if self._make is None or not running:  # a pool of processes stumbles over cancelled calls
            for future in pending:
                future.cancel()
        if self._make is None or self._now is None:
            return
        self._now.shutdown(wait=not at_once)
        if at_once:
            for process in running:
                process.terminate()
        self._now = None


def is_lost(error: BaseException) -> bool:
    """Return whether this is a worker's death rather than a failure of the row."""
    return isinstance(error, BrokenExecutor | Cancelled) or type(error).__name__ in LOST


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started within, even while they import; ours waits."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent() -> None:
    # Ctrl-C reaches the whole group; only the parent answers, and ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End this process when its parent has ended, in whatever way: nobody waits for its rows."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
