r"""The trained experiment on membership inference, in dimensions from 1 to 1000.

Smorodinsky, Vardi and Safran 2024, section 5, with the settings of their code: a network
d-10000-1 with hidden biases, torch's default initialisation times 1e-3, mean logistic loss, full
batch of 20, 100 steps of gradient descent at rate 1, times 0.7 every 30 steps, 5000 test points.

The gradient of the first layer lies in the span of the training points: W(t) = W_0 + C(t) X~ with
C (k, n). So a step needs only the values A = A_0 + C K at the points, K = X~ X~', and costs
k n^2 instead of k n d; it is the same gradient descent, and a test holds it against torch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from explorer.engine.data.highdim import HighDimDraw, Labels, Law, sample
from explorer.engine.margin import log_loss
from explorer.engine.network import with_one
from explorer.engine.progress import Progress, no_progress, part_progress, with_progress
from explorer.engine.settings import setting, settings

ON_MARGIN = 1.1  # the published code: on the margin is 0 < y Phi < 1.1 m
DIMS = (10, 20, 30, 50, 100, 200, 400, 600, 1000)
_CHUNK = 500  # test points at once, to keep the values of 10,000 neurons in 20 MB; arbitrary


@settings
class MembershipConfig:
    """The experiment's settings; defaults are those of the published code."""

    # fmt: off
    dims: Annotated[tuple[int, ...], setting(
        "Dimensions to run", strict=False, min_length=1,
    )] = DIMS
    trials: Annotated[int, setting(
        "Networks per dimension", ge=1, form="sight", page=(1, 50),
    )] = 5
    n: Annotated[int, setting("Training points", ge=1)] = 20
    width: Annotated[int, setting("Hidden neurons", ge=1)] = 10_000
    test: Annotated[int, setting("Fresh points per network", ge=1)] = 5000
    law: Annotated[Law, setting("Distribution of the points")] = "sphere"
    labels: Annotated[Labels, setting("How they are labelled")] = "parity"
    seed: Annotated[int, setting(
        "With dimension and trial it fixes points and weights", ge=0,
    )] = 0
    epochs: Annotated[int, setting("Steps of gradient descent", ge=1)] = 100
    lr: Annotated[float, setting("Its rate at first", gt=0)] = 1.0
    lr_every: Annotated[int, setting("Epochs between two reductions of the rate", ge=1)] = 30
    lr_factor: Annotated[float, setting("Factor of each reduction", gt=0)] = 0.7
    init_scale: Annotated[float, setting("Factor on torch's default initialisation", gt=0)] = 1e-3
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse labels that the law does not have."""
        for d in self.dims:
            HighDimDraw(d, self.law, self.labels)


@dataclass(frozen=True, eq=False)
class MembershipTrial:
    """One trained network against fresh points.

    Attributes:
        d: dimension.
        trial: its number, from 0.
        margin: smallest positive y Phi of the training points; nan where there is none.
        mean_loss: mean logistic loss at the end.
        train_accuracy: share of training points on their side.
        test_accuracy: share of test points on their side.
        on_margin: share of training points with 0 < y Phi < 1.1 m.
        beyond_signed: share of test points with y Phi >= m: what the paper plots.
        beyond: share of test points with |Phi| >= m: what an attacker without labels sees.
        beyond_half: share of test points with |Phi| >= m / 2.
        members: |Phi| / m at the training points (n,).
        fresh: |Phi| / m at the test points (test,).
    """

    d: int
    trial: int
    margin: float
    mean_loss: float
    train_accuracy: float
    test_accuracy: float
    on_margin: float
    beyond_signed: float
    beyond: float
    beyond_half: float
    members: Tensor
    fresh: Tensor

    def row(self) -> dict[str, float | int]:
        """Return the numbers alone, for a table."""
        arrays = ("members", "fresh")
        return {k: getattr(self, k) for k in self.__dataclass_fields__ if k not in arrays}


@dataclass(frozen=True, eq=False)
class Wide:
    """A wide two-layer network as trained: Phi(x) = v . relu((W + C X~) x~). Float32.

    Attributes:
        first: W with its bias as the last column (k, d+1), at initialisation.
        moved: C (k, n).
        points: X~ (n, d+1).
        last: v (k,).
    """

    first: Tensor
    moved: Tensor
    points: Tensor
    last: Tensor

    def phi(self, x: Tensor, progress: Progress = no_progress) -> Tensor:
        """Return Phi at x (m, d) -> (m,), `_CHUNK` points at once."""
        parts = with_one(x.to(self.points)).split(_CHUNK)
        values = [self._phi(part) for part in with_progress(parts, len(parts), progress)]
        return torch.cat(values)

    def _phi(self, xt: Tensor) -> Tensor:
        z = torch.addmm(xt @ self.first.T, xt @ self.points.T, self.moved.T)
        return z.clamp_min_(0) @ self.last


def train_wide(
    x: Tensor, y: Tensor, config: MembershipConfig, generator: torch.Generator,
    progress: Progress = no_progress,
) -> Wide:  # fmt: skip
    """Train by full-batch gradient descent on the mean logistic loss. x (n, d), y (n,)."""
    x, y = x.float(), y.float()
    n, d = x.shape
    k = config.width
    # torch's Linear(d, k): uniform up to 1/sqrt(d), the bias too; Linear(k, 1): up to 1/sqrt(k)
    first = _uniform(k, d + 1, generator) * (config.init_scale / d**0.5)
    last = _uniform(k, 1, generator).squeeze(1) * (config.init_scale / k**0.5)
    points = with_one(x)
    start, kernel = points @ first.T, points @ points.T  # (n, k), (n, n)
    moved = torch.zeros(n, k, dtype=x.dtype)
    for epoch in range(config.epochs):
        progress(epoch / config.epochs)
        rate = config.lr * config.lr_factor ** (epoch // config.lr_every)
        z = torch.addmm(start, kernel, moved)
        a = z.clamp_min(0)
        pull = rate / n * y * torch.sigmoid(-y * (a @ last))
        moved.addcmul_((z > 0).to(z.dtype) * last, pull[:, None])
        last = last + a.T @ pull
    return Wide(first, moved.T.contiguous(), points, last)


def _uniform(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.rand(rows, columns, generator=generator, dtype=torch.float32).mul_(2).sub_(1)


def generator_of(seed: int, d: int, trial: int) -> torch.Generator:
    """Return one stream per trial, so that any trial can be repeated alone."""
    mixed = np.random.SeedSequence([seed, d, trial]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(mixed) >> 1)


def membership_trial(
    config: MembershipConfig, d: int, trial: int, progress: Progress = no_progress
) -> MembershipTrial:
    """Draw, train, and look at fresh points; `progress` is told the share that is done."""
    draw = HighDimDraw(d, config.law, config.labels)
    generator = generator_of(config.seed, d, trial)
    x, y = sample(draw, config.n, generator, torch.float32)
    fresh, y_fresh = sample(draw, config.test, generator, torch.float32)
    net = train_wide(x, y, config, generator, part_progress(progress, 0.0, 0.5))
    q, q_fresh = y * net.phi(x), y_fresh * net.phi(fresh, part_progress(progress, 0.5, 1.0))
    right = q > 0
    margin = float(q[right].min()) if bool(right.any()) else float("nan")
    size = q_fresh.abs()
    return MembershipTrial(
        d, trial, margin, float(np.exp(log_loss(q, "logistic"))) / config.n,
        _share(right), _share(q_fresh > 0), _share(right & (q < ON_MARGIN * margin)),
        _share(q_fresh >= margin), _share(size >= margin), _share(size >= margin / 2),
        q.abs() / margin, size / margin,
    )  # fmt: skip


def _share(chosen: Tensor) -> float:
    return float(chosen.float().mean())


def membership_experiment(
    config: MembershipConfig, progress: Progress = no_progress
) -> Iterator[MembershipTrial]:
    """Yield all trials, dimension by dimension; whoever iterates paces, and may stop.

    `progress` is told the share of all that is done.
    """
    every = list(product(config.dims, range(config.trials)))
    for done, (d, trial) in enumerate(every):
        here = part_progress(progress, done / len(every), (done + 1) / len(every))
        yield membership_trial(config, d, trial, here)
