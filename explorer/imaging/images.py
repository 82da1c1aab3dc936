"""Real images as training sets: the 8x8 digits of scikit-learn, MNIST and CIFAR-10 from files.

One draw is a training set of n images, balanced over the classes, and further sets of the same
kind that the network never sees: a start for attacks and held-out controls. All are disjoint. The
mean image of the training set is subtracted from all of them, as published (Haim et al. 2022,
appendix); images are flat points (d,) to networks and attacks and (c, h, w) to eyes and SSIM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Literal

import torch
from torch import Tensor

from explorer.engine.classes import from_numbers
from explorer.engine.data import Dataset
from explorer.engine.lambda_grid import Pictures
from explorer.engine.settings import setting, settings
from explorer.imaging.imagefiles import read_cifar, read_mnist

Kind = Literal["digits", "mnist", "cifar"]
Task = Literal["two", "ten"]
KINDS: dict[Kind, str] = {
    "digits": "8×8 digits",
    "mnist": "MNIST, from files",
    "cifar": "CIFAR-10, from files",
}
TASKS: dict[Task, str] = {"two": "two classes", "ten": "ten classes"}
CONTROLS = 19  # held-out sets behind a verdict: the fewest with which p can be 0.05
FEWEST = 10  # where there are no images for more; arbitrary: chance is then not ruled out
VEHICLES = (0, 1, 8, 9)  # CIFAR-10's plane, car, ship, lorry: Haim et al.'s two classes


@settings
class Choice:
    """Which images."""

    # fmt: off
    kind: Annotated[Kind, setting(
        "Where they come from",
        labels=tuple((words, kind) for kind, words in KINDS.items()),
    )] = "digits"
    task: Annotated[Task, setting(
        "Two classes, odd against even digits or vehicles against animals, or all ten",
    )] = "two"
    n: Annotated[int, setting("Training images, as many of each class")] = 20
    seed: Annotated[int, setting("Of the draw")] = 0
    folder: Annotated[str, setting("Of the files, for MNIST and CIFAR-10")] = ""
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        groups = 2 if self.task == "two" else 10
        if self.n < groups or self.n % groups:
            near = max(groups, self.n // groups * groups)
            raise ValueError(
                f"n must hold as many images of each of {groups} classes; got n={self.n}. "
                f"Try n={near}."
            )
        if self.kind != "digits" and not self.folder:
            raise ValueError(
                f"{KINDS[self.kind]}: no folder is named. Name the one that holds them "
                f"(folder, or --folder on the command line)."
            )


@dataclass(frozen=True, eq=False)
class Draw:
    """Training images and sets of the same kind that the network never sees.

    Attributes:
        choice: what was asked for.
        shape: (c, h, w).
        mean: the mean training image (d,), which is subtracted from every set.
        train: the training set, x (n, d).
        other: the set that "partition" starts from.
        controls: 19 held-out sets, or as many from ten on as there are images for.
    """

    choice: Choice
    shape: tuple[int, int, int]
    mean: Tensor
    train: Dataset
    other: Dataset
    controls: tuple[Dataset, ...]

    @cached_property
    def seen(self) -> Pictures:
        """How points are seen: the mean is added back."""
        return Pictures(self.shape, self.mean)

    def pictures(self, x: Tensor) -> Tensor:
        """Points (m, d) as pictures (m, c, h, w)."""
        return self.seen.of(x)


def draw(choice: Choice) -> Draw:
    """The sets of a choice; one choice always gives the same ones.

    Raises:
        ImportError: the digits without the extra `images`.
        ImageFileError: files that are not there.
        ValueError: too few images for so many sets.
    """
    images, classes, white = _all(choice.kind, choice.folder)
    groups = _groups(choice, classes)
    generator = torch.Generator().manual_seed(choice.seed)
    order = torch.randperm(len(images), generator=generator)
    several = 2 if choice.task == "two" else 10
    each, fewest = choice.n // several, FEWEST + 2
    rows = [order[groups[order] == g + 1] for g in range(several)]
    least = min(len(r) for r in rows)
    if least < each * fewest:
        raise ValueError(
            f"{fewest} disjoint sets of {choice.n} images need {each * fewest} of each class; the "
            f"smallest has {least}. Take n={least // fewest * several} or less."
        )
    sets = min(CONTROLS + 2, least // each)
    picked = [
        torch.cat([r[k * each : (k + 1) * each] for r in rows]) for k in range(sets)
    ]  # fmt: skip
    flat, labels = images.flatten(1), from_numbers(groups)
    drawn = [flat[i].double() / white for i in picked]
    mean = drawn[0].mean(0)
    made = [Dataset(x - mean, labels[i]) for x, i in zip(drawn, picked, strict=True)]
    shape = (int(images.shape[1]), int(images.shape[2]), int(images.shape[3]))
    return Draw(choice, shape, mean, made[0], made[1], tuple(made[2:]))


@lru_cache(maxsize=2)
def _all(kind: Kind, folder: str) -> tuple[Tensor, Tensor, int]:
    """Images (N, c, h, w) in [0, white], classes 0..9 (N,), and white.

    As bytes: all of CIFAR-10 as doubles would take 1.2 GB for the few images of a draw.
    """
    if kind == "mnist":
        return *read_mnist(folder), 255
    if kind == "cifar":
        return *read_cifar(folder), 255
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "the 8x8 digits come with scikit-learn: pip install margin-explorer[images]"
        ) from error
    found = load_digits()
    pixels = torch.from_numpy(found.images).to(torch.uint8)[:, None]
    return pixels, torch.from_numpy(found.target).long(), 16


def _groups(choice: Choice, classes: Tensor) -> Tensor:
    """Class numbers 1, 2, ... of the task. For two classes, 1 is odd digits, or vehicles."""
    if choice.task == "ten":
        return classes + 1
    if choice.kind == "cifar":
        first = torch.isin(classes, torch.tensor(VEHICLES))
    else:
        first = classes % 2 == 1
    return torch.where(first, 1, 2)
