"""Finished cells of a grid outside the kernel of its page: in a file, and as a download.

A line of such a file is a row {"key", "of", "mix_truth", "mix_data", "seed", "result"}; `of` says
which problem it belongs to: digests of the weights, the points and the held-out points, the attack
with its settings, and our version. Equal problems have equal rows, whoever computed them. So a file
is known by the digest of `of`, and a row of another problem is refused with what differs.

A page keeps them on disk only where its user asks for it (`folder`). All kernels of a server run as
one user, and no visitor may find or delete the work of another, nor read where this machine keeps
its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from explorer.engine.energy.starts import NAMES, places_of, start_of
from explorer.engine.files import FileError, safe_name
from explorer.engine.roster import by_key
from explorer.engine.store import own_version
from explorer.engine.store.codec import before
from explorer.research.grid import Grid, own_labels
from explorer.research.grid.landscape import Key, Runs
from explorer.research.records import Row, RowFile, RowKind, csv_of, plain, rows_in, text_of

KEEP = "MARGIN_EXPLORER_KEEP"  # "1": kept on disk, for everybody who opens a page on this machine
MOST_FILES = 50  # arbitrary: problems kept; a file of 21 cells has about 60 kB
UNKEPT = (
    "Finished cells are lost with this page: download them now and then, and take them up later."
)
KEPT = (
    "Finished cells are kept on the machine of this page: whoever opens a page there with the same "
    "weights sees them."
)
WHAT = {
    "attack": "another attack", "settings": "other settings", "weights": "other weights",
    "points": "other points", "heldout": "other held-out points", "version": "another version",
}  # fmt: skip

MOST_DISTANCE = 1e100  # arbitrary: sums of such numbers are finite still


def cell_of(row: Row) -> Row:
    """Return a row as that of a finished cell.

    ValueError, KeyError or TypeError for anything else.
    """
    result = row["result"]
    shares = [row["mix_truth"], row["mix_data"]]
    trail = [w for place in result["trail"] for w in place]
    if any(len(place) != len(NAMES) for place in result["trail"]) or not trail:
        raise ValueError("a trail is made of three weights a place")
    numbers = [*(result[n] for n in NAMES), *(result["start"][n] for n in NAMES), *trail]
    numbers += [result["energy"]] if "energy" in result else []
    numbers += _pair(result, "recovered")
    if not all(type(v) in (int, float) and abs(v) <= MOST_DISTANCE for v in numbers):
        raise ValueError("a distance is not a number")
    if not all(type(v) in (int, float) and 0 <= v <= 1 for v in shares):
        raise ValueError("a share of the start is not from 0 to 1")
    if type(row["seed"]) is not int or not 0 <= row["seed"] < 2**63:
        raise ValueError("the seed is no whole number from 0")
    return {k: row[k] for k in CELLS.needed}


def _pair(result: Row, name: str) -> list[float]:
    """Return two numbers of this name, or none. ValueError for anything else."""
    given = result.get(name, [])
    if not isinstance(given, list) or len(given) not in (0, 2):
        raise ValueError(f"{name} is not two numbers")
    return given


CELLS = RowKind("grid of starts", ("key", "of", "mix_truth", "mix_data", "seed", "result"), cell_of)


def table_of(rows: Iterable[Row]) -> str:
    """Return cells as a table, without their settings and trajectories."""
    plain_rows = []
    for row in rows:
        kept = {k: v for k, v in row["result"].items() if k != "trail"}
        plain_rows.append({**row, "result": kept, "of": {**row["of"], "settings": ""}})
    return csv_of(plain_rows)


def folder() -> Path | None:
    """Return where cells are kept on this machine; None if they are not."""
    if os.environ.get(KEEP, "0") in ("", "0"):
        return None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home, as in some containers
        return None
    usual = {"darwin": home / "Library" / "Caches", "win32": home / "AppData" / "Local"}
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    base = Path(named) if named else usual.get(sys.platform, home / ".cache")
    return base / "margin-explorer" / "grid"


def identity(of: Grid) -> Row:
    """Return what decides whether two problems have the same rows, without the seed of the noise.

    The side of the grid is left out: a cell is one run, on whichever grid it lies.
    """
    if not of.ready or of.truth is None or of.heldout is None:
        raise ValueError("No weights to attack: train a network first.")
    weights = "its own"  # made of points, settings and seed
    if by_key(of.attack).own is None and of.target is not None:
        net = of.target.net
        weights = _digest(net.theta, json.dumps((net.d, *net.widths, net.outputs)))
    own = () if own_labels(of.truth, of.config.m) is None else ("own labels",)
    seen = () if of.pictures is None else (json.dumps(of.pictures.shape), of.pictures.mean)
    made: Row = plain({
        "attack": of.attack, "weights": weights,
        "settings": asdict(of.config) | ({"drawn": True} if of.drawn else {}),
        "points": _digest(of.truth.x, of.truth.y, *seen, *own),
        "heldout": _digest(of.heldout.x, of.heldout.y), "version": own_version(),
    })  # fmt: skip
    return made


def file_of(of: Row, where: Path) -> RowFile:
    """Return the file of a problem, with what it holds.

    The oldest files go when there are too many.

    Raises:
        ValueError: where a line of it is damaged.
        OSError: where it cannot be read.
    """
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = sorted(where.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    for old in files[: -MOST_FILES + 1 or None] if len(files) >= MOST_FILES else ():
        old.unlink(missing_ok=True)
    return RowFile(where / f"{_digest(json.dumps(of, sort_keys=True))}.jsonl", CELLS)


def row_of(found: Runs, key: Key, of: Row) -> Row:
    """Return a finished cell as a line; its seed is that of the noise, whatever the page's."""
    k, a, b = key
    seed = found.of.seed + k
    result = plain(found.rows[key])
    return {
        "key": f"{seed} {a:.9g} {b:.9g}", "of": of, "mix_truth": a, "mix_data": b, "seed": seed,
        "result": result,
    }  # fmt: skip


