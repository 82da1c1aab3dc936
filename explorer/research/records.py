"""Rows on disk, one line of JSON each: appended one by one, complete after any kill.

Sweeps, searches and the grid of starts keep rows in a `RowFile`. A `RowKind` says in what they
differ: what a line must hold, what the key of a row is, and of which problem all rows are.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor

from explorer.engine.files import (
    MAX_BYTES,
    FileError,
    check_size,
    one_line,
    read_file,
    safe_name,
    to_disk,
    write_file,
)

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

KINDS = {
    "key": str, "status": str, "message": str, "trial": dict, "result": dict, "seconds": dict,
    "of": dict,
}  # fmt: skip
MOST_BYTES = 512 * 2**20  # arbitrary: some 100,000 rows
LEFT_OUT = ("x", "y", "lam", "chance", "matched")  # of a table: what is not one figure

Row = dict[str, Any]


def known_by_key(row: Row) -> str:
    """Return the key that a row holds."""
    return str(row["key"])


@dataclass(frozen=True)
class RowKind:
    """The kind of the lines of a file.

    Attributes:
        what: name of the kind, such as "sweep".
        needed: names that every row has.
        check: takes a row as it was read, returns what is kept; an error says why it is no row.
        key: returns the key of a row.
        start: with what every line begins: a text of one line without its end that begins
            otherwise is no row that was torn off.
        head: the problem that all rows are of, on the first line; None where there is no such line.
        free: names of the head in which a problem may differ.
    """

    what: str
    needed: tuple[str, ...] = ("key", "result")
    check: Callable[[Row], Row] = dict
    key: Callable[[Row], str] = known_by_key
    start: bytes = b'{"key":'
    head: Mapping[str, Any] | None = None
    free: tuple[str, ...] = ()

    @property
    def first(self) -> bytes:
        """Return the first line, with its end; nothing without a head."""
        return b"" if self.head is None else (json.dumps(self.head) + "\n").encode()


def plain(value: Any) -> Any:  # noqa: ANN401 - what a run gives back
    """Return a value in the types of JSON.

    Tensors and tuples become lists, enums their names, paths words, numbers that are not finite
    None.
    """
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def text_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as lines of JSON."""
    return "".join(json.dumps(r, allow_nan=False, separators=(",", ":")) + "\n" for r in rows)


def rows_of(text: bytes, kind: RowKind, before: int = 0) -> tuple[list[Row], int]:
    """Return the rows of lines, and how many bytes they take.

    A last line without an end is taken if it is complete, as when an editor saved it. Else a kill
    cut it off, and it is dropped.

    Args:
        text: lines of JSON.
        kind: what they are.
        before: how many lines stand before them.

    Raises:
        FileError: where a line is no row; it says which, and why.
    """
    *lines, last = text.split(b"\n")
    rows, end = list[Row](), 0
    for number, line in enumerate(lines, before + 1):
        row = _row_of(line, kind)
        if isinstance(row, str):
            raise FileError(f"line {number} is not a row of a {kind.what} ({row}).")
        rows.append(row)
        end += len(line) + 1
    row = _row_of(last, kind)
    if not isinstance(row, str):
        return [*rows, row], len(text)
    if not lines and not before and not last.startswith(kind.start[: len(last)]):
        raise FileError(f"its only line is not a row of a {kind.what} (it does not begin as one).")
    return rows, end


def rows_in(content: bytes, kind: RowKind) -> list[Row]:
    """Return the rows of a file that was handed in; FileError for anything else, or none."""
    check_size(len(content), MAX_BYTES)
    rows = rows_of(content, kind)[0]
    if not rows:
        raise FileError(f"the file holds no row of a {kind.what}.")
    return rows


