"""Where a point must be, looked for while one reads the verdict: the last act then answers soon."""

from __future__ import annotations

from functools import partial

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.needed import Needed
from explorer.engine.progress import Progress
from explorer.page.ask import Ask
from explorer.page.frame import Aim, Frame
from explorer.page.job import once, page_waits
from explorer.page.panels.base import Panel
from explorer.page.session import IN_CLASS
from explorer.page.stages.proof import commands as proof


class Ahead(Panel):
    """The places of the weights on screen, computed before they are asked for; nothing is seen.

    An attack that ended begins the search, and so does Explain; turning from one to the other lets
    it go on. It takes seconds of a processor: in a class it waits until a visitor asks.
    """

    stages = ("attack", "explain")

    def build(self) -> None:
        """Declare the search, of the weights on screen."""
        self.job = Ask(self, self.weights)
        self.widget = w.Box()

    def belongs(self, frame: Frame) -> bool:
        """Return whether nobody asks where a point must be: then that act looks for itself."""
        return super().belongs(frame) and frame.proof is None

    def render(self, frame: Frame) -> None:
        """Begin, unless these weights were looked at before, or their places are known."""
        target, aim = frame.target, frame.aim
        if target is None or aim is None or target is self.job.of or aim.needed is not None:
            return
        if IN_CLASS or not page_waits() or target.unit != 1 or obstacle(target):
            return
        if frame.stage == "explain" or self._is_judged(frame):
            self.job.begin(once(partial(places, target, aim)), partial(proof.keep, self.session))

    def retire(self, frame: Frame) -> None:
        """End the search elsewhere; it begins anew where one comes back."""
        if self.job.busy:
            self.job.cancel()
            self.job.of = None

    def _is_judged(self, frame: Frame) -> bool:
        """Return whether an attack has ended, and no work on its claims goes on."""
        ended = frame.status.over and not self.session.running
        rests = frame.is_told or frame.attack.certainty is not None
        return ended and self.session.truth_shown and rests


def places(target: Target, aim: Aim, progress: Progress) -> Needed:
    """Return all places that must hold a point, in steps."""
    *_, made, _ = proof.proofs(target, aim, progress)
    assert isinstance(made, Needed)
    return made
