"""The plane in a cell of its own: points, a network between them, what an attack found."""

from __future__ import annotations

from typing import Any

import ipywidgets as w
import numpy as np
import torch
from traitlets import Int, Tuple, observe

from explorer.engine.arrays import Arrays, as_array
from explorer.engine.attacks.shapes import Shapes
from explorer.engine.data import Dataset
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.scoring import score
from explorer.engine.training import TrainState
from explorer.page.frame import LAYERS
from explorer.page.plane import marks
from explorer.page.plane.hands import presses
from explorer.page.plane.scene import (
    KeptBackdrop,
    Look,
    candidate_rows,
    ground,
    margin_unit,
    point_rows,
    whole,
)
from explorer.page.stages.train.commands import check_shown
from explorer.page.view.canvases import PlaneView
from explorer.page.widgets.alone import (
    Checked,
    OfNetwork,
    as_claims,
    certificate_trait,
    certified_trait,
    instance_of,
)
from explorer.research.pictures.axes import Axes, axes_for
from explorer.research.pictures.fields import places_of
from explorer.research.runs import RADIUS

TIP = "Press a point to choose it."


def _as_network(given: Any) -> Network | None:  # noqa: ANN401 - of a trait
    net: Network | None = instance_of(Network, "A state of training has one: state.net.")(given)
    if net is not None:
        check_shown(net)
    return net


class Plane(OfNetwork):
    """Points on a plane or a line, and what is given of network, attack and certificates.

    Attributes:
        dataset: the points, x (n, d) in units of the data with d 1 or 2, and labels y (n,).
        network: drawn as the map of Phi over the margin with the lines of its neurons; on a line as
            its graph. None for none.
        candidates: points that an attack tries, with x (m, d), y and multipliers lam (m,): a state,
            a Report or a pair (x, y).
        claims: what an attack claims, likewise: each is marked found or wrong by the points, within
            0.03.
        certified: how certain the points are (`certified_points`), or None.
        certificate: of the network on the points, whose multipliers make them larger; or None.
        state: of training or of an attack: to set it is to set network or candidates.
        layers: what is drawn behind the points, of "map", "margins", "lines" and "trails".
        selected: index of the chosen point; -1 for none. A press chooses.
        clicked: where the plane was pressed last, in units of the data; () before.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> from explorer.widgets import Plane
        >>> data = preset("alternating-circle", n=6)
        >>> plane = Plane(data, network=maximum_margin(data.x, data.y).net)
        >>> plane.network.d
        2
    """

    network = Checked(_as_network, help="the network that is drawn")
    candidates = Checked(as_claims, help="points that an attack tries")
    claims = Checked(as_claims, help="what an attack claims")
    certified, certificate = certified_trait(), certificate_trait()
    layers = Tuple(default_value=tuple(LAYERS), help="what is drawn behind the points")
    selected = Int(-1, min=-1, help="index of the chosen point; -1: none")
    clicked = Tuple(help="where the plane was pressed last, in units of the data")

    def __init__(self, dataset: Any = None, **traits: Any) -> None:  # noqa: ANN401 - see as_points
        """Show these points, and what is given."""
        self.axes = Axes()
        self.view = PlaneView(tip=TIP, echo=False, cursor="pointer").add_class("mx-plane")
        self.view.on("events", self._on_events)
        self._behind = KeptBackdrop()
        stage = w.Box([self.view], _dom_classes=["mx-stage"])
        super().__init__([stage], "mx-alone-plane", dataset, **traits)
        self._draw()

    @observe("state")
    def _take(self, change: dict[str, Any]) -> None:
        if not isinstance(change["new"], TrainState):
            self.candidates = change["new"]

    @observe(
        "dataset", "network", "candidates", "claims", "certified", "certificate", "layers",
        "selected",
    )  # fmt: skip
    def _follow(self, change: dict[str, Any]) -> None:
        if change["name"] == "dataset":
            self.axes = axes_for(self.axes, self.dataset, loaded=True)
        self._draw()

    def _draw(self) -> None:
        """Show all that is given and is of the dimension of the points: one message."""
        if "view" not in vars(self):
            return
        data, axes = self.dataset, self.axes
        values = ground(axes, data.d == 1, margins="margins" in self.layers)
        values["hollow"] = self.candidates is not None or self.claims is not None
        arrays = dict(self._backdrop(data, axes))
        made = self.certificate
        lam = as_array(made.lam) if made is not None and len(made.lam) == data.n else None
        arrays["points"] = point_rows(data, axes, lam)
        tried, claims = self.candidates, self.claims
        if tried is not None and tried.x.shape[1] == data.d:
            arrays["candidates"] = candidate_rows(tried, axes, np.ones(len(tried.y)))
            if "trails" in self.layers and isinstance(getattr(tried, "t", None), int):
                values["trail"] = tried.t
        if claims is not None and claims.x.shape[1] == data.d:
            arrays |= self._marks(data, axes, values)
        hand = places_of(data.x, data.y)[self.selected : self.selected + 1]
        arrays, values = whole(arrays, values, Shapes(hands=hand), axes)
        self.view.label = f"Plane with {data.n} points. {TIP}"
        self.view.show(arrays, **values)

    def _backdrop(self, data: Dataset, axes: Axes) -> Arrays:
        """Return what stands behind the points."""
        net = self.network
        if net is None or net.d != data.d:
            return {}
        fits = data.n and net.outputs == data.outputs
        unit = margin_unit(q_of(net, data.x, data.y)) if fits else 1.0
        look = Look(self.layers, running=isinstance(self.state, TrainState))
        return self._behind.of(net, unit, axes, look)

    def _marks(self, data: Dataset, axes: Axes, values: dict[str, Any]) -> Arrays:
        """Return the marks of the claims: found or wrong, and what is certified."""
        claims = self.claims
        if not data.n:
            kinds = np.full(len(claims.x), marks.UNKNOWN)
            return {"claims": np.column_stack([marks.shares_of(claims.x, claims.y, axes), kinds])}
        match = score(data, claims.x, claims.y, (RADIUS,)).matches[0].numpy()
        kinds = marks.claim_kinds(claims, data, match, RADIUS)
        made = self.certified
        known = made if made is not None and len(made.radius) == data.n else None
        return marks.truth_marks(claims, data, kinds, match, known, axes, values)

    def _on_events(self, content: Any) -> None:  # noqa: ANN401 - from a browser
        """Choose the point that is pressed."""
        for event, near in presses(content, self.dataset.x, self.axes):
            self.clicked = tuple(torch.tensor(event.at).tolist()[: self.dataset.d])
            self.selected = near
