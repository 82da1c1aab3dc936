"""Other points that explain the same weights: which points can move, a drag, questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import Any, TypeVar

import ipywidgets as w
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.charts import A_ROW, NOTHING, Axis, Chart, Guide, Series, next_step
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.certainty import Certainty, RadiusMap, radius_map
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.others import OtherSet, Rivals, farthest_set, forced_mass
from explorer.engine.number_words import PLAIN, percent
from explorer.engine.progress import Progress, part_progress
from explorer.page import play
from explorer.page.aim import limit_of
from explorer.page.ask import Question
from explorer.page.controls.row import Item, Row, choices
from explorer.page.frame import Certain, Frame
from explorer.page.job import JobState, once
from explorer.page.panels.base import Panel
from explorer.page.question import turn
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.explain import words
from explorer.page.view.chart import ChartView
from explorer.page.words.statement import scale_html
from explorer.research.explained import (
    EXPLAINS,
    SAME,
    Explained,
    certified_masses,
    misfit,
    rivals_of,
)
from explorer.research.pictures.charts import class_stems, dot_chart
from explorer.research.pictures.shades import SHADING, radius_span
from explorer.research.runs import cone_around
from explorer.research.words import explanations

T = TypeVar("T")
LEAST_TOP = 0.05  # of the axis of the change: rounding is not to fill the chart; arbitrary
SIDES = {1: 240, 2: 40}  # pixels of a map of radii; arbitrary
HIDE = "Hide the map"
RADII_TIP = (
    "From the weights alone: how much of them a set leaves at least that has no point near a "
    "place, drawn as a map"
)
SPLIT_TIP = "One point is shown as two that explain the same weights; drag them, or another"
FORCED_TIP = (
    "Near which training points every set that explains the weights as well has a point, within "
    "the limits under Numbers, and how much of λ is there, at least"
)
FARTHEST_TIP = (
    "The training set on the margin that explains the weights as well and is farthest from the "
    "true one, on average, and how far any can be"
)
CANCELLED = {JobState.CANCELLED: "Cancelled; nothing was changed."}
FREE_TIPS = (
    "Both halves keep Φ = ±1: stationarity and margin stay",
    "Stationarity alone; Shift does it for one drag",
)


class ExplainPanel(Panel):
    """The explain stage beside the plane."""

    stages = ("explain",)

    def belongs(self, frame: Frame) -> bool:
        """Return whether the stage is on; in a lesson its last act stands alone."""
        return super().belongs(frame) and (frame.proof is None or self.session.lesson is None)

    def build(self) -> None:
        """Make a row of signs, the chart of a drag, its buttons, and the questions."""
        self.dots = ChartView(_dom_classes=["mx-dots-card"])
        self.dots.on("hover", lambda i: self.session.choose(pointed=i))
        self.dots.on("choose", partial(self.do, explain.choose, self.session))
        self.drag = ChartView()
        self.drag.on("handle", partial(self.do, self._pull))
        self.drag.on("hover", lambda i: self.session.choose(pointed=i))
        self.drag.on("choose", partial(self.do, explain.choose, self.session))
        self.forced = Question(
            self, words.CERTIFIED, FORCED_TIP, lambda: self._press(self._ask_forced), CANCELLED
        )
        self.farthest = Question(
            self, words.FARTHEST, FARTHEST_TIP, lambda: self._press(self._ask_farthest), CANCELLED
        )
        self.radii = Question(self, words.LIKELY, RADII_TIP, self._press_radii)
        self.questions = (self.radii, self.farthest, self.forced)
        self.hand = self._hand()
        self.split = Row(("mx-question",), **self.button_items(
            ask=(words.SPLIT, SPLIT_TIP, explain.show_split),
        ))  # fmt: skip
        head = w.HTML(words.OTHERS).add_class("mx-chart-title")
        rows = [head, self.split, *(question.row for question in self.questions)]
        asked = w.Box(rows, _dom_classes=["mx-questions"])
        self.widget = w.VBox([self.dots, self.drag, self.hand, asked], _dom_classes=["mx-explain"])

    def _hand(self) -> Row:
        session = self.session
        free = Item(
            "segments", "How a point is dragged", value=False,
            options=choices(("Along its line", False), ("Anywhere", True), tips=FREE_TIPS),
            call=partial(self.do, explain.set_free, session),
        )  # fmt: skip
        return Row(free=free, **self.button_items(
            split=("Split", "Split the point in hand to the walls of its cell, or to the edge",
                   explain.split_widest),
            merge=("Merge", "Merge the point in hand with the one chosen before it (M)",
                   explain.combine),
            undo=("↶", "Take the last split or merge back (Ctrl+Z on the plane)", play.undo),
            redo=("↷", "Do it again (Ctrl+Y on the plane)", play.redo),
            truth=("To the truth", "Show the points it was trained on", explain.reset),
        ))  # fmt: skip

    def _offer(self, state: Explained, past: bool, future: bool) -> None:
        """Show the buttons that have something to act on: a point in hand, a change."""
        mine = not state.is_example  # a hand took it
        held, changed = mine and state.selected is not None, mine and (past or future)
        moved = mine and state.now is not state.truth
        with self.hand.at_once():
            self.hand.put("free", value=state.free, hidden=not mine)
            for name, seen in (("split", held), ("merge", held), ("truth", moved)):
                self.hand.put(name, hidden=not seen)
            self.hand.put("undo", hidden=not changed, disabled=not past)
            self.hand.put("redo", hidden=not changed, disabled=not future)

    def _pull(self, at: float) -> None:
        """Drag the point by the line of the chart."""
        slide = explain.explanation(self.session).slide
        if slide is not None:
            explain.pull(self.session, slide.before.x[slide.i] + at * slide.u)

    # --- questions ----------------------------------------------------------------------
    def _press(self, ask: Callable[[Target, Explained], None]) -> None:
        """Ask something of the explanation on screen."""
        target = self.session.frame.target
        if target is not None and not self._busy:
            self.do(lambda: ask(target, explain.explanation(self.session)))

    def _press_radii(self) -> None:
        """Ask for the map of radii, or take it away."""
        target = self.session.frame.target
        if self.session.frame.certain is not None:
            self.radii.cancel()
            explain.take_radii(self.session, None)
        elif target is not None and not self._busy:
            self.do(self._ask_radii, target)

    @property
    def _busy(self) -> bool:
        """Return whether a question is being answered: one at a time."""
        return any(question.busy for question in self.questions)

    def _ask_rivals(
        self, question: Question, state: Explained, program: Callable[[Rivals, Progress], T],
        take: Callable[[tuple[Rivals, T]], None],
    ) -> None:  # fmt: skip
        """Ask something of all explanations in the plane."""
        extent = self.session.extent

        def answer(progress: Progress) -> tuple[Rivals, T]:
            progress(0.0)
            rivals = rivals_of(state, extent)
            return rivals, program(rivals, part_progress(progress, 0.1, 1.0))

        question.begin(once(answer), take)

    def _ask_farthest(self, _: Target, state: Explained) -> None:
        self._ask_rivals(self.farthest, state, farthest_set, self._show_farthest)

    def _ask_radii(self, target: Target) -> None:
        """Draw the map of radii, place by place."""
        why = obstacle(target)
        if why:
            raise ValueError(why)
        turn(self.session)  # the map is of the plane as it is without another set
        axes, d = self.session.axes, target.net.d
        low, high = (axes.centre[:d] - axes.half[:d]), (axes.centre[:d] + axes.half[:d])
        side, half = SIDES[d], float(2 * axes.half[0] / SIDES[2])

        aim, begun = self.session.frame.aim, False

        def work(progress: Progress) -> Iterator[tuple[RadiusMap, bool]]:
            progress(0.0)
            points = None if aim is None or not aim.truth.n else aim.truth
            cone = cone_around(target, points, part_progress(progress, 0.0, 0.2))
            truth = None if aim is None or points is None else limit_of(aim, cone)
            rest = part_progress(progress, 0.2, 1.0)
            yield from (
                (made, not bool(np.isnan(made.values).any()))
                for made in radius_map(cone, low, high, side, half, rest, truth)
            )

        def take(part: tuple[RadiusMap, bool]) -> None:
            nonlocal begun
            explain.take_radii(self.session, Certain(target, *part))
            begun = True

        def end() -> None:
            if self.radii.state is not JobState.DONE and self.session.frame.radii is not None:
                explain.take_radii(self.session, None)

        def stale() -> bool:
            now = self.session.frame
            replaced = begun and now.radii is None  # by another question
            return now.target is not target or self.session.axes is not axes or replaced

        self.radii.begin(work, take, end, stale)

    def _ask_forced(self, target: Target, state: Explained) -> None:
        """Say which points are certified; where nothing is, bound the masses on the margin."""
        aim = self.session.frame.aim
        if obstacle(target) or aim is None:
            self._ask_rivals(self.forced, state, forced_mass, self._show_forced)
            return
        points = aim.truth

        def take(part: tuple[Certainty, Tensor]) -> None:
            made, mass = part
            play.take_certainty(self.session, made)
            explain.take_forced(self.session, mass)

        self.forced.begin(once(partial(certified_masses, state, points)), take)

    def _show_forced(self, part: tuple[Rivals, Tensor]) -> None:
        rivals, mass = part
        forced, edge = forced_points(mass, rivals.mass)
        said = words.forced_words(rivals, int(forced.sum()), len(mass))
        explain.take_forced(self.session, mass, said + explanations.edge(edge))

    def _show_farthest(self, part: tuple[Rivals, OtherSet]) -> None:
        explain.take_farthest(self.session, part[1])

    # --- what is seen -------------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show which points can move, and the curve of the present drag."""
        for question in self.questions:
            question.drop_old()
        proven = frame.target is not None and not obstacle(frame.target)
        # The proof counts places of every width: one count, but where a lesson asks for another.
        self.forced.row.put("ask", hidden=proven and self.session.lesson is None)
        drawn = None if frame.question != "map" else frame.certain
        void = drawn is not None and drawn.is_void
        self.radii.row.put("ask", label=words.LIKELY if drawn is None else HIDE, hidden=void)
        self.farthest.row.put("ask", hidden=frame.question == "farthest")
        self.split.put("ask", hidden=frame.question == "split" or frame.explain is None)
        if drawn is not None and not void:
            self.radii.say(radius_legend(drawn.map))
        elif self.radii.text:
            self.radii.say("")
        if frame.explain is None or frame.proof is not None:
            self.dots.draw(NOTHING)
            self.drag.draw(NOTHING)
            for name in self.hand.items:
                self.hand.put(name, hidden=True)
            return
        state = frame.explain.present
        self._offer(state, bool(frame.explain.past), bool(frame.explain.future))
        self.dots.draw(points_chart(state))
        self.drag.draw(NOTHING if state.is_example else drag_chart(state))


