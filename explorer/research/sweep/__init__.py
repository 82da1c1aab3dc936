"""Many runs at once, on any `concurrent.futures` executor, kept on disk as they come.

    for row in sweep(experiments({"preset": ["moons", "xor"], "seed": [0, 1, 2]}), processes(2),
                     path=Path("rows.jsonl")):
        print(row["status"], row["trial"]["preset"])

A row that fails is a row with its message. A worker that dies costs only its own rows: all that
were under way are suspects and run again one at a time on a fresh executor, so that the one that
kills its worker is known by being alone, and is given up after `retries` further deaths. A sweep
that was killed goes on where its file ends: rows are known by the key of their configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from explorer.engine.threads import limit_threads
from explorer.research.records import Row, RowKind, plain, write_csv, writing
from explorer.research.sweep.executors import Make, Pool, dask_client, is_lost, processes, threads
from explorer.research.sweep.experiment import (
    Experiment,
    Refused,
    experiments,
    key_of,
    run_experiment,
    seeds_of,
)

__all__ = [
    "Experiment",
    "dask_client",
    "experiments",
    "key_of",
    "processes",
    "run_experiment",
    "seeds_of",
    "sweep",
    "threads",
    "write_csv",
]

IN_FLIGHT = 8  # arbitrary: enough to keep four workers busy, few enough to cancel at once
ROWS = RowKind("sweep", ("key", "status", "message", "trial", "result", "seconds"))
RETRIES = 2  # arbitrary: Dask's own default is 3 deaths


def sweep(
    rows: Iterable[Any],
    executor: Executor | Make,
    *,
    path: Path | None = None,
    run: Callable[[Any], Mapping[str, Any]] = run_experiment,
    in_flight: int = IN_FLIGHT,
    retries: int = RETRIES,
    again: bool = False,
    fresh: bool = False,
) -> Generator[Row, None, None]:
    """Run every row, and yield each as it is finished.

    Rows already in the file come first. Closing the generator, as `break` in a loop does, cancels
    what is under way and keeps the rest.

    Args:
        rows: frozen dataclasses such as `Experiment`, or mappings of its fields. Equal rows
            run once.
        executor: an executor, or a function that makes one: only then can a broken one be
            replaced. See `processes`, `threads` and `dask_client(...).get_executor`.
        path: JSON lines to go on from and to append to; None keeps nothing.
        run: what a row does; a function that workers can import. -> plain data.
        in_flight: rows handed to the executor at a time.
        retries: further deaths that a row may cause once it runs alone.
        again: run rows anew whose last run did not end well.
        fresh: begin the file anew.

    Yields:
        {"key", "status", "message", "trial", "result", "seconds"}; status is "done", "refused" (an
        attack or a defence that does not fit, with the reason as message) or "failed".

    Raises:
        BrokenExecutor: where a ready-made executor broke; its rows did not run, and are not kept.
        TypeError: where `executor` is no executor and makes none.
        ValueError: for settings out of range, or a file that holds something else or that another
            sweep is writing.

    Example:
        >>> from explorer.research.sweep import sweep, threads, experiments
        >>> table = {"preset": "alternating-line", "n": [3, 4], "method": "exact", "attack": ""}
        >>> for row in sweep(experiments(table), threads(1)):
        ...     print(row["trial"]["n"], row["status"])
        3 done
        4 done
    """
    if in_flight < 1 or retries < 0:
        raise ValueError(f"in_flight >= 1 and retries >= 0 needed; got {in_flight}, {retries}")
    pool = Pool(executor)
    given = [Experiment.of(row) if isinstance(row, Mapping) else row for row in rows]
    table = {key_of(row): row for row in given}
    with nullcontext() if path is None else writing(path, ROWS) as file:
        if file is not None and fresh:
            file.clear()
        kept = {} if file is None else file.rows
        kept = {k: v for k, v in kept.items() if v["status"] == "done" or not again}
        todo = deque(_Job(key, row) for key, row in table.items() if key not in kept)
        yield from (kept[key] for key in table if key in kept)
        for row in _Work(pool, run, in_flight, retries, todo).rows():
            if file is not None:
                file.append(row)
            yield row


@dataclass(eq=False)
class _Job:
    key: str
    row: Any
    alone: bool = False  # whether it was the only one under way
    deaths: int = 0  # of its worker, while it was


@dataclass(eq=False)
class _Work:
    """The rows to run, those under way, and those that may have killed a worker."""

    pool: Pool
    run: Callable[[Any], Mapping[str, Any]]
    in_flight: int
    retries: int
    todo: deque[_Job]
    suspects: deque[_Job] = field(default_factory=deque)
    pending: dict[Future[Row], _Job] = field(default_factory=dict)
    left: int = 0  # rows without an executor: that of the caller broke

    def rows(self) -> Iterator[Row]:
        clean = False
        try:
            while self.todo or self.suspects or self.pending:
                self._hand_in()
                done, _ = wait(self.pending, return_when=FIRST_COMPLETED)
                for future in done:
                    row = self._row_of_end(future, self.pending.pop(future))
                    if row is not None:
                        yield row
            clean = True
            if self.left:
                raise BrokenExecutor(
                    f"the executor broke, and only its giver can make another: {self.left} rows "
                    "did not run. Give sweep a function that makes one, such as processes(2)."
                )
        finally:
            self.pool.close(self.pending, at_once=not clean)

    def _hand_in(self) -> None:
        """Fill up; a suspect goes alone."""
        alone = bool(self.suspects)
        queue, most = (self.suspects, 1) if alone else (self.todo, self.in_flight)
        while queue and len(self.pending) < most:
            job = queue.popleft()
            job.alone = alone
            try:
                future = self.pool.submit(_attempt, self.run, job.key, job.row)
            except RuntimeError as error:  # the pool broke meanwhile, or was shut down
                future = Future()
                future.set_exception(BrokenExecutor(str(error)))
            self.pending[future] = job

    def _row_of_end(self, future: Future[Row], job: _Job) -> Row | None:
        """Return the row, or None where it has to run again."""
        error = None if future.cancelled() else future.exception()
        if not future.cancelled() and error is None:
            return future.result()
        if error is not None and not is_lost(error):  # such as a row that cannot be sent
            return _row(job.key, job.row, "failed", f"{type(error).__name__}: {error}")
        if error is None or isinstance(error, BrokenExecutor):
            if not self.pool.replaceable:
                self.left += 1 + len(self.todo) + len(self.suspects)
                self.todo.clear()
                self.suspects.clear()
                return None
            self.pool.drop()
        job.deaths += job.alone
        if job.deaths > self.retries:
            what = f"its worker died {job.deaths} times with this row alone ({error})"
            return _row(job.key, job.row, "failed", what)
        self.suspects.append(job)
        return None


def _attempt(run: Callable[[Any], Mapping[str, Any]], key: str, row: Any) -> Row:  # noqa: ANN401
    """Return the row that a worker makes, whatever becomes of it."""
    limit_threads()  # workers share the cores by being many
    begun = perf_counter()
    try:
        result = dict(run(row))
    except Refused as why:
        return _row(key, row, "refused", str(why))
    except Exception as error:  # a row that fails is a row
        return _row(key, row, "failed", f"{type(error).__name__}: {error}")
    seconds = {**result.pop("seconds", {}), "all": perf_counter() - begun}
    return _row(key, row, "done", "", result, seconds)


def _row(
    key: str, row: Any, status: str, message: str,  # noqa: ANN401
    result: Mapping[str, Any] | None = None, seconds: Mapping[str, float] | None = None,
) -> Row:  # fmt: skip
    made: Row = plain({
        "key": key, "status": status, "message": message, "trial": asdict(row),
        "result": result or {}, "seconds": seconds or {},
    })  # fmt: skip
    return made
