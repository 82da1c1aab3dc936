"""What the digits page draws: pairs of images, the first layer, a scatter, shares as bars."""

from __future__ import annotations

from html import escape

import bqplot as bq
import ipywidgets as w
import numpy as np
from torch import Tensor

from explorer.engine.data.images import Draw
from explorer.engine.images import NCC_LEAST, SSIM_LEAST
from explorer.engine.network import Network
from explorer.page.parts.membership_charts import NOWHERE, figure, line
from explorer.research import image_sheets
from explorer.research.image_runs import VOTES, Scored
from explorer.style import CONTROL, CURVES, INK, NEGATIVE, POSITIVE, PROVEN

MATCHED, STARTED = PROVEN, CURVES[3]
COLUMNS, NEURONS = 10, 30  # arbitrary: pairs per row, first-layer neurons shown
MOST = 3.0  # arbitrary: outputs beyond 3 margins are drawn at the edge
PIXELATED = """<style>.mx-sheet img, img.mx-sheet {image-rendering: pixelated; max-width: 100%;
height: auto; display: block;}</style>"""


class Sheet:
    """One PNG with text above it; without a picture there is only the text."""

    def __init__(self, words: str) -> None:
        """Make it with the text of the empty state."""
        self._empty = words
        self.title = w.HTML(words).add_class("mx-note")
        self._image = w.Image(format="png", layout=w.Layout(max_width="100%", height="auto"))
        self._image.add_class("mx-sheet")
        self.widget = w.VBox([self.title], layout=w.Layout(min_width="0")).add_class("mx-card")

    def show(self, title: str, sheet: image_sheets.Pixels) -> None:
        """Draw the picture, with the title in html."""
        self.title.value = title
        self._image.value = image_sheets.png(sheet)
        if len(self.widget.children) == 1:
            self.widget.children = (self.title, self._image)

    def clear(self) -> None:
        """Return to the empty state."""
        self.title.value = self._empty
        self.widget.children = (self.title,)


class Gallery(Sheet):
    """Training images, and below each its reconstruction, best SSIM first."""

    def __init__(self) -> None:
        """Empty."""
        super().__init__("No images drawn.")

    def only(self, draw: Draw) -> None:
        """Show the training images alone, framed by class if there are two."""
        colours = ["" if y > 1 else POSITIVE if y > 0 else NEGATIVE for y in draw.train.y.tolist()]
        sheet = image_sheets.pairs(draw.pictures(draw.train.x), None, colours, COLUMNS)
        classes = "" if draw.choice.task == "ten" else (
            f" Frames: <span style='color:{POSITIVE}'>■</span> class +1, "
            f"<span style='color:{NEGATIVE}'>■</span> class −1."
        )  # fmt: skip
        self.show(f"The {draw.train.n} training images, which the attacker never sees.{classes}",
                  sheet)  # fmt: skip

    def compare(self, draw: Draw, found: Scored) -> None:
        """Show pairs: above the training image, below its reconstruction."""
        order = found.truth.ssim.argsort(descending=True, stable=True)
        colours = [MATCHED if m else "" for m in found.truth.matched[order].tolist()]
        sheet = image_sheets.pairs(
            draw.pictures(draw.train.x)[order], found.truth.images[order], colours, COLUMNS
        )
        self.show(
            f"Above each training image, below it {VOTES[found.vote]}, best SSIM first. "
            f"<span style='color:{MATCHED}'>■</span> matched: SSIM above {SSIM_LEAST:g} and NCC "
            f"above {NCC_LEAST:g} (the correlation of their pixels).",
            sheet,
        )


class Neurons(Sheet):
    """The first layer's weights as images."""

    def __init__(self) -> None:
        """Empty."""
        super().__init__("First layer: train a network to see what its neurons look for.")

    def draw(self, net: Network, shape: tuple[int, int, int], numbers: int, unknown: int) -> None:
        """Show the neurons of largest weights, and how many numbers they hold."""
        rows = image_sheets.strongest(net.weights[0], NEURONS)
        few = ", too few to determine them." if numbers < unknown else "."
        self.show(
            f"First layer: the {len(rows)} neurons of largest weights, grey is 0. With parallel "
            f"neurons merged the weights are {numbers:,} numbers, the images {unknown:,}{few}",
            image_sheets.weights(rows, shape, COLUMNS),
        )


