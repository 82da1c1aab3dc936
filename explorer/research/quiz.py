"""A quiz on an attack: four of these ten images trained the network; which?

All ten are genuine, of the same kind, so that an eye can only guess, and is right on 1.6 of four in
the mean. The attack takes those four that its candidates resemble most, and needs no truth for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.data.images import Draw
from explorer.engine.images import correlations

TRAINED, UNSEEN = 4, 6


@dataclass(frozen=True, eq=False)
class Quiz:
    """Ten images in an order drawn by chance.

    Attributes:
        images: (10, c, h, w), in [0, 1].
        trained: which of them the network was trained on (10,), bool; four are.
        ncc: the correlation of each with the nearest candidate (10,).
        nearest: that candidate, as a picture (10, c, h, w).
    """

    images: Tensor
    trained: Tensor
    ncc: Tensor
    nearest: Tensor

    @property
    def answer(self) -> Tensor:
        """Return the four images that the attack takes (10,), bool."""
        taken = torch.zeros_like(self.trained)
        taken[self.ncc.argsort(descending=True, stable=True)[:TRAINED]] = True
        return taken

    def right(self, guess: Tensor) -> int:
        """Return how many of the images of a guess (10,), bool, trained the network."""
        return int((self.trained & guess).sum())


def quiz(drawn: Draw, found: Tensor, seed: int) -> Quiz:
    """Return a quiz on the candidates of an attack.

    Args:
        drawn: the training images, and the held-out sets that the other six are drawn from.
        found: the candidates as pictures (m, c, h, w).
        seed: of what is drawn.

    Raises:
        ValueError: where there are fewer than four training images.

    Example:
        >>> import torch
        >>> from explorer.engine.data.images import Choice, draw
        >>> from explorer.research.quiz import quiz
        >>> drawn = draw(Choice(n=10))
        >>> made = quiz(drawn, drawn.pictures(drawn.train.x), 0)  # an attack that found all
        >>> int(made.trained.sum()), made.right(made.answer)
        (4, 4)
    """
    if drawn.train.n < TRAINED:
        raise ValueError(f"a quiz needs {TRAINED} training images; got {drawn.train.n}. Take more.")
    generator = torch.Generator().manual_seed(seed)
    unseen = torch.cat([control.x for control in drawn.controls])
    mine = torch.randperm(drawn.train.n, generator=generator)[:TRAINED]
    others = torch.randperm(len(unseen), generator=generator)[:UNSEEN]
    order = torch.randperm(TRAINED + UNSEEN, generator=generator)
    images = drawn.pictures(torch.cat([drawn.train.x[mine], unseen[others]]))[order]
    ncc, which = correlations(images, found).max(1)
    return Quiz(images, order < TRAINED, ncc, found.clamp(0, 1)[which])
