"""What the attack found, by how close counts, beside what is found among unseen points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import ipywidgets as w
import numpy as np
from numpy.typing import NDArray

from explorer.engine.charts import A_ROW, NOTHING, Chart
from explorer.engine.controls import Controls
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.progress import Progress
from explorer.engine.roster import AttackState
from explorer.engine.scoring import RADII, RecallCurve, Verdict, recall_curve
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Aim, Frame
from explorer.page.job import once, page_waits
from explorer.page.panels.base import Panel
from explorer.page.plane.marks import traceless_points
from explorer.page.session import IN_CLASS
from explorer.page.stages.attack.found_words import (
    CERTIFY,
    CERTIFY_TIP,
    NOT_YET,
    certainty_words,
    points_found,
    within,
)
from explorer.page.view.chart import ChartView
from explorer.research.pictures.charts import dot_chart, empty_recall, recall_chart
from explorer.research.runs import (
    FARTHEST,
    FINE,
    NEAREST,
    RADIUS,
    certified_points,
    certify_claims,
    judged_places,
)
from explorer.research.words import verdicts

COARSE = (NEAREST, *RADII, FARTHEST)  # while the attack runs
FEW = 50  # points: of more, all controls at all radii would take half a second; arbitrary
WAITING = "The curve is drawn as the attack runs."


class FoundView(w.VBox):
    """What was found by how close counts, and one dot a point, below each other."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self.curve, self.dots = ChartView(), ChartView(_dom_classes=["mx-dots"])
        self.met: Callable[[tuple[float, ...]], RecallCurve] | None = None  # at some radii
        super().__init__([self.curve, self.dots], _dom_classes=["mx-found"])

    def count(
        self, met: Callable[[tuple[float, ...]], RecallCurve] | None, radii: Sequence[float] = FINE
    ) -> None:
        """Take what counts finds at some radii, and count at these; None where nothing can be."""
        self.met, self._whole = met, None if met is None else met(tuple(radii))

    def draw(self, radius: float, n: int = 1, told: float | None = None) -> RecallCurve | None:
        """Draw the curve with this radius; return what is found within it, of n points.

        Args:
            radius: how close counts.
            n: so many points, where there is no count.
            told: the radius whose counts stand elsewhere on the screen; they are not said again.
        """
        here = None if self.met is None else self.met((radius,))
        if here is None or self._whole is None:
            self.curve.draw(replace(empty_recall(n, FINE), foot=WAITING))
            self.dots.draw(NOTHING)
        else:
            said = "" if radius == told else within(here)
            self.curve.draw(recall_chart(self._whole, here, said))
        return here


