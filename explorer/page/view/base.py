"""What canvas views share: one message a frame, and the number of the frame that was drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from traitlets import Unicode

from explorer.engine.settings import is_number
from explorer.page.view.bundle import View
from explorer.page.view.export import TYPES, Export, Kind
from explorer.page.words import glossary
from explorer.page.words.failures import save_failure
from explorer.research.pictures.painting import Frame

HERE = Path(__file__).parent
KINDS = {"f": "<f4", "u": "u1", "i": "<i4"}  # of the arrays a message may hold
# What all parts of a page are made with: elements, words that are explained, boxes over the page.
POPUP = "\n".join(
    [glossary.script(), *((HERE / name).read_text() for name in ("dom.js", "popup.js"))]
)
SHARED = "\n".join([POPUP, *((HERE / name).read_text() for name in ("base.js", "save.js"))])


def script(*names: str) -> str:
    """Return the browser's half of a view: the shared part, then these files beside this one.

    The last defines `paint(context, frame, size, colours)`, a pure function, and
    `export default { render }`; what both need stands in `base.js`.
    """
    return "\n".join([SHARED, *((HERE / name).read_text() for name in names)])


class CanvasView(View):
    """A canvas that draws the newest frame it was sent.

    A frame is one message: plain values, and arrays as bytes. An array that is the very object of
    the frame before is not sent again, so it must not change in between. A browser that opens later
    gets the whole frame. After drawing it the browser answers with its number, from
    `requestAnimationFrame`, unless its value `unasked` is true.

    It tells of "drawn": the number of a frame that a browser has drawn.

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
        # Arrays of the newest frame by name, as given and as sent.
        self._last: dict[str, tuple[ArrayLike, NDArray[Any]]] = {}
        self._values: dict[str, Any] = {}

    def show(self, arrays: Mapping[str, ArrayLike], **values: Any) -> int:  # noqa: ANN401 - JSON
        """Draw a frame: `arrays` of numbers (float32) or bytes (uint8), and plain `values`.

        Returns:
            The number of the frame.
        """
        whole = {name: (given, packed_array(given)) for name, given in arrays.items()}
        same = {
            name
            for name, (given, _) in whole.items()
            if name in self._last and given is self._last[name][0]
        }
        self._number, self._last, self._values = self._number + 1, whole, values
        self._dispatch(same)
        return self._number

    def _dispatch(self, same: Collection[str] = ()) -> None:
        """Send the newest frame, without the bytes of arrays that the browser has already."""
        rows, buffers = [], []
        for name, (_, array) in self._last.items():
            kind = "=" if name in same else array.dtype.kind
            rows.append([name, kind, list(array.shape)])
            if name not in same:
                buffers.append(array.tobytes())
        content = {
            "kind": "frame", "frame": self._number, "sent": time() * 1000, "arrays": rows,
            "values": self._values,
        }  # fmt: skip
        self.send(content, buffers)

    def repeat(self) -> None:
        """Send traits and the whole newest frame once more."""
        super().repeat()
        if self._number:
            self._dispatch()

    @property
    def number(self) -> int:
        """Return the number of the newest frame."""
        return self._number

    @property
    def frame(self) -> dict[str, Any]:
        """Return arrays and values of the newest frame, as a browser reads them."""
        return {**self._values, **{name: array for name, (_, array) in self._last.items()}}

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Draw once more, note what was drawn, or save."""
        if kind == "ready" and self._number:
            self._dispatch()
        elif kind == "drawn" and isinstance(number := content.get("frame"), int):
            self.drawn = max(self.drawn, min(number, self._number))
            self.tell("drawn", self.drawn)
        elif kind == "save" and (wanted := content.get("as")) in TYPES:
            self._save(wanted, content.get("view"))

    @property
    def originals(self) -> Frame:
        """Return arrays and values of the newest frame as they were given."""
        return {**self._values, **{name: given for name, (given, _) in self._last.items()}}

    def export(self) -> Export:
        """Return what can be taken away of the picture on screen."""
        raise NotImplementedError

    def _save(self, wanted: Kind, view: Any) -> None:  # noqa: ANN401 - the browser's own number
        """Hand over a file of the picture; where that fails, say why."""
        told = {"view": view if is_number(view) else 0}
        try:
            made = self.export()
            content = made.as_bytes(wanted)
        except Exception as error:  # would vanish in the kernel's log
            self.send({"kind": "unsaved", "words": save_failure(error), **told})
            return
        name = made.file_name(wanted)
        self.send({"kind": "file", "name": name, "type": TYPES[wanted], **told}, [content])


def packed_array(given: ArrayLike) -> NDArray[Any]:
    """Return an array as a message carries it: float32, uint8 or int32, in C order."""
    array = np.asarray(given)
    kind = "f" if array.dtype.kind == "f" else "u" if array.dtype == np.uint8 else "i"
    return np.ascontiguousarray(array, dtype=KINDS[kind])
