"""A quiz on the digits page: four of ten images trained the network; which? The attack knows."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as w
import torch
from torch import Tensor

from explorer.engine.data.images import Draw
from explorer.page.apps.digits_charts import Sheet
from explorer.page.controls.row import Item, Row
from explorer.research.quiz import TRAINED, UNSEEN, Quiz, quiz

WHAT = "<b>Quiz.</b> Four of ten images trained the network. Which?"
FIRST = f"{WHAT} Attack first, then play."
ASK = (
    f"<b>{TRAINED} of these {TRAINED + UNSEEN} images trained the network. Which?</b> Choose "
    f"{TRAINED} images, then Reveal. The training images above are hidden meanwhile."
)
PRESS = "Press to guess that it trained the network"


class QuizCard:
    """Ten images to guess at.

    `secret` is called with whether training images must be hidden, `moved` when the next thing to
    do is another.
    """

    def __init__(self, secret: Callable[[bool], None], moved: Callable[[], None]) -> None:
        """Nothing to guess yet."""
        self._secret, self._moved = secret, moved
        self.quiz: Quiz | None = None
        self._material: tuple[Draw, Tensor] | None = None
        self._asked, self._played = 0, False
        self.guess = torch.zeros(TRAINED + UNSEEN, dtype=torch.bool)
        self.sheet = Sheet(FIRST)
        self.sheet.view.on("press", self._press)
        self.sheet.view.add_class("mx-five")
        self.row = Row(
            play=Item("button", "Play", "Draw ten images, four of which trained the network",
                      call=lambda _: self.play(), disabled=True),
            reveal=Item("button", "Reveal", "Show which four, and which the attack takes",
                        call=lambda _: self.reveal(), disabled=True),
        )  # fmt: skip
        self.widget = w.VBox([self.sheet.widget, self.row]).add_class("mx-card")
        self.sheet.widget.remove_class("mx-card")

    def forget(self) -> None:
        """Take the quiz away: there is no attack to ask."""
        self._material, self._played = None, False
        self._end()
        self.sheet.clear()
        self.row.put("play", disabled=True)

    def offer(self, drawn: Draw, found: Tensor) -> None:
        """Have a quiz ready on the candidates of an attack, as pictures (m, c, h, w)."""
        self._material = drawn, found
        self.sheet.title.value = f"{WHAT} The attack has made up its mind: press Play."
        self.row.put("play", disabled=drawn.train.n < TRAINED)

    def play(self) -> None:
        """Draw ten images, other ones at each press."""
        if self._material is None:
            return
        self.quiz = quiz(*self._material, self._asked)
        self._asked, self._played = self._asked + 1, True
        self.guess = torch.zeros_like(self.guess)
        self._secret(True)
        self._show()

    def _press(self, tile: int) -> None:
        """Take an image into the guess, or out of it."""
        if self.quiz is not None and (self.guess[tile] or int(self.guess.sum()) < TRAINED):
            self.guess[tile] = ~self.guess[tile]
            self._show()

    def _show(self) -> None:
        made = self.quiz
        assert made is not None  # else nothing can be pressed
        whole = int(self.guess.sum()) == TRAINED
        self.sheet.view.pressable = True
        self.sheet.show(ASK, [made.images], ["one of ten"], [""] * len(made.images),
                        [PRESS] * len(made.images), self.guess.tolist())  # fmt: skip
        self.row.put("reveal", disabled=not whole)
        self._moved()

    @property
    def next(self) -> str:
        """Return the item that is the next thing to do; "" once it was played."""
        if self.quiz is not None:
            return "reveal"
        return "" if self._played or self.row.items["play"].disabled else "play"

    def reveal(self) -> None:
        """Show the answer: below each image the candidate that is nearest to it."""
        made = self.quiz
        if made is None:
            return
        said = [
            f"{'Trained on' if real else 'Never seen'}. NCC {ncc:.2f} to a reconstruction; "
            f"{'you' if mine else 'not you'}, {'the attack' if its else 'not the attack'}"
            for real, ncc, mine, its in zip(
                made.trained.tolist(), made.ncc.tolist(), self.guess.tolist(),
                made.answer.tolist(), strict=True,
            )
        ]  # fmt: skip
        mine, its = made.right(self.guess), made.right(made.answer)
        self.sheet.view.pressable = False
        self.sheet.show(
            f"<b>You found {mine} of {TRAINED}, the attack {its}.</b> By chance "
            f"{TRAINED * TRAINED / (TRAINED + UNSEEN):.1f} would be right. "
            "<span style='color:var(--mx-good)'>■</span> trained on; below each image the "
            "reconstruction nearest to it.",
            [made.images, made.nearest], ["one of ten", "nearest reconstruction"],
            ["good" if real else "" for real in made.trained.tolist()], said,
        )  # fmt: skip
        self._end()

    def _end(self) -> None:
        self.quiz = None
        self.row.put("reveal", disabled=True)
        self._secret(False)
        self._moved()