def _scatter(scales: dict[str, bq.Scale], colour: str) -> bq.Scatter:
    return bq.Scatter(x=np.zeros(0), y=np.zeros(0), scales=scales, colors=[colour],
                      default_size=40, stroke="white")  # fmt: skip


class OutputChart:
    """Best SSIM of each training image against the network's output (Haim et al. 2022)."""

    def __init__(self) -> None:
        """Dots of both classes, and the limit of a match."""
        self._x, y = bq.LinearScale(min=-MOST, max=MOST), bq.LinearScale(min=-0.2, max=1)
        scales = {"x": self._x, "y": y}
        self._limit = line(scales, INK, 1.5, line_style="dashed")
        self._limit.x, self._limit.y = np.array([-MOST, MOST]), np.full(2, SSIM_LEAST)
        self.dots = _scatter(scales, CONTROL), _scatter(scales, MATCHED)
        bottom = bq.Axis(scale=self._x, label="output Φ / margin", grid_lines="none",
                         tick_values=[-3, -2, -1, 0, 1, 2, 3], label_offset="2.2em")  # fmt: skip
        left = bq.Axis(scale=y, label="best SSIM", side="left", grid_lines="none",
                       tick_values=[0, 0.4, 1], label_offset="3em", tick_format="~g")  # fmt: skip
        self.figure = figure([self._limit, *self.dots], bottom, left)

    def show(self, found: Scored | None) -> None:
        """Draw, or nothing."""
        for mark, wanted in zip(self.dots, (False, True), strict=True):
            x, y = np.zeros(0), np.zeros(0)
            if found is not None:
                mine: Tensor = found.truth.matched == wanted
                x = found.outputs[mine].clamp(-MOST, MOST).numpy()
                y = found.truth.ssim[mine].clamp_min(-0.2).numpy()
            with mark.hold_sync():
                mark.x, mark.y = x, y


class ShareChart:
    """The share matched of the training images, of unseen images, of images of the start."""

    NAMES = ("training images", "unseen images", "start's images")

    def __init__(self) -> None:
        """Three bars; whiskers from the lowest to the highest unseen set."""
        x, y = bq.LinearScale(min=0.4, max=3.6), bq.LinearScale(min=0, max=1)
        scales = {"x": x, "y": y}
        self._bars = [line(scales, c, 34) for c in (MATCHED, CONTROL, STARTED)]
        self._span = line(scales, INK, 2)
        bottom = bq.Axis(scale=x, grid_lines="none", tick_values=[1, 2, 3],
                         tick_style={"display": "none"})  # fmt: skip
        left = bq.Axis(scale=y, label="share matched", side="left", grid_lines="none",
                       tick_values=[0, 0.25, 0.5, 0.75, 1], tick_format=".0%",
                       label_offset="3.4em")  # fmt: skip
        self.figure = figure([*self._bars, self._span], bottom, left)

    def show(self, found: Scored | None, started: bool) -> None:
        """Draw, or nothing; the third bar only where the attack began at those images."""
        shares = (0.0, 0.0, 0.0)
        ends = NOWHERE
        if found is not None:
            shares = (found.truth.share, found.chance, found.other.share if started else 0.0)
            each = [c.share for c in found.controls]
            ends = np.full(2, 2.0), np.array([min(each), max(each)])
        for k, (mark, share) in enumerate(zip(self._bars, shares, strict=True), 1):
            with mark.hold_sync():
                mark.x = np.full(2, float(k))
                mark.y = np.array([0.0, share]) if share else NOWHERE[1]
        with self._span.hold_sync():
            self._span.x, self._span.y = ends


def legend(title: str, *entries: tuple[str, str]) -> str:
    """Return a chart's title with the meaning of its colours."""
    marks = " ".join(
        f"<span style='font-weight:400;white-space:nowrap'><span style='color:{colour}'>■</span> "
        f"{escape(words)}</span>"
        for colour, words in entries
    )
    return f"{escape(title)} {marks}"
