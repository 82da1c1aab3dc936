"""The triangle of starts in a cell of its own: energies, a handle, and attacks from there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from traitlets import Any as AnyTrait
from traitlets import Float, TraitError, Tuple, observe, validate

from explorer.engine.attacks.target import Target
from explorer.engine.controls import Controls, control_sets
from explorer.engine.data import Dataset
from explorer.engine.energy.landscape import Weights
from explorer.engine.roster import DEFAULT, by_key
from explorer.page.frame import Aim
from explorer.page.panels.notice import Notice
from explorer.page.session import Session
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.starts import StartsPanel
from explorer.page.view.canvases import weights_in
from explorer.page.widgets.alone import Alone, as_points

NEAR = 1e-6  # of a sum of 1; arbitrary: rounding of three shares


class Landscape(Alone):
    """The energy of every mixture of truth, unseen points and noise, on a triangle with a handle.

    Its buttons run the attack from the handle, and from all places at once, as on the page.

    Attributes:
        start: shares of truth, unseen points and noise where the handle is; they sum to 1.
        energy: of the candidates there, a share of the weights that they leave unexplained.
        energies: of all starts on a lattice (side, side), row noise and column truth; None before
            they are computed.
        end: candidates to which the last attack from the handle has come, with x (m, d), y and
            multipliers lam (m,); None before.

    Raises:
        ValueError: for weights without energies, or points that the plane does not show.
        TraitError: for shares that are negative or do not sum to 1; the old ones stay.

    Example:
        >>> from explorer import Target, maximum_margin, preset
        >>> from explorer.widgets import Landscape
        >>> data = preset("alternating-circle", n=6)
        >>> triangle = Landscape(Target.of(maximum_margin(data.x, data.y).net, 1.0), data)
        >>> triangle.start = (1, 0, 0)
        >>> triangle.energy < 1e-6
        True
    """

    start = Tuple(
        Float(), Float(), Float(), default_value=(0.0, 0.0, 1.0),
        help="shares of truth, unseen points and noise; they sum to 1",
    )  # fmt: skip
    energy = Float(0.0, read_only=True, help="share of the weights that the start leaves")
    energies = AnyTrait(None, read_only=True, help="of all starts (side, side)")
    end = AnyTrait(None, read_only=True, help="where the last attack from the handle has come")

    def __init__(
        self, target: Target, data: Any, unseen: Dataset | None = None, **traits: Any,  # noqa: ANN401
    ) -> None:  # fmt: skip
        """Show the starts of attacks on a target.

        Args:
            target: the attacked weights at margin 1.
            data: the points that they were trained on: a Dataset or a pair (x, y).
            unseen: points of the same kind, to start from; made of the points by default.
            traits: of the widget.
        """
        truth = as_points(data)
        controls = control_sets(truth) if unseen is None else Controls.of([unseen])
        config = replace(by_key(DEFAULT).config(), m=2 * truth.n)
        self.session = Session(truth, attack_config=config)
        self.session.put(stage="landscape", aim=Aim(target.net, target, truth, controls))
        landscape.begin(self.session)
        landscape.starts(self.session)
        self.panels = (StartsPanel(self.session), Notice(self.session))
        boxes = [panel.box for panel in self.panels]
        super().__init__(boxes, "mx-alone-starts", **traits)
        self._take(None)
        self.session.observe(self._take, names=["shown"])

    @validate("start")
    def _check(self, proposal: dict[str, Any]) -> Weights:
        given = proposal["value"]
        kept = weights_in(list(given))
        if kept is None or min(given) < 0 or abs(sum(given) - 1) > NEAR:
            raise TraitError(
                "start: three shares of truth, unseen points and noise must be 0 or more and sum "
                f"to 1; got {tuple(given)}"
            )
        return kept

    @observe("start")
    def _move(self, change: dict[str, Any]) -> None:
        if self.panels and change["new"] != landscape.starts(self.session).weights:
            landscape.place_handle(self.session, change["new"])

    def _take(self, _: Any) -> None:  # noqa: ANN401 - a change
        """Take up where the handle is, its energy, and where a run from there has come."""
        held = self.session.frame.starts
        if held is None:  # an attack without starts: the panel offers others
            return
        with self.hold_trait_notifications():
            self.start = held.weights
            self.set_trait("energy", held.energy)
            if self.energies is not held.energies:
                self.set_trait("energies", held.energies)
            if held.trail:
                self.set_trait("end", held.candidates)