def radius_legend(drawn: RadiusMap) -> str:
    """Return the legend of a map of radii: colours with shares in per cent, and what they mean."""
    least, most = radius_span(drawn)
    low, top = percent(least), percent(most)
    if low == top:  # one colour has no scale: the headline says all
        return ""
    if least < PLAIN:
        low = "0%"
    return f"{scale_html(SHADING, (low, top))}<div>{escape(words.radii(drawn))}</div>"


def _signs(state: Explained) -> list[tuple[str, str, dict[str, Any], NDArray[Any]]]:
    """Return the signs of points: name, colour, look and whose (n,) it is; barred: not to be split.

    Of points that are all barred the headline speaks: they have no sign. Where points do not
    explain the weights none can become two that do.
    """
    n, pinned = state.now.n, state.pinned.numpy()
    if (n and pinned.all()) or misfit(state) == "residual":
        return []
    size = 8.0 if n <= A_ROW else 4.5
    return [
        ("", "card", {"size": size}, np.ones(n, dtype=bool)),  # no stem shows through
        ("cannot be split", "ink2", {"size": size, "hollow": True}, pinned),
        ("", "ink2", {"size": size, "shape": "bar"}, pinned),
        ("can become two", "ink", {"size": size, "hollow": True, "core": True}, ~pinned),
    ]


