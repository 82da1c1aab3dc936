"""What a loss over candidates needs of a network, and what a pass through it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from explorer.engine.network import Network

Alpha = float | Tensor  # a number, () on the device, or (k,) one per neuron


@dataclass(frozen=True, eq=False)
class Fit:
    """The loss (...,) with its gradients on x (..., m, d) and on c = lam y (..., m)."""

    loss: Tensor
    grad_x: Tensor
    grad_c: Tensor


@dataclass(frozen=True, eq=False)
class Prepared:
    """A network as the loss wants it.

    Attributes:
        weights: of each layer, without biases.
        blocks: the same with the bias, where there is one, as last column.
        squares: squared norm of each block.
        slopes: of each hidden layer (k,), factors on alpha, or None; see `merging`.
        portable: whether the CPU runs what other devices run, and not the kernels of its own: for
            tests and benchmarks.
    """

    weights: tuple[Tensor, ...]
    blocks: tuple[Tensor, ...]
    squares: tuple[float, ...]
    slopes: tuple[Tensor, ...] | None = None
    portable: bool = False

    @classmethod
    def of(cls, net: Network, slopes: tuple[Tensor, ...] | None = None) -> Prepared:
        """ValueError for several outputs: `stationarity` serves those."""
        if net.weights[-1].shape[0] != 1:
            raise ValueError(f"expected one output; got {net.weights[-1].shape[0]}")
        pairs = zip(net.weights, net.biases, strict=True)
        blocks = tuple(w if b is None else torch.cat([w, b[:, None]], dim=1) for w, b in pairs)
        return cls(
            net.weights, blocks, tuple(float(total(b.square(), (-1, -2))) for b in blocks), slopes
        )

    @cached_property
    def transposes(self) -> tuple[Tensor, ...]:
        """The weights of each layer, transposed in memory."""
        return tuple(w.T.contiguous() for w in self.weights)

    @property
    def on_cpu(self) -> bool:
        """Whether the kernels of the CPU serve."""
        return not self.portable and self.weights[0].device.type == "cpu"

    @property
    def square(self) -> float:
        """||theta||^2."""
        return sum(self.squares)

    def alpha(self, layer: int, alpha: Alpha) -> Alpha:
        """Alpha of a hidden layer, a number or one per neuron."""
        return alpha if self.slopes is None else self.slopes[layer] * alpha

    def layer_input(self, layer: int, a: Tensor) -> Tensor:
        """The input of a layer, with a column of ones where it has a bias."""
        if self.blocks[layer] is self.weights[layer]:
            return a
        return torch.cat([a, a.new_ones(*a.shape[:-1], 1)], dim=-1)


class Pass:
    """What the layers hold at candidates x (..., m, d)."""

    @property
    def phi(self) -> Tensor:
        """Phi (..., m)."""
        raise NotImplementedError

    def normal(self) -> tuple[Tensor, Tensor]:
        """<grad Phi(x_i), grad Phi(x_j)> (..., m, m) and <theta, grad Phi(x_i)> (..., m)."""
        raise NotImplementedError

    def slope(self) -> Tensor:
        """The gradient of Phi on x under the modified ReLU, (..., m, d)."""
        raise NotImplementedError

    def fit(self, c: Tensor, share: float = 1.0) -> Fit:
        """The loss and its gradients at c (..., m), times `share`.

        Uses the pass up: call it once, and last.
        """
        raise NotImplementedError

    def pull(self, c: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
        """The gradients alone, times `share`."""
        fit = self.fit(c, share)
        return fit.grad_x, fit.grad_c


def total(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Their sum; that of float32 is made in float64 where the device has it."""
    wide = values.dtype == torch.float32 and values.device.type != "mps"
    return values.sum(dims, dtype=torch.float64 if wide else None)
