"""Where a point must be, looked for while one reads the verdict: the last act then answers soon."""

from __future__ import annotations

from functools import partial

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


class Ahead(Ask):
    """The places of the weights on screen, computed beside a panel before they are asked for.

    It takes seconds of a processor: in a class it waits until a visitor asks.
    """

    def __init__(self, panel: Panel) -> None:
        """Declare it, of the weights on screen."""
        super().__init__(panel, panel.weights)
        self.session = panel.session

    def look(self, frame: Frame) -> None:
        """Begin, unless these weights were looked at before, or their places are known."""
        target, aim = frame.target, frame.aim
        if target is None or aim is None or target is self.of or aim.needed is not None:
            return
        if IN_CLASS or not page_waits() or target.unit != 1 or obstacle(target):
            return
        self.begin(once(partial(places, target, aim)), partial(proof.keep, self.session))


def places(target: Target, aim: Aim, progress: Progress) -> Needed:
    """Return all places that must hold a point, in steps."""
    *_, made, _ = proof.proofs(target, aim, progress)
    assert isinstance(made, Needed)
    return made