def take(found: Runs, rows: Iterable[Mapping[str, Any]], of: Row) -> tuple[int, int]:
    """Take rows up as finished runs. -> how many were new, how many have an earlier seed.

    They may lie on this lattice or beside it.

    Raises:
        ValueError: where a row is of another problem; nothing is taken then.
    """
    lie = {(round(a, 9), round(b, 9)): (a, b) for a, b in places_of(found.of.side)}
    new: dict[Key, Row] = {}
    aside = 0
    for row in rows:
        other = difference(of, row["of"])
        if other:
            raise ValueError(other)
        mix = start_of(row["mix_truth"], row["mix_data"])
        a, b = lie.get((round(mix[0], 9), round(mix[1], 9)), mix)
        k = row["seed"] - found.of.seed
        if k < 0:
            aside += 1
        elif (k, a, b) not in found.rows:
            new[k, a, b] = row["result"]
    found.rows |= new
    return len(new), aside


def difference(mine: Row, theirs: Mapping[str, Any]) -> str:
    """Return how the two problems differ, or an empty string."""
    for name, words in WHAT.items():
        here, there = mine[name], theirs.get(name)
        if name == "settings" and isinstance(there, Mapping):
            there = {**plain(before(by_key(mine["attack"]).config)), **there}
        if here == there:
            continue
        if name == "settings" and isinstance(there, Mapping):
            field = next(k for k in {**here, **there} if here.get(k) != there.get(k))
            there, here = (
                f"{safe_name(field)}={safe_name(there.get(field))}",
                f"{field}={here.get(field)}",
            )
        compared = (
            f" ({safe_name(there)}; here {safe_name(here)})"
            if name in ("attack", "settings", "version")
            else ""
        )
        return f"its cells are of {words}{compared}."
    return ""


class CellStore:
    """The rows of one problem: on the page, in a file where one is kept, and to take along."""

    def __init__(self, found: Runs) -> None:
        """Take up what the user's cache folder has of this problem, where there is such a folder.

        Whatever is wrong with the file is said in `words`; the grid then runs without it.
        """
        self.found, self.words = found, ""
        self.file: RowFile | None = None
        self.of = identity(found.of) if found.of.ready else None
        where = folder()
        if self.of is None or where is None:
            self.words = UNKEPT if self.of is not None else ""
            return
        try:
            file = file_of(self.of, where)
            mine = [row for row in file.rows.values() if row["of"] == self.of]
            taken = take(found, mine, self.of)[0]
        except OSError as error:
            self.words = f"Nothing is kept on disk: {error.strerror}."
            return
        except ValueError as error:  # it names the file, without its folder
            self.words = f"Nothing is kept on disk: {error}"
            return
        self.file = file
        before = f"{taken} cells were there from before. " if taken else ""
        self.words = f"{before}{KEPT}"

    def add(self, key: Key) -> None:
        """Keep a finished cell on disk; where that fails, it is said once and tried no more."""
        if self.file is None or self.of is None:
            return
        row = row_of(self.found, key, self.of)
        try:
            if row["key"] not in self.file.rows:
                self.file.append(row)
        except OSError as error:
            self.file, self.words = None, f"Nothing is kept on disk any more: {error.strerror}."

    def texts(self) -> tuple[str, str]:
        """Return all cells as lines of JSON, and as a table."""
        of = self.of
        rows = (
            [] if of is None else [row_of(self.found, key, of) for key in sorted(self.found.rows)]
        )
        return text_of(rows), table_of(rows)

    def open(self, name: str, content: bytes) -> str:
        """Take up the cells of a file. -> what came of it, in a sentence.

        Raises:
            ValueError: where the file belongs to another problem; nothing is taken then.
        """
        if self.of is None:
            raise ValueError(
                f"{safe_name(name)}: train the network of these cells first, or open its run."
            )
        try:
            taken, aside = take(self.found, rows_in(content, CELLS), self.of)
        except ValueError as error:
            raise FileError(f"{safe_name(name)}: {error} What was found here stays.") from error
        for key in self.found.rows:
            self.add(key)
        left = f" {aside} have an earlier seed than this page and were left aside." if aside else ""
        return f"{taken} cells of {safe_name(name)} taken up.{left}"

    def forget(self) -> None:
        """Delete the file from the disk."""
        if self.file is not None:
            self.file.path.unlink(missing_ok=True)
            self.file = None


def _digest(*parts: Tensor | str) -> str:
    made = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            array = part.detach().cpu().contiguous().numpy()
            made.update(f"{array.dtype.str}{array.shape}".encode())
            made.update(array.tobytes())
        else:
            made.update(part.encode())
    return made.hexdigest()[:24]
