r"""Tangent kernel of a ReLU network: what every certificate, attack and landscape is made of.

With z_l the values before the ReLU, A_l = relu(z_l) and slopes s_l in [0, 1],

    B_L = v,    B_l = s_l * (B_{l+1} W_{l+1}),    dPhi/dW_l = B_l (x) A_{l-1},

where Phi has one output and v = 1, or Phi stands for <v, Phi> with a covector v (C,) per point, as
the margin with several classes has (see `classes`). So two gradients meet in
<grad Phi(x), grad Phi(z)> = sum_l (B_l . B'_l)(A_{l-1} . A'_{l-1}), and no vector of the length of
theta is needed. The slope at a kink is the choice of a subgradient: `hard` is torch's own (0 at 0,
and where rounding alone keeps z from 0, as at the points through which an exact network's neurons
run);
`relaxed_slope(alpha)` is Haim et al. 2022, section 5.1: relu(z) forward, sigmoid(alpha z) as its
derivative, everywhere, the derivative of the gradient included. Because B_l is built from explicit
slopes, one autograd pass through any function here gives what a double backward through the
network would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from explorer.engine.network import Network, one_output
from explorer.engine.rounding import NOTHING

Slope = Callable[[Tensor], Tensor]
"""Slopes of the ReLU at z, any shape -> same shape."""


def hard(z: Tensor, floor: Tensor | float = 0.0) -> Tensor:
    """Return 1 where z > floor, else 0; carries no gradient."""
    return (z > floor).to(z.dtype)


def relaxed_slope(alpha: float) -> Slope:
    """Return the slope sigmoid(alpha z) of Haim et al. 2022; `hard` in the limit of large alpha."""
    if not alpha > 0:
        raise ValueError(f"relu_alpha must be positive; got {alpha}. Try 20 to 150.")

    def slope(z: Tensor) -> Tensor:
        return torch.sigmoid(alpha * z)

    return slope


class _Relu(torch.autograd.Function):
    """relu(z) whose derivative is the given slope."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, z: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return z.clamp_min(0)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.BackwardCFunction, grad: Tensor
    ) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None


