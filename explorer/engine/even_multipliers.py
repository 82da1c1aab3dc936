r"""One set of multipliers where an exact network has many: the most even, not a matter of rounding.

At an exact KKT point theta = sum_i lam_i y_i g_i often has a whole polytope of solutions (points on
a circle, say), and column generation ends at whichever corner the last bits lead to. Proximal steps

    c_{k+1} = argmin over c >= 0 of
              || theta - sum_r c_r g_r ||^2 + 2 <price, c> + ridge |c - c_k|^2

from c_0 = 0 on all rays g_r of the points (their 0/1 slopes at kinks) end near the solution of
least |c|: each step has one answer, which moves little where the inputs move little (Rockafellar
1976). What the Gram matrix rounds off is then fitted by the positive ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.energy.rays import set_rays
from explorer.engine.gradients import gradient
from explorer.engine.multipliers import Fit
from explorer.engine.network import Network, in_double
from explorer.engine.nonnegative import nonnegative

EXACT = 1e-6  # of |theta|: the light "exact"; such a fit has multipliers to choose from
_RIDGE = 1e-9  # of the trace; arbitrary: far above rounding (1e-16), far below what a ray explains
_NONE = 1e-9  # of the largest; arbitrary: coefficients and singular values below it are zeros
_STEPS = 4  # arbitrary: each takes the ridge's share out of what is left


def _nearest_fit(rows: Array, theta: Array, c: Array) -> Array:
    """Return the positive ones of c (r,) moved as little as makes them fit; none may turn."""
    used = c > _NONE * c.max(initial=0.0)
    out = c
    while used.any():
        out = np.where(used, c, 0.0)
        out[used] += np.linalg.lstsq(rows[used].T, theta - out @ rows, rcond=_NONE)[0]
        if out.min() >= 0:
            break
        used &= out > 0
    better = np.linalg.norm(theta - out @ rows) < np.linalg.norm(theta - c @ rows)
    return out if better and out.min(initial=0.0) >= 0 else c


def even_multipliers(
    net: Network, x: Tensor, y: Tensor, tau: float, fit: Fit, price: Tensor | None = None
) -> Fit:
    """Return the fit of exact weights with its most even multipliers; any other fit as it is.

    Two layers of one output, whose points have few enough kinks that all their rays are known.
    net, x (n, d), y (n,), tau and price (n,) as `fit_multipliers` was given them.
    """
    if not (net.has_signs and len(x)) or fit.residual >= EXACT:
        return fit
    net, x, y = in_double(net, x, y)
    made = set_rays(net, x, y, tau)
    if made.cut_count:
        return fit
    gram, inner = made.gram().numpy(), made.inner.numpy()
    if price is not None:
        inner = inner - price.cpu().double()[made.owner].numpy()
    ridge = _RIDGE * float(np.trace(gram))
    c = np.zeros(len(inner))
    for _ in range(_STEPS):
        c = nonnegative(gram + ridge * np.eye(len(inner)), inner + ridge * c, c)
    slopes = (made.back[0] * (y[made.owner, None] * net.weights[1]) > 0).to(x)
    rows = y[made.owner, None] * gradient(net, x[made.owner], [slopes])
    c = _nearest_fit(rows.numpy(), net.theta.numpy(), c)
    weight = torch.from_numpy(c)
    left = float((net.theta - weight @ rows).norm() / net.rho)
    lam = torch.zeros(len(x), dtype=x.dtype).index_add(0, made.owner, weight)
    return replace(
        fit, lam=lam, residual=left, point=made.owner, weight=weight, cover=y[made.owner, None],
        slopes=(slopes,),
    )  # fmt: skip
