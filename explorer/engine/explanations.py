r"""Weighted training sets that explain the same weights: split, merge, residual, predicted jumps.

An explanation of theta (at margin 1) is a set {(x_i, y_i, lam_i)} with lam_i >= 0 and

    theta = sum_i lam_i y_i grad_theta Phi(theta; x_i),   y_i Phi(theta; x_i) = 1 where lam_i > 0.

On one cell (`cells`) grad Phi is affine in x. So a point may be replaced by two of its cell,

    x -> x + a u, x - b u   with multipliers   lam b / (a + b), lam a / (a + b),

and two points of one label and one cell by their centroid: the sum does not change. The margin
holds where <grad_x Phi, u> = 0, and else errs by a <grad_x Phi, u>. Beyond the wall of a neuron j
the sum jumps by lam |v_j| |(x, 1)|. "No Prior, No Leakage" (Refael et al.), lemmas 2 to 4,
restated, see the paper for the original; walls, kinks and jumps (`splitting`) are derived in
docs/explanations.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.cells import KINK, slopes_at
from explorer.engine.evened import evened
from explorer.engine.multipliers import Fit, fit_multipliers
from explorer.engine.network import Network, phi
from explorer.engine.tangent import gradient
from explorer.engine.tangent import residual as residual_vector

_SLACK_PRICE = 1e-3  # arbitrary: the certificate's
USED = 1e-6  # arbitrary: multipliers below this share of their sum are not points of an explanation


@dataclass(frozen=True, eq=False)
class Explanation:
    """A weighted training set with the slopes of its gradients.

    Attributes:
        x: points (n, d).
        y: labels (n,) in {-1, +1}.
        lam: multipliers (n,), not negative.
        slopes: one (n, k_l) per hidden layer, in [0, 1]: the cell that each point counts to.
        origin: (n,) index of the point each one descends from; -1 for none.
    """

    x: Tensor
    y: Tensor
    lam: Tensor
    slopes: tuple[Tensor, ...]
    origin: Tensor

    def __post_init__(self) -> None:
        """Refuse shapes that do not match, and negative multipliers."""
        n = len(self.x)
        shapes = [
            self.y.shape,
            self.lam.shape,
            self.origin.shape,
            *(s.shape[:1] for s in self.slopes),
        ]
        if self.x.ndim != 2 or any(shape != (n,) for shape in shapes):
            raise ValueError(
                f"expected x (n, d), y, lam and origin (n,) and slopes (n, k_l); "
                f"got {tuple(self.x.shape)} and {[tuple(s) for s in shapes]}"
            )
        if n and not bool((self.lam >= 0).all() & torch.isfinite(self.lam).all()):
            raise ValueError(
                f"multipliers must be finite and not negative; got {float(self.lam.min()):g}"
            )

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.x)

    @property
    def mass(self) -> float:
        """The sum of the multipliers."""
        return float(self.lam.sum())

    def at(self, i: int) -> tuple[Tensor, ...]:
        """Slopes of point i, one (k_l,) per hidden layer."""
        if not 0 <= i < self.n:
            raise ValueError(f"no point {i}; the explanation holds points 0 to {self.n - 1}")
        return tuple(s[i] for s in self.slopes)

    def keep(self, kept: Tensor) -> Explanation:
        """The points that an index or a mask picks."""
        return Explanation(
            self.x[kept], self.y[kept], self.lam[kept], tuple(s[kept] for s in self.slopes),
            self.origin[kept],
        )  # fmt: skip

    def joined(self, other: Explanation) -> Explanation:
        """The points of both, these first."""
        return Explanation(
            torch.cat([self.x, other.x]), torch.cat([self.y, other.y]),
            torch.cat([self.lam, other.lam]),
            tuple(torch.cat(pair) for pair in zip(self.slopes, other.slopes, strict=True)),
            torch.cat([self.origin, other.origin]),
        )  # fmt: skip


def explanation_of(net: Network, x: Tensor, y: Tensor, tau: float = KINK) -> Explanation:
    """The explanation by given points: multipliers and free slopes of least residual, support only.

    Where many multipliers explain the weights exactly, the most even ones (`evened`). Two layers:
    the slope of a neuron at a point is the mean over its columns, which attains the fit's residual.
    Deeper, gradients are products of slopes, and where one point has kinks in several layers the
    residual may be above the fit's; `residual` tells.

    Args:
        net: a homogeneous network at margin 1.
        x: points (n, d).
        y: labels (n,).
        tau: relative distance below which a slope is free; `certificate.TAU_TRAINED` for trained
            weights.

    Raises:
        ValueError: where no multiplier is positive: these points explain nothing.
    """
    return fitted_explanation(net, x, y, tau)[0]


def fitted_explanation(
    net: Network, x: Tensor, y: Tensor, tau: float = KINK
) -> tuple[Explanation, Tensor]:
    """`explanation_of`, with the gradients (n', P) times labels that attain the fit's residual."""
    net = net.to(dtype=torch.float64)
    x, y = x.detach().cpu().double(), y.detach().cpu().double()
    # Multipliers are seldom unique: points off the margin pay, as in `certificate.certify`.
    price = _SLACK_PRICE * net.order * (y * phi(net, x) - 1).clamp_min(0)
    fit = fit_multipliers(net, x, y, tau, price=price)
    fit = evened(net, x, y, tau, fit, price)
    hard = slopes_at(net, x)
    slopes = []
    for own, columns in zip(hard, fit.slopes, strict=True):
        mean = _means(fit, columns)
        slopes.append(torch.where(fit.lam[:, None] > 0, mean.clamp(0, 1), own))
    used = fit.lam > USED * fit.lam.sum()
    if not bool(used.any()):
        raise ValueError("these points explain no part of the weights: no multiplier is positive")
    everyone = torch.arange(len(x))
    made = Explanation(x, y, fit.lam, tuple(slopes), everyone).keep(used)
    if net.depth == 2:
        return made, gradients(net, made)
    rows = y[fit.point][:, None] * gradient(net, x[fit.point], fit.slopes)
    return made, _means(fit, rows)[used]


def _means(fit: Fit, columns: Tensor) -> Tensor:
    """The mean of each point's columns (C, k), by their weights. -> (n, k)."""
    total = columns.new_zeros(len(fit.lam), columns.shape[1])
    total.index_add_(0, fit.point, fit.weight[:, None] * columns)
    return total / fit.lam.clamp_min(1e-300)[:, None]


def gradients(net: Network, e: Explanation) -> Tensor:
    """Rows y_i grad_theta Phi(x_i) with the slopes of the explanation. -> (n, P)."""
    return e.y[:, None] * gradient(net, e.x, e.slopes)


def residual(net: Network, e: Explanation) -> float:
    """|theta - sum_i lam_i y_i grad Phi(x_i)| / |theta|, with the slopes of the explanation."""
    left = residual_vector(net, e.x, e.lam * e.y, e.slopes)
    return float(left.norm() / net.rho)


def margins(net: Network, e: Explanation) -> Tensor:
    """y_i Phi(x_i), 1 on the margin. -> (n,)."""
    return e.y * phi(net, e.x)


def margin_error(net: Network, e: Explanation) -> float:
    """max_i |y_i Phi(x_i) - 1| over the points of positive multiplier; 0 for none."""
    used = e.lam > 0
    return float((margins(net, e)[used] - 1).abs().max()) if bool(used.any()) else 0.0


def slackness(net: Network, e: Explanation) -> float:
    """sum_i lam_i (y_i Phi(x_i) - 1) / sum_i lam_i; negative where points are inside the margin.

    With stationarity, sum_i lam_i y_i Phi(x_i) = rho^2 / order, whatever was split.
    """
    return float(e.lam @ (margins(net, e) - 1)) / max(e.mass, 1e-300)
