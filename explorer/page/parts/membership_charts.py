"""The four charts of the membership page."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.page.apps.membership_scene import Outcome, World
from explorer.research.rates import Interval, Roc
from explorer.style import ACCENT, CONTROL, INK, PLOT_MARGIN, PROVEN

Array = NDArray[np.float64]
# Two equal places below every chart, at 1 for logarithmic axes: an empty path is an error to the
# browser.
NOWHERE = np.ones(2), -np.ones(2)
MEMBER, FRESH, LIMIT = PROVEN, CONTROL, ACCENT
# Arbitrary, but no edge at 1, where members are; |Phi| / m beyond is counted in the last bin.
BINS, WIDEST = 61, 2.5
LEAST_FPR = 5e-4  # one of 2000 held-out points
RHO_MIN, RHO_MAX = 1e-2, 1e2  # arbitrary: ends of the certificate's axis
TRAINED = (
    ("on_margin", "training points within 10% of m", MEMBER),
    ("beyond", "fresh points with |Φ| ≥ m", FRESH),
    ("beyond_half", "fresh points with |Φ| ≥ m/2", LIMIT),
)


def line(scales: dict[str, Any], colour: str, width: float = 2, **traits: Any) -> bq.Lines:  # noqa: ANN401
    """Return a curve without points."""
    return bq.Lines(
        x=NOWHERE[0], y=NOWHERE[1], scales=scales, colors=[colour], stroke_width=width, **traits
    )


def figure(marks: list[bq.Mark], x: bq.Axis, y: bq.Axis) -> bq.Figure:
    """Return a chart with both axes."""
    made = bq.Figure(
        marks=marks, axes=[x, y], fig_margin={**PLOT_MARGIN, "left": 58, "right": 22},
        padding_x=0, padding_y=0, display_toolbar=False,
        background_style={"fill": "transparent"},
        layout=w.Layout(width="100%", height="230px", min_width="0"),
    )  # fmt: skip
    return made.add_class("mx-chart")


def _axis(scale: bq.Scale, label: str, ticks: list[float], **traits: Any) -> bq.Axis:  # noqa: ANN401
    return bq.Axis(
        scale=scale, label=label, grid_lines="none", tick_values=ticks, label_offset="2.2em",
        **{"tick_format": "~g", **traits},
    )  # fmt: skip


def _upright(scale: bq.Scale, label: str, ticks: list[float], **traits: Any) -> bq.Axis:  # noqa: ANN401
    traits = {"label_offset": "3em", "tick_format": "~g", **traits}
    return bq.Axis(scale=scale, label=label, side="left", grid_lines="none", tick_values=ticks,
                   **traits)  # fmt: skip


def key(title: str, *entries: tuple[str, str]) -> str:
    """A chart's title with the colour and meaning of each of its marks."""
    marks = "".join(
        f" <span style='font-weight:400;white-space:nowrap'><span style='color:{colour}'>■</span> "
        f"{escape(words)}</span>"
        for colour, words in entries
    )
    return f"{escape(title)}{marks}"


def _set(mark: bq.Lines, x: Array, y: Array) -> None:
    with mark.hold_sync():
        mark.x, mark.y = x, y


def steps(values: Array) -> tuple[Array, Array]:
    """Return the outline of a histogram over [0, WIDEST]; its fullest bin is 1."""
    edges = np.linspace(0, WIDEST, BINS + 1)
    count, _ = np.histogram(np.clip(values, 0, WIDEST - 1e-9), edges)
    height = np.repeat(count / max(count.max(), 1), 2)
    return np.repeat(edges, 2), np.concatenate([[0.0], height, [0.0]])


class Chart:
    """A figure; each kind shows its own things."""

    figure: bq.Figure


class Histogram(Chart):
    """|Phi| of members against held-out points, with the threshold."""

    def __init__(self) -> None:
        """Two filled outlines and an upright line."""
        x, y = bq.LinearScale(min=0, max=WIDEST), bq.LinearScale(min=0, max=1.08)
        scales = {"x": x, "y": y}
        self._fresh, self._member = (
            line(scales, c, 1.5, fill="bottom", fill_colors=[c], fill_opacities=[0.45])
            for c in (FRESH, MEMBER)
        )
        self._limit = line(scales, LIMIT, 2.5, line_style="dashed")
        self.figure = figure(
            [self._fresh, self._member, self._limit],
            _axis(x, "|Φ(x)| / m", [0, 0.5, 1, 1.5, 2, 2.5]),
            _upright(y, "points, of the fullest bin", [0, 0.5, 1]),
        )

    def show(self, there: World | None, found: Outcome | None) -> None:
        """Draw a moment, or nothing."""
        if there is None or found is None:
            for mark in (self._fresh, self._member, self._limit):
                _set(mark, *NOWHERE)
            return
        _set(self._fresh, *steps(there.held_out.double().numpy()))
        _set(self._member, *steps(there.members.numpy()))
        at = min(found.rule.threshold, WIDEST)
        _set(self._limit, np.full(2, at), np.array([0.0, 1.08]))


