"""Finished cells of a grid as text: lines of JSON that are read again, and a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from explorer.engine.files import MAX_BYTES, FileError, check_size, reading
from explorer.engine.lambda_grid import NAMES
from explorer.rowfile import flat

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
