"""What the digits page shows as tiles of images: pairs, and the first layer."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as w
import torch
from torch import Tensor

from explorer.engine.data.images import PAIRS, Draw
from explorer.engine.images import MEASURES, NCC_LEAST
from explorer.engine.network import Network
from explorer.page.view.pictures import PicturesView
from explorer.research.image_runs import VOTES, ImageComparison
from explorer.research.pictures import image_sheets

FEW, MOST_FEW = 5, 10  # pairs in sight at first, of a row of five; arbitrary
NEURONS = 30  # arbitrary: first-layer neurons shown
TRUE, READ = "training image", "closest reconstruction"


class Sheet:
    """Tiles under a title, and below them what their marks mean; else only the words of none."""

    def __init__(self, words: str) -> None:
        """Make it with the text of the empty state."""
        self._empty = words
        self.title, self.key = (w.HTML(said).add_class("mx-note") for said in (words, ""))
        self.view = PicturesView()
        self.widget = w.VBox([self.title], layout=w.Layout(min_width="0")).add_class("mx-card")

    def show(
        self, title: str, rows: Sequence[Tensor], captions: Sequence[str], marks: Sequence[str],
        words: Sequence[str], on: Sequence[bool] = (), key: str = "", few: int = 0,
    ) -> None:  # fmt: skip
        """Show images (n, c, h, w), a row for each caption, each with a mark and words.

        `on`: which are pressed, where tiles can be. `key`: what marks and rows mean. `few`: how
        many are in sight before one asks for all; 0: all.
        """
        self.title.value, self.key.value = title, key
        tiles = [
            {"mark": mark, "words": said, "on": pressed}
            for mark, said, pressed in zip(marks, words, on or [False] * len(marks), strict=True)
        ]
        self.view.few = few
        self.view.draw(rows, captions, tiles)
        children = (self.title, self.view, *[self.key] * bool(key))
        if self.widget.children != children:
            self.widget.children = children

    def clear(self) -> None:
        """Return to the empty state."""
        self.title.value = self._empty
        self.widget.children = (self.title,)


class Gallery(Sheet):
    """Training images, and beside each its reconstruction, the best first.

    While `secret` the training images are not shown, nor what is found of them.
    """

    def __init__(self) -> None:
        """Make the sheet, empty."""
        super().__init__("No images drawn.")
        self.view.add_class("mx-gallery")
        self.secret = False

    def only(self, draw: Draw) -> None:
        """Show the training images alone, marked by class if there are two."""
        count, labels = draw.train.n, draw.train.y.tolist()
        if self.secret:
            self.clear()
            self.title.value = f"The {count} training images are hidden."
            return
        ten = draw.choice.task == "ten"
        plus, minus = (
            f"{name} ({sign}1)" for name, sign in zip(PAIRS[draw.choice.kind], "+−", strict=True)
        )
        frames = "" if ten else f" &nbsp; {_mark('pos', plus)} &nbsp; {_mark('neg', minus)}"
        self.show(
            f"<b>The {count} training images</b>, which the attacker never sees.{frames}",
            [draw.pictures(draw.train.x)], [TRUE],
            ["" if ten else "pos" if y > 0 else "neg" for y in labels],
            [f"digit {y - 1:g}" if ten else plus if y > 0 else minus for y in labels],
        )  # fmt: skip

    def compare(
        self, draw: Draw, found: ImageComparison, only: Sequence[int] | None = None
    ) -> None:
        """Show pairs: left the training image, right its reconstruction; `only` those chosen."""
        score, order = found.truth, found.order
        if self.secret:
            kept = score.nearest[order].unique()
            pictures = found.found[kept].clamp(0, 1)
            title = (
                "<b>What the attack reads out of the weights.</b> The training images are hidden."
            )
            self.show(title, [pictures], [READ], [""] * len(kept), [""] * len(kept))  # fmt: skip
            return
        count = len(order)
        if only is not None:
            order = order[torch.isin(order, order.new_tensor(only))]
        some = "" if only is None else f" The {len(order)} of {count} in the lasso."
        clear = int(found.clear.sum())  # the first ones: no pair that only ranks stands among them
        self.show(
            f"<b>The training images, and what the attack read of each.</b>{some}",
            [draw.pictures(draw.train.x)[order], score.images[order]], [TRUE, READ],
            [_frame(found, i) for i in order.tolist()],
            [f"{_verdict(found, i)}: NCC {score.ncc[i]:.2f}, SSIM {score.ssim[i]:.2f}"
             for i in order.tolist()],
            key=f"Left the training image, right {VOTES[found.vote]}. &nbsp; {_frames(found)}",
            few=(min(clear, MOST_FEW) or FEW) if only is None else 0,
        )  # fmt: skip


def _frame(found: ImageComparison, i: int) -> str:
    """Return the frame of training image i: green only if the two are alike."""
    return "good" if found.clear[i] else "faint" if found.matched[i] else ""


def _verdict(found: ImageComparison, i: int) -> str:
    """Return whether training image i counts, and by the rank why."""
    if not found.by_rank or found.clear[i]:
        return "Recovered" if found.matched[i] else "Not recovered"
    return (
        "Recovered by rank alone: no other image is nearer to what was made"
        if found.matched[i] else "Not recovered: another image is nearer to what was made"
    )  # fmt: skip


def _frames(found: ImageComparison) -> str:
    """Return what the frames of the pairs mean, as HTML."""
    if not found.by_rank:
        return _mark("good", f"recovered ({MEASURES[found.measure]})")
    return (
        f"{_mark('good', f'alike to the eye (NCC above {NCC_LEAST:g})')} &nbsp; "
        "<span class='mx-dashed'></span> nearest, but not alike"
    )


class Believed(Sheet):
    """What an attacker believes without the truth: clusters of candidates by their agreement."""

    def __init__(self) -> None:
        """Make the sheet, empty."""
        super().__init__(
            "<b>Without the truth</b>: run two starts or more. What they agree on can be believed."
        )

    def show_best(self, found: ImageComparison, secret: bool) -> None:
        """Show the best clusters; which are right is not said while the truth is `secret`."""
        chosen, count = found.selection, len(found.matched)
        if chosen is None:
            self.clear()
            return
        k = min(count, len(chosen.ncc))
        best, most = (round(k * chosen.precision(k, knowing)) for knowing in (False, True))
        right = "" if secret else (
            f"{best} of the first {k} are {_mark('good', 'of training images')} (NCC above "
            f"{NCC_LEAST:g}); with the truth at hand one would find {most}."
        )  # fmt: skip
        self.show(
            "<b>Without the truth</b>: what starts agree on, most agreement first.",
            [chosen.images[:k]], ["mean of a cluster"],
            ["good" if real and not secret else "" for real in chosen.right[:k].tolist()],
            [f"agreement {value:.3f}" for value in chosen.agreement[:k].tolist()],
            key=right,
        )  # fmt: skip


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
            f"<b>First layer:</b> the {len(rows)} neurons of largest weights.",
            [image_sheets.grey_at_zero(rows, shape)], ["weights of a neuron"], [""] * len(rows),
            [f"length {length:.2g}" for length in rows.norm(dim=1).tolist()],
            key=f"Grey is 0. With parallel neurons merged the weights are {numbers:,} numbers, the "
            f"images {unknown:,}{few}",
        )  # fmt: skip


def _mark(colour: str, words: str) -> str:
    return f"<span style='color:var(--mx-{colour})'>■</span> {words}"


def side_by_side(left: w.Widget, right: w.Widget) -> w.HBox:
    """Return two widgets in a row that wraps."""
    return w.HBox([left, right], layout=w.Layout(overflow="visible", flex_flow="row wrap",
                                                 grid_gap="12px"))  # fmt: skip
