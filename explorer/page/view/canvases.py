"""The canvases that a hand works on: the plane, the triangle of starts; and the strip below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from traitlets import Bool, Float, Int, List, Tuple, Unicode

from explorer.engine.energy.landscape import Weights
from explorer.engine.settings import is_number
from explorer.page.view.base import CanvasView, script
from explorer.page.view.export import Export, of_chart, of_plane, of_triangle
from explorer.research.pictures.charts import strip_chart

PAD = Path(__file__).with_name("pad.js").read_text()  # defines `attachPad(model, el)`
RELIEF = Path(__file__).with_name("relief.js").read_text()  # a module of its own, sent when asked


class PlaneView(CanvasView):
    """Draws frames of the plane, and tells what hand and keys do there, on a pad over it.

    What a frame holds stands at the top of `plane.js`. Earlier places of candidates are kept in
    the browser, as trails. It tells of "events": a message with {"events": [{kind, x, y, gesture,
    shift}]} of the pad; x and y are shares of the surface, y upward.

    Attributes:
        present: whether points are drawn larger, to be seen from afar.
        active: whether it takes anything.
        echo: whether a dot shows at once, before the kernel answers.
        spacing: px between two events of one stroke.
        stops: points that Tab goes through; 0: arrows move a cursor instead.
        wheel: whether the wheel goes to what is in hand, and not to the page.
        path: whether the hand draws a path: its echo is joined, Enter ends it, Escape cancels it.
        ink: colour of the dots.
        cursor: shape of the mouse's cursor.
        label: what a screen reader says of the surface.
        tip: what shows when the mouse rests.
        hint: words in the middle.
        say: words that a screen reader says once.
    """

    _esm = f"{PAD}\n{script('plane.js', 'plane_view.js')}\nexport default {{ render }};"
    present = Bool(False).tag(sync=True)
    active = Bool(True).tag(sync=True)
    echo = Bool(True).tag(sync=True)
    spacing = Int(14).tag(sync=True)
    stops = Int(0).tag(sync=True)
    wheel = Bool(False).tag(sync=True)
    path = Bool(False).tag(sync=True)
    ink = Unicode("#000").tag(sync=True)
    cursor = Unicode("crosshair").tag(sync=True)
    label = Unicode("").tag(sync=True)
    tip = Unicode("").tag(sync=True)
    hint = Unicode("").tag(sync=True)
    say = Unicode("").tag(sync=True)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Tell what hand and keys do."""
        if kind == "events":
            self.tell(kind, content)
        else:
            super().hear(kind, content, buffers)

    def export(self) -> Export:
        """Return the places on screen, in units of the data, and their figure."""
        return of_plane(self.originals)


class TriangleView(CanvasView):
    """A triangle of truth, unseen points and noise, a handle between, and runs begun on it.

    It tells of "handle": the weights to which the hand puts the handle; of "rest": that a drag has
    come to rest there; of "ball": the number of the run whose mark it presses; of "tilt": whether
    it is tilted.

    A frame has these arrays, each of which may be left out: `fill` (side, side), row noise and
    column truth, see `research.pictures.shades`; `trails` (k, t, 3), places of k runs, the last one
    repeated where a run is shorter; `ends` (k,), what each end is: 0 the truth, 1 another
    explanation, 2 stuck, of pictures the set it is nearest to; 3 still running. What has ended is
    marked where it began. Of a census `starts` (b, 3) with their `basins` (b,) colour the places
    nearest to them, 0 grey; its ends are runs of one place with `tints` (k,), those colours, and
    `sizes` (k,), px; `chosen` is one.
    `map` (side, side) has the energies that a drag reads in passing.
    `sea` is the byte of `fill` up to which a start is as good as the truth: the level of
    the sea where it is tilted, see `relief.js`;
    `ages` (a, s, s) are as `fill` at other steps of training, with their `names`, and `present` is
    the number of that on screen.

    Attributes:
        handle: shares of truth, unseen points and noise where the handle is.
        enabled: whether it can be moved.
        small: whether names stand inside and there is no scale.
        taken: number of the newest place that was taken over; the next one is then sent.
        say: what a screen reader says of the newest place.
        energies: what its colours stand for, as numbers (side, side); None for none.
        dragged: whether the newest place is one that a drag passes.
        tilted: whether it stands as a relief.
        rows: a table of what is drawn, for screen readers, its heads first.
    """

    _esm = script("lattice.js", "triangle.js")
    handle = Tuple(Float(), Float(), Float(), default_value=(0.0, 0.0, 1.0)).tag(sync=True)
    enabled = Bool(True).tag(sync=True)
    small = Bool(False).tag(sync=True)
    taken = Int(0).tag(sync=True)
    say = Unicode("").tag(sync=True)
    rows = List(List(Unicode())).tag(sync=True)

    def __init__(
        self,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        **traits: Any,  # noqa: ANN401 - traits of the view
    ) -> None:
        """Wait for a frame and for the hand, whose moves are answered within `together()`."""
        super().__init__(**traits)
        self._together = together
        self.energies: ArrayLike | None = None
        self.dragged = self.tilted = False

    def export(self) -> Export:
        """Return energies and runs by their shares, and their figure."""
        return of_triangle(self.originals, self.energies)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Tell what a hand does."""
        if kind == "handle" and self.enabled:
            self.dragged = content.get("dragged") is True
            with self._together():
                self._move(content.get("weights"), content.get("number"))
        elif kind == "rest":
            with self._together():
                self.tell("rest")
        elif kind == "ball" and isinstance(k := content.get("index"), int):
            self.tell("ball", k)
        elif kind == "relief":
            self.send({"kind": "relief", "source": RELIEF})
        elif kind == "tilt":
            self.tilted = content.get("on") is True
            self.tell("tilt", self.tilted)
        else:
            super().hear(kind, content, buffers)

    def _move(self, given: Any, number: Any) -> None:  # noqa: ANN401 - from a browser
        weights = weights_in(given)
        if weights is not None:
            self.tell("handle", weights)
        self.taken = number if isinstance(number, int) else self.taken + 1


def weights_in(given: Any) -> Weights | None:  # noqa: ANN401 - from a browser
    """Return three shares that sum to 1, from a message; None for anything else."""
    if not isinstance(given, list) or len(given) != 3 or not all(map(is_number, given)):
        return None
    kept = [min(max(float(v), 0.0), 1.0) for v in given]
    total = sum(kept)
    if total <= 0:
        return None
    truth, unseen = kept[0] / total, kept[1] / total
    return truth, unseen, max(0.0, 1 - truth - unseen)


class BandView(CanvasView):
    """Draws the first layer's weights as needles; what a frame holds stands in `band.js`.

    Values are `title`, what stands above; `left`, the share that is unexplained, in words;
    `why`, a sentence on what is not drawn. A needle that is hovered, or chosen by the keys, lights
    its line on the plane of the same page, and a line its needle.

    Attributes:
        flat: whether the points lie on a line.
    """

    _esm = script("band.js")
    flat = Bool(False).tag(sync=True)


class StripView(CanvasView):
    """Draws energies over a path from place to place; what a frame holds stands in `strip.js`."""

    _esm = script("lattice.js", "strip.js")

    def export(self) -> Export:
        """Return the energies along the path, and their figure."""
        return of_chart(strip_chart(self.originals, self.label))
