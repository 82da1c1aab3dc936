"""The last act beside the plane: places that must hold a point, one by one; the eraser's gauge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import ipywidgets as w
import numpy as np

from explorer.engine.arrays import Flags
from explorer.engine.attacks.target import Target
from explorer.engine.charts import NOTHING, Axis, Chart, Series, next_step
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.cone import Bound
from explorer.engine.number_words import share
from explorer.engine.progress import Progress
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Aim, Frame, Proof
from explorer.page.job import JobState, page_waits
from explorer.page.panels.base import Panel
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.proof import words
from explorer.page.view.chart import ChartView
from explorer.research.pictures.charts import class_stems, dot_chart

MANY = 4  # places from which a chart compares them; the range of fewer stands under Numbers
WIDE = 2  # the axis of the gauge over the limit; arbitrary
BAR = 12  # px: how thick the bar of the gauge is; arbitrary
UPRIGHT = Axis(-1.5, 1.0, hidden=True)  # of the gauge: two rows of names below its bar, one above
STILL_S = 0.08  # a disc that rests so long is refitted to the end; arbitrary


class ProofPanel(Panel):
    """Asks where a point must be as soon as the act is begun, and refits without the disc."""

    stages = ("explain",)

    def belongs(self, frame: Frame) -> bool:
        """Return whether the act is on."""
        return frame.proof is not None

    def build(self) -> None:
        """Make progress and Cancel, the hint, the gauge, and the buttons of the disc."""
        self.places = Ask(self, self.weights)
        self.exact = Ask(self, self.weights)
        self.row = Row(
            ("mx-question",),
            share=Item("bar", tip="Share done", job=self.places),
            cancel=Item("cancel", "Cancel", "Stop, and go back to the points", job=self.places),
            said=Item("words"),
        )
        self.gauge = ChartView(_dom_classes=["mx-gauge"])
        self.points = ChartView(_dom_classes=["mx-dots-card"])
        self.points.on("hover", self._point)
        self.widths = ChartView(_dom_classes=["mx-widths"])
        self.widths.on("hover", lambda i: self.session.choose(pointed=i))
        self.hand = Row(**self.button_items(
            wider=(words.WIDER, "A wider disc (+, or the wheel)",
                   partial(proof.resize, wider=True)),
            narrower=(words.NARROWER, "A narrower disc (−, or the wheel)",
                      partial(proof.resize, wider=False)),
            lift=(words.LIFT, "Points may be anywhere again (Delete)", proof.allow),
            hide=(words.HIDE, "Put the training points out of sight again", proof.reveal),
        ))  # fmt: skip
        self.widget = w.VBox(
            [self.row, self.gauge, self.hand, self.points, self.widths],
            _dom_classes=["mx-explain", "mx-proof"],
        )

    def render(self, frame: Frame) -> None:
        """Begin what the act asks, and draw the gauge."""
        held, aim = frame.proof, frame.aim
        if held is None or aim is None:
            return
        if held.needed is None and not self.places.busy:
            self._ask(held.target, aim)
        if not held.exact:
            self._refine()
        seen = held.done and held.centre is None  # what goes on is for a disc, which may never come
        for name in ("share", "cancel"):
            self.row.put(name, hidden=seen)
        self.row.put("said", value="" if self.session.lesson else words.hint(frame, held))
        self.gauge.draw(gauge(frame, held))
        self.points.draw(known_chart(frame, held))
        self.widths.draw(widths(held))
        for name in ("wider", "narrower"):
            self.hand.put(name, hidden=held.centre is None)
        self.hand.put("hide", hidden=not held.revealed or held.centre is not None)
        offered = held.refit is not None and words.reveal_action(frame, held) is None  # on top
        self.hand.put("lift", hidden=held.centre is None or offered)

    def _point(self, i: int) -> None:
        """Mark the place for which a point stands, as long as a pointer is on its dot."""
        held = self.session.frame.proof
        place = -1
        if held is not None and held.revealed and i >= 0:
            place = int(words.known_points(self.session.frame, held).place[i])
        self.session.choose(pointed=place)

    def retire(self, frame: Frame) -> None:
        """End the work of an act that was left."""
        self.places.cancel()
        self.exact.cancel()

    def _ask(self, target: Target, aim: Aim) -> None:
        why = obstacle(target)
        if why:
            proof.leave(self.session)
            raise ValueError(why)

        def end() -> None:
            if self.places.state is not JobState.DONE and self.session.frame.proof is not None:
                proof.leave(self.session)

        take = partial(proof.take, self.session)
        self.places.begin(partial(proof.proofs, target, aim), take, end)

    def _refine(self) -> None:
        """Search to the end for the best explanation without the disc, as soon as it rests."""
        held = self.session.frame.proof
        if held is None or held.exact or held.cone is None or self.exact.busy:
            return
        cone, disc, rough, page_waited = held.cone, held.disc, held.refit, page_waits()

        def here() -> bool:
            now = self.session.frame.proof
            return now is not None and now.disc == disc

        def work(_: Progress) -> Iterator[Bound]:
            rests = time.monotonic() + STILL_S * page_waited
            while here() and time.monotonic() < rests:
                time.sleep(0.005)
            if here():
                yield cone.best_without(proof.hole_of(disc), before=rough)

        def gone() -> bool:
            return self.session.frame.proof is None

        take = partial(proof.take_refit, self.session, disc)
        self.exact.begin(work, take, self._refine, gone)


def known_chart(frame: Frame, held: Proof) -> Chart:
    """Return one dot a training point: proven, recovered only, neither, or without trace."""
    if held.needed is None or not held.revealed or held.centre is not None:
        return NOTHING
    known = words.known_points(frame, held)
    n, size = len(known.proven), 6.0
    rest = ~known.proven & ~known.gone & ~known.met
    kinds: tuple[tuple[str, str, dict[str, Any], Flags], ...] = (
        (words.NO_TRACE, "ink3", {"size": 0.4 * size}, known.gone),
        (words.UNPROVEN, "ink3", {"size": size, "hollow": True}, rest),
        (words.MET, "good", {"size": size, "hollow": True}, known.met),
        (words.PROVEN, "good", {"size": size, "shape": "square"}, known.proven),
    )
    signs = zip("■○○·", (words.PROVEN, words.MET, words.UNPROVEN, words.NO_TRACE),
                (known.proven, known.met, rest, known.gone), strict=True)  # fmt: skip
    foot = "   ".join(f"{sign} {what}: {int(which.sum())}" for sign, what, which in signs
                      if which.any())  # fmt: skip
    tips = [
        f"point {i + 1}: {next((what for what, _, _, which in kinds if which[i]), '')}"
        for i in range(n)
    ]
    return dot_chart(n, kinds, title=words.EACH_POINT, foot=foot, tips=tips,
                     label=f"{words.EACH_POINT}. {foot}")  # fmt: skip


def widths(held: Proof) -> Chart:
    """Return the width of each place, the narrowest first.

    A stem under the pointer marks its place on the plane. With a disc the gauge stands here; few
    places are not compared.
    """
    made = held.needed
    if made is None or len(made.rows) < MANY or held.centre is not None:
        return NOTHING
    wide, labels = words.widths_of(made), made.rows[:, -2]
    most = float(wide.max())
    step = 10.0 ** np.floor(np.log10(most)) / 2  # to a tick: no bar goes beyond the last
    top = step * np.ceil(most / step) if held.done else next_step(most)  # it stays
    ends = tuple(zip((1, len(wide)), words.ENDS, strict=True)) if held.done else ()
    return Chart(
        class_stems(wide, labels, np.arange(len(wide))), Axis(0.0, len(wide) + 1.0, ticks=ends),
        Axis(0.0, float(top), short=words.WIDTH), words.CLOSED_IN, picks=True,
        tips=words.places_told(made),
    )  # fmt: skip


def gauge(frame: Frame, held: Proof) -> Chart:
    """Return a bar up to what is left now, with marks: the least, and what is allowed."""
    if held.needed is None or held.cone is None or held.centre is None or held.refit is None:
        return NOTHING
    least, now, limit = held.cone.least.high, held.refit.high, held.limit
    # Room for most discs: the axis stays while one drags.
    top = next_step(max(1.15 * now, WIDE * limit, WIDE * least))
    marks = ((words.HERE, now), (words.LEAST, least), (words.limit_name(frame, held.needed), limit))
    ends = ((0.0, "0%"), (top, f"{100 * top:.3g}%"))
    at = {share(value): value for _, value in marks}  # of equal ones one mark has all names
    names = {value: " = ".join(name for name, v in marks if share(v) == value) for value in at}
    bars = [
        Series([0, end], [0, 0], colour=colour, look={"width": BAR})
        for end, colour in ((top, "line"), (now, "ink2"))
    ]
    named = [
        Series([at[value]], [0], name, "mark", value=value, colour="ink2", look={"above": not k})
        for k, (value, name) in enumerate(names.items())
    ]
    return Chart(
        [*bars, *named], Axis(0.0, top, percent=True, ticks=ends),
        UPRIGHT, words.GAUGE,
        words.SEARCHED if words.is_open(held) else "",
        label=f"{words.GAUGE} {words.HERE}: {share(now)}",
    )  # fmt: skip