def points_chart(state: Explained) -> Chart:
    """Return one sign a point of the present explanation, beside the chart of a drag."""
    lit, kinds = -1 if state.selected is None else state.selected, _signs(state)
    if not kinds or state.slide is None:  # else they stand on the stems
        return NOTHING
    title, foot = words.TITLE, words.signs(state)
    return dot_chart(
        state.now.n, kinds, title=title, note=words.note(state), foot=foot,
        tips=words.points(state), lit=lit, label=f"{title} {foot}",
    )  # fmt: skip


def carried_chart(state: Explained, foot: str) -> Chart:
    """Return how strongly each point carries the weights, the strongest first, with its sign."""
    lam, y, kinds = state.now.lam.numpy(), state.now.y.numpy(), _signs(state)
    order = np.argsort(-lam, kind="stable")
    rank = np.arange(1.0, len(lam) + 1)
    signs = [
        Series(rank[mine[order]], lam[order][mine[order]], name, "dots", ids=order[mine[order]],
               colour=colour, look=look)
        for name, colour, look, mine in kinds
        if mine.any()
    ]  # fmt: skip
    told = f"{words.signs(state)}\n{foot}".rstrip() if kinds else foot
    return Chart(
        [*class_stems(lam[order], y[order], order), *signs],
        Axis(0.0, len(lam) + 1.0, hidden=True),
        Axis(0.0, next_step(1.15 * float(lam.max())), short="λ"), words.CARRIED, words.MULTIPLIER,
        told, label=f"{words.CARRIED}. {told}", picks=True, tips=words.points(state),
        lit=-1 if state.selected is None else state.selected,
    )  # fmt: skip


