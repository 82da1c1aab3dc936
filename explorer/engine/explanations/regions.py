r"""Places and gradients of a network of any depth, in the regions where no ReLU of it switches.

In a region the slopes s_l of all layers are 0 or 1, the values h_l after the ReLUs are affine in x,
and what the output says of each neuron before its ReLU, its *signal*, is constant:

    dPhi/dW_l = delta_l h_(l-1)^T,    delta_L = 1,    delta_l = s_l * (W_(l+1)^T delta_(l+1)).

So the gradient on all weights is affine in x, and over a convex piece spanned by that at the corners.

Where a neuron's own line, as the region sees it, lies within `tau`, its slope is anything from 0 to
1. The signals below it are then products of slopes. Each is taken to lie anywhere between the least
and the largest that free slopes give, one signal apart from the other: every gradient with free
slopes is among these, so that a distance from them is a lower bound. With two layers they are the
same. The cone of them is spanned by the ends, and the best of them for a vector u is found signal by
signal, so that none is written out.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from explorer.engine.arrays import Array, Flags, Index, as_array
from explorer.engine.classes import all_rivals, labels
from explorer.engine.explanations.places import (
    ROUND,
    STEEP,
    Places,
    band_parts,
    corners_of,
    first_layer,
    split,
    stack,
    whole,
)
from explorer.engine.network import Network


@dataclass(frozen=True, eq=False)
class Layers:
    """The weights of a network, layer by layer.

    Attributes:
        weights: (k_1, d + 1) with the bias as last column, then (k_l, k_(l-1)), at last (C, k).
        box: half width of the box of all places.
        biased: whether the first layer has biases; else they are 0, and no part of a gradient.
    """

    weights: tuple[Array, ...]
    box: float
    biased: bool = True

    @classmethod
    def of(cls, net: Network, box: float) -> Layers:
        """Return the layers of a homogeneous network, in float64."""
        rest = (as_array(w) for w in net.weights[1:])
        return cls((first_layer(net), *rest), box, net.biases[0] is not None)

    @property
    def d(self) -> int:
        """Return the dimension of the input."""
        return int(self.weights[0].shape[1]) - 1

    @property
    def order(self) -> int:
        """Return the degree of homogeneity, the number of layers."""
        return len(self.weights)

    @cached_property
    def margins(self) -> list[tuple[float, Array]]:
        """Return each label with a covector (C,) of its margin: <it, Phi> is y Phi, or one pair's.

        Of several outputs every pair of classes is a row: Phi_y - Phi_c for each c but y.
        """
        several = len(self.weights[-1])
        if several == 1:
            return [(1.0, np.ones(1)), (-1.0, -np.ones(1))]
        own = torch.tensor(labels(several), dtype=torch.float64)
        covers = all_rivals(own, several).numpy()
        return [(y, row) for y, rows in zip(own.tolist(), covers, strict=True) for row in rows]

    @cached_property
    def theta(self) -> Array:
        """Return all weights as one vector, layer by layer, row by row."""
        return np.concatenate([w.reshape(-1) for w in self.weights])

    @cached_property
    def rho(self) -> float:
        """Return the norm of all weights."""
        return float(np.linalg.norm(self.theta))

    @property
    def pivots(self) -> tuple[Array, ...]:
        """Return vectors with <pivot, y g> = y Phi at all places and slopes: the last layer."""
        last = self.weights[-1].size
        return (np.concatenate([np.zeros(len(self.theta) - last), self.theta[-last:]]),)

    def values(self, x: Array) -> list[Array]:
        """Return what goes into each layer, and last Phi, at x with a 1 at the end (r, d + 1)."""
        found = [x]
        for w in self.weights[:-1]:
            found.append(np.maximum(found[-1] @ w.T, 0))
        return [*found, found[-1] @ self.weights[-1].T]

    def in_layer_order(self, rows: Array) -> Array:
        """Return vectors (m, P) in the order of `Network.theta` in that of `theta`."""
        k, d = len(self.weights[0]), self.d
        if not self.biased:
            rows = np.insert(rows, [k * d] * k, 0.0, axis=1)
        first, bias, rest = np.split(rows, [k * d, k * d + k], axis=1)
        blocks = np.concatenate([first.reshape(-1, k, d), bias[:, :, None]], axis=2)
        return np.concatenate([blocks.reshape(len(rows), -1), rest], axis=1)

    def by_layer(self, flags: Flags) -> list[Flags]:
        """Return flags (p, K) of all hidden neurons as one (p, k_l) for each layer."""
        return np.split(flags, np.cumsum([len(w) for w in self.weights[:-2]]), axis=1)

    def lines(self, pieces: int, on: list[Flags]) -> list[Array]:
        """Return the values before each ReLU as affine functions of x, (p, k_l, d + 1) per layer.

        For as many layers as `on` tells the slopes of, and one more; after the last layer Phi.
        """
        maps = [np.broadcast_to(self.weights[0], (pieces, *self.weights[0].shape))]
        for w, s in zip(self.weights[1:], on, strict=False):
            below = s[:, :, None] * maps[-1]
            maps.append(np.einsum("kj,pjd->pkd", w, below, optimize=True))
        return maps


def regions(
    layers: Layers, low: float, high: float, tau: float = 0.0, rounded: float = 0.0
) -> Places:
    """Return all places with low <= y Phi <= high in the box, each in one region of the network.

    Args:
        layers: the weights.
        low: least y Phi.
        high: largest y Phi.
        tau: slopes are free within this distance of a line, in units of x; 0: on no line, as
            both sides of it are there.
        rounded: with tau, each weight may be off by this share of it, and a line by what that
            moves it.
    """
    near = ROUND * layers.box
    cells = whole(layers.box, layers.d)
    on: list[Flags] = []
    for depth in range(len(layers.weights) - 1):
        maps = layers.lines(len(cells), on)[-1]
        cells, of = split(cells, _unit(maps[0] if depth == 0 else maps), near)
        on = [s[of] for s in on]
        on.append(_centre(cells, maps[of] if depth else maps[:1]) > 0)
    cells, y, cover, of = _on_the_margin(layers, cells, layers.lines(len(cells), on)[-1], low, high)
    on = [s[of] for s in on]
    if not tau:
        both = np.concatenate(on, axis=1)
        return Places(cells, y, both, np.zeros_like(both), np.zeros((len(y), 0)), cover)
    lines = np.concatenate(layers.lines(len(cells), on)[:-1], axis=1)
    zone = tau * np.linalg.norm(lines[:, :, :-1], axis=2) + _off(layers, cells, rounded)
    walls = np.concatenate([_shifted_lines(lines, zone), _shifted_lines(lines, -zone)], axis=1)
    cells, of = split(cells, _unit(walls), near)
    free = np.abs(_centre(cells, lines[of])) <= zone[of] * (1 + 1e-9)
    cover = None if cover is None else cover[of]
    return Places(cells, y[of], np.concatenate(on, axis=1)[of], free, np.zeros((len(of), 0)), cover)


def _on_the_margin(
    layers: Layers, cells: Array, outputs: Array, low: float, high: float
) -> tuple[Array, Array, Array | None, Index]:
    """Return the parts of cells where a margin is low to high and none is less than low.

    Args:
        layers: the weights.
        cells: pieces (p, c, d).
        outputs: Phi on each as affine functions (p, C, d + 1).
        low: the least margin.
        high: the largest of the margin that a piece is of.

    Returns:
        The pieces, their labels, of several outputs the covectors of their margins, and owners.
    """
    near = ROUND * float(np.abs(outputs).sum(axis=2).max(initial=0.0)) * max(layers.box, 1.0)
    made = []
    for y, cover in layers.margins:
        plane = np.einsum("c,pcd->pd", cover, outputs)
        found, _, of = band_parts(cells, plane, np.zeros(len(cells)), near, (low, high), (1.0,))
        for other, rival in layers.margins:
            if other == y and rival is not cover:
                plane = np.einsum("c,pcd->pd", rival, outputs[of])
                found, _, part = band_parts(
                    found, plane, np.zeros(len(found)), near, (low, np.inf), (1.0,)
                )
                of = of[part]
        made.append((found, np.full(len(found), y), np.tile(cover, (len(found), 1)), of))
    pieces, ys, covers, owners = zip(*made, strict=True)
    several = np.concatenate(covers) if len(layers.weights[-1]) > 1 else None
    return stack(list(pieces)), np.concatenate(ys), several, np.concatenate(owners)


def _unit(lines: Array) -> Array:
    """Return affine functions (..., d + 1) with slopes of length 1; flat ones are 0 nowhere."""
    steep = np.linalg.norm(lines[..., :-1], axis=-1, keepdims=True)
    size = np.linalg.norm(lines, axis=-1, keepdims=True)
    return np.asarray(np.where(steep > STEEP * size, lines, 0.0) / np.maximum(steep, 1e-300))


def _shifted_lines(lines: Array, by: Array) -> Array:
    """Return affine functions (p, k, d + 1) plus constants (p, k)."""
    moved = lines.copy()
    moved[:, :, -1] += by
    return moved


def _centre(cells: Array, lines: Array) -> Array:
    """Return the values of affine functions (p or 1, k, d + 1) in each cell's middle (p, k)."""
    middle = np.concatenate([cells.mean(axis=1), np.ones((len(cells), 1))], axis=1)
    if len(lines) == 1:
        return np.asarray(middle @ lines[0].T)
    return np.asarray(np.einsum("pkd,pd->pk", lines, middle))


