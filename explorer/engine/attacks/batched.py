r"""The stationarity loss with its gradients, for any number of starts at once, at the least cost.

    l = || theta - sum_i c_i grad_theta Phi(theta; x_i) ||^2,  c_i = lam_i y_i

(Haim et al. 2022, eq. 5) under their modified ReLU: forward relu(z), backward sigmoid(alpha z). It
is the loss of `stationarity`, equal to rounding, for one output, written so that the work is little
more than the matrix products that cannot be avoided:

- a leading batch axis: x (..., m, d) holds as many starts as one likes, in one program, on the
  device of the network;
- two layers: alpha is folded into the first weights and v into the residual, so that the (m, k)
  arrays are gone through about ten times, the sigmoid included; with few inputs also on work arrays
  that are kept (`desk`);
- deeper layers: with r = W - sum_i c_i b_i a_i' the products b r and a r' come from the two (m, m)
  Gram matrices a a' and b b' wherever that is cheaper than forming r (k, k'): four products of the
  size m k k' are left of the nine that a double backward takes.

Where Gram matrices are used the loss is good to about 1e-16 ||theta||^2; elsewhere to rounding of
itself.
"""

from __future__ import annotations

from torch import Tensor

from explorer.engine.attacks.deeper import Deeper
from explorer.engine.attacks.desk import FEW, Desk
from explorer.engine.attacks.prepared import Alpha, Fit, Pass, Prepared, total
from explorer.engine.attacks.two_layers import TwoLayers

__all__ = ["Alpha", "Fit", "Pass", "Prepared", "few", "through", "total"]


def few(net: Prepared) -> bool:
    """Whether a `Desk` serves: two layers, few inputs, no bias at the output."""
    two = len(net.blocks) == 2 and net.blocks[1] is net.weights[1]
    return two and net.weights[0].shape[1] <= FEW


def through(net: Prepared, x: Tensor, alpha: Alpha) -> Pass:
    """Go through the network once. x (..., m, d)."""
    if few(net):
        return Desk(net, tuple(x.shape[:-2]), x.shape[-2]).lay(x, alpha)
    two = len(net.blocks) == 2 and net.blocks[1] is net.weights[1]
    return (TwoLayers if two else Deeper)(net, x, alpha)