class RocChart(Chart):
    """True against false positive rate for every threshold, and for the rule's."""

    def __init__(self) -> None:
        """The curve, the guess and the rule's place."""
        x, y = bq.LogScale(min=LEAST_FPR, max=1), bq.LinearScale(min=0, max=1.05)
        scales = {"x": x, "y": y}
        self._guess = line(scales, INK, 1.5, line_style="dotted")
        places = np.geomspace(LEAST_FPR, 1, 60)
        _set(self._guess, places, places)
        self._curve = line(scales, MEMBER, 2.5)
        self._rule = bq.Scatter(
            x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[LIMIT], marker="diamond",
            default_size=110, stroke="white",
        )  # fmt: skip
        self.figure = figure(
            [self._guess, self._curve, self._rule],
            _axis(x, "false positive rate", [1e-3, 1e-2, 0.1, 1], tick_format="~%"),
            _upright(y, "true positive rate", [0, 0.5, 1], tick_format="~%"),
        )

    def show(self, curve: Roc | None, found: Outcome | None) -> None:
        """Draw a curve, or none."""
        if curve is None or found is None:
            _set(self._curve, *NOWHERE)
            self._rule.x = self._rule.y = np.zeros(0)
            return
        _set(self._curve, np.maximum(curve.fpr, LEAST_FPR), curve.tpr)
        with self._rule.hold_sync():
            self._rule.x = np.array([max(found.fpr, LEAST_FPR)])
            self._rule.y = np.array([found.tpr])


class ProofChart(Chart):
    """The bounds of the certificate beside the measured values, in units of the margin."""

    def __init__(self) -> None:
        """Two bars, and the line at one half."""
        x, y = bq.LogScale(min=RHO_MIN, max=RHO_MAX), bq.LinearScale(min=0, max=2.4)
        scales = {"x": x, "y": y}
        self._bars = [line(scales, colour, 14) for colour in (FRESH, INK)]
        limit = line(scales, LIMIT, 2.5, line_style="dashed")
        _set(limit, np.full(2, 0.5), np.array([0.0, 2.4]))
        self._words = bq.Label(
            x=np.full(2, RHO_MIN), y=np.array([2.0, 0.9]), text=np.array(["", ""]), scales=scales,
            default_size=13, font_weight="normal", colors=[INK], x_offset=4,
        )  # fmt: skip
        self.figure = figure(
            [limit, *self._bars, self._words],
            _axis(x, "|Φ(x)| / m of fresh points", [0.01, 0.1, 1, 10, 100]),
            bq.Axis(scale=y, side="left", visible=False),
        )

    def show(self, there: World | None) -> None:
        """Draw both bounds, or nothing."""
        if there is None:
            for bar in self._bars:
                _set(bar, *NOWHERE)
            self._words.text = np.array(["", ""])
            return
        most, rho = float(there.held_out.max()), there.proof.rho
        for bar, value, height in zip(self._bars, (most, rho), (1.6, 0.5), strict=True):
            end = float(np.clip(value, RHO_MIN * 1.01, RHO_MAX))
            _set(bar, np.array([RHO_MIN, end]), np.full(2, height))
        proven = "∞" if math.isinf(rho) else f"{rho:.3g}"
        self._words.text = np.array(
            [f"largest measured: {most:.3g}", f"largest possible: ρ = {proven}"]
        )


class TrainedChart(Chart):
    """Shares against the dimension, of trained networks, with intervals over trials."""

    def __init__(self) -> None:
        """Three curves with upright intervals."""
        x, y = bq.LogScale(min=8, max=1200), bq.LinearScale(min=0, max=1.05)
        scales = {"x": x, "y": y}
        self._curves = {
            name: (line(scales, colour, 2, marker="circle", marker_size=36),
                   line(scales, colour, 1.2, opacities=[0.8]))
            for name, _, colour in TRAINED
        }  # fmt: skip
        self._x = x
        self._axis = _axis(x, "dimension d", [10, 100, 1000])
        self.figure = figure(
            [mark for pair in self._curves.values() for mark in pair], self._axis,
            _upright(y, "share", [0, 0.5, 1]),
        )  # fmt: skip

    def show(self, found: dict[int, dict[str, Interval]]) -> None:
        """Draw the results so far; {} draws nothing."""
        d = np.array(list(found), dtype=float)
        if len(d):
            with self._x.hold_sync():
                self._x.min, self._x.max = min(8.0, d.min() / 1.2), max(1200.0, d.max() * 1.2)
        for name, (curve, bars) in self._curves.items():
            rows = [row[name] for row in found.values()]
            known = np.array([not math.isnan(r.mean) for r in rows], dtype=bool)
            if not known.any():
                _set(curve, *NOWHERE)
                _set(bars, *NOWHERE)
                continue
            mean = np.array([r.mean for r in rows])[known]
            at = d[known]
            _set(curve, *((at, mean) if len(at) > 1 else (np.repeat(at, 2), np.repeat(mean, 2))))
            ends = np.array([[r.low, r.high] for r in rows])[known]
            ends = np.where(np.isnan(ends), mean[:, None], ends).clip(0, 1)
            gap = np.full((len(at), 1), np.nan)
            _set(bars, np.hstack([at[:, None], at[:, None], gap]).ravel(),
                 np.hstack([ends, gap]).ravel())  # fmt: skip
