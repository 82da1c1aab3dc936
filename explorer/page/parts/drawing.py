"""From a network to arrays that a figure can show. Pure numpy and torch; no widgets."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from contourpy import contour_generator
from numpy.typing import NDArray
from PIL import Image

from explorer.engine.classes import labels
from explorer.engine.network import Network, phi, phi_all
from explorer.style import COLOURS, NEGATIVE, POSITIVE

Array = NDArray[np.float64]
MAP_SIZE = 60  # pixels a side: below 2 ms a frame for two hidden layers of 100
FINE_SIZE = 150  # likewise, for a picture that stands still
LEVELS = 64  # colours on either side of zero; arbitrary
MOST_LINES = 60  # neuron lines on the plane; more cannot be told apart
STRENGTHS = (0.02, 0.1, 0.3)  # share of the largest path weight from which a line is stronger
TOGETHER = 0.03  # radians, and units of the plane: lines nearer than this are drawn once


@cache
def pixels(size: int, extent: float) -> torch.Tensor:
    """Return the centres of the pixels (size^2, 2), first row on top."""
    g = (torch.arange(size, dtype=torch.float32) + 0.5) / size * 2 - 1
    g = g * extent
    yy, xx = torch.meshgrid(g.flip(0), g, indexing="ij")
    return torch.stack([xx.reshape(-1), yy.reshape(-1)], 1)


def field(net: Network, extent: float, size: int = MAP_SIZE) -> Array:
    """Phi on a grid over [-extent, extent]^2. -> (size, size), first row on top.

    Computed in float32: the picture has 2 * LEVELS colours, so rounding cannot be seen.
    """
    grid = pixels(size, extent).to(device=net.device)
    values = phi(net.to(dtype=torch.float32), grid).reshape(size, size)
    return values.cpu().numpy().astype(np.float64)


@cache
def _palette() -> tuple[bytes, bytes]:
    """RGB and alpha of the map: clear at zero, pale in the class's colour beyond."""
    rgb, alpha = bytearray(), bytearray()
    for i in range(2 * LEVELS + 1):
        colour = POSITIVE if i >= LEVELS else NEGATIVE
        rgb += bytes.fromhex(colour[1:])
        alpha.append(round(84 * min(1.0, abs(i - LEVELS) / LEVELS) ** 0.8))
    return bytes(rgb), bytes(alpha)


def map_png(values: Array) -> bytes:
    """A palette PNG of Phi / margin, saturated at 2. values (h, w) -> bytes."""
    index = np.rint(np.clip(values, -2, 2) * (LEVELS / 2) + LEVELS).astype(np.uint8)
    rgb, alpha = _palette()
    image = Image.fromarray(index, mode="L")
    image.putpalette(rgb)
    out = io.BytesIO()
    image.save(out, "PNG", transparency=alpha, compress_level=1)
    return out.getvalue()


def gapped_path(pieces: list[Array]) -> tuple[Array, Array]:
    """Return polylines [(k, 2)] as one path x, y with NaN gaps."""
    if not pieces:
        return np.zeros(2), np.zeros(2)  # draws nothing; an empty path is an error to a browser
    gap = np.full((1, 2), np.nan)
    path = np.concatenate([p for piece in pieces for p in (piece, gap)])
    return path[:, 0], path[:, 1]


def level_lines(values: Array, extent: float, levels: Sequence[float]) -> list[tuple[Array, Array]]:
    """The sets {Phi = level} on the grid of `field`, each as one path with NaN gaps."""
    size = values.shape[0]
    g = ((np.arange(size) + 0.5) / size * 2 - 1) * extent
    generator = contour_generator(g, g, values[::-1])
    return [
        gapped_path([np.asarray(line, dtype=np.float64) for line in generator.lines(level)])
        for level in levels
    ]


def map_size(net: Network, moving: bool) -> int:
    """Return the pixels a side: fewer while the picture moves, or if each costs much."""
    small = sum(w.numel() for w in net.weights) <= 20_000  # then the fine map takes under 30 ms
    return FINE_SIZE if small and not moving else MAP_SIZE


def path_weights(net: Network) -> Array:
    """|v_j| ||w_j|| of each first-layer neuron; deeper: its column's norm above. -> (k_1,)."""
    first = net.weights[0].square().sum(1)
    if net.biases[0] is not None:
        first = first + net.biases[0].square()
    above = net.weights[1].square().sum(0) if len(net.weights) > 1 else torch.ones_like(first)
    return (first * above).sqrt().cpu().numpy()


def neuron_lines(net: Network, extent: float) -> list[tuple[Array, Array]]:
    """The first layer's lines w_j.x + b_j = 0 in the view, one path per strength.

    Equal lines are drawn once with the sum of their path weights, so that many weak neurons
    on one line look as strong as they are together. -> [(x, y)], weakest first.
    """
    w, b, weight = _lines_of(net)
    norm = np.maximum(np.hypot(w[:, 0], w[:, 1]), 1e-300)
    turn = np.arctan2(w[:, 1], w[:, 0]) % np.pi  # a line has no orientation
    side = np.where(np.arctan2(w[:, 1], w[:, 0]) % (2 * np.pi) >= np.pi, -1, 1)
    key = np.stack([np.rint(turn / TOGETHER), np.rint(side * b / norm / TOGETHER)], 1)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(group.reshape(-1), weights=weight)
    heaviest = np.argsort(-total)[:MOST_LINES]
    heaviest = heaviest[total[heaviest] > STRENGTHS[0] * total.max(initial=0.0)]
    strength = np.searchsorted(STRENGTHS, total[heaviest] / max(total.max(), 1e-300)) - 1
    ends, seen = _clip(w[first[heaviest]], b[first[heaviest]], extent)
    return [_segments(ends[seen & (strength == level)]) for level in range(len(STRENGTHS))]


