"""What canvas views share: one message a frame, and the number of the frame that was drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Any

import anywidget
import numpy as np
from numpy.typing import ArrayLike, NDArray
from traitlets import Unicode

HERE = Path(__file__).parent
KINDS = {"f": "<f4", "u": "u1", "i": "<i4"}  # of the arrays a message may hold
SHARED = (HERE / "base.js").read_text()


def script(name: str) -> str:
    """Return the browser's half of a view: the shared part, then the file `name` beside this one.

    The file defines `paint(context, frame, size, colours)`, a pure function, and
    `export default { render }`; what both need stands in `base.js`.
    """
    return f"{SHARED}\n{(HERE / name).read_text()}"


class CanvasView(anywidget.AnyWidget):
    """A canvas that draws the newest frame it was sent.

    A frame is one message: plain values, and arrays as bytes. It is sent again to a browser that
    opens later. After drawing it the browser answers with its number, from `requestAnimationFrame`.

    Attributes:
        label: what a screen reader says of the picture.
        drawn: number of the newest frame that a browser has drawn.
    """

    label = Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Wait for a frame."""
        super().__init__(**traits)
        self.drawn = 0
        self._number = 0
        self._newest: tuple[dict[str, Any], list[bytes]] | None = None
        self._on_drawn: list[Callable[[int], None]] = []
        self.on_msg(self._answer)

    def show(self, arrays: Mapping[str, ArrayLike], **values: Any) -> int:  # noqa: ANN401 - JSON
        """Draw a frame: `arrays` of numbers (float32) or bytes (uint8), and plain `values`.

        Returns:
            The number of the frame.
        """
        rows, buffers = [], []
        for name, given in arrays.items():
            array = packed(given)
            kind = {"f": "f", "u": "u", "i": "i"}[array.dtype.kind]
            rows.append([name, kind, list(array.shape)])
            buffers.append(array.tobytes())
        self._number += 1
        content = {
            "kind": "frame", "frame": self._number, "sent": time() * 1000, "arrays": rows,
            "values": values,
        }  # fmt: skip
        self._newest = (content, buffers)
        self.send(content, buffers)
        return self._number

    @property
    def number(self) -> int:
        """Return the number of the newest frame."""
        return self._number

    @property
    def frame(self) -> dict[str, Any]:
        """Return arrays and values of the newest frame, as a browser reads them."""
        if self._newest is None:
            return {}
        content, buffers = self._newest
        rows = zip(content["arrays"], buffers, strict=True)
        arrays = {
            name: np.frombuffer(bytes_, KINDS[kind]).reshape(shape)
            for (name, kind, shape), bytes_ in rows
        }
        return {**content["values"], **arrays}

    def on_drawn(self, call: Callable[[int], None]) -> None:
        """Call `call(number)` after each frame that a browser has drawn."""
        self._on_drawn.append(call)

    def _answer(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "ready" and self._newest is not None:
            self.send(*self._newest)
        elif kind == "drawn" and isinstance(number := content.get("frame"), int):
            self.drawn = max(self.drawn, min(number, self._number))
            for call in self._on_drawn:
                call(self.drawn)


def packed(given: ArrayLike) -> NDArray[Any]:
    """Return an array as a message carries it: float32, uint8 or int32, in C order."""
    array = np.asarray(given)
    kind = "f" if array.dtype.kind == "f" else "u" if array.dtype == np.uint8 else "i"
    return np.ascontiguousarray(array, dtype=KINDS[kind])
