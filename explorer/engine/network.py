r"""A bias-in-the-first-layer ReLU network as one frozen value, theta.

    Phi(theta; x) = W_L relu(... relu(W_2 relu(W_1 x + b_1)) ...)

With a bias in the first layer only, Phi(c theta; x) = c^L Phi(theta; x) for c > 0 and L layers:
the degree of homogeneity `order` is the number of layers (Lyu and Li 2020, section 2).
Two classes need one output, Phi; C classes have C outputs Phi_c (see `classes`).
Later biases are allowed, for networks that others trained; then `order` has no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True, eq=False)
class Network:
    """The weights of a fully connected ReLU network.

    Attributes:
        weights: one (k_l, k_{l-1}) matrix per layer, k_0 = d and k_L = C outputs.
        biases: one (k_l,) vector or None per layer.
        assumed_relu: whether the weights came from a file that names no activation, so that ReLU
            is no more than an assumption.
        unit: the unit of length in which it was trained (`unit_of`): the weights take points as
            they are, and `in_unit` gives those that training saw, of which the theorems speak.

    Raises:
        ValueError: where the shapes do not chain, or the network has no layer or no output.

    Source: Lyu and Li 2020, section 2, for homogeneous networks.

    Example:
        >>> import torch
        >>> from explorer import Network
        >>> weights = torch.tensor([[3.0]]), torch.tensor([[2.0]])
        >>> net = Network(weights, (torch.tensor([1.0]), None))
        >>> net
        Network(1-1-1, order 2, 1 output, float32)
        >>> net(torch.tensor([[1.0], [-1.0]]))
        tensor([8., 0.])
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor | None, ...]
    assumed_relu: bool = False
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Refuse shapes that do not chain."""
        if len(self.weights) != len(self.biases) or not self.weights:
            raise ValueError(
                "a Network needs one bias (or None) per weight matrix; "
                f"got {len(self.weights)} weights and {len(self.biases)} biases"
            )
        for layer, (w, b) in enumerate(zip(self.weights, self.biases, strict=True), 1):
            below = self.weights[layer - 2].shape[0] if layer > 1 else w.shape[-1]
            if w.ndim != 2 or w.shape[1] != below or (b is not None and b.shape != w.shape[:1]):
                raise ValueError(
                    f"layer {layer}: expected a weight (k, {below}) and a bias (k,) or None; "
                    f"got {tuple(w.shape)} and {None if b is None else tuple(b.shape)}"
                )
        if not 0 < self.unit < math.inf:
            raise ValueError(f"unit must be positive and finite; got {self.unit}. Take 1.")
        if not self.weights[-1].shape[0]:
            raise ValueError("a network needs one output or more; got 0 outputs")

    def __repr__(self) -> str:
        """Return one line, such as Network(2-100-1, order 2, 1 output, float64); no weights."""
        order = f"order {self.order}" if self.homogeneous else "biases in several layers"
        outputs = f"{self.outputs} output{'s' * (self.outputs > 1)}"
        return (
            f"Network({self.shape}, {order}, {outputs}, {str(self.dtype).removeprefix('torch.')})"
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Return what the network says of points x (m, d): Phi (m,), or (m, C) with C > 1 outputs.

        Raises:
            ValueError: where the points have another shape.
        """
        return phi(self, x) if self.outputs == 1 else phi_all(self, x)

    @property
    def d(self) -> int:
        """Return the dimension of the input."""
        return self.weights[0].shape[1]

    @property
    def outputs(self) -> int:
        """Return the number of outputs C: 1 for two classes."""
        return self.weights[-1].shape[0]

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the hidden widths, first layer first."""
        return tuple(w.shape[0] for w in self.weights[:-1])

    @property
    def shape(self) -> str:
        """Return inputs, widths and outputs, such as 2-100-1."""
        return "-".join(map(str, (self.d, *self.widths, self.outputs)))

    @property
    def depth(self) -> int:
        """Return the number of layers, homogeneous or not."""
        return len(self.weights)

    @property
    def has_signs(self) -> bool:
        """Return whether a neuron pulls by one number, and has its sign: 2 layers, 1 output."""
        return self.depth == 2 and self.outputs == 1

    @property
    def homogeneous(self) -> bool:
        """Return whether no layer but the first has a bias."""
        return all(b is None for b in self.biases[1:])

    @property
    def order(self) -> int:
        """Return the degree of homogeneity, which is the number of layers.

        Raises:
            ValueError: where a bias beyond the first layer breaks homogeneity.

        Source: Lyu and Li 2020, section 2.
        """
        if not self.homogeneous:
            raise ValueError(
                "order is defined for homogeneous networks only; this one has a bias beyond "
                "the first layer. Train without those biases to use margins and KKT."
            )
        return len(self.weights)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Return all tensors of theta: W_1, b_1 (if any), W_2, ..."""
        pairs = zip(self.weights, self.biases, strict=True)
        return tuple(p for pair in pairs for p in pair if p is not None)

    @property
    def blocks(self) -> tuple[Tensor, ...]:
        """Return theta layer by layer: (W_l, b_l), the bias as last column where there is one."""
        pairs = zip(self.weights, self.biases, strict=True)
        return tuple(w if b is None else torch.cat([w, b[:, None]], dim=1) for w, b in pairs)

    @property
    def theta(self) -> Tensor:
        """Return all parameters as one vector (P,), in the order of `parameters`."""
        return torch.cat([p.reshape(-1) for p in self.parameters])

    @property
    def rho(self) -> Tensor:
        """Return the norm of theta, shape ()."""
        return torch.stack([p.square().sum() for p in self.parameters]).sum().sqrt()

    @property
    def dtype(self) -> torch.dtype:
        """Return the floating type of the weights."""
        return self.weights[0].dtype

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.weights[0].device

    def with_parameters(self, parameters: Sequence[Tensor]) -> Network:
        """Return the same architecture with other values.

        Args:
            parameters: the tensors of theta, in the order and with the shapes of `parameters`.

        Returns:
            A new network; this one is not changed.
        """
        left = iter(parameters)
        weights, biases = [], []
        for b in self.biases:
            weights.append(next(left))
            biases.append(None if b is None else next(left))
        return replace(self, weights=tuple(weights), biases=tuple(biases))

    def with_theta(self, theta: Tensor) -> Network:
        """Return the same architecture with other values, given as one vector.

        Args:
            theta: all parameters (P,), in the order of `parameters`.

        Returns:
            A new network; this one is not changed.
        """
        sizes = [p.numel() for p in self.parameters]
        pieces = theta.split(sizes)
        return self.with_parameters(
            [piece.view_as(p) for piece, p in zip(pieces, self.parameters, strict=True)]
        )

    def in_unit(self) -> Network:
        """Return the network of points divided by `unit`: the same function, with the unit 1."""
        return self.per(1.0)

    def per(self, unit: float) -> Network:
        """Return the same weights of training, of which points are `unit` times as large.

        Args:
            unit: the new unit; a power of two rounds nothing.

        Returns:
            A network whose first layer is divided by `unit` over the old one.
        """
        if unit == self.unit:
            return self
        first = self.weights[0] * (self.unit / unit)
        return replace(self, weights=(first, *self.weights[1:]), unit=unit)

    def to(
        self, *, dtype: torch.dtype | None = None, device: str | torch.device | None = None
    ) -> Network:
        """Return the same numbers in another floating type or on another device.

        Args:
            dtype: the floating type; None keeps it.
            device: the device; None keeps it.

        Returns:
            A new network; this one is not changed.
        """
        return self.with_parameters([p.to(dtype=dtype, device=device) for p in self.parameters])


