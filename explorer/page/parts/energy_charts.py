"""How an energy is drawn: a map with its colour bar, or a curve."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Protocol

import bqplot as bq
import ipywidgets as w
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from explorer.engine.energy.questions import STANDARD, Answers, Picture, Question
from explorer.engine.progress import Progress
from explorer.page.job import Job, JobState, page_waits
from explorer.page.shades import SHADING, span_of
from explorer.style import CURVES, INK, PLOT_MARGIN

Array = NDArray[np.float64]
DECADES = 4.0  # of the colours below the highest value; arbitrary
FLOOR = 1e-12  # of ||theta||^2: rounding
NOWHERE = np.zeros(2)
MOST_LOWEST = 0.02  # of the places, for a mark on the lowest; arbitrary
DARK = "#222222"  # of rings on bright places; white on the others


@cache
def _palette() -> bytes:
    """256 colours through the stops of SHADING, low values brightest."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in SHADING[::-1]])
    at = np.linspace(0, len(stops) - 1, 256)
    table = np.stack([np.interp(at, np.arange(len(stops)), stops[:, k]) for k in range(3)], 1)
    return bytes(np.rint(table).astype(np.uint8).tobytes())


def energy_png(values: Array, low: float, top: float) -> bytes:
    """A PNG of log values between low and top; what is not finite is clear."""
    known = np.isfinite(values)
    share = np.log(np.maximum(np.where(known, values, top), low) / low) / np.log(top / low)
    index = np.rint(255 * np.clip(share, 0, 1)).astype(np.uint8)
    image = Image.fromarray(index, mode="L")
    image.putpalette(_palette())
    if not known.all():
        image = image.convert("RGBA")
        image.putalpha(Image.fromarray((255 * known).astype(np.uint8), mode="L"))
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def colour_bar(picture: Picture, low: float, top: float) -> str:
    """Return the legend: colours with numbers, and the reference as a tick above."""
    stops = ", ".join(SHADING[::-1])
    marks = [(low, f"≤ {low:.1g}"), (float(np.sqrt(low * top)), f"{np.sqrt(low * top):.1g}")]
    marks.append((top, f"{top:.2g}"))
    ticks = "".join(
        f"<span style='position:absolute;left:{at:.1f}%;transform:translateX(-{at:.0f}%)'>"
        f"{text}</span>"
        for value, text in marks
        for at in [100 * np.log(value / low) / np.log(top / low)]
    )
    bilevel = picture.kind in ("ridge", "last")
    unit = "‖θ(x) − θ*‖² / ‖θ*‖²" if bilevel else "share of ‖θ‖² unexplained"
    return (
        f"<div style='max-width:380px'><div>{unit}, log colours</div><div style='height:12px;"
        f"border:1px solid {INK};background:linear-gradient(to right, {stops})'></div>"
        f"<div style='position:relative;height:18px'>{ticks}</div></div>"
    )


def marked(picture: Picture) -> bool:
    """Return whether the lowest place is marked: not where many have the lowest colour."""
    low = span_of(picture.values, picture.reference)[0]
    lowest = int((picture.values <= low).sum())
    return lowest <= MOST_LOWEST * int(np.isfinite(picture.values).sum())


