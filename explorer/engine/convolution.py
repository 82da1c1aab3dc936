r"""Small convolutions: one hidden layer of weights that all places share, circular at the edges.

    Phi(theta; x) = sum_p sum_k v_pk relu(<w_k, x_p> + b_k)

where x_p is the patch of x at place p, the values that a filter w_k sees there. A convolution is a
linear layer with shared weights: this is a fully connected network phi of patches with one output
for each place, Phi(x) = sum_p phi_p(x_p), and a gradient on the shared weights is the sum over
places of those of phi. It is homogeneous of order 2, so that training leads to a KKT point of the
margin problem (Lyu and Li 2020), theta = sum_i lam_i y_i grad Phi(theta; x_i).

With v_pk = v_k (pooled) Phi does not change when x is shifted in a circle, and grad Phi does not
either, as it sums over the same patches. So theta tells points up to shifts, each by its own, and
no more. Where every place has weights v_p of its own, no shift leaves Phi as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.gradients import Slope, backward_signals, forward_signals, hard
from explorer.engine.kernels.reference import Signals
from explorer.engine.network import Network, init_network, scaled_network
from explorer.engine.nonnegative import cone_coefficients

TRUST = 0.1  # of |theta|, of one step; as in `training`
MOMENTUM = 0.99  # as in `training`


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution with a readout.

    Attributes:
        net: of patches (r,): r-k-P, a bias in the first layer; r-k-1 where it is pooled.
        shape: (h, w) of a point, whose coordinates are its d = h w values row by row; h = 1 for
            signals. There are P = d places.
        places: coordinates that a filter sees at each place (P, r).
    """

    net: Network
    shape: tuple[int, int]
    places: Tensor

    @classmethod
    def random(
        cls, shape: tuple[int, int], filters: int, side: int, pooled: bool, scale: float,
        generator: torch.Generator,
    ) -> Convolution:  # fmt: skip
        """Return random filters, side x side, or of `side` values for signals.

        Args:
            shape: (h, w) of a point.
            filters: how many, k.
            side: of a filter, at most w, and at most h where there are several rows.
            pooled: whether all places have one readout.
            scale: standard deviation of the filters, times 1/sqrt(r).
            generator: draws them.

        Raises:
            ValueError: where a filter is larger than a point.
        """
        h, w = shape
        high = side if h > 1 else 1
        if side > w or high > h:
            raise ValueError(
                f"a filter of side {side} is larger than points of {h} x {w}. "
                f"Take {w if h == 1 else min(h, w)} or less."
            )
        coordinates = torch.arange(h * w).reshape(h, w)
        seen = [
            coordinates.roll((-i, -j), (0, 1)).flatten() for i in range(high) for j in range(side)
        ]
        net = init_network(
            high * side, (filters,), generator=generator, first_scale=scale * (high * side) ** -0.5,
            outputs=1 if pooled else h * w,
        )  # fmt: skip
        return cls(net, shape, torch.stack(seen, 1))

    @property
    def shift_invariant(self) -> bool:
        """Return whether all places have one readout, so that shifts change nothing."""
        return self.net.outputs == 1

    def signals(self, x: Tensor, slope: Slope = hard) -> Signals:
        """Return what the layers hold at the patches of points x (m, d), one after another."""
        inputs, values, slopes = forward_signals(self.net, x[:, self.places].flatten(0, 1), slope)
        cover = self._cover(len(x))
        back = backward_signals(self.net, slopes, len(inputs[0]), cover)
        return Signals(inputs, values, slopes, back)

    def _cover(self, m: int) -> Tensor:
        """Return which outputs are read at the patches of m points (m P, outputs)."""
        if self.shift_invariant:
            return self.net.theta.new_ones(m * len(self.places), 1)
        return torch.eye(len(self.places)).to(self.net.theta).repeat(m, 1)

    def outputs(self, at: Signals) -> Tensor:
        """Return Phi of m points (m,)."""
        return (at.values[-1] * at.back[-1]).sum(1).reshape(-1, len(self.places)).sum(1)

    def gradients(self, at: Signals) -> Tensor:
        """Return rows grad_theta Phi(x_i) (m, P), ordered like `net.theta`."""
        parts: list[Tensor] = []
        for b, a, bias in zip(at.back, at.inputs, self.net.biases, strict=True):
            rows = (v.reshape(-1, len(self.places), v.shape[1]) for v in (b, a))
            block = torch.einsum("mpk,mpr->mkr", *rows)
            parts += (
                [block.flatten(1)]
                if bias is None
                else [block[:, :, :-1].flatten(1), block[:, :, -1]]
            )
        return torch.cat(parts, 1)

    def of_points(self, patches: Tensor) -> Tensor:
        """Return gradients on patches (m P, r) as gradients on points (m, d): the transpose."""
        each = patches.reshape(-1, self.places.numel())
        return each.new_zeros(len(each), len(self.places)).index_add_(
            1, self.places.flatten(), each
        )


def trained(start: Convolution, x: Tensor, y: Tensor, steps: int) -> Convolution:
    """Return the convolution after loss-scaled gradient descent, at margin 1.

    The step is g / kappa with momentum, g = sum_i p_i y_i grad Phi(x_i), p = softmax(-q) and
    kappa = sum_i p_i |grad Phi(x_i)|^2: that of `training`, on shared weights.

    Args:
        start: the first weights.
        x: points (n, d).
        y: labels (n,).
        steps: how many.

    Raises:
        ValueError: where the points are not separated after so many steps.
    """
    net, velocity = start.net, torch.zeros_like(start.net.theta)
    for _ in range(steps):
        now = replace(start, net=net)
        at = now.signals(x)
        rows = y[:, None] * now.gradients(at)
        p = torch.softmax(-y * now.outputs(at), 0)
        move = p @ rows / (p @ rows.square().sum(1)).clamp_min(1e-300)
        move = move * (TRUST * net.rho / move.norm().clamp_min(1e-300)).clamp_max(1.0)
        velocity = MOMENTUM * velocity + move
        net = net.with_theta(net.theta + velocity)
    done = replace(start, net=net)
    least = float((y * done.outputs(done.signals(x))).min())
    if not least > 0:
        raise ValueError(
            f"the points are not separated after {steps} steps; the least margin is {least:.3g}. "
            "Take more steps, filters, or larger ones."
        )
    return replace(done, net=scaled_network(net, least**-0.5))


def residual(made: Convolution, x: Tensor, y: Tensor) -> tuple[float, Tensor]:
    """Return what points leave of theta at best, a share of its norm, and multipliers (n,) >= 0."""
    rows, theta = y[:, None] * made.gradients(made.signals(x)), made.net.theta
    lam = cone_coefficients(rows @ rows.T, rows @ theta, 0.0)
    return float((theta - lam @ rows).norm() / made.net.rho), lam
