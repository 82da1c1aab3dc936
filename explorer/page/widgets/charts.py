"""Charts in a cell of their own: how far each point is from the margin, and what claims recover."""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets as w
from traitlets import Float, Int, observe

from explorer.engine.charts import NOTHING, Chart
from explorer.engine.classes import outputs_for
from explorer.engine.controls import Controls, control_sets
from explorer.engine.data import Dataset
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.scoring import recall_curve
from explorer.engine.training import TrainState
from explorer.page.stages.attack.scoreboard import FoundView, dots
from explorer.page.view.chart import ChartView
from explorer.page.widgets.alone import (
    Alone,
    Checked,
    OfNetwork,
    OfPoints,
    as_claims,
    certified_trait,
    instance_of,
)
from explorer.research.pictures.charts import margins_chart
from explorer.research.runs import FARTHEST, NEAREST, RADIUS


class ChosenPoint(Alone):
    """A widget with a chart whose dots are points: one under the pointer or pressed is chosen."""

    selected = Int(-1, min=-1, help="index of the point under the pointer or pressed; -1: none")

    def _choose_by(self, view: ChartView) -> None:
        """Follow the pointer on a chart."""
        for kind in ("hover", "choose"):
            view.on(kind, lambda i: self.set_trait("selected", i))


class Margins(ChosenPoint, OfNetwork):
    """One stem a point: its margin over the smallest, sorted, in the colour of its class.

    Attributes:
        dataset: the points, x (n, d) in units of the data, and labels y (n,).
        network: whose margins; None for none.
        state: of training, which knows its margins; to set it is to set the network.
        selected: index of the point under the pointer; -1 for none.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> from explorer.widgets import Margins
        >>> data = preset("two-points")
        >>> chart = Margins(data, network=maximum_margin(data.x, data.y).net).view.shown
        >>> chart.note
        '2 of 2 on the margin, within 1%'
    """

    state = Checked(instance_of(TrainState, "training.init makes one."), help="of training")

    def __init__(self, dataset: Any = None, **traits: Any) -> None:  # noqa: ANN401 - see as_points
        """Show the margins of these points."""
        self.view = ChartView()
        self._choose_by(self.view)
        card = w.Box([self.view], _dom_classes=["mx-card"])
        super().__init__([card], "mx-alone-chart", dataset, **traits)

    @observe("dataset", "network")
    def _draw(self, _: dict[str, Any]) -> None:
        self.view.draw(self._chart(self.dataset, self.network))

    def _chart(self, data: Dataset, net: Network | None) -> Chart:
        if net is None or not data.n or (net.d, net.outputs) != (data.d, outputs_for(data.y)):
            return NOTHING
        state = self.state
        own = state is not None and state.net is net and len(state.q) == data.n
        return margins_chart(state.q if own else q_of(net, data.x, data.y), data.y)


def _as_controls(given: Any) -> Controls | None:  # noqa: ANN401 - of a trait
    if given is None or isinstance(given, Controls):
        return given
    if isinstance(given, Dataset):
        return Controls.of([given])
    if isinstance(given, list | tuple) and all(isinstance(one, Dataset) for one in given):
        return Controls.of(given)
    raise ValueError(
        f"expected Controls, a Dataset or a list of them; got {type(given).__name__}. "
        "control_sets(data) makes some of the points."
    )


class Recall(ChosenPoint, OfPoints):
    """How many points claims recover by how close counts, beside unseen points; a dot a point.

    Attributes:
        dataset: the truth, x (n, d) in units of the data, and labels y (n,).
        claims: what an attack claims: a Report, a state or a pair (x, y); None for none.
        unseen: sets that stand for chance; None for those that `control_sets` makes.
        certified: how certain the points are (`certified_points`), or None.
        radius: how close counts, in units of the data; the line of the chart is dragged.
        found: how many points are found within it, 0 to n.
        selected: index of the dot under the pointer or pressed; -1 for none.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> from explorer import preset
        >>> from explorer.widgets import Recall
        >>> data = preset("moons", n=10)
        >>> Recall(data, claims=(data.x[:4], data.y[:4])).found
        4
    """

    claims = Checked(as_claims, help="what an attack claims")
    unseen = Checked(_as_controls, help="sets that stand for chance; None: made of the points")
    certified = certified_trait()
    radius = Float(RADIUS, min=NEAREST, max=FARTHEST, help="how close counts, in units of the data")
    found = Int(0, min=0, read_only=True, help="how many points are found within the radius")

    def __init__(self, dataset: Any = None, **traits: Any) -> None:  # noqa: ANN401 - see as_points
        """Show what claims recover of these points."""
        self.view = FoundView().add_class("mx-card")
        self.view.curve.on("handle", lambda radius: self.set_trait("radius", radius))
        self._choose_by(self.view.dots)
        self._made: Controls | None = None  # of the points, where none are given
        super().__init__([self.view], "mx-alone-chart", dataset, **traits)
        self._count({"name": "claims"})

    @observe("dataset", "claims", "unseen", "certified")
    def _count(self, change: dict[str, Any]) -> None:
        """Count at all radii anew."""
        data, claims = self.dataset, self.claims
        if change["name"] == "dataset":
            self._made = None
        if claims is None or not data.n or claims.x.shape[1] != data.d:
            self.view.count(None)
        else:
            controls: Controls | None = self._made if self.unseen is None else self.unseen
            if controls is None:
                controls = self._made = control_sets(data)
            self.view.count(partial(recall_curve, data, controls, claims.x, claims.y))
        self._draw()

    @observe("radius")
    def _draw(self, _: Any = None) -> None:  # noqa: ANN401 - a change
        here = self.view.draw(self.radius)
        self.set_trait("found", 0 if here is None else int(here.found[0]))
        if here is not None:
            self.view.dots.draw(dots(here, self.certified))