def drag_chart(state: Explained) -> Chart:
    """Return what stays and what breaks as the point in hand goes along its line."""
    slide, foot = state.slide, words.hand(state)
    if slide is None:
        return carried_chart(state, foot)
    said = f"{words.DRAG}. {foot}"
    at, off, margin = (slide.curve[:, i].numpy() for i in range(3))
    walls = [e for e in (slide.extent.plus, -slide.extent.minus) if 1e-3 < abs(e) < slide.reach]
    shown = min(slide.reach, max(1.6 * max([abs(e) for e in walls] or [2.0]), abs(slide.at)))
    x = Axis(-next_step(shown), next_step(shown), "dragged by", "dragged by")
    inside = np.abs(at) <= x.high
    top = min(1.0, next_step(max(LEAST_TOP, 1.1 * float(off[inside].max(initial=0.0)))))
    jumps = np.array([s for s in slide.jumps if abs(s[0]) <= x.high]).reshape(-1, 2)
    series = [
        Series(at[inside], np.clip(margin, 0, top)[inside], "margin error", colour="ink3", end=True,
               look={"width": 1.5, "dashed": True}),
        Series(at[inside], np.clip(off, 0, top)[inside], "change of the sum", end=True),
        Series(jumps[:, 0], np.clip(jumps[:, 1], 0, top), "predicted jump", "dots", colour="ink2",
               look={"shape": "diamond", "size": 5}),
        Series([slide.at], [min(state.change, top)], "now", "dots", colour="accent",
               look={"size": 5}),
    ]  # fmt: skip
    within = (at > -slide.extent.minus) & (at < slide.extent.plus)
    as_well = float(off[within].max(initial=0.0)) <= max(EXPLAINS, SAME * state.base)
    cut = ((0.0, "0%"), (0.5, "50%"), (1.0, "≥ 100%")) if top == 1.0 else None
    return Chart(
        series, x, Axis(0.0, top, short="share", percent=True, ticks=cut), words.DRAG,
        words.UP_TO_WALL if walls and as_well else "", foot, label=said,
        rules=[Guide(e, words.WALL if e * slide.at <= 0 or len(walls) == 1 else "", "x")
               for e in walls if abs(e) <= x.high],  # named once, away from the hand
        handle=float(np.clip(slide.at, x.low, x.high)),
    )  # fmt: skip
