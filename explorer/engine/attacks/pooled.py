r"""The pooled attack: claims of several KKT reconstructions and crossings, in one explanation.

A descent ends in a local optimum: each start of `kkt` finds some points and invents others, and
another start others. What the weights need does not depend on the start. So the claims of
independent starts join the vertices of `crossings` in one pool, and the questions of `hinge` are
put to all of them:

    starts    one KKT reconstruction per step, each from noise of its own; its claims are kept
    lines, cross   the vertices, as in `hinge`
    fit       multipliers >= 0 on few of the pool, begun at all claims of all starts
    prove     for each fitted place: is theta explained as well without its neighbourhood?

A claim is a needed place with no heavier one of its label within `radius`: the question left out
both, and cannot tell them apart. `votes` says how many starts had found it, and takes no
part in the claims. Own construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.attacks import hinge, kkt, pursuit
from explorer.engine.attacks.claims import MERGE_RADIUS, Report, merge_candidates
from explorer.engine.attacks.hinge_config import HingeConfig
from explorer.engine.attacks.hinge_state import HingeState
from explorer.engine.attacks.kkt_config import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.network import phi
from explorer.engine.status import Status, iterated

__all__ = [
    "PooledConfig",
    "PooledState",
    "fits",
    "init",
    "iterate",
    "report",
    "step",
    "terminate",
    "votes",
]

fits = hinge.fits
_STRIDE = 1_000_003  # arbitrary: sets the noise of one start apart from that of the next


@dataclass(frozen=True)
class PooledConfig(HingeConfig):
    """A pooled attack: `HingeConfig`, and the KKT reconstructions before it.

    Attributes:
        starts: how many reconstructions.
        m: candidates of each.
        descent: steps of each.
    """

    starts: int = 6
    m: int = 60
    descent: int = 1000

    def __post_init__(self) -> None:
        """Refuse settings with which no step could be taken."""
        super().__post_init__()
        if self.starts < 1:
            raise ValueError(f"starts must be at least 1; got {self.starts}")
        self.reconstruction()

    def reconstruction(self) -> KKTConfig:
        """The settings of one start: the defaults of the KKT attack, at this size and length."""
        return KKTConfig(m=self.m, steps=self.descent)


@dataclass(frozen=True, eq=False)
class PooledState(HingeState):
    """One moment of the attack: that of `hinge`, and what the starts have claimed.

    Attributes:
        seed: of the noise of the first start.
        found: claims of all starts so far (c, d).
        labels: of these (c,).
        heft: their multipliers (c,).
        start: which start each is of (c,).
    """

    seed: int
    found: Tensor
    labels: Tensor
    heft: Tensor
    start: Tensor

    def numbers(self) -> dict[str, float]:
        """For the curves: as `HingeState`, and the claims of all starts."""
        return {**super().numbers(), "claims": float(len(self.found))}


def init(
    target: Target, config: PooledConfig, generator: torch.Generator, start: object = None
) -> PooledState:
    """The lines, no candidate and no start yet. Draws one seed."""
    first = hinge.init(target, config, generator)
    seed = int(torch.randint(2**31, (), generator=generator))
    none = first.lam
    return PooledState(
        **{**vars(first), "stage": "starts"}, seed=seed, found=first.x, labels=none, heft=none,
        start=torch.zeros(0, dtype=torch.long),
    )  # fmt: skip


def step(target: Target, state: PooledState, config: PooledConfig) -> PooledState:
    """One start, or one step of `hinge` with the claims of all starts in its pool."""
    if state.stage == "starts":
        return _started(target, state, config)
    if state.stage == "cross":
        following = _opened(target, state, config)
    else:
        # The fit counts its rounds by t, where the starts are none of them.
        earlier = replace(state, t=state.t - config.starts)
        made = hinge.step(target, earlier, config)
        if made is earlier or not isinstance(made, PooledState):
            return state
        following = replace(made, t=state.t + 1)
    return _joined(following, target, config) if following.stage == "cross" else following


def terminate(state: PooledState, config: PooledConfig) -> Status:
    """How the run stands."""
    return hinge.terminate(state, config)


def iterate(target: Target, state: PooledState, config: PooledConfig) -> Iterator[PooledState]:
    """The states after `state`, to the end."""
    return iterated(step, terminate, target, state, config)


def report(target: Target, state: PooledState, config: PooledConfig) -> Report:
    """The needed places, each the heaviest of its label within `radius`; or all fitted ones."""
    made = hinge.report(target, state, config)
    if config.claim != "proven" or not len(made.x):
        return made
    near = (torch.cdist(made.x, state.x) <= config.radius) & (made.y[:, None] == state.y)
    heaviest = (near * state.lam).amax(dim=1) <= made.lam
    return Report(made.x[heaviest], made.y[heaviest], made.lam[heaviest])


def votes(state: PooledState, x: Tensor, y: Tensor, radius: float = MERGE_RADIUS) -> Tensor:
    """How many starts claimed a point of label y (m,) within `radius` of x (m, d). -> (m,)."""
    if not len(state.found):
        return torch.zeros(len(x), dtype=torch.long)
    near = (torch.cdist(x, state.found) <= radius) & (y[:, None] == state.labels)
    count = [(near & (state.start == k)).any(1) for k in state.start.unique().tolist()]
    return torch.stack(count).sum(0)


def _started(target: Target, state: PooledState, config: PooledConfig) -> PooledState:
    """One reconstruction; its claims join those of the starts before it."""
    number, one = state.t, config.reconstruction()
    noise = torch.Generator().manual_seed(state.seed + _STRIDE * number)
    last = kkt.init(target, one, noise)
    for after in kkt.iterate(target, last, one):
        last = after
    made = kkt.report(target, last, one)
    x = made.x.detach().cpu().double()
    # A label that the merged weights deny would have no place in the pool.
    agrees = phi(hinge.attacked(target, config), x).sign() == made.y.cpu()
    x, y, lam = x[agrees], made.y.cpu().double()[agrees], made.lam.detach().cpu().double()[agrees]
    found, labels = torch.cat([state.found, x]), torch.cat([state.labels, y])
    heft, owner = torch.cat([state.heft, lam]), torch.full((len(x),), number)
    merged = merge_candidates(found, labels, heft, MERGE_RADIUS)
    return replace(
        state, t=number + 1, stage="starts" if number + 1 < config.starts else "lines",
        found=found, labels=labels, heft=heft, start=torch.cat([state.start, owner]),
        x=merged.x, y=merged.y, lam=merged.lam / (number + 1), without=merged.lam * torch.nan,
        sentence=f"Start {number + 1} of {config.starts} claims {len(x)} points; all together "
        f"name {len(merged.x)} places.",
    )  # fmt: skip


def _places(state: PooledState) -> Tensor:
    return merge_candidates(state.found, state.labels, state.heft, MERGE_RADIUS).x


def _joined(state: PooledState, target: Target, config: PooledConfig) -> PooledState:
    """The vertices, with the places of the starts before them in the pool."""
    places = _places(state)
    pool = torch.cat([places, state.pool])
    x = torch.cat([places, state.x])
    zero = torch.zeros(len(x), dtype=torch.float64)
    labels = phi(hinge.attacked(target, config), x).sign()
    return replace(
        state, pool=pool, x=x, y=labels, lam=zero, without=zero * torch.nan,
        sentence=f"{state.sentence} {len(places)} places of {config.starts} starts join them.",
    )  # fmt: skip


def _opened(target: Target, state: PooledState, config: PooledConfig) -> PooledState:
    """Begin the fit: at the places of all starts, not at nothing."""
    pool = hinge.pool_of(target, state, config)
    now = pursuit.fitted(pool, torch.arange(len(_places(state))))
    x, y = pool.x[now.index], pool.y[now.index]
    return replace(
        state, t=state.t + 1, stage="fit", x=x, y=y, lam=now.lam, without=now.lam * torch.nan,
        residual=now.residual, active=now.index, mass=now.lam, left=tuple(now.left),
        sentence=f"{len(x)} places of the starts explain all but {now.residual:.1%} of the "
        "weights.",
    )  # fmt: skip
