r"""Two snapshots: the points that training saw between two weights of one network.

Each step of gradient descent, with momentum or not, adds gradients with coefficients >= 0:

    theta_T = theta_0 + sum over steps t and points i of  c_i(t) y_i grad Phi(theta_t; x_i).

Nothing is said of a margin or a limit, so a few steps suffice. Known are both ends, not the path.
Of the last layer v, with h(theta; x) the outputs of the last hidden layer, this reads

    v_T = kappa v_0 + sum_i y_i sum_k c_ik h(theta(k); x_i),   c_ik >= 0,

where theta(k) are a few moments on the segment between the snapshots. It is exact for one step, as
theta_0 is one of the moments. kappa >= 0 is fitted too: it takes up a weight decay and the scale
that training carries apart. Layers below would add more equations, but their gradients hold v,
which is small at first and changes by a multiple of itself: measured on 2-1000-1 after 50 steps,
all layers leave 0.76 of the change at the true points, the last one 0.16. And h is continuous in
x where gradients of the first layer jump, so that places can be polished.

A step takes in the place of the largest score <what is left, y h> / |h| among places of a box,
then moves all places by Gauss-Newton steps with the c_ik fitted anew: the sliding Frank-Wolfe
method. Own construction; the last layer's fit is also in arXiv 2605.06519, restated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.attacks.attack import Attack, Needs, Start
from explorer.engine.attacks.claims import (
    MERGE_RADIUS,
    Report,
    in_units_of_data,
    merge_candidates,
)
from explorer.engine.attacks.exclusive import ExclusivePoints, exclusive_points
from explorer.engine.attacks.shapes import Shapes, places
from explorer.engine.attacks.target import Target
from explorer.engine.margin import q_of
from explorer.engine.network import Network, with_one
from explorer.engine.number_words import count
from explorer.engine.settings import setting, settings
from explorer.engine.statement import Judged, Statement
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

EXPLAINED = 1e-5  # of the change: what is left is rounding, and no place is missing; arbitrary
RIDGE = 1e-12  # moments are nearly alike: without one rounding chooses between them; arbitrary
LONGEST = 0.1  # of a Gauss-Newton step of one place, in units of the data; arbitrary
DAMPING = (1e-3, 1e-7, 1e3)  # first, least and largest, shares of the diagonal; arbitrary
NOTHING_LEFT = 1e-9  # of the largest: multipliers and changes below it are rounding; arbitrary
USUAL = 0.45  # arbitrary
CLAIMED = 0.25  # of the usual multiplier: found ones were above 0.7 of it, most others below 0.1
NO_SNAPSHOT = (
    "Two snapshots also needs the weights from before: a run that holds its first weights, or "
    "--before with a file of them."
)


@settings
class SnapshotsConfig:
    """Settings; `benchmarks/bench_snapshots.py` measures the defaults."""

    # fmt: off
    steps: Annotated[int, setting(
        "Places taken in, one a step: somewhat more than there are points", title="places",
        form="sight", place=1, page=(1, 400), gt=0,
    )] = 30
    knots: Annotated[int, setting(
        "Moments between the snapshots at which gradients are taken, the first one among them",
        title="moments", form="sight", place=2, page=(1, 9), ge=1,
    )] = 3
    box: Annotated[float, setting(
        "Half width of the box in which new places are sought", title="box", unit="of the data",
        form="sight", place=3, page=(0.01, 100), gt=0,
    )] = 1.5
    tried: Annotated[int, setting(
        "Places of the box that a step compares", title="places compared", form="more", place=1,
        page=(10, 20_000), ge=1,
    )] = 2000
    polish: Annotated[int, setting(
        "Gauss-Newton steps of all places after each", title="polish", form="more", place=2,
        page=(0, 50), ge=0,
    )] = 3
    # fmt: on


@dataclass(frozen=True, eq=False)
class SnapshotsState:
    """The places so far.

    Attributes:
        t: steps taken, of one new place each.
        x: places (m, d), those first that are read out of the first layer.
        y: their labels (m,): the way in which they pulled.
        lam: the sums of their coefficients over the moments (m,).
        kappa: what is left of the earlier weights.
        residual: what is unexplained of the change that is no multiple of these, as a share of it.
        seed: of the places that are compared.
        read: how many places are read, see `exclusive`; they stay.
        rank: of the change of the first layer: no fewer points took part.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    kappa: float
    residual: float
    seed: int
    read: int = 0
    rank: int = 0

    @property
    def whole(self) -> bool:
        """Return whether no point can have taken part but those that are read."""
        return 0 < self.read == self.rank <= self.x.shape[1]

    def numbers(self) -> dict[str, float]:
        """Return the unexplained share, the number of places, of those read, and the rank."""
        return {
            "residual": self.residual, "places": float(len(self.x)), "read": float(self.read),
            "rank": float(self.rank),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Change:
    """The equations of the last layer.

    Attributes:
        nets: the network at the moments.
        old: its last layer before (k,), a bias at the end.
        new: and after.
    """

    nets: tuple[Network, ...]
    old: Tensor
    new: Tensor

    @staticmethod
    def of(target: Target, knots: int) -> Change:
        """Return those of a target with a snapshot before, at so many moments.

        Raises:
            ValueError: where it has none.
        """
        if target.before is None:
            raise ValueError(NO_SNAPSHOT)
        first, last = (net.to(dtype=torch.float64, device="cpu")
                       for net in (target.before, target.net))  # fmt: skip
        shares = torch.linspace(0, 1, knots, dtype=torch.float64).tolist() if knots > 1 else [0.0]
        nets = [first.with_theta(torch.lerp(first.theta, last.theta, s)) for s in shares]
        return Change(tuple(nets), first.blocks[-1][0], last.blocks[-1][0])

    def hidden_layer(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return h (K, m, k) at places x (m, d) and its derivatives (K, m, k, d)."""
        made = [_last_hidden(net, x) for net in self.nets]
        return torch.stack([h for h, _ in made]), torch.stack([slope for _, slope in made])

    def fit(self, h: Tensor, y: Tensor, ridge: float = RIDGE) -> tuple[Tensor, float, Tensor]:
        """Return coefficients (K, m) >= 0 of h (K, m, k) with labels y (m,), kappa, what is left.

        What is left is a vector (k,). `ridge`: on columns of length one, but not on kappa.
        """
        rows = torch.cat([(h * y[:, None]).flatten(0, 1), self.old[None]])
        weight = math.sqrt(ridge) * rows.norm(dim=1)
        weight[-1] = 0
        system = torch.cat([rows, torch.diag(weight)], 1)
        aim = torch.cat([self.new, torch.zeros_like(weight)])
        found, _ = nnls(system.numpy().T, aim.numpy(), maxiter=100 * len(rows))
        made = torch.from_numpy(np.asarray(found))
        return made[:-1].reshape(len(self.nets), -1), float(made[-1]), self.new - made @ rows

    def scores(self, x: Tensor, left: Tensor) -> Tensor:
        """Return <left, h> / |h| of largest size over the moments, of each place x (m, d). (m,)."""
        best = x.new_zeros(len(x))
        for net in self.nets:
            h, _ = _last_hidden(net, x, slopes=False)
            now = h @ left / h.norm(dim=1).clamp_min(1e-300)
            best = torch.where(now.abs() > best.abs(), now, best)
        return best


def _last_hidden(net: Network, x: Tensor, slopes: bool = True) -> tuple[Tensor, Tensor]:
    """Return outputs of the last hidden layer (m, k) at x (m, d), and derivatives (m, k, d)."""
    a, slope = x, x.new_zeros(0)
    for layer, (w, b) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        z = a @ w.T if b is None else torch.addmm(b, a, w.T)
        a = z.clamp_min(0)
        if slopes:
            along = w.expand(len(x), *w.shape) if layer == 0 else w @ slope
            slope = along * (z > 0).to(z)[:, :, None]
    if net.biases[-1] is not None:
        a = with_one(a)
        slope = torch.cat([slope, slope.new_zeros(len(x), 1, net.d)], 1) if slopes else slope
    return a, slope


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Places with their coefficients (K, m), kappa and what is left (k,)."""

    x: Tensor
    coef: Tensor
    kappa: float
    left: Tensor


def _best_fit(change: Change, x: Tensor, y: Tensor) -> _Fitted:
    return _Fitted(x, *change.fit(change.hidden_layer(x)[0], y))


def _polish(change: Change, x: Tensor, y: Tensor, rounds: int, read: int) -> _Fitted:
    """Return places after damped Gauss-Newton steps; what is left only falls (Marquardt 1963).

    The first `read` stay where they are.
    """
    now, (damping, least, most) = _best_fit(change, x, y), DAMPING
    for _ in range(rounds):
        h, slope = change.hidden_layer(now.x)
        pull = (torch.einsum("qm,qmkd->mdk", now.coef, slope) * y[:, None, None])[read:]
        used = torch.cat([(h * y[:, None]).flatten(0, 1)[now.coef.flatten() > 0], change.old[None]])
        rows = torch.cat([pull.flatten(0, 1), used])
        gram, inner = rows @ rows.T, rows @ now.left
        size = gram.diagonal().clamp_min(1e-14 * float(gram.diagonal().max()) + 1e-300)
        while damping <= most:
            move = torch.linalg.solve(gram + torch.diag(damping * size), inner)
            move = move[: pull.shape[:2].numel()].reshape(-1, now.x.shape[1])
            far = move.norm(dim=1, keepdim=True).clamp_min(1e-300)
            x = now.x + torch.cat([0 * now.x[:read], move * (LONGEST / far).clamp_max(1)])
            after = _best_fit(change, x, y)
            if float(after.left.norm()) < float(now.left.norm()):
                now, damping = after, max(damping / 5, least)
                break
            damping *= 5
        else:
            break
    return now


def fits(target: Target) -> str:
    """Return why there are no two snapshots, or an empty string."""
    if target.before is None:
        return NO_SNAPSHOT
    return "" if len(target.net.weights) > 1 else "Two snapshots needs a hidden layer."


def _change(target: Target, config: SnapshotsConfig) -> Change:
    made: Change = target.kept(("snapshots", config.knots), lambda: Change.of(target, config.knots))
    return made


def _size(change: Change) -> float:
    """Return the length of the change that is no multiple of the earlier layer; 0: rounding."""
    none = change.old.new_zeros(0)
    left = change.fit(none.reshape(len(change.nets), 0, len(change.old)), none)[2]
    size = float(left.norm())
    return size if size > NOTHING_LEFT * float(change.new.norm()) else 0.0


@few_threads()
def init(
    target: Target, config: SnapshotsConfig, generator: torch.Generator, start: Start | None = None
) -> SnapshotsState:
    """Return the places that are read. It draws the seed of the places that are compared."""
    change, found = _change(target, config), _read(target)
    x = found.x.to(dtype=torch.float64, device="cpu")
    seed = int(torch.randint(2**31, (), generator=generator))
    h, _ = change.hidden_layer(torch.cat([x, x]))
    one = x.new_ones(len(x))
    coef, _, _ = change.fit(h, torch.cat([one, -one]))
    ways = coef.sum(0).reshape(2, -1)  # of each sign
    y = torch.where(ways[0] < ways[1], -one, one)
    now = _best_fit(change, x, y)
    return SnapshotsState(0, x, y, now.coef.sum(0), now.kappa, _share(now, change), seed, len(x),
                          found.rank)  # fmt: skip


def _read(target: Target) -> ExclusivePoints:
    """Return the points that neurons saw alone; none without a bias in the first layer."""
    before, after = target.before, target.net
    assert before is not None  # else it was refused
    if before.biases[0] is None:
        none = torch.zeros(0)
        return ExclusivePoints(none.reshape(0, after.d), none, 0)
    made: ExclusivePoints = target.kept(
        "exclusive", lambda: exclusive_points(before.to(device="cpu"), after.to(device="cpu"))
    )
    return made


def _share(now: _Fitted, change: Change) -> float:
    """Return what is left as a share of the change that is no multiple of the earlier layer."""
    size = _size(change)
    return float(now.left.norm()) / size if size > 0 else 0.0


@few_threads()
def step(target: Target, state: SnapshotsState, config: SnapshotsConfig) -> SnapshotsState:
    """Return the state with one place more, and all polished; those of multiplier 0 are dropped."""
    change = _change(target, config)
    h, _ = change.hidden_layer(state.x)
    _, _, left = change.fit(h, state.y)
    drawn = torch.Generator().manual_seed(state.seed)
    tried = torch.rand(config.tried, target.net.d, generator=drawn, dtype=torch.float64)
    tried = (2 * tried - 1) * (config.box / target.unit)
    score = change.scores(tried, left)
    best = int(score.abs().argmax())
    x = torch.cat([state.x, tried[best][None]])
    y = torch.cat([state.y, score[best].sign()[None]])
    now = _polish(change, x, y, config.polish, state.read)
    lam = now.coef.sum(0)
    kept = lam > NOTHING_LEFT * float(lam.max())
    kept[: state.read] = True
    return replace(state, t=state.t + 1, x=now.x[kept], y=y[kept], lam=lam[kept], kappa=now.kappa,
                   residual=_share(now, change))  # fmt: skip


def terminate(state: SnapshotsState, config: SnapshotsConfig) -> Status:
    """Return how the run stands."""
    if state.residual < EXPLAINED or state.whole:
        return Status.COMPLETE
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


@in_units_of_data
def report(target: Target, state: SnapshotsState, config: SnapshotsConfig) -> Report:
    """Return the places that are read, and others: close ones made one, no negligible ones."""
    read = Report(state.x, state.y, state.lam).take(torch.arange(len(state.x)) < state.read)
    x, y, lam = (v[state.read :] for v in (state.x, state.y, state.lam))
    other = merge_candidates(x, y, lam, MERGE_RADIUS)
    if len(read.x):
        other = other.take(torch.cdist(other.x, read.x).min(1).values > MERGE_RADIUS)
    lam = torch.cat([read.lam, other.lam]).sort(descending=True).values
    if not len(lam):
        return other
    # The heaviest claims, down to this one, have a share of all multipliers. Not one half: labels
    # often balance, and rounding would choose.
    usual = lam[int((lam.cumsum(0) < USUAL * lam.sum()).sum())]
    other = other.take(other.lam >= CLAIMED * usual)
    return read.union(other).heaviest_first()


def kept_margins(before: Network, after: Network, x: Tensor, y: Tensor) -> Tensor:
    """Return how much of its margin each of n points kept between two snapshots, 1 for the median.

    A network that went on to train without one of its points lets the margin of that one fall
    behind the others', which goes for points that had a multiplier.

    Args:
        before: the weights before.
        after: the weights after, of the same architecture at any scale.
        x: the points (n, d) that the deleted one is among.
        y: their labels (n,).

    Returns:
        Shares (n,); the least one names the point that went.

    Source: own; losses of two models name deleted points in Bertran et al. 2024 too.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> from explorer.engine.attacks.snapshots import kept_margins
        >>> data = preset("alternating-line", n=4)
        >>> one = maximum_margin(data.x, data.y).net
        >>> two = maximum_margin(data.x[:3], data.y[:3]).net
        >>> int(kept_margins(one, two, data.x, data.y).argmin())
        3
    """
    shares = q_of(after, x, y) / q_of(before, x, y)
    return shares / shares.median()


def shapes(target: Target, state: SnapshotsState) -> Shapes:
    """Return a diamond around the heaviest place, and squares around those that are read."""
    read = places(target, state.x[: state.read])
    return Shapes(
        diamonds=places(target, _heaviest(state)), rings=read, names=(("rings", "read exactly"),)
    )


def _heaviest(state: SnapshotsState) -> Tensor:
    """Return the place of the largest multiplier (1, d), or none."""
    return state.x[state.lam.argmax()][None] if len(state.x) else state.x


def words(state: SnapshotsState, config: SnapshotsConfig) -> str:
    """Return what is explained so far."""
    read = _read_words(state)
    if not state.t:
        return read or "Nothing of the change between the two snapshots is explained yet."
    many = count(len(state.x), "place")
    return (
        f"{read} {many} explain all but {state.residual:.1%} of the change of the last layer, "
        f"beside {state.kappa:.3g} times the earlier weights."
    ).strip()


def _read_words(state: SnapshotsState) -> str:
    """Return how many points are read, in a sentence; empty for none."""
    if not state.read:
        return ""
    rest = " The change holds no other point." if state.whole else ""
    how = "is read exactly, by" if state.read == 1 else "are read exactly, each by"
    return f"{count(state.read, 'point')} {how} neurons that saw no other.{rest}"


def headline(state: SnapshotsState, known: Judged) -> Statement:
    """Return how many points the change gave away."""
    at = ", ".join(f"{v:.2f}" for v in _heaviest(state).flatten().tolist())
    first = f" The heaviest is near ({at})." if at and state.x.shape[1] <= 2 else ""
    return Statement(
        f"The change gives away {known.found or 'none'} of {known.n} points",
        f"{known.found} of {count(known.claims, 'claim')} lie within {known.radius:g} of a point."
        f"{first} {_read_words(state)} The places explain all but {state.residual:.1%} of how the "
        "last layer changed between the two snapshots; no margin is needed for that.",
        "warn" if known.found else "",
    )


ATTACK = Attack(
    place=9, heavy=True, key="snapshots", title="Two snapshots", paper="own",
    sentence="Asks what training added to the first weights. It looks for points whose gradients "
    "explain the change, and needs no margin: it works after a few steps.",
    config=SnapshotsConfig, state=SnapshotsState,
    first=init, step=step, terminate=terminate, report=report,
    needs=Needs(fits, non_homogeneous=True, unseparated=True),
    shapes=shapes, words=words, headline=headline,
    curves=(("residual", "unexplained share of the change"),),
)  # fmt: skip
