r"""Membership inference: was this point trained on? Asked of the values Phi(x) alone.

Smorodinsky, Vardi and Safran 2024, section 4 (restated; see the paper for the original). On nearly
orthogonal data every training point of a network at a KKT point lies on the margin,
|Phi(x_i)| = m, while |Phi(x)| = O(n m delta / Delta) = o(m) at a fresh x from the same law. An
attacker who may only query Phi therefore calls x a member when |Phi(x)| >= threshold, where

    known margin     m / 2, or another share of m                            (theorem 4.3)
    leaked point     M / 2 with M = max |Phi| over k points, one a member    (theorem 4.4)
    bounded margin   sqrt(c m_low), from m >= m_low and a ceiling c on |Phi| at fresh points, such
                     as rho m_high; for c < m_low                            (theorem 4.5)

All but `isolation` works from values of Phi. `isolation` is the analyst's view: it needs the data,
and proves with constants when no rule can err (our own derivation, B1 to B3). With
x~ = (x, 1), delta = max |x~_i . x~_l| over training pairs, delta_fresh = max |x~ . x~_i| over the
fresh points, Delta = min |x~_i|^2 and xi the largest lam_i sum_j v_j^2 s_ij over neurons of one
sign,

    (B1)  xi <= m / (Delta - 2 (n-1) delta)                       if Delta > 2 (n-1) delta
    (B2)  every training point is on the margin                   if Delta > 3 (n-1) delta
    (B3)  |Phi(x)| <= n delta_fresh xi <= rho m,   rho = n delta_fresh / (Delta - 2 (n-1) delta)

With rho < 1/2 and (B2) the first two rules make no error on those points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

SHARE = 0.5  # of the margin: the paper's threshold m / 2


@dataclass(frozen=True)
class MemberRule:
    """A threshold and where it comes from.

    Attributes:
        threshold: a point is called a member when |Phi(x)| reaches it; positive.
        name: which rule.
        share: the threshold as a share of the margin, or of what stands for it.
        margin: the margin that is known; nan where it is not.
        top: the largest |Phi| of the suspects; nan where there are none.
        suspects: how many there are.
        low: the lower bound of the margin; nan where there is none.
        ceiling: the bound of |Phi| at fresh points; nan likewise.

    Example:
        >>> from explorer.engine.membership.law import known_margin
        >>> known_margin(2.0).threshold
        1.0
    """

    threshold: float
    name: Literal["known margin", "leaked point", "bounded margin"]
    share: float = math.nan
    margin: float = math.nan
    top: float = math.nan
    suspects: int = 0
    low: float = math.nan
    ceiling: float = math.nan

    @property
    def separates(self) -> bool:
        """Return whether a threshold between fresh points and members was found.

        Of bounds alone.
        """
        return not self.ceiling >= self.low


def decide(values: Tensor, rule: MemberRule) -> Tensor:
    """Return whether each point is called a member.

    Args:
        values: Phi at the points (m,).
        rule: the threshold.

    Returns:
        bool (m,): where |Phi| reaches the threshold.

    Source: Smorodinsky, Vardi and Safran 2024, section 4.

    Example:
        >>> import torch
        >>> from explorer.engine.membership.law import decide, known_margin
        >>> decide(torch.tensor([0.9, -1.1]), known_margin(2.0))
        tensor([False,  True])
    """
    return values.abs() >= rule.threshold


def known_margin(margin: float, share: float = SHARE) -> MemberRule:
    """Return the rule |Phi(x)| >= share * m, for an attacker who knows the margin m.

    Args:
        margin: the smallest margin of the network on its training points, in units of Phi.
        share: the share of it to reach, in (0, 1].

    Returns:
        The rule.

    Raises:
        ValueError: where `margin` is not positive and finite, or `share` is out of range.

    Source: Smorodinsky, Vardi and Safran 2024, theorem 4.3.

    Example:
        >>> from explorer.engine.membership.law import known_margin
        >>> known_margin(2.0, share=0.25).threshold
        0.5
    """
    _positive("the margin", margin)
    _is_share(share)
    return MemberRule(share * margin, "known margin", share=share, margin=margin)


def leaked_point(values: Tensor, share: float = SHARE) -> MemberRule:
    """Return the rule |Phi(x)| >= share * M, for an attacker with suspects.

    One of the suspects is a member, and M is their largest |Phi|: the margin whenever rho <= 1.

    Args:
        values: Phi at the suspects (k,).
        share: the share of M to reach, in (0, 1].

    Returns:
        The rule.

    Raises:
        ValueError: where there is no suspect, M is not positive, or `share` is out of range.

    Source: Smorodinsky, Vardi and Safran 2024, theorem 4.4.

    Example:
        >>> import torch
        >>> from explorer.engine.membership.law import leaked_point
        >>> leaked_point(torch.tensor([0.5, -3.0])).threshold
        1.5
    """
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"values must be (k,), Phi at one suspect or more; got {tuple(values.shape)}"
        )
    _is_share(share)
    top = float(values.abs().max())
    _positive("the largest |Phi| of the suspects", top)
    return MemberRule(share * top, "leaked point", share=share, top=top, suspects=len(values))


def bounded_margin(low: float, ceiling: float) -> MemberRule:
    """Return the rule |Phi(x)| >= sqrt(ceiling * low), for an attacker who knows m >= low only.

    Args:
        low: a lower bound of the margin, in units of Phi.
        ceiling: a bound of |Phi| at fresh points: rho m_high where it is certified, or the largest
            |Phi| that an attacker met at points of their own.

    Returns:
        The rule. With ceiling >= low no threshold separates the two, and the threshold is `low`,
        which misses no member on the margin; `separates` is then False.

    Raises:
        ValueError: where `low` is not positive and finite, or `ceiling` is negative.

    Source: Smorodinsky, Vardi and Safran 2024, theorem 4.5.

    Example:
        >>> from explorer.engine.membership.law import bounded_margin
        >>> rule = bounded_margin(low=4.0, ceiling=1.0)
        >>> rule.threshold, rule.separates
        (2.0, True)
    """
    _positive("the lower bound of the margin", low)
    if not ceiling >= 0:
        raise ValueError(f"the ceiling of |Phi| at fresh points must be 0 or more; got {ceiling}")
    if ceiling < low:
        threshold = math.sqrt(ceiling * low) if ceiling > 0 else low / 2
        return MemberRule(threshold, "bounded margin", low=low, ceiling=ceiling)
    return MemberRule(low, "bounded margin", low=low, ceiling=ceiling)


@dataclass(frozen=True, eq=False)
class Isolation:
    """How far a training set is from meeting the theorem with constants.

    Attributes:
        n: number of training points.
        delta: largest |x~_i . x~_l| of a training pair; 0 for one point.
        delta_fresh: largest |x~ . x~_i| of a fresh and a training point.
        least: Delta, the smallest |x~_i|^2.
        xi: the bound of xi at margin 1; inf where (B1) does not hold.
        rho: largest possible |Phi(x)| / m over the fresh points; inf where it does not hold.
        all_on_margin: whether (B2) proves that every training point is on the margin.

    Example:
        >>> import torch
        >>> from explorer.engine.membership.law import isolation
        >>> made = isolation(10 * torch.eye(3), torch.zeros(1, 3))
        >>> made.delta, made.least, made.error_free
        (1.0, 101.0, True)
    """

    n: int
    delta: float
    delta_fresh: float
    least: float
    xi: float
    rho: float
    all_on_margin: bool

    @property
    def error_free(self) -> bool:
        """Return whether the rules at m/2 provably make no error on these points."""
        return self.all_on_margin and self.rho < SHARE


def isolation(x: Tensor, fresh: Tensor) -> Isolation:
    """Return the certificate rho of (B1) to (B3): how isolated the training points are.

    It is the analyst's: it needs the training set. It holds for every two-layer network with hidden
    biases at an exact KKT point of these points, whatever its width.

    Args:
        x: training points (n, d), n >= 1.
        fresh: other points (m, d).

    Returns:
        The numbers; their products are of x~ = (x, 1).

    Raises:
        ValueError: where shapes do not fit, or there is no training point.

    Source: own, B1 to B3, after Smorodinsky, Vardi and Safran 2024, section 4.

    Example:
        >>> import torch
        >>> from explorer.engine.membership.law import isolation
        >>> made = isolation(10 * torch.eye(3), torch.zeros(1, 3))
        >>> round(made.rho, 4)  # 3 / (101 - 4)
        0.0309
    """
    if x.ndim != 2 or fresh.ndim != 2 or x.shape[1] != fresh.shape[1] or not len(x):
        raise ValueError(
            "expected x (n, d), n >= 1, and fresh (m, d); "
            f"got {tuple(x.shape)} and {tuple(fresh.shape)}"
        )
    inner = (x @ x.T).double() + 1
    squares = inner.diagonal().clone()
    n, least = len(x), float(squares.min())
    off = inner - torch.diag(squares)
    delta = float(off.abs().max())
    reach = float(((fresh.to(x.dtype) @ x.T).double() + 1).abs().max()) if len(fresh) else 0.0
    room = least - 2 * (n - 1) * delta
    xi = 1 / room if room > 0 else math.inf
    return Isolation(
        n, delta, reach, least, xi, n * reach * xi, all_on_margin=least > 3 * (n - 1) * delta
    )


def _positive(what: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(
            f"{what} must be a positive number; got {value}. "
            "A network that does not separate its points has no margin."
        )


def _is_share(share: float) -> None:
    if not 0 < share <= 1:
        raise ValueError(f"share is the part of the margin to reach, in (0, 1]; got {share}")