class EnergyMap:
    """A map of splits: both ways are lengths, so that it cannot lie on the plane."""

    def __init__(self) -> None:
        """An empty map."""
        self.x, self.y = (bq.LinearScale(min=0, max=2, allow_padding=False) for _ in range(2))
        scales = {"x": self.x, "y": self.y}
        self._images = [w.Image(value=_CLEAR, format="png") for _ in range(2)]
        self._front = 0
        self.image = bq.Image(image=self._images[0], scales=scales, x=[0, 2], y=[0, 2])
        self.wall = bq.Lines(
            x=NOWHERE, y=NOWHERE, scales=scales, colors=["white"], stroke_width=2,
            line_style="dashed",
        )  # fmt: skip
        self.lowest = _ring(scales, "#ff4fd8", "diamond", 90)
        axes = [
            bq.Axis(scale=self.x, grid_lines="none", tick_format="~g"),
            bq.Axis(scale=self.y, side="left", grid_lines="none", tick_format="~g"),
        ]
        self.widget = self.figure = bq.Figure(
            marks=[self.image, self.wall, self.lowest], axes=axes, fig_margin=PLOT_MARGIN,
            padding_x=0, padding_y=0, min_aspect_ratio=1, max_aspect_ratio=1,
            display_toolbar=False, background_style={"fill": "transparent"},
            layout=w.Layout(width="280px", height="280px", min_width="0"),
        )  # fmt: skip

    def show(self, picture: Picture) -> None:
        """Show a picture with the wall of its free splits."""
        low, top = span_of(picture.values, picture.reference)
        left, right, bottom, up = picture.box
        self._front = 1 - self._front
        image = self._images[self._front]
        image.value = energy_png(picture.values, low, top)
        with self.image.hold_sync():
            self.image.x, self.image.y = np.array([left, right]), np.array([bottom, up])
            self.image.image = image
        for scale, a, b, axis, name in (
            (self.x, left, right, self.figure.axes[0], picture.names[0]),
            (self.y, bottom, up, self.figure.axes[1], picture.names[1]),
        ):
            if (scale.min, scale.max) != (a, b):
                scale.min, scale.max = a, b
                axis.tick_values = np.linspace(a, b, 5)
            axis.label = name
        _put(self.lowest, np.array([picture.lowest]) if marked(picture) else np.zeros((0, 2)))
        self._wall(picture)

    def _wall(self, picture: Picture) -> None:
        if picture.free is None:
            _path(self.wall, NOWHERE, NOWHERE)
            return
        edge = picture.box[1]
        a, b = (min(v, edge) for v in picture.free)
        _path(self.wall, np.array([a, a, 0.0]), np.array([0.0, b, b]))


class EnergyCurve:
    """The energy over a line, log upright."""

    def __init__(self) -> None:
        """An empty curve."""
        self.x = bq.LinearScale(min=-2, max=2, allow_padding=False)
        self.y = bq.LogScale(min=1e-5, max=1)
        scales = {"x": self.x, "y": self.y}
        self.breaks = bq.Lines(
            x=NOWHERE, y=np.ones(2), scales=scales, colors=[INK], stroke_width=1,
            line_style="dotted",
        )  # fmt: skip
        self.reference = bq.Lines(
            x=NOWHERE, y=np.ones(2), scales=scales, colors=[INK], line_style="dashed"
        )
        self.curve = bq.Lines(
            x=NOWHERE, y=np.ones(2), scales=scales, colors=[CURVES[0]], stroke_width=2
        )
        self.candidates = _dots(scales, CURVES[2], "diamond", 50)
        self.here = _ring(scales, INK, "square", 150)
        self.truth = _ring(scales, INK, "circle", 110)
        self.lowest = _ring(scales, CURVES[3], "diamond", 80)
        axes = [
            bq.Axis(scale=self.x, label="x", grid_lines="none", num_ticks=5),
            bq.Axis(scale=self.y, label="energy", side="left", grid_lines="none",
                    tick_format=".0e", label_offset="3.2em"),
        ]  # fmt: skip
        self.widget = self.figure = bq.Figure(
            marks=[self.breaks, self.reference, self.curve, self.candidates, self.truth,
                   self.here, self.lowest],
            axes=axes, fig_margin={**PLOT_MARGIN, "left": 60, "right": 16}, padding_x=0,
            padding_y=0, display_toolbar=False, background_style={"fill": "transparent"},
            layout=w.Layout(width="100%", height="280px", min_width="0"),
        )  # fmt: skip

    def show(self, picture: Picture, at: float, truth: float) -> None:
        """Show the curve of a picture with the point at `at`."""
        made = picture.curve
        assert made is not None
        low, top = span_of(picture.values, picture.reference)
        low = 10.0 ** np.floor(np.log10(low))
        clipped = np.maximum(picture.values[0], low)
        self.x.min, self.x.max = picture.box[:2]
        self.y.min, self.y.max = low, top * 1.3
        first, last = int(np.log10(low)), int(np.floor(np.log10(top * 1.3)))
        self.figure.axes[1].tick_values = 10.0 ** np.arange(first, last + 1)
        self.figure.axes[1].label = picture.names[1]
        _path(self.curve, made.z.copy(), clipped)
        gap = np.full(len(made.breaks), np.nan)
        upright = np.column_stack([made.breaks, made.breaks, gap]).reshape(-1)
        heights = np.column_stack([gap * 0 + low, gap * 0 + top * 1.3, gap])
        heights[:, 0], heights[:, 1] = low, top * 1.3
        none = not len(made.breaks)
        _path(self.breaks, NOWHERE if none else upright,
              np.full(2, top) if none else heights.reshape(-1))  # fmt: skip
        known = np.isfinite(picture.reference) and picture.reference > low
        _path(self.reference, np.array(picture.box[:2]) if known else NOWHERE,
              np.full(2, picture.reference if known else top))  # fmt: skip
        _put(
            self.candidates,
            np.column_stack([made.candidates, np.interp(made.candidates, made.z, clipped)]),
        )
        _put(self.here, np.array([[at, max(picture.here, low)]]))
        _put(self.truth, np.array([[truth, np.interp(truth, made.z, clipped)]]))
        _put(self.lowest, np.array([[picture.lowest[0], max(picture.lowest[1], low)]]))