def _row_of(line: bytes, kind: RowKind) -> Row | str:
    """Return the row of a line, or why the line holds no row."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return "it is no JSON"
    if not isinstance(row, dict):
        return f"it is a {type(row).__name__}"
    lacks = [name for name in kind.needed if name not in row]
    if lacks:
        return f"it lacks {', '.join(lacks)}"
    for name, held in KINDS.items():
        if name in row and not isinstance(row[name], held):
            return f"its {name} is no {'word' if held is str else 'table of settings by name'}"
    try:
        return kind.check(row)
    except Exception as error:  # libraries raise errors of many types on damaged content
        why = one_line(error)
        return why if isinstance(error, ValueError) else f"{type(error).__name__}: {why}"


class RowFile:
    """A file of finished rows, by their key. If two rows have the same key, the later counts."""

    def __init__(self, path: Path, kind: RowKind) -> None:
        """Read what is there; a file that is not there yet begins with the first row.

        Raises:
            FileError: where a line is not a row, it is of another problem, or it is no file; it is
                left alone.
        """
        self.path, self.kind, self.rows = path, kind, dict[str, Row]()
        text = read_file(path, MOST_BYTES) if path.exists() else b""
        if kind.first.startswith(text):  # nothing, or a first line that a kill cut off
            if kind.first:
                path.write_bytes(kind.first)
            return
        begun = self._head(text)
        try:
            rows, length = rows_of(text[begun:], kind, int(begun > 0))
        except FileError as error:
            raise self._strange(str(error)) from error
        self.rows = {kind.key(row): row for row in rows}
        end = begun + length
        if end < len(text):
            with path.open("r+b") as file:
                file.truncate(end)
        elif not text.endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")

    def _head(self, text: bytes) -> int:
        """Return where the first line ends; FileError if it is no head, or of another problem."""
        kind = self.kind
        if kind.head is None:
            return 0
        end = text.find(b"\n") + 1
        try:
            there = json.loads(text[:end])
        except (ValueError, RecursionError, MemoryError):
            there = None
        if not isinstance(there, dict) or not there.keys() & kind.head.keys():
            raise self._strange("its first line does not say of which problem it is.")
        differs = [k for k in kind.head if k not in kind.free and there.get(k) != kind.head[k]]
        if differs:
            raise FileError(
                f"{safe_name(self.path.name)} holds another {kind.what}: it differs in "
                f"{', '.join(differs)}. Name another file, or take the same settings and weights."
            )
        return end

    def _strange(self, why: str) -> FileError:
        return FileError(
            f"{safe_name(self.path.name)} is no file of a {self.kind.what}: {why} It was left as "
            "it is. Name another file, or mend the line."
        )

    def clear(self) -> None:
        """Begin the file anew."""
        self.path.write_bytes(self.kind.first)
        self.rows.clear()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row, and flush it to the system at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = text_of([row])
        with to_disk(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(line)
        self.rows[self.kind.key(dict(row))] = dict(row)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Lock the file for this run while it writes.

    Raises:
        ValueError: if another run holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        if fcntl is None:
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another run is writing {path}. Wait for its end, or name another file."
            ) from error
        except OSError:  # a file system without locks
            yield
            return
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # at once, whoever else has the file open by a fork


@contextmanager
def writing(path: Path, kind: RowKind) -> Iterator[RowFile]:
    """Open a file of rows and hold it. ValueError as `lock`, FileError as `RowFile`."""
    with lock(path):
        yield RowFile(path, kind)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as one level of names: those of its parts are joined by a point."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            inner = flat(value)
            # Configuration and result keep their own names; settings and seconds say whose.
            plain = name in ("trial", "result")
            found |= {k if plain else f"{name}.{k}": v for k, v in inner.items()}
        elif isinstance(value, list) and len(value) == len(row.get("radii", ())) > 0:
            if name != "radii":
                found |= {f"{name}@{r:g}": v for r, v in zip(row["radii"], value, strict=True)}
        else:
            found[name] = " ".join(map(str, value)) if isinstance(value, list) else value
    return found


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return all rows as one table of what is `flat` of them."""
    return table_of([flat(row) for row in rows])


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of plain values as CSV; a column that a row lacks is empty there."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write all rows as one table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, csv_of(rows))
