"""Rows on disk, one line of JSON each: appended as they come, whole after any kill."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from explorer.engine.energy.starts import NAMES
from explorer.engine.files import MAX_BYTES, FileError, check_size, named, read_file, reading

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

START = b'{"key":'  # of every line that `RowFile.append` writes
KINDS = {
    "key": str, "status": str, "message": str, "trial": dict, "result": dict, "seconds": dict,
    "of": dict,
}  # fmt: skip
MOST_BYTES = 512 * 2**20  # arbitrary: some 100,000 rows
LEFT_OUT = ("x", "y", "lam", "chance", "matched")  # of a table: what is not one figure


class RowFile:
    """A file of finished rows, each with its `key`. A last line that was torn off is dropped."""

    def __init__(self, path: Path, needed: Sequence[str] = ("key", "result")) -> None:
        """Read what is there; `needed` are names that every row has.

        Raises:
            FileError: where a whole line is not a row, or it is no file; it is left alone.
        """
        self.path, self.rows = path, dict[str, dict[str, Any]]()
        text = read_file(path, MOST_BYTES) if path.exists() else b""
        end = text.rfind(b"\n") + 1  # what follows was torn off, even where it parses
        for number, line in enumerate(text[:end].split(b"\n")[:-1], 1):
            row = _parsed(line, needed)
            if isinstance(row, str):
                raise FileError(_strange(path, f"line {number}", row))
            self.rows[row["key"]] = row
        if end < len(text):
            if not self.rows and not text.startswith(START[: len(text)]):
                raise FileError(_strange(path, "its only line", "it does not begin as one"))
            with path.open("r+b") as file:
                file.truncate(end)

    def clear(self) -> None:
        """Begin the file anew."""
        self.path.write_bytes(b"")
        self.rows.clear()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row, and hand it to the system at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(row, allow_nan=False, separators=(",", ":"))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.rows[str(row["key"])] = dict(row)


def _parsed(line: bytes, needed: Sequence[str]) -> dict[str, Any] | str:
    """The row of a line, or why it is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return "it is no JSON"
    if not isinstance(row, dict):
        return f"it is a {type(row).__name__}"
    lacks = [name for name in needed if name not in row]
    if lacks:
        return f"it lacks {', '.join(lacks)}"
    for name, kind in KINDS.items():
        if name in row and not isinstance(row[name], kind):
            return f"its {name} is no {'word' if kind is str else 'table of settings by name'}"
    return row


def _strange(path: Path, where: str, why: str) -> str:
    return (
        f"{named(path.name)} is no file of rows: {where} is not a row of a sweep ({why}). It was "
        "left as it is. Name another file, or mend the line."
    )


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other runs off the file while this one writes it.

    Raises:
        ValueError: where another run holds it.
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


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as one level of names: those of its parts are joined by a point."""
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


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """All rows as one table; a column that a row lacks is empty there."""
    table = [flat(row) for row in rows]
    columns = list(dict.fromkeys(name for row in table for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(table)


# --- Finished cells of a grid as text: lines of JSON that are read again, and a table -----------

MOST_DISTANCE = 1e100  # arbitrary: sums of such numbers are finite still
CELLS = "Expected lines of JSON that a page with a grid of starts once offered."

Row = dict[str, Any]


def text_of(rows: Iterable[Row]) -> str:
    """Lines of JSON, as `rows_in` reads them."""
    return "".join(json.dumps(r, allow_nan=False, separators=(",", ":")) + "\n" for r in rows)


def table_of(rows: Iterable[Row]) -> str:
    """The same as a table, without the trajectories."""
    table = []
    for row in rows:
        kept = {k: v for k, v in row["result"].items() if k != "trail"}
        table.append(flat({**row, "result": kept, "of": {**row["of"], "settings": ""}}))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in table for name in row)))
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def rows_in(content: bytes) -> list[Row]:
    """Rows of a downloaded file. A last line that was torn off is dropped.

    Raises:
        FileError: for anything else than lines of cells.
    """
    check_size(len(content), MAX_BYTES)
    lines = content.splitlines(keepends=True)
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            with reading(f"line {number}", CELLS):
                rows.append(cell_of(json.loads(line)))
        except FileError:
            if number == len(lines) > 1 and not line.endswith(b"\n"):
                break
            raise
    if not rows:
        raise FileError(f"the file holds no cell. {CELLS}")
    return rows


def cell_of(row: Any) -> Row:  # noqa: ANN401 - from a file
    """The row of a finished cell. FileError for anything else."""
    with reading("a cell", CELLS):
        result = row["result"]
        shares = [row["mix_truth"], row["mix_data"]]
        trail = [w for place in result["trail"] for w in place]
        if any(len(place) != len(NAMES) for place in result["trail"]) or not trail:
            raise ValueError("a trail is made of three weights a place")
        numbers = [*(result[n] for n in NAMES), *(result["start"][n] for n in NAMES), *trail]
        if not all(type(v) in (int, float) and abs(v) <= MOST_DISTANCE for v in numbers):
            raise ValueError("a distance is not a number")
        if not all(type(v) in (int, float) and 0 <= v <= 1 for v in shares):
            raise ValueError("a share of the start is not from 0 to 1")
        if not isinstance(row["of"], dict) or not isinstance(row["key"], str):
            raise ValueError("no problem, or no key")
        if type(row["seed"]) is not int or not 0 <= row["seed"] < 2**63:
            raise ValueError("the seed is no whole number from 0")
        return {k: row[k] for k in ("key", "of", "mix_truth", "mix_data", "seed", "result")}
