"""What the digits page shows below its controls: images, charts and the first layer as one."""

from __future__ import annotations

import ipywidgets as w

from explorer.engine.data.images import Draw
from explorer.engine.network import Network
from explorer.page.parts.digits_charts import (
    MATCHED,
    STARTED,
    Gallery,
    Neurons,
    OutputChart,
    ShareChart,
    legend,
)
from explorer.research.image_runs import KNOWS, Scored, carried
from explorer.style import CONTROL

THEOREM = (
    "<b>Theorem</b> (Lyu and Li 2020; restated). <b>Assumes</b> a homogeneous network (biases in "
    "the first layer only), gradient flow on the exponential or logistic loss, and all images "
    "separated at some time. <b>Then</b> the weights converge in direction to a KKT point, "
    "θ = Σᵢ λᵢ yᵢ ∇Φ(θ; xᵢ) with λᵢ ≥ 0, a sum over training images. The attack (Haim et al. 2022) "
    "looks for images that explain θ so; <b>nothing says that no other images do</b>, and a "
    f"network after finite time is no KKT point. The attacker is given {KNOWS}."
)


class Board:
    """Gallery, charts and first layer."""

    def __init__(self) -> None:
        """Empty."""
        self.gallery, self.neurons = Gallery(), Neurons()
        self.outputs, self.shares = OutputChart(), ShareChart()
        titled = (
            (legend("Best SSIM against output", (MATCHED, "matched"),
                    (CONTROL, "not")), self.outputs.figure),
            (legend("Share matched", (MATCHED, "training images"), (CONTROL, "held-out images"),
                    (STARTED, "images of the start")), self.shares.figure),
        )  # fmt: skip
        charts = w.HBox([
            w.VBox([w.HTML(text).add_class("mx-chart-title"), figure],
                   layout=w.Layout(overflow="visible", min_width="0"))
            for text, figure in titled
        ]).add_class("mx-charts")  # fmt: skip
        charts.layout.grid_template_columns = "repeat(auto-fit, minmax(min(100%, 250px), 1fr))"
        right = w.VBox([charts, self.neurons.widget], layout=w.Layout(overflow="visible"))
        body = w.HBox([self.gallery.widget, right]).add_class("mx-charts")
        body.layout.grid_template_columns = "repeat(auto-fit, minmax(min(100%, 560px), 1fr))"
        self.widget = w.VBox([body], layout=w.Layout(overflow="visible"))

    def nothing(self) -> None:
        """No images."""
        self.gallery.clear()
        self.neurons.clear()
        self.images(None)

    def images(self, draw: Draw | None) -> None:
        """The training images alone: there is no attack to compare them with."""
        self.outputs.show(None)
        self.shares.show(None, False)
        if draw is not None:
            self.gallery.only(draw)

    def network(self, draw: Draw, net: Network) -> None:
        """The first layer, and how much the weights hold."""
        self.neurons.draw(net, draw.shape, carried(net), draw.train.n * draw.train.d)

    def attack(self, draw: Draw, found: Scored, partition: bool) -> None:
        """Candidates beside their matches, and both charts."""
        self.gallery.compare(draw, found)
        self.outputs.show(found)
        self.shares.show(found, partition)
