"""The weights in a cell of their own: needles, and what the points add up to."""

from __future__ import annotations

from typing import Any

from traitlets import observe

from explorer.page.plane.band import show_needles
from explorer.page.plane.weights import shown_with
from explorer.page.view.canvases import BandView
from explorer.page.widgets.alone import OfNetwork, certificate_trait
from explorer.research.pictures.axes import Axes, axes_for


class Needles(OfNetwork):
    """The first layer of a network as needles, and the points that its weights are made of.

    Attributes:
        dataset: the points, x (n, d) in units of the data with d 1 or 2, and labels y (n,).
        network: of two layers or more, on points of the same d. None for none.
        certificate: of the network on the points: what they leave over glows. None for none.
        state: of training: to set it is to set the network.

    Raises:
        TraitError: for a value that a trait does not take; the old one stays.

    Example:
        >>> from explorer import certify, maximum_margin, preset
        >>> from explorer.widgets import Needles
        >>> data = preset("alternating-line", n=3)
        >>> net = maximum_margin(data.x, data.y).net
        >>> shown = Needles(data, network=net, certificate=certify(net, data.x, data.y))
        >>> shown.view.frame["left"]
        'unexplained less than 10⁻¹²'
    """

    certificate = certificate_trait()

    def __init__(self, dataset: Any = None, **traits: Any) -> None:  # noqa: ANN401 - see as_points
        """Show the weights of these points' network."""
        self.view = BandView()
        self.view.layout.height = "180px"
        super().__init__([self.view], "mx-alone-needles", dataset, **traits)
        self._draw()

    @observe("dataset", "network", "certificate")
    def _draw(self, _: Any = None) -> None:  # noqa: ANN401 - a change
        net, data = self.network, self.dataset
        if "view" not in vars(self) or net is None or net.d != data.d or len(net.weights) < 2:
            return
        axes = axes_for(Axes(), data, loaded=True)
        show_needles(self.view, shown_with(net, data, self.certificate), axes)
