"""Rows on disk, one line of JSON each: appended as they come, whole after any kill."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LEFT_OUT = ("x", "y", "lam", "chance", "matched")  # of a table: what is not one figure


class RowFile:
    """A file of finished rows, each with its `key`. A last line that was torn off is dropped."""

    def __init__(self, path: Path) -> None:
        """Read what is there.

        Raises:
            ValueError: where a line other than the last is not a row; the file is left alone.
        """
        self.path, self.rows = path, dict[str, dict[str, Any]]()
        whole = 0
        text = path.read_bytes() if path.exists() else b""
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                self.rows[row["key"]] = row
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines):
                    raise ValueError(
                        f"line {number} of {path} is not a row of a sweep. Name another file, or "
                        "mend the line."
                    ) from error
                break
            if not line.endswith(b"\n"):
                del self.rows[row["key"]]  # the line may be cut at a place where it still parses
                break
            whole += len(line)
        if whole < len(text):
            with path.open("r+b") as file:
                file.truncate(whole)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row, and hand it to the system at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(row, allow_nan=False, separators=(",", ":"))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.rows[str(row["key"])] = dict(row)


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