def _lines_of(net: Network) -> tuple[Array, Array, Array]:
    """Direction, offset and path weight of each first-layer neuron."""
    w = net.weights[0].cpu().numpy()
    b = np.zeros(len(w)) if net.biases[0] is None else net.biases[0].cpu().numpy()
    return w, b, path_weights(net)


def _clip(w: Array, b: Array, extent: float) -> tuple[Array, NDArray[np.bool_]]:
    """The parts of the lines w.x + b = 0 inside [-extent, extent]^2. -> ends (k, 2, 2), seen (k,).

    Slab method: the line foot + s along is inside one pair of edges for s between two bounds.
    """
    norm = np.maximum(np.hypot(w[:, 0], w[:, 1]), 1e-300)[:, None]
    foot, along = -b[:, None] * w / norm**2, np.stack([-w[:, 1], w[:, 0]], 1) / norm
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.sort(np.stack([(-extent - foot) / along, (extent - foot) / along]), axis=0)
    level = np.abs(along) < 1e-12  # parallel to these edges: inside for all s, or for none
    low = np.where(level, -np.inf, bounds[0]).max(1)
    high = np.where(level, np.inf, bounds[1]).min(1)
    inside = (~level | (np.abs(foot) <= extent)).all(1)
    seen = inside & (low < high) & np.isfinite(low) & np.isfinite(high)
    low, high = np.where(seen, low, 0.0), np.where(seen, high, 0.0)
    return np.stack([foot + low[:, None] * along, foot + high[:, None] * along], 1), seen


def _segments(ends: Array) -> tuple[Array, Array]:
    """Segments (k, 2, 2) as one path with NaN gaps."""
    if not len(ends):
        return gapped_path([])
    path = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], 1).reshape(-1, 2)
    return path[:, 0], path[:, 1]


def graph(net: Network, extent: float, points: int = 400) -> tuple[Array, Array]:
    """Return x and Phi(x) of a univariate network over [-extent, extent]."""
    x = torch.linspace(-extent, extent, points, dtype=net.dtype, device=net.device)
    return x.cpu().numpy(), phi(net, x[:, None]).cpu().numpy()


def breakpoints(net: Network, extent: float) -> list[Array]:
    """Breakpoints -b_j / w_j of a univariate first layer in view, one array per strength."""
    w, b, weight = _lines_of(net)
    slope = np.where(np.abs(w[:, 0]) < 1e-12, np.nan, w[:, 0])
    at = -b / slope
    strength = np.searchsorted(STRENGTHS, weight / max(weight.max(initial=0.0), 1e-300))
    inside = np.abs(at) <= extent
    return [at[inside & (strength == level + 1)] for level in range(len(STRENGTHS))]


# --- The decision map of a network with one output per class. Pure numpy and torch; no widgets --

Path = tuple[Array, Array]
CLASS_LEVELS = 60  # shades per class; four classes fill a palette of 256. Arbitrary
STRONGEST = 84  # of 255, the alpha of a class's map: that of two classes


def class_field(net: Network, extent: float, size: int) -> Array:
    """All outputs on a grid over [-extent, extent]^2. -> (C, size, size), first row on top."""
    grid = pixels(size, extent).to(device=net.device)
    values = phi_all(net.to(dtype=torch.float32), grid)
    return values.T.reshape(net.outputs, size, size).cpu().numpy().astype(np.float64)


def leads(values: Array) -> Array:
    """Each class's output less the best of its rivals', (C, h, w): positive where it wins."""
    best = values.argmax(0)
    top = values.max(0)
    rest = np.where(np.arange(len(values))[:, None, None] == best, -np.inf, values).max(0)
    lead: Array = np.where(np.arange(len(values))[:, None, None] == best, top - rest, values - top)
    return lead


@cache
def _class_palette(classes: int) -> tuple[bytes, bytes]:
    """RGB and alpha: clear at the border, pale in the class's colour beyond."""
    rgb, alpha = bytearray(), bytearray()
    for label in labels(classes):
        for i in range(CLASS_LEVELS):
            rgb += bytes.fromhex(COLOURS[label][1:])
            alpha.append(round(STRONGEST * (i / (CLASS_LEVELS - 1)) ** 0.8))
    return bytes(rgb), bytes(alpha)


def class_map_png(lead: Array) -> bytes:
    """A palette PNG of the winner's lead in units of the margin, saturated at 2. (C, h, w)."""
    shade = np.rint(np.clip(lead.max(0) / 2, 0, 1) * (CLASS_LEVELS - 1)).astype(np.int64)
    index = (lead.argmax(0) * CLASS_LEVELS + shade).astype(np.uint8)
    rgb, alpha = _class_palette(len(lead))
    image = Image.fromarray(index, mode="L")
    image.putpalette(rgb)
    out = io.BytesIO()
    image.save(out, "PNG", transparency=alpha, compress_level=1)
    return out.getvalue()


def class_levels(lead: Array, extent: float) -> tuple[Path, list[Path]]:
    """The border between the classes, and for each class where its lead is the margin."""
    pairs = [level_lines(one, extent, (0.0, 1.0)) for one in lead]
    border = [np.column_stack(line) for line, _ in pairs]
    return gapped_path(border), [at_margin for _, at_margin in pairs]
