r"""Energy of candidate sets, and its maps: where else could this point be?

    E_tau(Z) = min over lam >= 0 and slopes s in [0, 1] at kinks of
               || theta - sum_k lam_k y_k grad Phi(theta; z_k, s) ||^2,

the Clarke relaxation: lower semicontinuous, and zero at the training set of an exact KKT point,
which hard slopes miss by 25 to 30% of ||theta||^2. A map moves one point (or two, or the whole
start of an attack) and keeps the others, their multipliers refitted at every place or frozen.
`tau` is the relative distance of a kink; half a pixel makes needles visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.cone import explained, few, residual
from explorer.engine.network import Network
from explorer.engine.rays import Rays, rays

Array = NDArray[np.float64]

LOW = 0.01  # share of the energy without the point below which a place explains as well; arbitrary
NEEDLE = 0.003  # share of places: below, an isolated zero (measured: 0.0003 against a fan's 0.07)
REDUNDANT = 1e-6  # share of ||theta||^2: the others explain theta without the point; arbitrary


class Archetype(Enum):
    """What the map of a point looks like; the value is what a user reads."""

    NEEDLE = "a needle: no other place on the map explains the weights as well"
    FAN = "a fan: a whole set of places explains the weights as well"
    REDUNDANT = "redundant: the other points explain the weights without it"


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of one moving point, as shares of ||theta||^2.

    Attributes:
        values: at each place (p,).
        here: with the point where it is.
        without: with the point left out; no value lies above it.
        tau: relative distance of a kink.
    """

    values: Array
    here: float
    without: float
    tau: float

    @property
    def low(self) -> float:
        """Share of the places that explain the weights as well as the point itself does."""
        bound = self.here + LOW * max(self.without - self.here, 0.0)
        return float((self.values <= bound + 1e-12).mean())

    @property
    def archetype(self) -> Archetype:
        """Needle, fan or redundant, by the energy without the point and the share of low places."""
        if self.without - self.here <= REDUNDANT:
            return Archetype.REDUNDANT
        return Archetype.NEEDLE if self.low < NEEDLE else Archetype.FAN

    @property
    def sentence(self) -> str:
        """What is seen, with its numbers."""
        return (
            f"This point is {self.archetype.value}. Without it {self.without:.2g} of ‖θ‖² stays "
            f"unexplained, with it {self.here:.2g}; {100 * self.low:.2g}% of the places on the map "
            f"do about as well (kinks freed within {self.tau:.2g})."
        )


def energy(net: Network, x: Tensor, y: Tensor, tau: float) -> float:
    """E_tau of the points x (n, d), y (n,), as a share of ||theta||^2."""
    made = rays(net, x, y, tau)
    rho2 = float(net.rho) ** 2
    return _share(rho2, residual(made.gram().numpy(), made.inner.numpy())[1])


def moving(
    net: Network, x: Tensor, y: Tensor, index: int, places: Tensor, tau: float,
    frozen: bool = False,
) -> Energies:  # fmt: skip
    """Energies with point `index` at each of the places (p, d), the others where they are.

    Args:
        net: a homogeneous network of one output; merged neurons make it cheap and change little.
        x: the points (n, d).
        y: their labels (n,).
        index: which point moves.
        places: where to.
        tau: relative distance of a kink.
        frozen: keep the multipliers of the others instead of fitting them at every place.
    """
    rest = torch.arange(len(x)) != index
    fixed = rays(net, x[rest], y[rest], tau)
    moved = rays(net, places, y[index].expand(len(places)), tau)
    rho2 = float(net.rho) ** 2
    shared, inner = fixed.gram().numpy(), fixed.inner.numpy()
    base = residual(shared, inner)[1]
    whole = energy(net, x, y, tau)
    if frozen:
        everyone = rays(net, x, y, tau)
        c = residual(everyone.gram().numpy(), everyone.inner.numpy())[0]
        kept = c[(everyone.owner != index).numpy()]
        gains = 2 * inner @ kept - kept @ shared @ kept + _frozen(fixed, kept, moved)
        base = float(2 * inner @ kept - kept @ shared @ kept)
    else:
        gains = _grouped(fixed, shared, inner, [moved])
    values = np.clip(1 - gains / rho2, 0, None)
    return Energies(values, whole, _share(rho2, base), tau)


