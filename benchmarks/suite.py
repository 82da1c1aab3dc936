"""Ten fixed sets in the plane with two networks each, on which reconstructions are compared.

Points, first weights and the recipe are fixed by the rows below; nothing that is tuned may be tuned
on them (seeds 100 and up are for that). What can be asked of an attack is `needed_points`: those
training points without whose neighbourhood no other points of the margin explain the weights.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine import training
from explorer.engine.attacks import hinge, pursuit
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import SUPPORT, certify
from explorer.engine.data import Dataset, Source, preset
from explorer.engine.energy.questions import forced_share
from explorer.engine.network import Network
from explorer.engine.progress import Stopped
from explorer.engine.training import TrainConfig

NETS: dict[str, tuple[int, ...]] = {"2-1000-1": (1000,), "2-100-100-1": (100, 100)}


@dataclass(frozen=True)
class Case:
    """One set: its name and the preset, n, noise and seed it is drawn from."""

    name: str
    source: Source

    def dataset(self) -> Dataset:
        """The points, drawn."""
        s = self.source
        return preset(s.preset, s.n, s.noise, s.seed)

    def with_seed_offset(self, seeds: int) -> Case:
        """The same recipe with another seed, for tuning."""
        s = self.source
        return Case(f"{self.name} +{seeds}", Source(s.preset, s.n, s.noise, s.seed + seeds))


SUITE: tuple[Case, ...] = (
    Case("alternating circle, 10", Source("alternating-circle", 10, 0.0, 0)),
    Case("alternating circle, 20", Source("alternating-circle", 20, 0.0, 1)),
    Case("alternating circle, 30, rough", Source("alternating-circle", 30, 0.04, 2)),
    Case("random circle, 14", Source("random-circle", 14, 0.0, 3)),
    Case("random circle, 20", Source("random-circle", 20, 0.0, 4)),
    Case("moons", Source("moons", 24, 0.06, 5)),
    Case("circles", Source("circles", 24, 0.05, 6)),
    Case("xor", Source("xor", 20, 0.05, 7)),
    Case("blobs", Source("blobs", 20, 0.35, 8)),
    Case("spiral", Source("spiral", 30, 0.03, 9)),
)


def recipe(widths: tuple[int, ...]) -> TrainConfig:
    """Return how every network of the suite is trained.

    The first layer starts small (1e-3), so that little of the weights is left from the start;
    40,000 steps of the default descent are arbitrary, about 7 CPU seconds.

    Args:
        widths: neurons of each hidden layer, first layer first.

    Returns:
        The settings.
    """
    return TrainConfig(widths=widths, init_scale=1e-3, steps=40_000)


def trained_network(case: Case, widths: tuple[int, ...]) -> Network:
    """The network of a case, from the case's own seed."""
    data, config = case.dataset(), recipe(widths)
    state = training.init(data, config, torch.Generator().manual_seed(case.source.seed))
    return training.advance(data, state, config, config.steps).net


@dataclass(frozen=True, eq=False)
class Needed:
    """What the weights say of their training points, by the criterion of the hinge attack.

    Attributes:
        on_margin: (n,) bool, within 1% of the smallest margin.
        needed: (n,) bool, on the margin, and the weights are not explained as well without it.
        residual: of the best explanation found, training points included.
        truth: of the training points alone.
    """

    on_margin: Tensor
    needed: Tensor
    residual: float
    truth: float


def needed_points(net: Network, data: Dataset, config: HingeConfig | None = None) -> Needed:
    """Return which training points others on the margin cannot make up for.

    The question is that of `hinge`, put to the training points themselves: they join the pool,
    and the explanation starts from them.

    Args:
        net: as trained, with one output and d = 1 or 2.
        data: its points.
        config: settings of the hinge attack; None takes the defaults.

    Returns:
        Which points are on the margin and needed, and what the explanations leave of |theta|.

    Raises:
        ValueError: where the points are not separated.

    Source: own.
    """
    config = config or HingeConfig()
    made = certify(net, data.x, data.y)
    target = Target.of(net, made.q_min)
    state = hinge.init(target, config, torch.Generator())
    while state.stage in ("lines", "cross", "fit"):
        state = hinge.step(target, state, config)
    attacked = hinge.explained_network(target, config)
    pool = pursuit.CandidatePool.of(attacked, torch.cat([state.pool, data.x.double()]), config.tau)
    ours = len(state.pool) + torch.arange(data.n)[made.lam > SUPPORT * made.lam.max()]
    truth = pursuit.best_explanation(pool, ours)
    best = pursuit.best_explanation(pool, torch.cat([state.active, truth.index]))
    best = min(best, truth, key=lambda e: e.residual)
    limit = (1 + config.rise) * best.residual + config.floor
    needed = torch.zeros(data.n, dtype=torch.bool)
    for i in (made.on_margin & (made.lam > SUPPORT * made.lam.max())).nonzero()[:, 0].tolist():
        left = hinge.without(pool, best, data.x[i], data.y[i], limit, config)
        needed[i] = left >= limit
    return Needed(made.on_margin, needed, best.residual, truth.residual)


def determined_points(net: Network, data: Dataset, seconds: float = 60.0) -> Tensor | None:
    """Return which points near the margin all sets as good share, or None where nothing is known.

    Args:
        net: as trained.
        data: its points.
        seconds: CPU time from which no further point is asked for; arbitrary.

    Returns:
        bool (n,), or None.

    Raises:
        ValueError: where the points are not separated.

    Source: own; see `explanations.others`.
    """
    made = certify(net, data.x, data.y)
    merged = Target.of(net, made.q_min).merged(HingeConfig.merge_angle)
    end = time.process_time() + seconds

    def in_time(_: float) -> None:
        if time.process_time() >= end:
            raise Stopped("no time is left")

    try:
        share = forced_share(merged, data, in_time)
    except Stopped:
        return None
    return None if share is None else (share > 0) & made.on_margin
