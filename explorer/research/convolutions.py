"""Attacks on small convolutions: train, attack from noise, score against unseen points.

Points are signals of one row or 8 x 8 digits. They are scored as images are (`engine.images`): a
training point is found if, of all points, unseen ones included, it is the nearest to a candidate.
Of a pooled convolution a candidate stands for all its shifts, as its weights tell no more
(`engine.convolution`); the score without shifts stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from explorer.engine.attacks.convolution import ConvolvedState, iterate
from explorer.engine.attacks.descent import SIGMA_PICTURES, on_pictures
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.convolution import Convolution, residual, trained
from explorer.engine.data import Dataset
from explorer.engine.data.images import CONTROLS, Choice, draw
from explorer.engine.data.signals import REACH, SIZE, signals
from explorer.engine.images import (
    MEASURES,
    ImageScore,
    ImageVerdict,
    Measure,
    image_scores,
    image_verdict,
)
from explorer.engine.settings import setting, settings
from explorer.research.runs import RunFailed

Watch = Callable[[Iterable[ConvolvedState], int, str], Iterable[ConvolvedState]]
Points = Literal["signals", "digits"]
SIDES: dict[Points, int] = {"signals": 9, "digits": 5}


@settings
class ConvolutionRun:
    """One attack on one convolution."""

    # fmt: off
    points: Annotated[Points, setting(
        "Random signals, or 8 x 8 digits, odd against even",
    )] = "signals"
    n: Annotated[int, setting(
        "Training points, half of each label", ge=2, multiple_of=2, why="half of each label",
    )] = 10
    samples: Annotated[int, setting("Of a signal", ge=4, unit="samples")] = 32
    filters: Annotated[int, setting("Filters of the hidden layer", ge=1)] = 100
    side: Annotated[int | None, setting(
        "Of a filter, in samples or pixels; none: 9 of signals, 5 of digits", ge=1,
    )] = None
    pooled: Annotated[bool, setting(
        "Whether the filters are summed over all places, so that shifts change nothing",
    )] = False
    scale: Annotated[float, setting(
        "Of the first filters, a standard deviation times the root of their size", gt=0,
    )] = 0.8
    train_steps: Annotated[int, setting("Of loss-scaled gradient descent", ge=1)] = 1000
    attack: Annotated[Literal["kkt", "decoreco"], setting(
        "Multipliers of the label's sign, or of any sign",
    )] = "kkt"
    m: Annotated[int | None, setting(
        "Candidates, half of each label; none: two for each point", ge=2, multiple_of=2,
        why="half of each label",
    )] = None
    steps: Annotated[int, setting("Of the attack", ge=1)] = 400
    seed: Annotated[int, setting("Of points, weights and candidates")] = 0
    # fmt: on


@dataclass(frozen=True, eq=False)
class Drawing:
    """Points of a run.

    Attributes:
        shape: (h, w) of one.
        sets: the training set, and 19 or fewer that the network never sees.
        mean: what was subtracted from all (d,).
        box: the least and largest value of each coordinate (d,), which the attacker knows.
    """

    shape: tuple[int, int]
    sets: tuple[Dataset, ...]
    mean: Tensor
    box: tuple[Tensor, Tensor]

    def pictures(self, x: Tensor) -> Tensor:
        """Return points (m, d) as images (m, 1, h, w) with pixels in [0, 1]; signals are halved."""
        low, high = (end.mean() + self.mean.mean() for end in self.box)
        return ((x + self.mean - low) / (high - low)).reshape(-1, 1, *self.shape)


@dataclass(frozen=True, eq=False)
class Convolved:
    """An attack on a convolution, compared with the truth.

    Attributes:
        net: the attacked weights, at margin 1.
        residual: what the training points leave of them, a share of the norm.
        state: the last one of the attack.
        verdicts: by each measure; of a pooled convolution up to shifts.
        as_they_are: the same without shifts.
        score: of the training points, by `verdicts`.
        truth: the training points as images (n, 1, h, w).
    """

    net: Convolution
    residual: float
    state: ConvolvedState
    verdicts: dict[Measure, ImageVerdict]
    as_they_are: dict[Measure, ImageVerdict]
    score: ImageScore
    truth: Tensor


def drawing(run: ConvolutionRun) -> Drawing:
    """Return the points of a run."""
    if run.points == "digits":
        made = draw(Choice(n=run.n, seed=run.seed))
        sets = (made.train, made.other, *made.controls)[: CONTROLS + 1]
        return Drawing((8, 8), sets, made.mean, (-made.mean, 1 - made.mean))
    generator = torch.Generator().manual_seed(run.seed)
    x = signals((CONTROLS + 1) * run.n, run.samples, generator)
    y = torch.ones(run.n, dtype=torch.float64)
    y[run.n // 2 :] = -1
    end = torch.full((run.samples,), REACH, dtype=torch.float64)
    sets = tuple(Dataset(part, y) for part in x.split(run.n))
    return Drawing((1, run.samples), sets, torch.zeros_like(end), (-end, end))


def settings_of(run: ConvolutionRun) -> KKTConfig:
    """Return the settings of the attack: those of images, but for number and noise."""
    noise = SIGMA_PICTURES if run.points == "digits" else SIZE
    given = {"m": run.m or 2 * run.n, "sigma_x": noise}
    return KKTConfig(**{**on_pictures(run.n, run.steps), **given})


def convolution_run(
    run: ConvolutionRun, watch: Watch = lambda states, total, label: states
) -> Convolved:
    """Return what an attack finds; `watch` is given its states, their number and a word.

    Raises:
        RunFailed: where the points are not separated.
        ValueError: where a filter is larger than a point.
    """
    drawn, generator = drawing(run), torch.Generator().manual_seed(run.seed)
    data = drawn.sets[0]
    first = Convolution.random(
        drawn.shape, run.filters, run.side or SIDES[run.points], run.pooled, run.scale, generator
    )
    try:
        net = trained(first, data.x, data.y, run.train_steps)
    except ValueError as error:
        raise RunFailed(str(error)) from error
    signed = run.attack == "decoreco"
    states = iterate(net, settings_of(run), drawn.box, signed, generator)
    for state in watch(states, run.steps + 1, "attack"):
        last = state
    plain, score = _scores(drawn, last, shifts=False)
    verdicts = plain
    if run.pooled:
        verdicts, score = _scores(drawn, last, shifts=True)
    left, _ = residual(net, data.x, data.y)
    return Convolved(net, left, last, verdicts, plain, score, drawn.pictures(data.x))


def _scores(
    drawn: Drawing, state: ConvolvedState, shifts: bool
) -> tuple[dict[Measure, ImageVerdict], ImageScore]:
    """Return the verdicts on candidates, and the score of the training points."""
    scores: Sequence[ImageScore] = image_scores(
        [drawn.pictures(each.x) for each in drawn.sets], drawn.pictures(state.x),
        [each.y for each in drawn.sets], shifts=shifts,
    )  # fmt: skip
    truth, *controls = scores
    return {name: image_verdict(truth, controls, name) for name in MEASURES}, truth
