"""What the digits page draws: pairs of images, the first layer, a scatter, shares as bars."""

from __future__ import annotations

import ipywidgets as w

from explorer.engine.data.images import Draw
from explorer.engine.images import MEASURES
from explorer.engine.network import Network
from explorer.research.image_runs import VOTES, ImageComparison
from explorer.research.pictures import image_sheets
from explorer.style import NEGATIVE, POSITIVE, PROVEN

COLUMNS, NEURONS = 10, 30  # arbitrary: pairs per row, first-layer neurons shown
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
        """Make the sheet, empty."""
        super().__init__("No images drawn.")

    def only(self, draw: Draw) -> None:
        """Show the training images alone, framed by class if there are two."""
        colours = ["" if y > 1 else POSITIVE if y > 0 else NEGATIVE for y in draw.train.y.tolist()]
        sheet = image_sheets.pairs(draw.pictures(draw.train.x), None, colours, COLUMNS)
        classes = "" if draw.choice.task == "ten" else (
            f" Frames: <span style='color:{POSITIVE}'>■</span> class +1, "
            f"<span style='color:{NEGATIVE}'>■</span> class −1."
        )  # fmt: skip
        self.show(
            f"The {draw.train.n} training images, which the attacker never sees.{classes}", sheet
        )

    def compare(self, draw: Draw, found: ImageComparison) -> None:
        """Show pairs: above the training image, below its reconstruction."""
        order = found.truth.ssim.argsort(descending=True, stable=True)
        colours = [PROVEN if m else "" for m in found.matched[order].tolist()]
        sheet = image_sheets.pairs(
            draw.pictures(draw.train.x)[order], found.truth.images[order], colours, COLUMNS
        )
        self.show(
            f"Above each training image, below it {VOTES[found.vote]}, best SSIM first. "
            f"<span style='color:{PROVEN}'>■</span> found: {MEASURES[found.measure]} (NCC is the "
            "correlation of pixels).",
            sheet,
        )


class FirstLayer(Sheet):
    """The first layer's weights as images."""

    def __init__(self) -> None:
        """Make the sheet, empty."""
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
