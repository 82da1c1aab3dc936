"""What a notebook reads of a page and does with it: its parts as traits, its clicks as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from traitlets import All, Bunch, HasTraits
from traitlets import Any as AnyTrait
from traitlets import link as Link
from traitlets import observe as on_change

from explorer.engine.data import empty
from explorer.engine.data.dataset import points_of
from explorer.engine.store import Run
from explorer.page import play
from explorer.page.frame import STAGES
from explorer.page.session import Session
from explorer.page.sharing.files import as_run
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as training
from explorer.page.widgets.alone import Checked, as_points

LOOK_S = 0.1  # between two frames of a run that a cell asks for; arbitrary


class MadeAnew(AnyTrait):
    """A read-only trait that is made when it is read: points, states and attack as a run."""

    def get(self, obj: Any, cls: Any = None) -> Run:  # noqa: ANN401 - as traitlets calls it
        """Return the run of this moment, as `save_run` takes it."""
        return as_run(obj.session)


class Instrument(HasTraits):
    """A page in the hands of a notebook.

    Attributes:
        dataset: the drawn points; to set them is an edit, which undo takes back.
        network: the trained network as it is now; None before.
        target: the attacked weights at margin 1, and all that an attack may see; None before.
        claims: what the attack claimed when it was judged last; None before.
        verdict: on these claims; None before, and where nobody told the points.
        certificate: of the network on the points; None before.
        energies: of all starts on a lattice (side, side), row noise and column truth; None before
            the landscape has computed them.
        run: points, settings, states and attack of this moment, as `save_run` takes them; who
            observes it hears of each moment at which nothing runs.
    """

    dataset = Checked(as_points, empty(2), help="the drawn points, in units of the data")
    network = AnyTrait(None, read_only=True, help="the trained network")
    target = AnyTrait(None, read_only=True, help="the attacked weights at margin 1")
    claims = AnyTrait(None, read_only=True, help="what the attack claimed when it was judged")
    verdict = AnyTrait(None, read_only=True, help="on these claims")
    certificate = AnyTrait(None, read_only=True, help="of the network on the points")
    energies = AnyTrait(None, read_only=True, help="of all starts, shares of the weights")
    run = MadeAnew(None, read_only=True, help="points, settings, states and attack")
    session: Session
    _heard = False  # whether anyone observes `run`: to make one takes a tenth of a second and more
    _told: tuple[Any, ...] = (None, None, None, None)  # the moment that its observers know

    def __repr__(self) -> str:
        now = self.session.frame
        return f"{type(self).__name__}({now.dataset.n} points, stage {now.stage!r}, step {now.t})"

    def observe(self, handler: Any, names: Any = All, type: Any = "change") -> None:  # noqa: ANN401
        """Call `handler` after a change of a trait, as traitlets do; see there."""
        super().observe(handler, names, type)
        self._heard = self._heard or (names is not All and "run" in [names, *names])

    def follow(self, session: Session) -> None:
        """Take up what each frame of the session holds."""
        self.session = session
        self._take(None)
        session.observe(self._take, names=["shown"])

    def _take(self, _: Any) -> None:  # noqa: ANN401 - a change
        now = self.session.frame
        held = {
            "network": None if now.training.state is None else now.training.state.net,
            "target": now.target, "claims": now.attack.claims, "verdict": now.attack.verdict,
            "certificate": now.training.certificate,
            "energies": None if now.starts is None else now.starts.energies,
        }  # fmt: skip
        with self.hold_trait_notifications():
            self.dataset = now.dataset
            for name, value in held.items():
                if getattr(self, name) is not value:
                    self.set_trait(name, value)
        parts = (now.dataset, now.training.state, now.attack.state, now.stage)
        rests = self._heard and not self.session.running
        if rests and any(a is not b for a, b in zip(parts, self._told, strict=True)):
            self._told = parts
            change = Bunch(name="run", old=None, new=self.run, owner=self, type="change")
            self.notify_change(change)

    @on_change("dataset")
    def _edit(self, change: dict[str, Any]) -> None:
        if change["new"] is not self.session.frame.dataset:
            draw.put(self.session, change["new"])

    # --- what clicks do -----------------------------------------------------------------------
    def draw(self, x: ArrayLike, y: ArrayLike) -> None:
        """Draw points, as clicks on the plane do.

        Args:
            x: places (n, d) in units of the data, or one place (d,).
            y: their labels (n,), or that of the one: 1, -1, and on the plane 3 and 4.

        Raises:
            ValueError: for a place or a label that the plane does not show.
        """
        places: Any = [x] if np.ndim(y) == 0 else x
        labels: list[float] = np.atleast_1d(np.asarray(y, dtype=float)).tolist()
        known = draw.classes(self.session)
        if unknown := set(labels) - {*known}:
            raise ValueError(f"labels here are {', '.join(map(str, known))}; got {min(unknown):g}")
        draw.add(self.session, zip(points_of(places).tolist(), labels, strict=True))

    def train(self, steps: int, **settings: Any) -> None:  # noqa: ANN401 - of TrainConfig
        """Turn to training, and take so many steps; the page shows them.

        Args:
            steps: how many, at most.
            settings: of `TrainConfig`, such as `widths=(20,)`; some begin the run anew.

        Raises:
            ValueError: without points, or for a setting that is refused.
        """
        if settings:
            training.configure(self.session, **settings)
        play.go(self.session, "train")
        self._advance(steps)

    def attack(self, name: str = "", steps: int | None = None, **settings: Any) -> None:  # noqa: ANN401
        """Turn to the attack, and take so many steps; then its claims are judged.

        Args:
            name: key in the roster, such as "kkt"; "" for the one on screen.
            steps: how many, at most; None for all that are planned. To take more is to plan them.
            settings: of the attack, such as `m=40`; the attack then begins anew.

        Raises:
            ValueError: without a network that separates the points, or for an attack or a setting
                that is refused.
        """
        play.go(self.session, "attack")
        if name:
            play.choose_attack(self.session, name)
        planned = self.session.entry.step_count(self.session.attack_config, 10**9)
        if steps is not None and steps > planned:
            settings = {**settings, "steps": steps}
        if settings:
            play.configure(self.session, **settings)
        self._advance(10**9 if steps is None else steps)

    def go(self, stage: str) -> None:
        """Turn to a stage: "draw", "train", "attack", "landscape", "explain" or "arena".

        Raises:
            ValueError: for another stage, or where what it needs is not there yet.
        """
        if stage not in STAGES:
            raise ValueError(f"a stage is one of {', '.join(STAGES)}; got {stage!r}")
        play.go(self.session, stage)

    def _advance(self, steps: int) -> None:
        """Take steps of the present stage, show some of them, and assess the last."""
        session, left = self.session, steps
        play.pause(session)
        while left > 0 and (taken := play.advance(session, seconds=LOOK_S, steps=left)):
            left -= taken
            session.show()
        play.assess(session)


def link(a: HasTraits, b: HasTraits, *names: str) -> list[Link]:
    """Keep traits of two pages or widgets equal: what is drawn on one is drawn on the other.

    Args:
        a: a page or a widget; its values hold at first.
        b: another one.
        names: of the traits, such as "dataset".

    Returns:
        A link for each name; its method `unlink` ends it.

    Raises:
        ValueError: for a name that one of them has not, or without one.

    Example:
        >>> from explorer import link, preset
        >>> from explorer.widgets import DrawingPad, Plane
        >>> pad, plane = DrawingPad(preset("two-points")), Plane()
        >>> links = link(pad, plane, "dataset")
        >>> plane.dataset is pad.dataset
        True
    """
    shared = sorted(
        name
        for name in set(a.trait_names()) & set(b.trait_names())
        if a.traits()[name].help and not (a.traits()[name].read_only or b.traits()[name].read_only)
    )
    unknown: Sequence[str] = [name for name in names if name not in shared]
    if unknown or not names:
        got = ", ".join(map(repr, unknown)) or "none"
        raise ValueError(f"both have the traits {', '.join(shared)}; got {got}")
    return [Link((a, name), (b, name)) for name in names]
