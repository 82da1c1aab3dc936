"""Cholesky factors of Gram matrices that rounding has left a little short of positive definite."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.engine.rare import Rare, now

_TIMES, _TRIES = 10.0, 6  # arbitrary: the last ridge is 1e5 times the first


def rounding_ridge(diagonal: Tensor, dtype: torch.dtype) -> Tensor:
    """The ridge (..., r) that covers the rounding of a Gram matrix made in `dtype`; 0 in float64.

    Each entry is rounded by about eps sqrt(G_ii G_jj), so all of them together take no more than
    r eps G_ii from the form.
    """
    if dtype == torch.float64:  # the solvers' own ridges are far above it
        return torch.zeros_like(diagonal)
    return diagonal.shape[-1] * torch.finfo(dtype).eps * diagonal


def cholesky_factor(gram: Tensor, ridge: Tensor, rare: Rare = now) -> Tensor:
    """Lower factor (r, r) of gram + diag(ridge); a larger ridge where that is not definite.

    Args:
        gram: a Gram matrix (r, r).
        ridge: the first ridge to try, () or (r,).
        rare: whether to look if it will do.

    Returns:
        The factor; nan throughout where no ridge up to 1e5 times the first one will do.
    """
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    for _ in range(_TRIES):
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(gram + ridge * eye)
        if not rare(failed > 0):
            return factor
        ridge = ridge * _TIMES
    return torch.full_like(gram, math.nan)
