r"""Points in high dimension that are nearly orthogonal: the three laws of membership inference.

Smorodinsky, Vardi and Safran 2024, assumption 4.1 (restated; see the paper for the original): for
x, x' drawn independently, n |<x, x'>| = o(d) and ||x||^2 = Omega(d), both with high probability.
Nothing is assumed of the labels. Sufficient, for a fixed probability of failure:

    sphere     x uniform on sqrt(d) S^{d-1}:  n = o(sqrt(d) / log d)
    gaussian   x ~ N(mu, Sigma): trace Sigma = Omega(d),
               n (||mu||^2 + sqrt(trace(Sigma^2) log n)) = o(d)
    mixture    x ~ 1/2 N(mu, I) + 1/2 N(-mu, I): the same with ||mu||^2; here ||mu|| = d^0.33,
               so n = o(d^0.34)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from explorer.engine.data.dataset import Dataset
from explorer.engine.data.drawings import generator_of

Law = Literal["sphere", "gaussian", "mixture"]
Labels = Literal["parity", "random", "component"]
LAWS: tuple[Law, ...] = get_args(Law)
LABELS: tuple[Labels, ...] = get_args(Labels)

MIXTURE_POWER = 0.33  # the published code: the centres are +-d^0.33 e_1
GAUSSIAN_POWER = 0.25  # arbitrary: ||mu||^2 = sqrt(d), of the order of the noise in <x, x'>
SPREAD = 3.0  # arbitrary: largest variance over smallest, so that Sigma is not a multiple of I

TITLES: dict[Law, str] = {
    "sphere": "sphere of radius √d",
    "gaussian": "Gaussian N(μ, Σ)",
    "mixture": "mixture of two Gaussians",
}
ASSUMPTIONS: dict[Law, str] = {
    "sphere": "x uniform on the sphere of radius √d; sufficient: n = o(√d / log d)",
    "gaussian": "x ~ N(μ, Σ) with tr Σ = d and ‖μ‖² = √d; sufficient: n √(d log n) = o(d)",
    "mixture": "x ~ N(±μ, I), each with probability ½, ‖μ‖ = d^0.33; sufficient: n = o(d^0.34)",
}


@dataclass(frozen=True)
class HighDimDraw:
    """How to draw a labelled sample.

    Attributes:
        d: dimension, 1 or more.
        law: "sphere", "gaussian" or "mixture".
        labels: "parity" (+1 where the number of positive coordinates is odd, the paper's),
            "random" (fair coins) or "component" (the sign of the centre; mixture only).
    """

    d: int
    law: Law = "sphere"
    labels: Labels = "parity"

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.d < 1:
            raise ValueError(f"d must be 1 or more; got {self.d}")
        if self.law not in LAWS:
            raise ValueError(f"the distribution is one of {', '.join(LAWS)}; got {self.law!r}")
        if self.labels not in LABELS:
            raise ValueError(f"labels are one of {', '.join(LABELS)}; got {self.labels!r}")
        if self.labels == "component" and self.law != "mixture":
            raise ValueError(
                f"labels by component need the mixture; the {self.law} has one component. "
                "Take labels by parity or random ones."
            )


def mean_of(draw: HighDimDraw) -> Tensor:
    """Return the centre mu (d,) of the law; of the mixture that of its component +1."""
    mu = torch.zeros(draw.d, dtype=torch.float64)
    if draw.law == "gaussian":
        mu += draw.d ** (GAUSSIAN_POWER - 0.5)
    if draw.law == "mixture":
        mu[0] = draw.d**MIXTURE_POWER
    return mu


def variances_of(draw: HighDimDraw) -> Tensor:
    """Return the diagonal of Sigma (d,), of trace d."""
    if draw.law != "gaussian" or draw.d == 1:
        return torch.ones(draw.d, dtype=torch.float64)
    rising = torch.linspace(1.0, SPREAD, draw.d, dtype=torch.float64)
    return rising * (draw.d / rising.sum())


def sample(
    draw: HighDimDraw, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Return independent points x (count, d) and labels y (count,) in {-1, +1}."""
    if count < 1:
        raise ValueError(f"a sample has 1 point or more; got {count}")
    x = torch.randn(count, draw.d, generator=generator, dtype=dtype)
    component = torch.ones(count, dtype=dtype)
    if draw.law == "sphere":
        x *= draw.d**0.5 / x.norm(dim=1, keepdim=True)
    elif draw.law == "gaussian":
        x = x * variances_of(draw).sqrt().to(dtype) + mean_of(draw).to(dtype)
    else:
        component = _coins(count, generator, dtype)
        x = x + component[:, None] * mean_of(draw).to(dtype)
    if draw.labels == "component":
        return x, component
    if draw.labels == "random":
        return x, _coins(count, generator, dtype)
    return x, 2.0 * ((x > 0).sum(dim=1) % 2).to(dtype) - 1.0


def cube(d: int, n: int, *seeds: int) -> Dataset:
    """Return n independent points, uniform in the cube [-1, 1]^d, every other one of class +1."""
    x = 2 * torch.rand(n, d, generator=generator_of(*seeds, d), dtype=torch.float64) - 1
    return Dataset(x, 1.0 - 2.0 * (torch.arange(n, dtype=torch.float64) % 2))


def _coins(count: int, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    return 2 * torch.randint(0, 2, (count,), generator=generator).to(dtype) - 1