def pairs(
    net: Network, x: Tensor, y: Tensor, index: int, first: Tensor, second: Tensor, tau: float
) -> Array:
    """Shares with point `index` split in two, at first (p, d) and second (p, d): (p,)."""
    rest = torch.arange(len(x)) != index
    fixed = rays(net, x[rest], y[rest], tau)
    label = y[index].expand(len(first))
    both = [rays(net, places, label, tau) for places in (first, second)]
    gains = _grouped(fixed, fixed.gram().numpy(), fixed.inner.numpy(), both)
    return np.clip(1 - gains / float(net.rho) ** 2, 0, None)


def _share(rho2: float, gain: float) -> float:
    return max(0.0, 1 - gain / rho2)


def _frozen(fixed: Rays, kept: Array, moved: Rays) -> Array:
    """What each place adds where the others' contribution stays as it is, (p,)."""
    left = moved.inner.numpy() - moved.gram(fixed).numpy() @ kept
    out = np.zeros(len(moved.kinks))
    for points, own, _, rows in _by_count([moved]):
        out[points] = np.einsum("pv,pv->p", few(own, left[rows], _diagonal(own)), left[rows])
    return out


def _grouped(fixed: Rays, shared: Array, inner: Array, parts: list[Rays]) -> Array:
    """What each place explains together with the fixed rays, (p,)."""
    out = np.zeros(len(parts[0].kinks))
    cross = np.concatenate([part.gram(fixed).numpy() for part in parts])
    own_inner = np.concatenate([part.inner.numpy() for part in parts])
    for points, own, few_rays, rows in _by_count(parts):
        if few_rays:
            out[points] = explained(shared, inner, cross[rows], own, own_inner[rows])
            continue
        for i, block, row in zip(points, own, rows, strict=True):
            whole = np.block([[shared, cross[row].T], [cross[row], block]])
            out[i] = residual(whole, np.concatenate([inner, own_inner[row]]))[1]
    return out


def _diagonal(own: Array) -> Array:
    out: Array = np.einsum("pvv->pv", own)
    return out


def _by_count(
    parts: list[Rays],
) -> list[tuple[NDArray[np.int64], Array, bool, NDArray[np.int64]]]:
    """Places with equally many rays: their indices, Gram matrices, v <= 4, rows of their rays."""
    counts = np.stack([part.counts.numpy() for part in parts])
    starts = np.cumsum(counts, axis=1) - counts
    starts += np.cumsum([0, *(len(part.owner) for part in parts[:-1])])[:, None]
    out = []
    for kind in np.unique(counts, axis=1).T:
        points = np.flatnonzero((counts == kind[:, None]).all(axis=0))
        rows = np.concatenate(
            [s[points][:, None] + np.arange(k) for s, k in zip(starts, kind, strict=True)], axis=1
        )
        out.append((points, _own(parts, points, rows), int(kind.sum()) <= 4, rows))
    return out


def _own(parts: list[Rays], points: NDArray[np.int64], rows: NDArray[np.int64]) -> Array:
    """Gram matrices of the own rays of each place (p, v, v)."""
    owner = np.concatenate([part.owner.numpy() for part in parts])[rows]
    which = np.concatenate([np.full(len(part.owner), i) for i, part in enumerate(parts)])[rows]
    total = np.zeros((len(points), rows.shape[1], rows.shape[1]))
    for layer in range(len(parts[0].back)):
        b = np.concatenate([part.back[layer].numpy() for part in parts])[rows]
        a = np.stack([part.inputs[layer].numpy() for part in parts])[which, owner]
        total += (b @ b.transpose(0, 2, 1)) * (a @ a.transpose(0, 2, 1))
    return total
