"""What verbs with many rows share: a progress bar, the message after Ctrl-C, the exit code."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

from tqdm import tqdm

from explorer.research.records import Row
from explorer.research.runs import RunFailed


def collect_rows(
    running: Generator[Row, None, None], total: int, what: str, path: Path | None
) -> list[Row]:
    """Return all rows, with a bar on stderr; Ctrl-C prints what is kept and how to go on.

    A kill by SIGTERM does the same.
    `what` are the rows, such as "cells"; `path` is the file of `running`, or None.
    """
    seen: list[Row] = []
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for row in tqdm(running, total=total, desc=what, file=sys.stderr, disable=None):
            seen.append(row)
    except KeyboardInterrupt:
        running.close()
        print(f"stopped: {_kept_words(len(seen), total, what, path)}", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    return seen


def _kept_words(count: int, total: int, what: str, path: Path | None) -> str:
    if path is None:
        return f"nothing is kept of {count} {what}. With --rows FILE they are, and it can go on."
    if not count:
        return f"no {what} had ended, and none are kept."
    return f"{count} of {total} {what} are kept in {path}; the same command goes on"


def check_any_done(rows: Sequence[Row], what: str) -> None:
    """Raise RunFailed if no row is done."""
    if all(row["status"] != "done" for row in rows):
        raise RunFailed(f"none of {len(rows)} {what} came to its end; their messages say why.")


def tell(rows: Sequence[Row], what: str) -> None:
    """Print each message of rows that are not done once on stderr, with their number."""
    told = Counter(" ".join(r["message"].split()) for r in rows if r["status"] != "done")
    for message, count in told.items():
        print(f"margin-explorer: {count} of {len(rows)} {what} failed: {message}", file=sys.stderr)
