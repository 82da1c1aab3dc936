r"""The longer the training, the larger the safe split: extents of cells along free directions.

A direction nu orthogonal to all training points is one that gradient descent never sees: every
gradient of the first layer is a sum of training points, so W(t) nu = W(0) nu while W(t) grows. A
split of x along nu is safe up to

    alpha(t) = min_j |z_j(x)| / |w_j nu|,

the nearest wall, which moves away as training goes on, as long as that neuron grows and does not
come to stand on x. Neurons that stay as small as they were drawn keep their walls, but crossing
one changes hardly anything: two children of multiplier lam / 2 that crossed the walls F miss the
sum by at most
(lam / 2) (sum_F v_j^2 |(z, 1)|^2 + z_j^2)^(1/2) each. A split is safe here up to where that is a
given share of |theta|, with slopes free within tau of a line as the certificate counts them: the
points that carry a trained network come to stand on neurons, and without that tolerance the nearest
wall of such a point is at 0. With a box prior (pixels within [0, 1]) the
split ends where the box does as well. "No Prior, No Leakage" (Refael et al.), theorems 8 and 9,
restated; see the paper for the original.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from explorer.engine import training
from explorer.engine.certificate import SUPPORT, TAU_TRAINED, gradient_multipliers
from explorer.engine.data.dataset import Dataset
from explorer.engine.explanations.cells import Extent, cell_extent, null_space
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.settings import setting, settings
from explorer.engine.training import TrainConfig, TrainState

MARKS = 25  # arbitrary: training steps looked at, evenly spaced in the logarithm


@settings
class SafeSplitConfig:
    """One run."""

    # fmt: off
    width: Annotated[int, setting("Hidden neurons", ge=1)] = 50
    steps: Annotated[int, setting("Training steps", ge=1)] = 3000
    init_scale: Annotated[float, setting(
        "Standard deviation of the first layer: the smaller, the larger the first safe split",
        gt=0,
    )] = 0.1
    seed: Annotated[int, setting("Of the first weights and of the free direction", ge=0)] = 0
    low: Annotated[float, setting("Lower end of the box prior", unit="of the data")] = 0.0
    high: Annotated[float, setting("Upper end of the box prior", unit="of the data")] = 1.0
    share: Annotated[float, setting(
        "Share of the norm of the weights that a safe split may miss", unit="of ‖θ‖", gt=0, lt=1,
    )] = 0.01
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse an empty box."""
        if not self.low < self.high:
            raise ValueError(f"a box needs low < high; got {self.low} and {self.high}")


@dataclass(frozen=True)
class SafeSplit:
    """What one training step allows. Extents are the smaller of the two sides of a point.

    Attributes:
        t: training step.
        q_min: smallest margin of the true weights, in the logarithm (nan before separation).
        frozen: |W nu| / |W|, which training makes small.
        wall: median distance to the nearest wall along nu, over the points of positive multiplier.
        safe: median length of a split that misses no more than the configured share of |theta|;
            nan before separation, when there are no multipliers.
        boxed: the same within the box as well.
        boxed_open: share of the points that the box leaves any split at all.
    """

    t: int
    q_min: float
    frozen: float
    wall: float
    safe: float
    boxed: float
    boxed_open: float


def in_space(data: Dataset) -> Dataset:
    """Return the same points with one more coordinate, always 0: a direction that no point uses."""
    return Dataset(torch.cat([data.x, torch.zeros_like(data.x[:, :1])], dim=1), data.y)


def free_directions(x: Tensor) -> Tensor:
    """Return orthonormal directions (d, f) orthogonal to all points (n, d); else ValueError."""
    free = null_space(x)
    if not free.shape[1]:
        raise ValueError(
            f"the {len(x)} points span all {x.shape[1]} dimensions, so that no direction is free. "
            "Take fewer points than dimensions, or points with a coordinate that is always 0."
        )
    return free


