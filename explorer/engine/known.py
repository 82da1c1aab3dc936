"""What an attacker is granted of the training points, beside the weights: a prior.

Without any there are infinitely many other sets that explain the same weights (Refael et al.). A
prior here is a set to which candidates return between runs of steps, as pixels do to their range:

- "range": the exact least and largest value of each coordinate.
- "curve": a curve that holds the points: corners joined by segments. Of points on a circle it is
  that circle.
- "drawn": likewise, a curve whose corners are given.
- "public": places within a reach of other points of the same kind, where their density, of kernels
  of that reach, is not 0.
- "others": all points but one, as many candidates as that are put there: an informed adversary.
- "components": places no farther off the span of the first principal components of public images
  than these are themselves, in the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Knowledge = Literal["nothing", "range", "curve", "drawn", "public", "others", "components"]
CORNERS = 720  # of a circle, whose segments lie within 1e-5 of a radius of it; at most of a curve
ON_CIRCLE = 0.01  # of the radius: points farther off lie on none; arbitrary


@dataclass(frozen=True, eq=False)
class Known:
    """What is granted of the points.

    Attributes:
        kind: what it is, see above.
        x: "range": least and largest value of each coordinate (2, d); "curve": its corners (k, d),
            the first again at the end where it is closed; "public", "others": points (k, d);
            "components": a place of the span, then its directions of length 1 (1 + k, d).
        y: labels of the "others" (k,).
        reach: of a "public" point, or off the span of "components", in units of the data.
    """

    kind: Knowledge
    x: Tensor
    y: Tensor | None = None
    reach: float = 0.0

    def put_back(self, x: Tensor, y: Tensor) -> Tensor:
        """Return candidates x (..., m, d) with labels y (..., m), put back to what is known.

        Raises:
            ValueError: where there are fewer candidates of a label than others.
        """
        known = self.x.to(x)
        if self.kind == "range":
            return x.clamp(known[0], known[1])
        if self.kind == "curve":
            return _nearest_on_curve(x, known)
        if self.kind == "components":
            away, along = x - known[0], known[1:]
            inside = (away @ along.T) @ along
            return known[0] + inside + _at_most(away - inside, self.reach)
        if self.kind == "public":
            near = _apart(x, known).argmin(-1)
            away = x - known[near]
            return known[near] + _at_most(away, self.reach)
        assert self.y is not None
        out, labels = x.clone(), y.reshape(-1, y.shape[-1])[0]
        for label in self.y.unique():
            points, rows = known[self.y == label], (labels == label).nonzero()[:, 0]
            if len(rows) < len(points):
                raise ValueError(
                    f"{len(points)} known points of label {float(label):g} need as many candidates "
                    f"of it; got {len(rows)}. Take more candidates."
                )
            out[..., rows[: len(points)], :] = points
        return out

    def is_given(self, x: Tensor, radius: float) -> Tensor:
        """Return which places x (n, d) are points that the attacker was given (n,), bool."""
        if self.kind != "others" or not len(x):
            return x.new_zeros(len(x), dtype=torch.bool)
        return _apart(x, self.x.to(x)).amin(1) <= radius


def knowledge_of(config: object) -> Knowledge | None:
    """Return what the settings of an attack grant; None where they have no such setting."""
    return vars(config).get("knows")


def known_of(
    kind: Knowledge, x: Tensor, y: Tensor, public: Tensor | None = None, left_out: int = 0,
    curve: Sequence[float] = (), components: int = 0,
) -> Known:  # fmt: skip
    """Return what is granted of training points x (n, d) with labels y (n,).

    Args:
        kind: what.
        x: the points.
        y: their labels.
        public: other points of the same kind (k, d), which are no control then.
        left_out: of "others", the point that is not granted, its number modulo n.
        curve: of "drawn", its corners, x and y of one after the other.
        components: how many of the public points' span them.

    Raises:
        ValueError: for "curve" without a circle or a line, "drawn" without a curve, and "public"
            and "components" without enough points.
    """
    if kind == "drawn":
        return Known("curve", drawn_curve(curve, x))
    if kind == "components":
        return span_of(public, components)
    if kind == "curve" and x.shape[1] > 1:
        return Known(kind, circle_through(x))
    if kind in ("range", "curve"):
        return Known("range", torch.stack([x.amin(0), x.amax(0)]))
    if kind == "public":
        if public is None or len(public) < 2:
            raise ValueError("prior 'public' needs two or more points of the same kind; got none")
        apart = _apart(public, public).fill_diagonal_(torch.inf)
        return Known(kind, public, reach=float(apart.amin(1).median()))
    kept = torch.arange(len(x)) != left_out % len(x)
    return Known("others", x[kept], y[kept])


def drawn_curve(curve: Sequence[float], like: Tensor) -> Tensor:
    """Return the corners (k, 2) of a curve, from x and y of one after the other.

    Raises:
        ValueError: where `like` (n, d) is not of two coordinates, or the curve has no length.
    """
    if like.shape[1] != 2:
        raise ValueError(
            f"a drawn curve lies on the plane; these points have d = {like.shape[1]}. On a line a "
            "curve is a segment: take prior 'curve'."
        )
    if len(curve) % 2:
        raise ValueError(f"a curve needs x and y of each corner; got {len(curve)} numbers.")
    corners = torch.tensor(curve, dtype=like.dtype).reshape(-1, 2)
    if len(corners) > CORNERS:
        raise ValueError(
            f"a curve has at most {CORNERS} corners; got {len(corners)}. Leave some out."
        )
    if len(corners) < 2 or not bool((corners != corners[0]).any()):
        raise ValueError(
            "prior 'drawn' needs a curve of two or more different corners; got "
            f"{min(len(corners), 1)}. Draw one, or name its corners: curve=(-1, 0, 1, 0)."
        )
    return corners


def span_of(public: Tensor | None, k: int) -> Known:
    """Return the span of the first k principal components of public points (p, d), and its reach.

    Raises:
        ValueError: where there are none, or no more than k of them.

    Source: Hotelling 1933, restated.
    """
    if public is None or not len(public):
        raise ValueError(
            "prior 'components' needs public images, and there are none. Take another prior, or "
            "fewer training images."
        )
    if not 1 <= k <= min(len(public) - 1, public.shape[1]):
        raise ValueError(
            f"{k} components need more public images than that, and as many pixels; got "
            f"{len(public)} images of {public.shape[1]}. Take fewer components."
        )
    mean = public.mean(0)
    away = public - mean
    along: Tensor = torch.linalg.eigh(away.T @ away).eigenvectors.T.flip(0)[:k]
    off = (away - (away @ along.T) @ along).norm(dim=1)
    return Known("components", torch.cat([mean[None], along]), reach=float(off.median()))


def circle_through(x: Tensor) -> Tensor:
    """Return the corners (CORNERS + 1, 2) of the circle of least squares through points (n, 2).

    Raises:
        ValueError: where they lie on none.

    Source: Kåsa 1976, restated.
    """
    if x.shape[1] != 2:
        raise ValueError(f"the curve of points in {x.shape[1]} coordinates is not known; got no 2")
    columns = torch.cat([2 * x, torch.ones_like(x[:, :1])], 1)
    a, b, c = torch.linalg.lstsq(columns, x.square().sum(1, keepdim=True)).solution[:, 0]
    centre = torch.stack([a, b])
    radius = (c + centre.square().sum()).clamp_min(0).sqrt()
    off = ((x - centre).norm(dim=1) - radius).abs().max()
    if not float(off) <= ON_CIRCLE * float(radius):
        raise ValueError(
            "prior 'curve' needs points on a circle, or on a line in one coordinate; these lie up "
            f"to {float(off):.2g} off the nearest one. Take another prior."
        )
    angle = torch.linspace(0, 2 * torch.pi, CORNERS + 1, dtype=x.dtype)
    made: Tensor = centre + radius * torch.stack([angle.cos(), angle.sin()], 1)
    return made


def _apart(x: Tensor, other: Tensor) -> Tensor:
    return torch.cdist(x, other, compute_mode="donot_use_mm_for_euclid_dist")


def _at_most(away: Tensor, reach: float) -> Tensor:
    """Return steps away (..., d), shortened to the reach where they are longer."""
    far = away.norm(dim=-1, keepdim=True)
    return torch.where(far > reach, away * (reach / far), away)


def _nearest_on_curve(x: Tensor, corners: Tensor) -> Tensor:
    """Return the nearest place of the curve to each x (..., d)."""
    begin, along = corners[:-1], corners.diff(dim=0)
    away = x[..., None, :] - begin
    share = (away * along).sum(-1) / along.square().sum(-1).clamp_min(1e-300)
    places = begin + share.clamp(0, 1)[..., None] * along
    best = (x[..., None, :] - places).square().sum(-1).argmin(-1)
    index = best[..., None, None].expand(*best.shape, 1, x.shape[-1])
    made: Tensor = places.gather(-2, index)[..., 0, :]
    return made