def _dots(scales: dict[str, bq.Scale], colour: str, marker: str, size: int) -> bq.Scatter:
    return bq.Scatter(
        x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour], marker=marker,
        default_size=size, stroke="white", stroke_width=1,
    )  # fmt: skip


def _ring(scales: dict[str, bq.Scale], colour: str, marker: str, size: int) -> bq.Scatter:
    mark = _dots(scales, colour, marker, size)
    mark.fill, mark.stroke, mark.stroke_width = False, colour, 2
    return mark


def _put(mark: bq.Scatter, at: Array) -> None:
    at = np.asarray(at, dtype=float).reshape(-1, 2)
    with mark.hold_sync():
        mark.x, mark.y = at[:, 0].copy(), at[:, 1].copy()


def _path(mark: bq.Lines, x: Array, y: Array) -> None:
    with mark.hold_sync():
        mark.x, mark.y = x, y


_CLEAR = energy_png(np.ones((1, 1)), 0.5, 1.0)


# --- Questions to the energy answered beside a page: the newest one, coarse first, until stopped

LADDER = (31, STANDARD, 121)  # pixels a side, refined while nothing else is asked
LOOK_S = 0.25  # of a map, before one says that it is under way; arbitrary
AT_ONCE_S = 0.12  # a map expected to take less needs no coarser one before it; arbitrary
PACE_S = 1e-4  # of a pixel, before one was computed; arbitrary


def ladder_of(q: Question) -> tuple[int, ...]:
    """Return the sizes of the maps of one question, coarse first."""
    return LADDER


class Viewer(Protocol):
    """What the work calls: the panel that asks."""

    def answered(self, q: Question, picture: Picture, seconds: float) -> None:
        """Show a map."""

    def waiting(self, share: float, first: bool, seconds: float) -> None:
        """Called now and then while a map is computed; `first`: this question has no map yet."""

    def refused(self, why: str) -> None:
        """Say why there is no such map."""

    def rested(self, halted: bool) -> None:
        """The computation has ended: all is answered, or it was `halted`."""

    def fail(self, error: Exception) -> None:
        """Show an error."""


