"""New life for neurons that are off on every point.

A network at its maximum margin has few directions left: the neurons that no point needs are off
on all points, have no gradient and stay so. Points added then often cannot be learnt from there
(the dormant neurons of Sokar et al. 2023, who draw them anew as is done here).
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine import backprop
from explorer.engine.network import Network

SIZE = 0.2  # measured on a point added to each preset: below 0.1 often too small to take part


def off_neurons(net: Network, x: Tensor) -> list[Tensor]:
    """Per hidden layer, which neurons are off on every point. x (n, d) -> [(k_l,) bool, ...]."""
    return [(a == 0).all(dim=0) for a in backprop.forward(net, x)[0][1:]]


def revived_network(net: Network, x: Tensor, generator: torch.Generator) -> Network:
    """The network with a small random neuron in place of each that is off on every point.

    Incoming weights (with the bias) and outgoing weights of a new neuron have the norm SIZE times
    that of an average neuron, so that a two-layer network stays balanced. x (n, d).
    """
    weights = [w.clone() for w in net.weights]
    biases = [None if b is None else b.clone() for b in net.biases]
    size = SIZE * float(net.rho) / sum(net.widths) ** 0.5
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
    """Random rows (count, length) of one norm."""
    rows = torch.randn(count, length, generator=generator, dtype=torch.float64)
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return (rows * (size / lengths)).to(like)