def with_one(x: Tensor) -> Tensor:
    """Return (x, 1), the input with its bias: (m, d) -> (m, d + 1)."""
    return pad(x, (0, 1), value=1.0)


def in_double(net: Network, *values: Tensor) -> tuple[Any, ...]:
    """Return a network and tensors on the CPU in float64, without their history."""
    double = [v.detach().cpu().double() for v in (*net.parameters, *values)]
    count = len(net.parameters)
    return net.with_parameters(double[:count]), *double[count:]


def preactivations(net: Network, x: Tensor) -> list[Tensor]:
    """Return values before each ReLU and the outputs. x (m, d) -> [(m, k_1), ..., (m, C)]."""
    out: list[Tensor] = []
    a = x
    for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        if layer:
            a = out[-1].clamp_min(0)
        z = a @ w.T
        out.append(z if b is None else z + b)
    return out


def phi_all(net: Network, x: Tensor) -> Tensor:
    """Return all outputs Phi_c(theta; x) of a network.

    Args:
        net: a network with C outputs.
        x: points (m, d).

    Returns:
        The outputs (m, C).

    Raises:
        ValueError: where x has another shape.
    """
    if x.ndim != 2 or x.shape[1] != net.d:
        raise ValueError(f"x must be (m, {net.d}) for this network; got {tuple(x.shape)}")
    return preactivations(net, x)[-1]


def phi(net: Network, x: Tensor) -> Tensor:
    """Return the output Phi(theta; x) of a network with one output.

    Args:
        net: a network with one output, homogeneous or not.
        x: points (m, d).

    Returns:
        The outputs (m,), in the type of the weights.

    Raises:
        ValueError: where the network has several outputs, or x has another shape.

    Source: Lyu and Li 2020, section 2.

    Example:
        >>> import torch
        >>> from explorer import Network, phi
        >>> net = Network((torch.tensor([[1.0]]), torch.tensor([[2.0]])), (None, None))
        >>> phi(net, torch.tensor([[3.0], [-1.0]]))
        tensor([6., 0.])
    """
    one_output(net)
    return phi_all(net, x).squeeze(-1)


