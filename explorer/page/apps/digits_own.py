"""Images drawn by hand on the digits page: they are trained on, and read back from the weights."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as w
import torch
from torch import Tensor

from explorer.engine.data.images import Choice, Draw
from explorer.engine.images import NCC_LEAST
from explorer.page.apps.digits_charts import Sheet, side_by_side
from explorer.page.controls.row import Item, Row, choices
from explorer.page.view.pictures import DigitPad
from explorer.research.image_runs import ImageComparison

MOST = 20  # arbitrary: images of one's own
FIRST = (
    "<b>Your handwriting, from the weights.</b> Draw a digit, say which it is, and add it to the "
    "training images. Then train and attack."
)
OWN, READ = "yours", "closest reconstruction"
PAD = ("digit", "add", "wipe", "drop")  # what stands at the pad


class OwnCard:
    """A pad, and what was drawn on it.

    `changed` is called when the training images are others, `moved` when the next thing to do is.
    """

    def __init__(self, changed: Callable[[], None], moved: Callable[[], None]) -> None:
        """Nothing is drawn."""
        self._changed, self._moved = changed, moved
        self.images: list[Tensor] = []
        self.digits: list[int] = []
        self.pad, self.sheet = DigitPad(), Sheet(FIRST)
        self.pad.on("drawn", lambda: self._allow(True))
        self.row = Row(
            open=Item("button", "Draw a digit", "A pad to draw on", False,
                      call=lambda _: self._arrange()),
            digit=Item("select", "digit", "What you have drawn", value=3,
                       options=choices(*((str(k), k) for k in range(10)))),
            add=Item("button", "Add", "Add it to the training images",
                     call=lambda _: self.add(), disabled=True),
            wipe=Item("button", "Wipe", "Wipe the square", call=lambda _: self._wipe()),
            drop=Item("button", "Take back", "Take all your images out of the training images",
                      call=lambda _: self.drop(), disabled=True),
        )  # fmt: skip
        self.sheet.widget.remove_class("mx-card")
        self.sheet.widget.layout.flex = "1 1 260px"
        body = side_by_side(self.pad, self.sheet.widget)
        self.widget = w.VBox([body, self.row]).add_class("mx-card")
        self._arrange()

    def _arrange(self) -> None:
        """Show the pad where it was opened: an empty black square outweighs the images."""
        opened = self.row.value("open")
        self.pad.layout.display = "" if opened else "none"
        with self.row.at_once():
            for name in PAD:
                self.row.put(name, hidden=not opened)
        self._moved()

    def with_own(self, drawn: Draw) -> Draw:
        """Return these images with those drawn by hand, of the classes of the task."""
        ten = drawn.choice.task == "ten"
        groups = [digit + 1 if ten else 2 - digit % 2 for digit in self.digits]
        images = torch.stack(self.images)[:, None] if self.images else torch.zeros(0)
        return drawn.with_own(images, torch.tensor(groups, dtype=torch.long))

    def fit(self, choice: Choice) -> None:
        """Show the pad where digits are trained on."""
        self.widget.layout.display = "none" if choice.kind == "cifar" else ""
        if choice.kind == "cifar" and self.images:
            self.drop()

    def add(self) -> None:
        """Add what is drawn."""
        if len(self.images) >= MOST or not bool(self.pad.image.any()):
            return
        self.images.append(self.pad.image)
        self.digits.append(self.row.value("digit"))
        self._wipe()
        self.row.put("drop", disabled=False)
        self._changed()

    def drop(self) -> None:
        """Take all of them back."""
        self.images, self.digits = [], []
        self.row.put("drop", disabled=True)
        self._changed()

    def _wipe(self) -> None:
        self.pad.wipe()
        self._allow(False)

    def _allow(self, drawn: bool) -> None:
        """Offer to add what is drawn, if there is anything."""
        self.row.put("add", disabled=not drawn)
        self._moved()

    @property
    def next(self) -> str:
        """Return the item that is the next thing to do with a pad at hand; "" without."""
        if self.widget.layout.display == "none":
            return ""
        return "add" if self.row.value("open") else "open"

    @property
    def waits(self) -> bool:
        """Return whether a drawn image is not added yet."""
        return not self.row.items["add"].disabled

    def show(self, drawn: Draw | None, found: ImageComparison | None = None) -> None:
        """Show one's images, and below each its reconstruction where there was an attack."""
        if drawn is None or drawn.own is None:
            self.sheet.clear()
            return
        mine = drawn.pictures(drawn.own.x)
        names = [f"your {digit}" for digit in self.digits]
        if found is None or found.own is None:
            self.sheet.show(f"{FIRST} {len(names)} drawn.", [mine], [OWN], [""] * len(names), names)
            return
        good = (found.own.ncc > NCC_LEAST).tolist()
        self.sheet.show(
            f"<b>{sum(good)} of your {len(good)} read back from the weights</b>, with an NCC above "
            f"{NCC_LEAST:g}. No unseen images are of your hand, so chance is not measured.",
            [mine, found.own.images], [OWN, READ], ["good" if one else "" for one in good],
            [f"{name}: NCC {ncc:.2f}" for name, ncc in zip(names, found.own.ncc.tolist(),
                                                           strict=True)],
        )  # fmt: skip
