r"""The stationarity loss with its gradients, for any number of starts at once, at the least cost.

    l = || theta - sum_i c_i grad_theta Phi(theta; x_i) ||^2,  c_i = lam_i y_i

(Haim et al. 2022, eq. 5) under their modified ReLU: forward relu(z), backward sigmoid(alpha z). It
is the loss of `stationarity`, equal to rounding, for one output, written so that the work is little
more than the matrix products that cannot be avoided:

- a leading batch axis: x (..., m, d) holds as many starts as one likes, in one program, on the
  device of the network;
- two layers: alpha is folded into the first weights and v into the residual, so that the (m, k)
  arrays are gone through about ten times, the sigmoid included; with few inputs less often, on work
  arrays that are kept (`small`);
- deeper layers: with r = W - sum_i c_i b_i a_i' the products b r and a r' come from the two (m, m)
  Gram matrices a a' and b b' wherever that is cheaper than forming r (k, k'): four products of the
  size m k k' are left of the nine that a double backward takes (`deeper`; one start on the CPU, on
  work arrays that are kept: `columns`).

Where Gram matrices are used the loss is good to about 1e-16 ||theta||^2; elsewhere to rounding of
itself.
"""

from __future__ import annotations

import threading

from torch import Tensor

from explorer.engine.kernels.deep import Columns, Deeper, TwoLayers
from explorer.engine.kernels.prepared import Alpha, Fit, Pass, Prepared, total
from explorer.engine.kernels.small import FEW, Workspace

__all__ = ["Alpha", "Fit", "Pass", "Prepared", "few", "reused_pass", "through", "total"]

_LARGEST = 2**23  # numbers that a thread keeps in work arrays, 64 MB; arbitrary
_local = threading.local()


def few(net: Prepared) -> bool:
    """Whether a `Workspace` serves: two layers, few inputs, no bias at the output, on the CPU."""
    first, two = net.weights[0], len(net.blocks) == 2 and net.blocks[1] is net.weights[1]
    return two and first.shape[1] <= FEW and net.on_cpu


def through(net: Prepared, x: Tensor, alpha: Alpha) -> Pass:
    """Go through the network once. x (..., m, d)."""
    if few(net):
        return Workspace(net, tuple(x.shape[:-2]), x.shape[-2]).lay(x, alpha)
    two = len(net.blocks) == 2 and net.blocks[1] is net.weights[1]
    return (TwoLayers if two else Deeper)(net, x, alpha)


def reused_pass(net: Prepared, x: Tensor, alpha: Alpha) -> Pass:
    """`through` on work arrays that this thread keeps: what it holds is lost at the next call.

    On the CPU alone: a graph captured on CUDA would go on using memory that others may be given.
    """
    lead, m = tuple(x.shape[:-2]), x.shape[-2]
    deep = len(net.blocks) > 2 and not lead
    if not (net.on_cpu and (deep or few(net))):
        return through(net, x, alpha)
    kept: dict[tuple[object, ...], Workspace | Columns] = _local.__dict__.setdefault("kept", {})
    key = (net, lead, m)
    made = kept.get(key)
    if made is None:
        made = Columns(net, m) if deep else Workspace(net, lead, m)
        if made.numbers <= _LARGEST:
            while made.numbers + sum(one.numbers for one in kept.values()) > _LARGEST:
                del kept[next(iter(kept))]
            kept[key] = made
    return made.lay(x, alpha)