class EnergyWork:
    """Answers one question after the other; a newer one interrupts, as `halt` does.

    During the drag of a point the first map is still finished, so the picture changes. If even the
    coarsest map of a point takes longer than `AT_ONCE_S`, a sketch comes before it: the multipliers
    of the other points are frozen, which costs a hundredth. If the mapped point alone moved, the
    map is the same and is not computed again.

    Attributes:
        asked: the newest question, or None.
        pace: seconds of a pixel, by kind of map.
    """

    def __init__(self, viewer: Viewer) -> None:
        """Make it with no question yet."""
        self.viewer, self.answers = viewer, Answers()
        self.asked: Question | None = None
        self.job = Job()
        self.job.observe(self._waiting)
        self.pace: dict[str, float] = {}
        self._halted = False
        self._begun, self._first = 0.0, True  # of the question under way
        self._now: Question | None = None

    def ask(self, q: Question) -> None:
        """Answer this question from now on."""
        self.asked, self._halted = q, False
        now = self._now
        if now is not None and self._first and self.job.state is JobState.RUNNING:
            if now.moved_to(q):
                return  # its first map is finished, and then q begins
        self._begin(q)

    def close(self) -> None:
        """End the work when the page ends."""
        self.asked = None
        self.job.close()

    def _begin(self, q: Question) -> None:
        self._now, self._first, self._begun = q, True, perf_counter()
        rungs = self._rungs(q) if page_waits() else [(q, ladder_of(q)[1])]

        def work(progress: Progress) -> Iterator[tuple[Question, Picture]]:
            for asked, size in rungs:
                here, known = perf_counter(), self.answers.kept.finest(q) >= size
                picture = self.answers.answer(asked, size, progress)
                if asked is q and not known:
                    self.pace[q.kind] = (perf_counter() - here) / size**2
                yield asked, picture

        self.job.start(work, self._take, self._ended)

    def _take(self, part: tuple[Question, Picture]) -> None:
        """Show a map of the present question, or turn to a newer question."""
        (asked, picture), q = part, self._now
        self._first = False
        if q is None or self.asked is None:
            return
        if asked is not q:
            picture = replace(picture, about=None, archetype="")
        self.viewer.answered(q, picture, perf_counter() - self._begun)
        if self.asked is not q:
            self._begin(self.asked)

    def _ended(self) -> None:
        error, q = self.job.error, self._now
        if isinstance(error, ValueError) and q is self.asked:
            self.viewer.refused(str(error))
        elif error is not None and not isinstance(error, ValueError):
            self.viewer.fail(error)
        if self.asked is not None and self.asked is not q and not self._halted:
            self._begin(self.asked)
        else:
            self.viewer.rested(self._halted)

    def _waiting(self) -> None:
        seconds = perf_counter() - self._begun
        if self.job.state is JobState.RUNNING and seconds > LOOK_S:
            self.viewer.waiting(self.job.share, self._first, seconds)

    def halt(self) -> None:
        """Stop the work; the map stays as it is."""
        self._halted = True
        self.job.cancel()

    def resume(self) -> None:
        """Go on after `halt`."""
        if self.asked is not None:
            self.ask(replace(self.asked))  # another object: the old one may be under way still

    def forget(self) -> None:
        """Drop the question."""
        self.asked = None
        self.halt()

    def _rungs(self, q: Question) -> list[tuple[Question, int]]:
        """Return what is computed one after the other, the quickest first."""
        ladder, pace = ladder_of(q), self.pace.get(q.kind, PACE_S)
        known = self.answers.kept.finest(q)
        if known:
            return [(q, s) for s in ladder if s >= known]
        quick = [s for s in ladder[:2] if s * s * pace < AT_ONCE_S]
        rungs = [(q, s) for s in ladder if s >= max(quick or ladder[:1])]
        if q.kind == "point" and q.net.d == 2 and not q.frozen and not quick:
            rungs.insert(0, (replace(q, frozen=True), STANDARD))
        return rungs
