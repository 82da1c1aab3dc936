r"""Other explanations as good as that by given points: how far off one is, and what all share.

The given points explain theta up to a residual, with margins in a band and with slopes that are
free near neurons' lines. Every explanation in a box that is as good in each of these is a sum of
rays of one cone (`cone`), of the given weights without groups. So the distance of the farthest and
the forced masses have proven bounds (`masses`), and nothing is sampled.

Of three layers and more slopes are 0 or 1 on every side of a line, and free nowhere: each sum is
then one of an explanation, but even the best may leave more than the given points do.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.explanations.cells import KINK
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.explanations.masses import SLACK, Farthest, farthest_rays, forced_masses
from explorer.engine.explanations.places import Places
from explorer.engine.explanations.regions import Layers
from explorer.engine.explanations.splitting import (
    TRAINED_MARGIN,
    USED,
    Explanation,
    fitted_explanation,
    margins,
    residual,
)
from explorer.engine.network import Network, preactivations
from explorer.engine.nonnegative import nonnegative
from explorer.engine.progress import Progress, no_progress

RADIUS = 0.03  # the half width within which a point counts as found (`scoring.RADII`)
AS_WELL = 1e-5  # arbitrary: of |theta|; a residual up to it counts as zero
COARSE = 0.1  # arbitrary: a residual beyond which an explanation explains little
EDGE = 1e-9  # arbitrary: what y Phi may be off the margin by rounding
MERGED = 1e-6  # arbitrary: rays nearer than this share of the box are of one point


@dataclass(frozen=True, eq=False)
class Rivals:
    """All explanations in a box that are as good as that by given points.

    Attributes:
        net: the network at margin 1.
        truth: the explanation by the given points.
        cone: of the others.
        extent: half width of the box.
        missed: what the given points leave of theta, as a share of |theta|.
        allowed: what the others may leave: as much, or hardly more than the least.
    """

    net: Network
    truth: Explanation
    cone: Cone
    extent: float
    missed: float
    allowed: float

    @classmethod
    def of(cls, net: Network, x: Tensor, y: Tensor, extent: float, tau: float = KINK) -> Rivals:
        """Return the rivals of given points.

        Args:
            net: at margin 1, d = 1 or 2. Merge the parallel neurons of a trained one
                first (`Target.merged`): every neuron has a line of its own here.
            x: the points that it was trained on (n, d).
            y: their labels (n,).
            extent: half width of the box.
            tau: relative distance of a kink at the given points: `certificate.TAU_TRAINED` for
                trained weights.

        Raises:
            ValueError: for other networks, or where the points explain nothing.
        """
        if net.d not in (1, 2) or net.depth < 2:
            raise ValueError(
                "other sets are looked for on the line or the plane, of a network with hidden "
                f"layers; got d={net.d} and {net.depth} layers"
            )
        net.order  # noqa: B018 - refuses biases beyond the first layer
        if not extent > 0:
            raise ValueError(f"extent must be positive; got {extent}")
        net = net.to(dtype=torch.float64, device="cpu")
        truth, rows = fitted_explanation(net, x, y, tau)
        missed = float((net.theta - truth.lam @ rows).norm() / net.rho)
        cone = Cone.of_layers(net, _as_given(net, truth, extent, tau))
        allowed = max(AS_WELL, missed, SLACK * cone.least.high)
        return cls(net, truth, cone, extent, missed, allowed)

    @property
    def mass(self) -> float:
        """Return rho^2 / order: the mass of every explanation on the margin."""
        return float(self.net.rho) ** 2 / self.net.order


def _as_given(net: Network, truth: Explanation, extent: float, tau: float) -> Assumptions:
    """Return the band and the free slopes of the given points, as what all others may have."""
    off = margins(net, truth) - 1
    low = min(max(-float(off.min()), 0.0), TRAINED_MARGIN)
    high = min(max(float(off.max()), 0.0), TRAINED_MARGIN)
    free = 0.0
    if net.depth == 2:
        z = preactivations(net, truth.x)[0]
        away = z.abs() / net.weights[0].norm(dim=1).clamp_min(1e-300)
        bent = (truth.slopes[0] - (z > 0).to(z)).abs() > EDGE
        free = min(max(float(away[bent].max()) if bent.any() else 0.0, EDGE), tau * extent)
    return Assumptions(
        band=high, tau=free, box=extent, margin_error=low, edge=EDGE,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OtherSet:
    """The farthest training set found that explains the weights as well.

    Attributes:
        explanation: its points.
        distance: mean distance of its mass from the nearest given point.
        at_most: no such set is farther on average.
        residual: what its sum misses, relative to |theta|.
        truth: what the given points' sum misses.
        extent: half width of the box of all sets.
    """

    explanation: Explanation
    distance: float
    at_most: float
    residual: float
    truth: float
    extent: float

    @property
    def other(self) -> bool:
        """Return whether the set is another one: farther than the radius that tells points."""
        return self.distance >= RADIUS

    @property
    def as_well(self) -> bool:
        """Return whether it misses no more than the given points do, by 1%, or than `AS_WELL`."""
        return self.residual <= max(AS_WELL, 1.01 * self.truth)


def farthest_set(rivals: Rivals, progress: Progress = no_progress) -> OtherSet:
    """Return the rival whose points are farthest from the given ones, on average."""
    far, columns, pieces = farthest_rays(rivals.cone, rivals.truth.x, rivals.allowed, progress)
    made = _explanation(rivals, far, columns, pieces)
    gap = torch.cdist(made.x, rivals.truth.x).amin(dim=1)
    distance = float(gap @ made.lam) / rivals.mass
    return OtherSet(
        made, distance, max(far.at_most, distance), residual(rivals.net, made), rivals.missed,
        rivals.extent,
    )  # fmt: skip


def forced_mass(rivals: Rivals, progress: Progress = no_progress) -> Tensor:
    """Return the mass (n,) that every rival has within `RADIUS` of each given point, at least."""
    x, y = rivals.truth.x, rivals.truth.y
    return forced_masses(rivals.cone, x, y, RADIUS, rivals.allowed, progress)


def _explanation(rivals: Rivals, far: Farthest, columns: Array, pieces: Places) -> Explanation:
    """Return a set of rays as points with slopes; of two layers rays of one place are one point."""
    net, layers, lam = rivals.net, rivals.cone.neurons, far.lam
    assert isinstance(layers, Layers)
    if rivals.missed < AS_WELL:  # what is allowed then is arbitrary: nothing need be left
        lam = torch.from_numpy(
            nonnegative(columns @ columns.T, columns @ layers.theta, lam.numpy())
        )
    used = lam > USED * lam.sum()
    x, y, lam = far.x[used], far.y[used], lam[used]
    rays, active = (torch.from_numpy(rows)[used].double() for rows in (columns, pieces.on))
    cover = y[:, None] if pieces.cover is None else torch.from_numpy(pieces.cover)[used]
    slopes = active.split(net.widths, dim=1)
    if net.depth == 2 and len(x):
        w, v = layers.weights[0], cover @ net.weights[1]
        ends = torch.cat([x, torch.full((len(x), 1), float(layers.biased))], dim=1)
        blocks = rays[:, : w.size].reshape(len(x), *w.shape)  # v s (x, 1) of each neuron
        own = torch.einsum("akd,ad->ak", blocks, ends) / (ends**2).sum(1, keepdim=True)
        key = torch.cat([(x / (MERGED * rivals.extent)).round(), cover], dim=1)
        of = key.unique(dim=0, return_inverse=True)[1]
        share = torch.zeros(int(of.max()) + 1, len(x)).double()
        share[of, torch.arange(len(x))] = lam
        lam = share.sum(1)
        share /= lam[:, None]
        slopes = [(share @ (own / torch.where(v == 0, 1.0, v))).clamp(0, 1)]
        x, y, cover = share @ x, (share @ y).round(), (share @ cover).round()
    return Explanation(x, y, lam, tuple(slopes), torch.full((len(x),), -1), cover)