def _off(layers: Layers, cells: Array, rounded: float) -> Array:
    """Return how far each value before a ReLU (p, K) may be off if each weight is, by a share."""
    h = np.concatenate([cells, np.ones((*cells.shape[:2], 1))], axis=2)
    below = np.zeros((len(cells), h.shape[2]))
    found = []
    for w in layers.weights[:-1]:
        size = np.abs(w)
        off = (below + (rounded + ROUND) * np.abs(h).max(axis=1)) @ size.T
        h = np.einsum("pcj,kj->pck", h, w)
        below = off * (h.max(axis=1) > -off)  # what is off for sure passes nothing on
        h = np.maximum(h, 0)
        found.append(off)
    return np.concatenate(found, axis=1)


@dataclass(frozen=True, eq=False)
class RegionRays:
    """Gradients y g(x; s) at the corners of places, as values times signals of each layer.

    Attributes:
        x: corners with a 1 at the end (r, d + 1).
        y: labels (r,).
        piece: the piece of each corner (r,), ascending.
        values: what goes into each layer (r, k_(l-1)).
        low: y times the least signal of each neuron of a layer (r, k_l); of several outputs that
            of their margin, e_y - e_c.
        spread: by how much the largest exceeds it (r, k_l); None where no slope is free.
        neurons: the weights.
    """

    x: Array
    y: Array
    piece: Index
    values: tuple[Array, ...]
    low: tuple[Array, ...]
    spread: tuple[Array, ...] | None
    neurons: Layers

    @classmethod
    def of(cls, places: Places, layers: Layers) -> RegionRays:
        """Return the rays of all corners of `places`, each once."""
        x, piece = corners_of(places.pieces)
        on, free = (layers.by_layer(flags[piece]) for flags in (places.on, places.free))
        values, y = [x], places.y[piece]
        top = y[:, None] if places.cover is None else places.cover[piece]
        if not layers.biased:
            values = [x * np.append(np.ones(layers.d), 0.0)]
        for w, s in zip(layers.weights, on, strict=False):
            values.append(s * (values[-1] @ w.T))
        if not places.free.any():
            signals = [top]
            for w, s in zip(layers.weights[:0:-1], on[::-1], strict=True):
                signals.append(s * (signals[-1] @ w))
            return cls(x, y, piece, tuple(values), tuple(signals[::-1]), None, layers)
        low, high = [top], [top]
        for w, s, f in zip(layers.weights[:0:-1], on[::-1], free[::-1], strict=True):
            up, down = np.maximum(w, 0), np.minimum(w, 0)
            least, most = low[-1] @ up + high[-1] @ down, high[-1] @ up + low[-1] @ down
            low.append(np.where(f, np.minimum(least, 0), s * least))
            high.append(np.where(f, np.maximum(most, 0), s * most))
        spread = tuple(b - a for a, b in zip(low[::-1], high[::-1], strict=True))
        return cls(x, y, piece, tuple(values), tuple(low[::-1]), spread, layers)

    def __len__(self) -> int:
        """Return the number of corners."""
        return len(self.y)

    def _inner(self, u: Array, rows: Index | slice) -> Iterator[Array]:
        """Yield what one unit of a signal adds to <u, g> (rows, k_l), of each layer."""
        ends = np.cumsum([w.size for w in self.neurons.weights])[:-1]
        blocks = np.split(u, ends)
        for w, block, h in zip(self.neurons.weights, blocks, self.values, strict=True):
            yield h[rows] @ block.reshape(w.shape).T

    def gains(self, u: Array) -> Array:
        """Return the largest <u, y g(x; s)> over the free signals, of each corner (r,)."""
        total = np.zeros(len(self))
        for layer, inner in enumerate(self._inner(u, slice(None))):
            total += np.einsum("rk,rk->r", inner, self.low[layer])
            if self.spread is not None:
                more = np.maximum(inner, 0, out=inner)
                total += np.einsum("rk,rk->r", more, self.spread[layer])
        return total

    def columns(self, rows: Index, u: Array) -> Array:
        """Return the rays of some corners that reach their gains (len(rows), P)."""
        parts = []
        for layer, inner in enumerate(self._inner(u, rows)):
            signal = self.low[layer][rows]
            if self.spread is not None:
                signal = signal + (inner > 0) * self.spread[layer][rows]
            block = signal[:, :, None] * self.values[layer][rows][:, None, :]
            parts.append(block.reshape(len(rows), -1))
        return np.concatenate(parts, axis=1)

    @cached_property
    def sizes(self) -> Array:
        """Return the approximate norm of each ray (r,): that with the longest signals."""
        total = np.full(len(self), 1e-300)
        for layer, h in enumerate(self.values):
            signal = np.abs(self.low[layer])
            if self.spread is not None:
                signal = np.maximum(signal, np.abs(self.low[layer] + self.spread[layer]))
            total += (signal**2).sum(axis=1) * (h**2).sum(axis=1)
        found: Array = np.sqrt(total)
        return found
