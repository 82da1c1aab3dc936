"""Finished cells of a grid as text: lines of JSON that are read again, and a table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from typing import Any

from explorer.engine.lambda_grid import NAMES
from explorer.rowfile import flat

MOST_BYTES = 64 * 2**20  # arbitrary: that of `store`

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
        ValueError: for anything else than lines of cells.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"it has {len(content) / 2**20:.0f} MB; at most {MOST_BYTES // 2**20} MB are read."
        )
    lines = content.splitlines(keepends=True)
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_checked(json.loads(line)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if number == len(lines) > 1 and not line.endswith(b"\n"):
                break
            raise ValueError(
                f"line {number} is no cell of a grid. Expected lines of JSON that this page, of a "
                "grid of starts, once offered."
            ) from error
    if not rows:
        raise ValueError("it holds no cell.")
    return rows


def _checked(row: Any) -> Row:  # noqa: ANN401 - from a file
    result = row["result"]
    numbers = [row["mix_truth"], row["mix_data"], *(result[n] for n in NAMES)]
    numbers += [result["start"][n] for n in NAMES]
    trail = [w for place in result["trail"] for w in place]
    if any(len(place) != len(NAMES) for place in result["trail"]) or not trail:
        raise ValueError("a trail is made of three weights a place")
    if not all(isinstance(v, int | float) and math.isfinite(v) for v in (*numbers, *trail)):
        raise ValueError("a distance is not a number")
    if not isinstance(row["of"], dict) or not isinstance(row["seed"], int):
        raise ValueError("no problem, or no seed")
    return {k: row[k] for k in ("key", "of", "mix_truth", "mix_data", "seed", "result")}