def safe_splits(data: Dataset, config: SafeSplitConfig) -> Iterator[SafeSplit]:
    """Train with plain gradient steps, and measure at `MARKS` steps evenly spaced in log t.

    Raises:
        ValueError: where the points leave no direction free.
    """
    free = free_directions(data.x)
    generator = torch.Generator().manual_seed(config.seed)
    mix = torch.randn(free.shape[1], generator=generator, dtype=torch.float64)
    nu = free @ (mix / mix.norm())
    # Momentum keeps the law as well: its displacements are sums of training points too.
    planned = TrainConfig(
        widths=(config.width,), steps=config.steps, init_scale=config.init_scale, revive=False
    )
    state = training.init(data, planned, torch.Generator().manual_seed(config.seed))
    marks = {round(config.steps ** (i / (MARKS - 1))) for i in range(MARKS)}
    yield extents_at(state, data, nu, config)
    for mark in sorted(marks):
        if mark > state.t and not training.terminate(state, planned).over:
            state = training.advance(data, state, planned, mark - state.t)
            if state.t == mark:
                yield extents_at(state, data, nu, config)


def extents_at(state: TrainState, data: Dataset, nu: Tensor, config: SafeSplitConfig) -> SafeSplit:
    """Return the extents of all points along nu at this state."""
    net = state.net
    extents = [cell_extent(net, x, nu) for x in data.x]
    walls = torch.tensor([min(e.plus, e.minus) for e in extents])
    open_box = Extent(math.inf, math.inf, (), (), 0)
    boxes = [open_box.within_box(x, nu, config.low, config.high) for x in data.x]
    room = torch.tensor([min(b.plus, b.minus) for b in boxes])
    low = float(q_of(net, data.x, data.y).min())
    fit = gradient_multipliers(net, data.x, data.y, "exponential", net.order * state.log_scale)
    safe = torch.full((data.n,), math.nan, dtype=torch.float64)
    used = torch.ones(data.n, dtype=torch.bool)
    if fit is not None:  # points of no multiplier may go anywhere and say nothing
        safe = _safe(net, data.x, nu, fit[0], config)
        used = fit[0] > SUPPORT * fit[0].max()
    return SafeSplit(
        t=state.t,
        q_min=math.log(low) + net.order * state.log_scale if low > 0 else math.nan,
        frozen=float((net.weights[0] @ nu).norm() / net.weights[0].norm()),
        wall=float(walls[used].median()),
        safe=float(safe[used].median()),
        boxed=float(torch.minimum(safe, room.to(safe))[used].median()),
        boxed_open=float((room > 0).double().mean()),
    )


def _safe(net: Network, x: Tensor, nu: Tensor, lam: Tensor, config: SafeSplitConfig) -> Tensor:
    """Return length of the split of each point that misses the share of |theta|. -> (n,)."""
    w, v = net.weights[0], net.weights[1][0]
    bias = net.biases[0]
    b2 = torch.zeros_like(v) if bias is None else bias.square()
    z = x @ w.T + (0 if bias is None else bias)
    speed = w @ nu
    out = []
    for row, point, weight in zip(z, x, lam, strict=True):
        # One of the two children meets the line; within tau of it the slope is free.
        band = TAU_TRAINED * (w.square().sum(dim=1) + b2).sqrt() * (point.square().sum() + 1).sqrt()
        length = (row.abs() + band) / speed.abs().clamp_min(1e-300)
        order = length.argsort()
        at = length[order]
        size = (point.square().sum() + at.square())[:, None] + (bias is not None)
        past = (at[:, None] - at[None, :]).clamp_min(0) * speed[order].abs()
        crossed = torch.ones(len(at), len(at), dtype=x.dtype).tril()
        missed = (crossed * (v[order].square() * size + past.square())).sum(dim=1).sqrt()
        over = (weight / 2 * missed > config.share * net.rho).nonzero()
        out.append(float(at[over[0, 0]]) if len(over) else math.inf)
    return torch.tensor(out, dtype=torch.float64)
