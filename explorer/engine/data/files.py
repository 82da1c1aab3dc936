"""Datasets as CSV and NPZ: labels y of two classes, or class numbers 1, 2, 3, ...

Nothing is ever unpickled, and nothing large is read by mistake.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from explorer.engine.classes import MAX_CLASSES, class_numbers, from_numbers
from explorer.engine.data.dataset import Dataset
from explorer.engine.data.presets import MAX_POINTS
from explorer.engine.files import FileError, is_archive, members, reading, safe_name

CLASS = "class"  # the column of class numbers; y is that of two labels
MAX_BYTES = 8 * 2**20  # arbitrary: 200 points of 1000 coordinates as text are about 4 MB
MAX_COORDINATES = 10_000  # arbitrary: an image of 100 by 100
LARGEST = 1e150  # arbitrary: the squares of distances are still numbers
TOO_LARGE = f"be within {LARGEST:g} of 0; take another unit of length"
NPZ = "Write it with numpy.savez(file, x=x, y=y)."


class DataError(FileError):
    """A file that is not a dataset; the message says where, what was got and what to do.

    Example:
        >>> from explorer import read_csv
        >>> read_csv("no table")
        Traceback (most recent call last):
            ...
        explorer.engine.data.files.DataError: line 1: expected the header x1,y or x1,x2,y, ...
    """


def write_csv(dataset: Dataset) -> str:
    """Return a dataset as CSV text.

    Args:
        dataset: the points.

    Returns:
        A header x1, ..., xd, y and one line per point; every number reads back exactly. With more
        than two classes the last column is `class` and counts from 1.

    Example:
        >>> from explorer import empty, write_csv
        >>> print(write_csv(empty(2).with_point([0.5, 0.0], -1)), end="")
        x1,x2,y
        0.5,0.0,-1
    """
    several = dataset.outputs > 1
    head = ",".join([*(f"x{i}" for i in range(1, dataset.d + 1)), CLASS if several else "y"])
    labels = class_numbers(dataset.y) if several else dataset.y
    rows = zip(dataset.x.tolist(), labels.tolist(), strict=True)
    return "\n".join([head, *(",".join([*map(repr, x), str(int(y))]) for x, y in rows), ""])


@reading("the table", "Write it again as CSV.", DataError)
def read_csv(text: str | bytes) -> Dataset:
    """Read a dataset from CSV, as `write_csv` writes it.

    Args:
        text: the content of a file, as text or as bytes in UTF-8. Labels are -1 and 1, or 0 and 1,
            in the column `y`, or class numbers from 1 in the column `class`.

    Returns:
        The set, in float64 and without a source; 0 and 1 are taken as -1 and +1.

    Raises:
        DataError: where the text is no such table, or too large; it is a ValueError.

    Example:
        >>> from explorer import preset, read_csv, write_csv
        >>> data = preset("moons", n=10)
        >>> bool((read_csv(write_csv(data)).x == data.x).all())
        True
    """
    if isinstance(text, bytes):
        _size(len(text))
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError("not a text file; expected CSV in UTF-8. Export as CSV.") from error
    _size(len(text))
    reader = csv.reader(io.StringIO(text))
    try:
        filled = ((reader.line_num, row) for row in reader if any(row))
        rows = list(islice(filled, MAX_POINTS + 2))  # a header and one point too many
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: not CSV ({error}); write it again") from error
    if not rows:
        raise DataError("the file is empty; expected a header x1,x2,y and one line per point")
    head = [cell.strip().lower() for cell in rows[0][1]]
    names = [f"x{i}" for i in range(1, len(head))]
    if len(head) > MAX_COORDINATES:
        raise DataError(f"{len(head)} columns; at most {MAX_COORDINATES} are read. Leave some out.")
    if len(head) < 2 or head not in ([*names, "y"], [*names, CLASS]):
        got = ",".join(rows[0][1])[:60]
        raise DataError(
            f"line {rows[0][0]}: expected the header x1,y or x1,x2,y, or {CLASS} in place of y for "
            f"class numbers; got {got!r}"
        )
    _count(len(rows) - 1, " or more")
    table = np.array([_numbers(line, row, head) for line, row in rows[1:]], dtype=np.float64)
    lines = [line for line, _ in rows[1:]]
    return _dataset(table[:, :-1], table[:, -1], lines, several=head[-1] == CLASS)


@dataclass(frozen=True, eq=False)
class Table:
    """Points with classes of any kind, as a file holds them.

    Attributes:
        x: points (n, d), float64.
        y: their classes (n,): numbers or words.
        names: of the coordinates.
    """

    x: np.ndarray
    y: Sequence[float | str]
    names: tuple[str, ...]


LABELS = ("y", "class", "label", "target")  # columns that are taken for the classes
MARKS = (",", ";", "\t")  # between the values of a table


def read_table(data: bytes, label: str | None = None) -> Table:
    """Read points with classes of any kind from a CSV with a header, or from an NPZ archive.

    Commas, semicolons or tabs stand between the values of a table.

    Args:
        data: the content of the file.
        label: the column of the classes; None takes one of `LABELS`, or the last. Of an archive
            the array of the classes.

    Returns:
        The table.

    Raises:
        DataError: for a file that is no such table; the message says where.
    """
    _size(len(data))
    if is_archive(data):
        return _table_of_arrays(data, label)
    with reading("the table", "Write it as UTF-8 text with commas.", DataError):
        text = data.decode("utf-8-sig")
        mark = max(MARKS, key=text.split("\n", 1)[0].count)
        lines = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if any(row)]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise DataError("expected a header, and one line per point: coordinates and a class")
    head = [name.strip() for name in lines[0]]
    if all(isinstance(class_of(name), float) for name in head):
        raise DataError("the first line holds numbers; write the names of the columns above it")
    names, at = _columns(head, label)
    x: list[list[float]] = []
    y: list[float | str] = []
    for number, row in enumerate(lines[1:], 2):
        if len(row) != len(head):
            raise DataError(f"line {number}: expected {len(head)} values; got {len(row)}")
        cells = [cell for i, cell in enumerate(row) if i != at]
        if mark == ";":  # which stands where commas stand in numbers
            cells = [cell.replace(",", ".") for cell in cells]
        x.append(_numbers(number, cells, list(names)))
        y.append(class_of(row[at].strip()))
    if any(isinstance(value, str) for value in y):
        y = [row[at].strip() for row in lines[1:]]
    return Table(np.array(x, dtype=np.float64), y, names)


def _columns(head: list[str], label: str | None) -> tuple[tuple[str, ...], int]:
    """Return the names of the coordinates, and the column of the classes."""
    if label is not None and label not in head:
        raise DataError(f"no column {safe_name(label)}; there are {safe_name(head[:12])}")
    usual = next((name for name in head if name.lower() in LABELS), head[-1])
    at = head.index(label or usual)
    return tuple(name for i, name in enumerate(head) if i != at), at


def _table_of_arrays(data: bytes, label: str | None) -> Table:
    """Return points and classes of an archive: x or X (n, ...), and `label`, y or class (n,)."""
    with reading("the archive", NPZ, DataError):
        found = members(data, MAX_BYTES, DataError, NPZ)
    held = [name.removesuffix(".npy") for name in found]
    wanted = ("x",), LABELS if label is None else (label.lower(),)
    names = [next((k for k in held if k.lower() in of), None) for of in wanted]
    if None in names:
        raise DataError(f"expected arrays x and {label or 'y'}; there are {safe_name(held[:12])}")
    x, y = (
        _array(found[f"{k}.npy"], str(k), kinds)
        for k, kinds in zip(names, ("fiu", "fiubU"), strict=True)
    )
    if not x.ndim or y.shape[:1] != x.shape[:1] or y.size != len(y):
        raise DataError(f"expected x (n, d) and y (n,); got {x.shape} and {y.shape}")
    points = x.astype(np.float64).reshape(len(x), math.prod(x.shape[1:]))
    return Table(points, y.ravel().tolist(), ())


def class_of(cell: str) -> float | str:
    """Return a class as a number if the cell holds one."""
    try:
        return number_of(cell)
    except ValueError:
        return cell


def number_of(cell: str) -> float:
    """Return a number in plain digits; DataError for 1_0 and other scripts, which Python takes."""
    if "_" in cell or not cell.strip().isascii():
        raise DataError(f"no number in plain digits: {cell[:40]!r}")
    return float(cell)


def write_npz(dataset: Dataset) -> bytes:
    """Return arrays x (n, d) and y (n,), or `class` in place of y, in one NumPy archive."""
    out = io.BytesIO()
    several = dataset.outputs > 1
    labels = class_numbers(dataset.y) if several else dataset.y
    arrays: dict[str, Any] = {CLASS if several else "y": labels.cpu().numpy()}
    np.savez(out, x=dataset.x.cpu().numpy(), **arrays)
    return out.getvalue()


@reading("the archive", NPZ, DataError)
def read_npz(data: bytes) -> Dataset:
    """Return arrays x (n, d) and y (n,) of an archive; labels as in `read_csv`. Never unpickles."""
    _size(len(data))
    if not is_archive(data):
        raise DataError(f"not an NPZ file with arrays x and y. {NPZ}")
    found = members(data, MAX_BYTES, DataError, NPZ)
    several = f"{CLASS}.npy" in found
    label = f"{CLASS if several else 'y'}.npy"
    if not {"x.npy", label} <= set(found):
        raise DataError(f"not an NPZ file with arrays x and y. {NPZ}")
    x, y = (_array(found[name], name) for name in ("x.npy", label))
    if x.ndim != 2 or x.shape[1] < 1 or y.shape != x.shape[:1]:
        raise DataError(f"expected x (n, d) and y (n,); got {x.shape} and {y.shape}")
    _count(x.shape[0])
    rows = list(range(x.shape[0]))
    return _dataset(x.astype(np.float64), y.astype(np.float64), rows, "row", several)


def _array(content: bytes, name: str, kinds: str = "fiu") -> np.ndarray:
    raw = io.BytesIO(content)
    with reading(f"array {name}", NPZ, DataError):
        version = np.lib.format.read_magic(raw)
        header = np.lib.format.read_array_header_2_0
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0
        shape, _, dtype = header(raw)
    if dtype.kind not in kinds:
        raise DataError(f"array {name}: expected real numbers; got {dtype}")
    # Checked before reading: a header may promise an array far larger than the file.
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content) - raw.tell():
        raise DataError(f"array {name} is damaged: its header says {shape}. {NPZ}")
    raw.seek(0)
    array: np.ndarray = np.lib.format.read_array(raw, allow_pickle=False)
    most = np.float64(LARGEST)  # as float64, so that it is a number beside floats of any width
    if array.dtype.kind == "f" and bool(((abs(array) > most) & np.isfinite(array)).any()):
        raise DataError(f"array {name}: its numbers must {TOO_LARGE}")
    return array


def _numbers(line: int, row: list[str], head: list[str]) -> list[float]:
    if len(row) != len(head):
        raise DataError(
            f"line {line}: expected {len(head)} values ({','.join(head)}); got {len(row)}"
        )
    values = []
    for name, cell in zip(head, row, strict=True):
        try:
            values.append(number_of(cell))
        except ValueError as error:
            raise DataError(
                f"line {line}: {name} must be a number with a decimal point; got {cell[:40]!r}"
            ) from error
        if LARGEST < abs(values[-1]) < math.inf:
            raise DataError(f"line {line}: {name} must {TOO_LARGE}; got {cell[:40]}")
    return values


def _dataset(
    x: np.ndarray, y: np.ndarray, places: list[int], unit: str = "line", several: bool = False
) -> Dataset:
    for place, point in zip(places, x, strict=True):
        if not np.isfinite(point).all():
            raise DataError(
                f"{unit} {place}: nan or inf in {safe_name(point[:9].tolist())}; remove that point"
            )
    points = torch.from_numpy(np.ascontiguousarray(x))
    if several:
        for place, label in zip(places, y, strict=True):
            if label not in range(1, MAX_CLASSES + 1):
                raise DataError(
                    f"{unit} {place}: {CLASS} must be a number from 1 to {MAX_CLASSES}; "
                    f"got {label:g}"
                )
        return Dataset(points, from_numbers(torch.from_numpy(y)))
    zero_one = bool(np.isin(y, (0.0, 1.0)).all())
    for place, label in zip(places, y, strict=True):
        if label not in ((0.0, 1.0) if zero_one else (-1.0, 1.0)):
            raise DataError(
                f"{unit} {place}: label y must be -1 or 1 (or 0 and 1 throughout); got {label:g}"
            )
    labels = np.where(y > 0, 1.0, -1.0)
    return Dataset(points, torch.from_numpy(labels))


def _count(n: int, more: str = "") -> None:
    if n == 0:
        raise DataError("the file holds no points; expected at least one")
    if n > MAX_POINTS:
        raise DataError(f"{n} points{more}; at most {MAX_POINTS} are supported. Take a subset.")


def _size(size: int) -> None:
    if size > MAX_BYTES:
        raise DataError(
            f"{size / 2**20:.1f} MiB; at most {MAX_BYTES // 2**20} MiB are read. Take a subset."
        )