def forward_signals(
    net: Network, x: Tensor, slope: Slope | Sequence[Tensor] = hard
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return inputs A_{l-1} (ones column included), values z_l and slopes s_l, layer by layer."""
    if x.ndim != 2 or x.shape[1] != net.d:
        raise ValueError(f"x must be (m, {net.d}) for this network; got {tuple(x.shape)}")
    inputs: list[Tensor] = []
    values: list[Tensor] = []
    slopes: list[Tensor] = []
    a = x
    for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        z = a @ w.T if b is None else torch.addmm(b, a, w.T)
        inputs.append(a if b is None else torch.cat([a, a.new_ones(len(a), 1)], dim=1))
        values.append(z)
        if layer < len(net.weights) - 1:
            s = _slopes(slope, layer, z, inputs[-1], w, b)
            slopes.append(s)
            a = _Relu.apply(z, s)  # type: ignore[no-untyped-call]
    return inputs, values, slopes


def _slopes(
    slope: Slope | Sequence[Tensor], layer: int, z: Tensor, a: Tensor, w: Tensor, b: Tensor | None
) -> Tensor:
    """Return slopes of one layer; hard ones are 0 up to rounding of z = <(w, b), a>, in float64."""
    if not callable(slope):
        return slope[layer]
    if slope is not hard or z.dtype != torch.float64:
        return slope(z)
    size = w.square().sum(dim=1) if b is None else w.square().sum(dim=1) + b.square()
    with torch.no_grad():
        return hard(z, NOTHING * a.norm(dim=1)[:, None] * size.sqrt())


def backward_signals(
    net: Network, slopes: Sequence[Tensor], m: int, cover: Tensor | None = None
) -> list[Tensor]:
    """Return B_l (m, k_l) for every layer, from the slopes and the covectors (m, C) alone."""
    if cover is None:
        one_output(net)
        cover = net.weights[-1].new_ones(m, 1)
    elif cover.shape != (m, net.outputs):
        raise ValueError(f"cover must be ({m}, {net.outputs}); got {tuple(cover.shape)}")
    b = cover
    out = [b]
    for w, s in zip(reversed(net.weights[1:]), reversed(slopes), strict=True):
        b = (b @ w) * s
        out.append(b)
    return out[::-1]


def signals(
    net: Network,
    x: Tensor,
    slope: Slope | Sequence[Tensor] = hard,
    cover: Tensor | None = None,
) -> list[tuple[Tensor, Tensor]]:
    """Return the two factors of every block of grad Phi: dPhi/dW_l = B_l (x) A_{l-1}.

    Args:
        net: the network.
        x: points (m, d).
        slope: slopes as a function of z, or given: one (m, k_l) tensor per hidden layer.
        cover: covectors (m, C): the gradient is that of <cover_i, Phi(x_i)>. None: Phi itself.

    Returns:
        One pair (B_l (m, k_l), A_{l-1} (m, k_{l-1})) per layer; where the layer has a bias,
        A_{l-1} ends in a column of ones, so that the pair covers (W_l, b_l).
    """
    inputs, _, slopes = forward_signals(net, x, slope)
    return list(zip(backward_signals(net, slopes, len(x), cover), inputs, strict=True))


def gram(
    net: Network,
    x: Tensor,
    z: Tensor | None = None,
    slope: Slope = hard,
    cover: Tensor | None = None,
    cover_z: Tensor | None = None,
) -> Tensor:
    """Return K_ij = <grad Phi(x_i), grad Phi(z_j)>. x (m, d), z (m', d) or x -> (m, m')."""
    left = signals(net, x, slope, cover)
    right = left if z is None else signals(net, z, slope, cover_z)
    total = net.weights[0].new_zeros(len(x), len(right[0][0]))
    for (b, a), (b2, a2) in zip(left, right, strict=True):
        total = total + (b @ b2.T) * (a @ a2.T)
    return total


def inner_theta(
    net: Network, x: Tensor, slope: Slope = hard, cover: Tensor | None = None
) -> Tensor:
    """Return <theta, grad Phi(x)>. x (m, d) -> (m,).

    With `hard` slopes and a homogeneous network it is order * Phi(x) (Euler); with relaxed slopes
    it is not, and this is the sum the attack needs.
    """
    _, values, slopes = forward_signals(net, x, slope)
    pairs = zip(backward_signals(net, slopes, len(x), cover), values, strict=True)
    return torch.stack([(b * z).sum(dim=1) for b, z in pairs]).sum(dim=0)


def gradient(
    net: Network,
    x: Tensor,
    slope: Slope | Sequence[Tensor] = hard,
    cover: Tensor | None = None,
) -> Tensor:
    """Return rows grad_theta Phi(x_i) (m, P), ordered like `net.theta`, x (m, d); for small P."""
    blocks: list[Tensor] = []
    for (b, a), bias in zip(signals(net, x, slope, cover), net.biases, strict=True):
        a_weights = a if bias is None else a[:, :-1]
        blocks.append((b[:, :, None] * a_weights[:, None, :]).flatten(1))
        if bias is not None:
            blocks.append(b)
    return torch.cat(blocks, dim=1)


def residual(
    net: Network,
    x: Tensor,
    coef: Tensor,
    slope: Slope | Sequence[Tensor] = hard,
    cover: Tensor | None = None,
) -> Tensor:
    """Return theta - sum_i coef_i grad Phi(x_i), ordered like `net.theta`.

    x (m, d), coef (m,) -> (P,). With coef = lam * y its squared norm is the stationarity loss of
    Haim et al. 2022, eq. (5), the paper's sum (their code divides the sum by m). The Gram form of
    the same number is rho^2 - 2 coef . inner_theta + coef K coef: cheaper where m << k, but good
    to about 1e-16 rho^2 only.
    """
    blocks: list[Tensor] = []
    factors = signals(net, x, slope, cover)
    for (b, a), w, bias in zip(factors, net.weights, net.biases, strict=True):
        total = (b * coef[:, None]).T @ a
        if bias is None:
            blocks.append((w - total).flatten())
        else:
            blocks += [(w - total[:, :-1]).flatten(), bias - total[:, -1]]
    return torch.cat(blocks)
