"""A recording as bytes: a line of JSON, then the low bytes of all arrays, then the high ones.

An array stands for all frames after it, until it is given again or dropped. Places are int16, in
units of 1 / `UNIT` of the plane's half size, shares and marks in those of 1 / `SHARE`; the map and
energies are uint8, as `plane.js` reads them. Of each array stands what is left of it when its last
state and its neighbours are taken away: small numbers, which gzip holds in a third of the bytes.
`player.js` reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.page.recording.frames import RecordedFrame

RATE = 16  # frames a second; arbitrary
# Of int16, so numbers below 16, and marks and classes exactly; a gap in a line is the least of
# them. A step is a sixth of a pixel on a plane of 700.
UNIT, MOST, GAP = 2048, 2**15 - 1, -(2**15)
SHARE = 256  # no eye sees more sizes of a point
PLACES = {"candidates": 2, "points": 2, "neurons": 4}  # so many columns are places, the rest shares
Ints = NDArray[Any]  # of int16 or uint8
Residual = tuple[int, tuple[int, ...], bool, Ints]


def packed_array(array: NDArray[Any], places: int | None = None) -> Ints:
    """Return an array as the recording holds it; what lies 16 half sizes away or farther, at 16.

    Args:
        array: uint8 stays as it is.
        places: the first columns, which are places; None for all.

    >>> packed_array(np.array([0.5, -17.0, np.nan])).tolist()
    [1024, -32767, -32768]
    """
    if array.dtype == np.uint8:
        return array
    held = np.round(UNIT * np.asarray(array, dtype=np.float64))
    if places is not None:
        held[:, places:] = UNIT // SHARE * np.round(SHARE * array[:, places:])
    return np.where(np.isnan(held), GAP, np.clip(held, -MOST, MOST)).astype(np.int16)


def recording(every: Iterable[RecordedFrame]) -> bytes:
    """Return the frames in their order as one gzip file; the same ones give the same bytes."""
    frames, low, high, known = [], list[bytes](), list[bytes](), dict[str, Ints]()
    for one in every:
        rows = []
        for name, array in one.arrays.items():
            held, before = packed_array(array, PLACES.get(name)), known.get(name)
            if before is not None and np.array_equal(before, held):
                continue
            known[name] = held
            stride, lags, after, left = _residual(held, before)
            kind = "u" if held.dtype == np.uint8 else "h"
            rows.append([name, kind, list(held.shape), stride, list(lags), int(after)])
            if kind == "h":
                left = ((left << 1) ^ (left >> 15)).view(np.uint16)  # small ones of either sign
                high.append((left >> 8).astype(np.uint8).tobytes())
            low.append(left.astype(np.uint8).tobytes())
        dropped = [name for name in known if name not in one.arrays]
        for name in dropped:
            del known[name]
        frames.append(
            {"scene": one.scene, "t": one.t, "arrays": rows, "drop": dropped, "values": one.values,
             "fold": [list(row) for row in one.fold], **one.words}
        )  # fmt: skip
    head = json.dumps({"rate": RATE, "unit": UNIT, "frames": frames}, ensure_ascii=False)
    return gzip.compress(f"{head}\n".encode() + b"".join(low + high), 9, mtime=0)


def _residual(held: Ints, before: Ints | None) -> Residual:
    """Return what is left of an array once it is predicted in the best of some ways.

    That is: the columns of how many rows follow one another as lines; the distances of the
    neighbours that were taken away; whether the array before was taken away first; and the rest.
    """
    stride, ways = 1, [(), (1,)]
    if held.dtype == np.uint8:
        ways = [(1,), (1, held.shape[-1])]  # of a picture the row above, too
    elif held.ndim > 1:
        stride = held.shape[1] * (3 if (held[2::3] == GAP).all() else 1)  # pieces of a path apart
    befores = [True, False] if before is not None and before.shape == held.shape else [False]
    found = []
    for after in befores:
        flat = (held - before if after else held).ravel()
        lines = np.concatenate([flat[k::stride] for k in range(stride)])
        for lags in ways:
            left = lines.copy()
            for lag in lags:
                left[lag:] -= left[:-lag].copy()
            found.append((stride, lags, after, left))
    return min(found, key=lambda one: _bits(one[-1]))


def _bits(left: Ints) -> float:
    """Return about how many bits these numbers take."""
    signed = left.view(np.int8) if left.dtype == np.uint8 else left
    return float(np.log2(1 + np.abs(signed.astype(np.float64))).sum())


def recording_text(every: Iterable[RecordedFrame]) -> str:
    """Return pictures as JSON holds them."""
    return base64.b64encode(recording(every)).decode()
