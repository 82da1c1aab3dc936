r"""The stationarity loss of Haim et al. 2022, eq. (5), with its gradients in closed form.

    l = || theta - sum_i lam_i y_i grad_theta Phi(theta; x_i) ||^2

Phi is differentiated with their modified ReLU: forward relu(z), backward sigmoid(alpha z), at
every layer and in the second derivative too. Layer by layer, with c_i = lam_i y_i and the signals
of `explorer.engine.gradients`,

    A_l = relu(z_l),  z_l = W_l A_{l-1} + b_l,  B_l = U_l * S_l,  U_l = W_{l+1}' B_{l+1},
    S_l = sigmoid(alpha z_l),  r_l = W_l - sum_i c_i B_{l,i} A_{l-1,i}',  l = sum_l ||r_l||^2,

where A_{l-1} ends in a one if layer l has a bias, which is then W_l's last column. One sweep up
through the B and one down through the A give the gradients at any depth, at the cost of a few
matrix products: no autograd, nothing is differentiated twice.

With several outputs a candidate pulls with a covector v_i (C,): its contribution is
c_i grad <v_i, Phi(x_i)>, so that B_L = v_i takes the place of B_L = 1, and the sweep up ends in the
gradient on v_i. This covers contributions lam_i grad[Phi_{y_i} - Phi_c] and lam_i in R^C alike.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.gradients import backward_signals, forward_signals, relaxed_slope
from explorer.engine.network import Network


class denormals_flushed(ContextDecorator):
    """Denormal numbers are zero inside, and afterwards whatever they were before.

    Those of sigmoid(alpha z) slow a step up to 35 times. The setting is the thread's: left on, it
    would change the arithmetic of everything else that runs there.
    """

    def __enter__(self) -> None:
        """Set the thread to flush denormal numbers; keep what it did before."""
        self.before = sys.float_info.min * 0.5 == 0  # torch has no function that tells
        torch.set_flush_denormal(True)

    def __exit__(self, *_: object) -> None:
        """As it was."""
        torch.set_flush_denormal(self.before)

    def _recreate_cm(self) -> denormals_flushed:
        return denormals_flushed()  # calls within calls each remember their own


@dataclass(frozen=True, eq=False)
class Signals:
    """What the layers hold at candidates x (m, d); lists run over layers, first layer first.

    Attributes:
        inputs: A_{l-1} (m, k_{l-1}), with a column of ones where the layer has a bias.
        values: z_l (m, k_l); the last is Phi.
        slopes: S_l (m, k_l) of the hidden layers.
        back: B_l (m, k_l).
    """

    inputs: list[Tensor]
    values: list[Tensor]
    slopes: list[Tensor]
    back: list[Tensor]

    @property
    def phi(self) -> Tensor:
        """Phi(theta; x_i), (m,)."""
        return self.values[-1].squeeze(-1)


@dataclass(frozen=True, eq=False)
class Stationarity:
    """The loss () and its gradients on x (m, d), on lam (m,) and on the covectors (m, C)."""

    loss: Tensor
    grad_x: Tensor
    grad_lam: Tensor
    grad_cover: Tensor


def values_at(net: Network, x: Tensor, alpha: float) -> Signals:
    """Return values forward under the modified ReLU, nothing back yet. x (m, d)."""
    inputs, values, slopes = forward_signals(net, x, relaxed_slope(alpha))
    return Signals(inputs, values, slopes, [])


def covector_signals(
    net: Network, at: Signals, cover: Tensor | None, owner: Tensor | None = None
) -> Signals:
    """Signals back from covectors (m, C); those of candidates `owner` (r,) for covectors (r, C)."""
    if owner is not None:
        parts = (at.inputs, at.values, at.slopes)
        inputs, values, slopes = ([v[owner] for v in part] for part in parts)
        at = Signals(inputs, values, slopes, [])
    back = backward_signals(net, at.slopes, len(at.inputs[0]), cover)
    return Signals(at.inputs, at.values, at.slopes, back)


def signals_at(net: Network, x: Tensor, alpha: float, cover: Tensor | None = None) -> Signals:
    """Return values forward and signals back under the modified ReLU.

    X (m, d), covectors (m, C).
    """
    return covector_signals(net, values_at(net, x, alpha), cover)


def input_gradient(net: Network, at: Signals) -> Tensor:
    """Return the gradient of Phi, or <v_i, Phi>, on x under the modified ReLU, (m, d)."""
    return at.back[0] @ net.weights[0]


def normal_equations(at: Signals) -> tuple[Tensor, Tensor]:
    """<grad Phi(x_i), grad Phi(x_j)> (m, m) and <theta, grad Phi(x_i)> (m,)."""
    blocks = [(b @ b.T) * (a @ a.T) for a, b in zip(at.inputs, at.back, strict=True)]
    inner = [(b * z).sum(1) for b, z in zip(at.back, at.values, strict=True)]
    return torch.stack(blocks).sum(0), torch.stack(inner).sum(0)


def stationarity(net: Network, at: Signals, y: Tensor, lam: Tensor, alpha: float) -> Stationarity:
    """Return the loss and its gradients; y and lam (m,). Haim et al. 2022, eq.

    (5), the paper's sum.

    Their code divides the sum by m, so its multipliers are m times these.
    """
    c = (lam * y)[:, None]
    loss, along = lam.new_zeros(()), torch.zeros_like(lam)
    grad_inputs: list[Tensor] = []
    grad_back: list[Tensor] = []
    for w, bias, a, b in zip(net.weights, net.biases, at.inputs, at.back, strict=True):
        block = w if bias is None else torch.cat([w, bias[:, None]], dim=1)
        residual = block - (c * b).T @ a
        pulled = b @ residual
        loss = loss + residual.square().sum()
        along = along + (pulled * a).sum(1)
        grad_inputs.append(-2 * c * pulled[:, : w.shape[1]])
        grad_back.append(-2 * c * (a @ residual.T))
    grad_x, grad_cover = _to_inputs(net, at, grad_inputs, grad_back, alpha)
    return Stationarity(loss, grad_x, -2 * y * along, grad_cover)


def _to_inputs(
    net: Network, at: Signals, grad_inputs: list[Tensor], grad_back: list[Tensor], alpha: float
) -> tuple[Tensor, Tensor]:
    """Chain the gradients on every A and B back to x (m, d) and to the covectors (m, C)."""
    grad_slopes: list[Tensor] = []
    carried = torch.zeros_like(grad_back[0])
    for layer, s in enumerate(at.slopes):  # up: B_l depends on B_{l+1} and on its own slopes
        total = grad_back[layer] + carried
        above = net.weights[layer + 1]
        grad_slopes.append(total * (at.back[layer + 1] @ above))
        carried = (total * s) @ above.T
    grad_a = grad_inputs[-1]
    for layer in range(len(at.slopes) - 1, -1, -1):  # down: A_l and S_l depend on z_l
        s = at.slopes[layer]
        grad_z = grad_a * s + grad_slopes[layer] * (alpha * s * (1 - s))
        grad_a = grad_inputs[layer] + grad_z @ net.weights[layer]
    return grad_a, grad_back[-1] + carried
