"""What the attack found, by how close counts, beside what is found among unseen points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.controls import Controls
from explorer.engine.scoring import RADII, RecallCurve, Verdict, recall_curve
from explorer.page import play
from explorer.page.frame import Aim, Frame
from explorer.page.panels.base import Panel
from explorer.page.view.chart import NOTHING, Axis, Chart, ChartView, Series
from explorer.page.words.outcome import points_found, within
from explorer.research.runs import RADIUS

NEAREST, FARTHEST = RADIUS / 10, RADIUS * 10  # of the curve; arbitrary
FINE = tuple(sorted({*RADII, *np.geomspace(NEAREST, FARTHEST, 41).tolist()}))
COARSE = (NEAREST, *RADII, FARTHEST)  # while the attack runs
FEW = 50  # points: of more, all controls at all radii would take half a second; arbitrary
A_ROW = 25  # dots; arbitrary
TITLE = "Recovered, by how close counts"
WAITING = replace(NOTHING, title=TITLE, note="counted once the attack has claims", label=TITLE)


class Scoreboard(Panel):
    """Recall against distance with its control, and one dot a point that fills when it is found.

    Attributes:
        radius: how close counts, as the line was dragged.
    """

    stages = ("attack",)
    every_s = 0.5

    def build(self) -> None:
        """Make the curve and the row of dots; a line in the curve decides for both."""
        self.radius = RADIUS
        self._of: tuple[Verdict | None, bool] = (None, False)
        self._met: Callable[[tuple[float, ...]], RecallCurve] | None = None
        self._whole: RecallCurve | None = None
        self.curve, self.dots = ChartView(), ChartView().add_class("mx-dots")
        self.curve.on_handle(self._set_radius)
        self.dots.on_hover(lambda i: play.point_at(self.session, i))
        self.widget = w.VBox([self.curve, self.dots]).add_class("mx-found")

    def _set_radius(self, radius: float) -> None:
        self.radius = radius
        self.command(self._show)(None)

    def render(self, frame: Frame) -> None:
        """Compute the curve when there is a new verdict; a running attack gets a coarse one."""
        of = frame.attack.verdict, self.session.running
        if of == self._of:
            return
        self._of, self._met, self._whole = of, None, None
        aim, state = frame.aim, frame.attack.state
        if aim is not None and state is not None and frame.attack.verdict is not None:
            claims = self.session.entry.report(aim.target, state, self.session.attack_config)
            met = self._met = partial(
                recall_curve, aim.truth, controls_of(aim, frame.attack.verdict), claims.x, claims.y
            )
            self._whole = met(COARSE if self.session.running else FINE)
        self._show()

    def _show(self) -> None:
        if self._met is None or self._whole is None:
            self.curve.draw(WAITING)
            self.dots.draw(NOTHING)
            return
        here = self._met((self.radius,))
        self.curve.draw(curve(self._whole, here))
        self.dots.draw(dots(here))


def controls_of(aim: Aim, verdict: Verdict) -> Controls:
    """Return the controls that the verdict is set against; of many points the first of them."""
    more = verdict.controls > len(aim.controls) and aim.truth.n <= FEW
    ways = (aim.controls.most if more else aim.controls).ways
    return next((way for way in ways if way.origin is verdict.origin), ways[0])


def curve(whole: RecallCurve, here: RecallCurve) -> Chart:
    """Return recall against distance: training points green, unseen points grey with a band.

    Args:
        whole: at the radii of the curve.
        here: at the one radius where the line stands; the curve goes through its counts.
    """
    radius, n = here.radii[0], whole.n
    at = int(np.searchsorted(whole.radii, radius))

    def through(values: Tensor, one: Tensor) -> np.ndarray:
        return np.insert(values.double().numpy(), at, float(one[0]))

    radii = np.insert(np.array(whole.radii), at, radius)
    x = Axis(whole.radii[0], whole.radii[-1], "distance within which a claim counts", "distance",
             log=True, ticks=(0.003, 0.01, 0.03, 0.1, 0.3))  # fmt: skip
    y = Axis(0.0, float(max(n, 1)), short="points recovered", whole=True,
             ticks=tuple(sorted({0, n // 2, n})))  # fmt: skip
    chance: list[Series] = []
    if whole.controls:
        low, high = through(whole.low, here.low), through(whole.high, here.high)
        middle = through(whole.chance, here.chance)
        chance = [
            Series(radii, high, "90% of sets of unseen points", "band", z=low, colour="ink3"),
            Series(radii, middle, "unseen points", colour="ink3", end=True),
        ]
    found = Series(radii, through(whole.found, here.found), "training points", colour="good",
                   end=True, look={"width": 2.5})  # fmt: skip
    said = within(here)
    return Chart([*chance, found], x, y, TITLE, said, handle=radius, handle_name="within",
                 label=f"{TITLE}. {said}")  # fmt: skip


def dots(here: RecallCurve) -> Chart:
    """Return one dot a training point: full where it is found."""
    n, met = here.n, here.met[0].numpy()
    at = np.arange(n)
    column, row = at % A_ROW, -(at // A_ROW)
    size = 6.0 if n <= A_ROW else 3.5
    kinds = (("found", "good", False, met), ("not found", "ink3", True, ~met))
    series = [
        Series(column[mine], row[mine], name, "dots", ids=at[mine], colour=colour,
               look={"size": size, "hollow": hollow})
        for name, colour, hollow, mine in kinds
        if mine.any()
    ]  # fmt: skip
    below = (n - 1) // A_ROW if n else 0
    x = Axis(-0.5, max(min(n, A_ROW), 10) - 0.5, hidden=True)
    y = Axis(-below - 0.5, 0.5, hidden=True)
    said = f"{int(met.sum())} of {n} points found"
    return Chart(series, x, y, picks=True, tips=points_found(here), label=said)