def one_output(net: Network) -> None:
    """Raise where the network has several outputs.

    Raises:
        ValueError: for a network with more than one output.
    """
    if net.outputs != 1:
        raise ValueError(
            f"one output is expected here; this network has {net.outputs}, one per class. "
            "Take phi_all, or a set of two classes."
        )


def scaled_network(net: Network, c: float) -> Network:
    """Return the network with the weights c theta.

    Homogeneity makes its outputs c^order times those of theta, for c > 0.

    Args:
        net: the network; it is not changed.
        c: the factor on every weight and bias, a pure number.

    Returns:
        The network of c theta.

    Source: Lyu and Li 2020, section 2.

    Example:
        >>> import torch
        >>> from explorer import Network, phi, scaled_network
        >>> net = Network((torch.tensor([[1.0]]), torch.tensor([[2.0]])), (None, None))
        >>> x = torch.tensor([[3.0]])
        >>> phi(net, x), phi(scaled_network(net, 2.0), x)  # order 2: 2^2 times as much
        (tensor([6.]), tensor([24.]))
    """
    return net.with_parameters([p * c for p in net.parameters])


def init_network(
    d: int,
    widths: Sequence[int],
    *,
    generator: torch.Generator,
    first_scale: float | None,
    bias: bool = True,
    all_biases: bool = False,
    dtype: torch.dtype = torch.float64,
    outputs: int = 1,
) -> Network:
    """Return a random network: first layer N(0, first_scale^2), the others Kaiming-uniform.

    Deeper layers follow torch's default for Linear, U(-1/sqrt(fan_in), 1/sqrt(fan_in)), and the
    first layer and its bias the small normal initialisation of Haim et al. 2022, appendix B, or
    torch's default too where `first_scale` is None. Biases beyond the first layer (`all_biases`)
    are drawn as torch draws them; they make the network non-homogeneous.
    """
    sizes = [d, *widths, outputs]

    def uniform(*shape: int, fan_in: int) -> Tensor:
        drawn: Tensor = 2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1
        return drawn / math.sqrt(fan_in)

    def first(*shape: int) -> Tensor:
        if first_scale is None:
            return uniform(*shape, fan_in=d)
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * first_scale

    weights = [first(sizes[1], d)]
    weights += [uniform(out, fan_in, fan_in=fan_in) for fan_in, out in pairwise(sizes[1:])]
    biases: list[Tensor | None] = [first(sizes[1]) if bias else None]
    for fan_in, out in pairwise(sizes[1:]):
        biases.append(uniform(out, fan_in=fan_in) if all_biases else None)
    return Network(
        tuple(w.to(dtype) for w in weights),
        tuple(None if b is None else b.to(dtype) for b in biases),
    )


# --- New life for neurons that are off on every point ---------------------------------------------
# A network at its maximum margin has few directions left: the neurons that no point needs are off
# on all points, have no gradient and stay so. Points added then often cannot be learnt from there
# (the dormant neurons of Sokar et al. 2023, who draw them anew as is done here).

REVIVED = 0.2  # measured on a point added to each preset: below 0.1 often too small to take part


def off_neurons(net: Network, x: Tensor) -> list[Tensor]:
    """Return which neurons are off on every point, per hidden layer (k_l,) bool. x (n, d)."""
    return [(z <= 0).all(dim=0) for z in preactivations(net, x)[:-1]]


def revived_network(net: Network, x: Tensor, generator: torch.Generator) -> Network:
    """Return the network with a small random neuron in place of each that is off on every point.

    Incoming weights (with the bias) and outgoing weights of a new neuron have the norm
    `REVIVED` times that of an average neuron, so that a two-layer network stays balanced. x (n, d).
    """
    weights = [w.clone() for w in net.weights]
    biases = [None if b is None else b.clone() for b in net.biases]
    size = REVIVED * float(net.rho) / sum(net.widths) ** 0.5
    for layer, off in enumerate(off_neurons(net, x)):
        places = off.nonzero().squeeze(1)
        bias = biases[layer]
        fan_in = weights[layer].shape[1] + (bias is not None)
        into = _rows(places.numel(), fan_in, size, generator, weights[layer])
        weights[layer][places] = into[:, : weights[layer].shape[1]]
        if bias is not None:
            bias[places] = into[:, -1]
        above = weights[layer + 1]
        above[:, places] = _rows(places.numel(), above.shape[0], size, generator, above).T
    return Network(tuple(weights), tuple(biases))


def _rows(count: int, length: int, size: float, generator: torch.Generator, like: Tensor) -> Tensor:
    """Return random rows (count, length) of one norm."""
    rows = torch.randn(count, length, generator=generator, dtype=torch.float64)
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return (rows * (size / lengths)).to(like)
