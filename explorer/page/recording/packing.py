"""A recording as bytes: a line of JSON, then the numbers of all arrays, one after the other.

An array stands for all frames after it, until it is given again or dropped. Places are int16, in
units of 1 / `UNIT` of the plane's half size; the map and energies are uint8, as `plane.js` reads
them. `player.js` reads it.
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
# Of int16, so numbers below 8, and marks and classes exactly; a gap in a line is the least of them.
UNIT, MOST, GAP = 4096, 2**15 - 1, -(2**15)


def packed_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as the recording holds it; what lies 8 half sizes away or farther, at 8.

    >>> packed_array(np.array([0.5, -9.0, np.nan])).tolist()
    [2048, -32767, -32768]
    """
    if array.dtype == np.uint8:
        return array
    held = np.clip(np.round(UNIT * np.asarray(array, dtype=np.float64)), -MOST, MOST)
    return np.where(np.isnan(held), GAP, held).astype("<i2")


def recording(every: Iterable[RecordedFrame], rate: int = RATE) -> bytes:
    """Return pictures as one gzip file; the same pictures give the same bytes.

    Args:
        every: the frames, in their order.
        rate: how many are shown in a second.
    """
    frames, body, known = [], [], dict[str, tuple[Any, bytes]]()
    for one in every:
        rows = []
        for name, array in one.arrays.items():
            held = packed_array(array)
            data = held.tobytes()
            if known.get(name) != (held.shape, data):
                known[name] = (held.shape, data)
                rows.append([name, "u" if held.dtype == np.uint8 else "h", list(held.shape)])
                body.append(data)
        dropped = [name for name in known if name not in one.arrays]
        for name in dropped:
            del known[name]
        frames.append(
            {"scene": one.scene, "t": one.t, "arrays": rows, "drop": dropped, "values": one.values,
             "fold": [list(row) for row in one.fold], **one.words}
        )  # fmt: skip
    head = json.dumps({"rate": rate, "unit": UNIT, "frames": frames}, ensure_ascii=False)
    return gzip.compress(f"{head}\n".encode() + b"".join(body), 9, mtime=0)


def recording_text(every: Iterable[RecordedFrame]) -> str:
    """Return pictures as JSON holds them."""
    return base64.b64encode(recording(every)).decode()