class Scoreboard(Panel):
    """Recall against distance with its control, and one dot a point that fills when it is found.

    Attributes:
        radius: how close counts, as the line was dragged.
    """

    stages = ("attack",)

    def build(self) -> None:
        """Make the curve and the row of dots; a line in the curve decides for both."""
        self.radius = RADIUS
        self._of: tuple[Verdict | None, bool, int] = (None, False, 0)
        self.job = Ask(self)
        self._asked: AttackState | None = None  # whose claims were asked for last
        self.job.observe(self._tell)
        self.view = FoundView()
        self.view.curve.on("handle", self._set_radius)
        self.view.dots.on("hover", lambda i: self.session.choose(pointed=i))
        self._wanted: AttackState | None = None  # whose claims a visitor of a class asked for
        self.ask = Row(
            (),
            said=Item("words", value=NOT_YET),
            ask=Item("button", CERTIFY, CERTIFY_TIP, call=self.command(self._ask)),
        )
        self.widget = self.view

    def belongs(self, frame: Frame) -> bool:
        """Return whether there is anything to tell: not while the points are to be guessed."""
        return super().belongs(frame) and self.session.truth_shown

    def _set_radius(self, radius: float) -> None:
        self.radius = radius
        self.do(self._show)

    def render(self, frame: Frame) -> None:
        """Compute the curve when there is a new verdict; a running attack gets a coarse one."""
        self._certify(frame)
        tells = self.session.lesson is None or _has_counts(frame)
        verdict = frame.attack.verdict if tells else None
        of = verdict, self.session.running, _count(frame)
        if of == self._of:
            return
        self._of, met = of, None
        aim, claims = frame.aim, frame.attack.claims  # those of the headline, not of a later step
        if aim is not None and claims is not None and verdict is not None:
            met = partial(recall_curve, aim.truth, controls_of(aim, verdict), claims.x, claims.y)
        self.view.count(met, COARSE if self.session.running else FINE)
        self._show()

    def _show(self) -> None:
        self.view.draw(self.radius, _count(self.session.frame), told=RADIUS)
        self._tell()

    # --- how certain they are -------------------------------------------------------------------
    def retire(self, frame: Frame) -> None:
        """End the work on another stage."""
        self.job.cancel()
        self._asked = None

    def _certify(self, frame: Frame) -> None:
        """Begin to compute how certain the claims are, where they are places or nobody told points.

        It begins once the run has ended, and any edit ends it. It takes ten seconds of a processor:
        in a class it waits until a visitor asks for it. Where points must be, Explain says.
        """
        part, target, truth = frame.attack, frame.target, frame.truth
        known = frame.certainty if frame.is_told else part.certainty
        state, claims = part.judged, part.claims
        new = (
            state is not None and self._rests(frame, state) and known is None
            and self._asked is not state and target is not None and page_waits()
            and not obstacle(target)
            and (truth is None or not truth.n or judged_places(state, truth, None) is not None)
        )  # fmt: skip
        waits = new and IN_CLASS and self._wanted is not state
        self.view.children = [self.view.curve, self.view.dots, *([self.ask] if waits else [])]
        if not new or waits or state is None:
            return
        self._asked = state

        def certainty(progress: Progress) -> Certainty:
            assert claims is not None and target is not None
            if frame.is_told and truth is not None:
                return certified_points(target, truth, progress=progress)
            return certify_claims(target, claims, progress=progress)

        self.job.begin(
            once(certainty),
            partial(play.take_certainty, self.session),
            stale=lambda: not self._rests(self.session.frame, state),
        )

    def _ask(self) -> None:
        """Certify the claims on screen, as a visitor of a class asks."""
        self._wanted = self.session.frame.attack.judged
        self._certify(self.session.frame)

    def _rests(self, frame: Frame, state: AttackState) -> bool:
        """Return whether a run has ended at this state with claims on these weights."""
        part = frame.attack
        return (
            frame.stage == "attack" and not self.session.running and frame.status.over
            and part.judged is state and part.state is state and part.claims is not None
            and len(part.claims.x) > 0 and self.session.entry.own is None
        )  # fmt: skip

    def _tell(self) -> None:
        """Draw the dots."""
        if self.view.met is None:
            return
        frame = self.session.frame
        here = self.view.met((self.radius,))
        begun = frame.attack.state is not None and frame.attack.state.t > 0
        gone = traceless_points(frame, here.n) if begun else None  # nothing is written off before
        sure = verdicts.is_sure(frame.attack.verdict)
        self.view.dots.draw(dots(here, gone=gone, sure=sure))


def _count(frame: Frame) -> int:
    return 0 if frame.truth is None else frame.truth.n


def _has_counts(frame: Frame) -> bool:
    """Return whether an attack began, or stands at points that count as found."""
    part = frame.attack
    begun = part.state is not None and part.state.t > 0
    return begun or (part.verdict is not None and part.verdict.found > 0)


def controls_of(aim: Aim, verdict: Verdict) -> Controls:
    """Return the controls that the verdict is set against; of many points the first of them."""
    more = verdict.controls > len(aim.controls) and aim.truth.n <= FEW
    ways = (aim.controls.most if more else aim.controls).ways
    return next((way for way in ways if way.origin is verdict.origin), ways[0])


def dots(
    here: RecallCurve, made: Certainty | None = None,
    gone: NDArray[np.bool_] | None = None, sure: bool = True,
) -> Chart:  # fmt: skip
    """Return one dot a training point: full where recovered, ringed and ticked where certified.

    Args:
        here: the counts at the one radius of the line.
        made: how certain the points are; None where it is not known.
        gone: which points (n,) leave no trace in the weights; None where that is not known.
        sure: whether chance is ruled out.
    """
    n, met = here.n, here.met[0].numpy()
    size = 6.0 if n <= A_ROW else 3.5
    certain = np.zeros(n, dtype=bool) if made is None else made.certain.numpy()
    lost = np.zeros(n, dtype=bool) if gone is None else gone & ~met
    kinds = (
        ("no trace", "ink3", {"size": 0.4 * size}, lost),
        ("recovered", "good" if sure else "ink2", {"size": size}, met),
        ("not recovered", "ink3", {"size": size, "hollow": True}, ~met & ~lost),
        ("certified", "good", {"size": 1.5 * size, "hollow": True}, certain),
        ("", "card", {"size": size, "shape": "tick"}, certain & met),
        ("", "good", {"size": size, "shape": "tick"}, certain & ~met),
    )
    signs = (("● recovered", met), ("○ not recovered", ~met & ~lost), ("· no trace", lost))
    foot = "   ".join(what for what, which in signs if which.any())
    if made is not None:
        foot = certainty_words(made, met)
    said = f"{int(met.sum())} of {n} points recovered. {foot}".rstrip()
    return dot_chart(n, kinds, foot=foot, tips=points_found(here, made), label=said)
