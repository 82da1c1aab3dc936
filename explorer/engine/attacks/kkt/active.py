"""Projected multipliers of deep networks, from the candidates that were active at the step before.

Most candidates carry no multiplier, and one that carries none has no gradient. So Gram matrices and
gradients are made of those alone that carried one at the step before and of those that the residual
asks for. The multipliers are those of `descent.cone_coefficients` with floor 0, to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.descent import RIDGE
from explorer.engine.factor import rounding_ridge
from explorer.engine.kernels.deep import Columns
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.prepared import Fit, Pass

TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6}  # arbitrary: a gain that is rounding


def active_fit(run: Pass, y: Tensor, lam: Tensor, share: float) -> tuple[Fit, Tensor] | None:
    """The fit of least loss and its multipliers lam >= 0 (m,); None where it is not to be had.

    Args:
        run: a pass of deep networks, at one start.
        y: labels (m,).
        lam: those of the step before (m,), where to look first.
        share: a factor of the loss.
    """
    loops = compiled_module("compiled")
    if loops is None or not isinstance(run, Columns):
        return None
    inner, sizes = run.inner() * y, run.sizes()
    most = float(inner.abs().max())
    ridge, tol = RIDGE * float(sizes.sum()), TOLERANCE[inner.dtype] * most
    known, cross, guess = lam > 0, inner.new_empty(len(inner), 0), lam.new_zeros(0)
    new = known if bool(known.any()) else inner > tol
    at, known = new.new_empty(0, dtype=torch.int64), torch.zeros_like(known)
    gain = inner
    while bool(new.any()):
        fresh = new.nonzero()[:, 0]
        at, guess = torch.cat([at, fresh]), torch.cat([guess, lam[fresh].double()])
        cross = torch.cat([cross, run.cross(fresh) * y.unsqueeze(1) * y[fresh]], dim=1)
        gram = cross[at].double()
        gram.diagonal().add_(len(y) / len(at) * rounding_ridge(gram.diagonal(), inner.dtype))
        known[fresh] = True
        if not loops.settle(gram.numpy(), inner[at].double().numpy(), guess.numpy(), ridge, tol):
            return None
        gain = inner - cross @ guess.to(inner)
        new = (gain > tol) & ~known
    found = torch.zeros_like(lam)
    found[at] = guess.to(lam)
    return _fit(run, found, found * y, -2 * share * gain * y, share), found


def _fit(run: Columns, lam: Tensor, c: Tensor, grad_c: Tensor, share: float) -> Fit:
    """The fit at lam; of candidates without a multiplier `grad_c` (m,) is known."""
    held = (lam > 0).nonzero()[:, 0]
    if not len(held):
        return run.fit(c, share)
    fit = run.only(held).fit(c[held], share)
    grad_x = c.new_zeros(len(c), fit.grad_x.shape[1])
    grad_x[held], grad_c[held] = fit.grad_x, fit.grad_c
    return Fit(fit.loss, grad_x, grad_c)
