"""What to assume of the points that trained given weights, found from the weights alone.

`assumed` makes the cone whose radii are certified (`cone`), and `threshold` says how large a radius
must be where nobody knows what the true points leave of the weights. Three things put weights off a
KKT point: training that ended, which the least residual and the balance tell; moves of all weights,
which the balance tells; and storage in few bits, which the weights themselves tell.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from scipy.special import gammaincinv

from explorer.engine.explanations.cone import Assumptions, Cone, refusal
from explorer.engine.explanations.places import STEEP, Array, grouped, parts_of
from explorer.engine.explanations.regions import Layers, regions
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress, with_progress
from explorer.engine.rounding import NOTHING

# Found from the weights alone, the narrower first: shares of the box for tau, and bands.
LADDER = {1: ((0.002, 0.01), (0.008, 0.05)), 2: ((0.0, 0.01), (0.0, 0.05))}
REACH = {1: 0.0, 2: 0.008}  # of the box: chattering neurons leave points of the plane off by it
FITS = 0.05  # arbitrary: assumptions with a least residual up to this are taken
ANGLES = (0.0, 1e-4, 5e-4, 2e-3, 1e-2)  # radians, the first with few enough groups
MOST_LINES = 0.95  # of the path weight; arbitrary
ROOM = 2.0  # arbitrary
FLAT = 0.003  # arbitrary: a slope below this share of those that it sums is noise
MOST = {1: 400, 2: 60}  # groups: 130 in the plane prove little more and take eight times as long
HEAVY = 130  # groups where those cannot be had: a place takes half a second in the plane
ROUGH = {1: 400, 2: 30}  # groups where only the steepness of places is asked
LIGHT = (1e-4, 1e-5, 1e-6, 0.0)  # of the path weight, the first that widens the band by little
WIDER = 0.03  # by how much of the margin it may widen the band; arbitrary
DOUBT = 4.0  # times their scatter weights may be off; arbitrary
RARE = 1e-3  # how often so few neurons may tell less than is taken of their scatter; arbitrary
SPARE = 2.0  # times the largest rounding of storage are allowed; arbitrary
SHORT = (8, 11)  # bits of a number in bfloat16 and float16; float32 rounds too little to matter
FAR = 3.0  # times the least residual of all explanations: a smaller radius is no claim; arbitrary
NEAR = 1.75  # the same in the plane, near a KKT point; chosen by `bench_certified.py --kinds`
CONVERGED = 0.1  # least residual there; above it places that hold nothing reach 2.3 times it
FEWEST = 8  # neurons asked for their balance, or all; arbitrary
THRESHOLD = 0.05  # arbitrary: a radius up to this is no claim


def extent(net: Network) -> float:
    """Return the half width of a box that holds the points which trained these weights; margin 1.

    On the line, where |Phi| is 1 for the last time, and a fifth more, wherever the neurons' lines
    are: a neuron that is nearly constant has its own far away. In the plane the level lines may
    have no end: `ROOM` times the larger of the distance of the first layer's lines (all but a
    twentieth of the path weight is nearer) and that at which |Phi| first is 1 (the median of 64
    directions).
    """
    layers = Layers.of(net, 1.0)
    w, d = layers.weights[0], layers.d
    path = np.ones((1, 1))
    for later in layers.weights[:0:-1]:
        path = path @ np.abs(later)
    width, size = np.linalg.norm(w[:, :-1], axis=1), np.linalg.norm(w, axis=1)
    lines = width > STEEP * size
    away = np.abs(w[lines, -1]) / width[lines]
    order = np.argsort(away)
    share = np.cumsum((path[0] * size)[lines][order])
    far = float(away[order][np.searchsorted(share, MOST_LINES * share[-1])]) if len(away) else 1.0
    turns = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    ways = np.array([[-1.0], [1.0]]) if d == 1 else np.stack([np.cos(turns), np.sin(turns)], 1)
    steps = max(far, 1e-300) * np.geomspace(1e-3, 1e3, 600)
    ones = np.ones((len(ways), 1))
    high = np.stack([_size(layers, np.concatenate([t * ways, ones], axis=1)) for t in steps])
    first = np.where((high >= 1).any(0), steps[(high >= 1).argmax(0)], 0.0)
    if d == 2:
        return ROOM * max(far, float(np.median(first)))
    wide = 6 * max(far, float(first.max()))
    x = np.abs(regions(Layers.of(net, wide), 1.0, 1.01).pieces)
    last = float(x[x < wide * (1 - 1e-9)].max(initial=0.0))
    if len(layers.weights) == 2:
        last = max(last, _last_level(*layers.weights))
    return 1.2 * (last if last > 0 else far)


def _last_level(w: Array, v: Array) -> float:
    """The largest |x| on the line at which Phi passes 1 or -1; 0 where it does not.

    Where its slope is small beside those that it sums it is flat up to noise, and that counts not.
    """
    steep = np.abs(w[:, 0]) > STEEP * np.abs(w[:, 1])
    ends = np.unique(np.append(-w[steep, 1] / w[steep, 0], 0.0))
    span = 1.0 + float(np.abs(ends).max())
    x = np.concatenate([[ends[0] - span], ends, [ends[-1] + span]])  # each end goes on as it begins
    value = np.maximum(x[:, None] * w[:, 0] + w[:, 1], 0) @ v[0]
    slope = np.diff(value) / np.diff(x)
    slope[np.abs(slope) <= FLAT * float(np.abs(v[0]) @ np.abs(w[:, 0]))] = np.nan
    low, high = x[:-1].copy(), x[1:].copy()
    low[0], high[-1] = -np.inf, np.inf
    at = x[:-1] + (np.array([[1.0], [-1.0]]) - value[:-1]) / slope
    return float(np.abs(at[(at >= low) & (at <= high)]).max(initial=0.0))


def _size(layers: Layers, x: Array) -> Array:
    """|Phi| at x with a 1 at the end (r, d + 1)."""
    found: Array = np.abs(layers.values(x)[-1][:, 0])
    return found


def scatter(net: Network, rounded: float = 0.0) -> float:
    """Return how far each weight may be off, told by the balance |v| = |(w, b)| of heavy neurons.

    0 at a KKT point. Weights that were moved lose their balance by about sqrt(2) times what each of
    them was moved; training leaves the light neurons out of balance, so that those below the mean
    path weight are not asked, beyond `FEWEST`. Few neurons may be in balance by chance: the bound
    is the one that independent normal moves exceed with probability `RARE` (chi squared). What
    rounding by a share of up to `rounded` explains is not counted. 0 with more than two layers,
    whose first weights are out of balance: training keeps the differences.
    """
    if len(net.weights) > 2:
        return 0.0
    w, v = parts_of(net)
    size = np.linalg.norm(w, axis=1)
    path = np.abs(v) * size
    least = min(float(path.mean()), float(np.sort(path)[-FEWEST:][0]))
    off = np.maximum(np.abs(np.abs(v) - size) - rounded * (np.abs(v) + size), 0)[path >= least]
    chi_square = 2 * gammaincinv(len(off) / 2, RARE)  # its quantile; scipy.stats loads for 0.6 s
    return float(np.sqrt((off**2).sum() / 2 / chi_square))


def rounding(net: Network) -> float:
    """Return by what share of it storage in few bits moved each weight at most; 0 if in none.

    Weights at margin 1 are those stored times one factor. It is found by trying every number of
    so many bits for the largest weight. Weights in balance to rounding of float64 lost nothing.
    """
    theta = net.theta.detach().cpu().double().abs().numpy()
    theta = theta[theta > 0]
    kept = 8 * float(torch.finfo(net.dtype).eps)
    if len(net.weights) == 2 and scatter(net) <= kept * float(net.rho):
        return 0.0
    for bits in SHORT:
        highest = np.arange(2.0 ** (bits - 1), 2.0**bits)
        for some in (theta[:64], theta):  # most numbers are told by a few weights
            part = np.frexp(some / theta.max() * highest[:, None])[0] * 2.0**bits
            highest = highest[(np.abs(part - part.round()) <= kept * part).all(axis=1)]
        if len(highest):
            return float(2.0**-bits)
    return 0.0


def assumed(
    net: Network, margin_error: float = 0.0, box: float | None = None,
    progress: Progress = no_progress,
) -> Cone:  # fmt: skip
    """Return the cone of a network at margin 1 under assumptions that its weights alone suggest.

    The narrowest of a short ladder of bands and slopes under which some explanation leaves at most
    `FITS` of the weights; the one that leaves least, if none does. What rounding of storage and the
    imbalance of the weights leave in doubt widens both. Neurons are grouped, and light ones left
    out, as far as time asks for it in the plane; nothing of what is said depends on it.
    `progress` hears of each rung. ValueError for other networks.
    """
    why = refusal(net)
    if why:
        raise ValueError(why)
    wide = extent(net) if box is None else box
    rounded = SPARE * rounding(net)
    off = scatter(net, rounded)
    if off < NOTHING * float(net.rho):
        off = 0.0
    stray = 2 * (rounded + off * math.sqrt(len(net.theta)) / float(net.rho))
    base = Assumptions(
        box=wide, margin_error=margin_error, reach=REACH[net.d] * wide, doubt=DOUBT * off,
        rounded=rounded, stray=stray,
    )  # fmt: skip
    if net.d == 2 and len(net.weights) > 2:  # no slope is free there: lines that moved are reached
        base = replace(base, reach=base.reach + 2 * rounded * wide)
    angle, light = _thinned(net, wide, MOST[net.d])
    cones: list[Cone] = []
    for tau, band in with_progress(LADDER[net.d], len(LADDER[net.d]), progress):
        made = replace(base, band=band, tau=tau * wide)
        made = replace(made, band=band + _wider(net, made), angle=angle, light=light)
        cones.append(Cone.of(net, made))
        if cones[-1].least.high <= FITS:
            return cones[-1]
    return min(cones, key=lambda cone: cone.least.high)


def _wider(net: Network, made: Assumptions) -> float:
    """Return by what doubt and rounding can move y Phi apart at the points that a cone uses."""
    if not (made.doubt or made.rounded):
        return 0.0
    angle, light = _thinned(net, made.box, ROUGH[net.d])
    least = Cone.of(net, replace(made, angle=angle, light=light)).least
    steep = float(np.linalg.norm(least.columns, axis=1).max(initial=0.0))
    layers = Layers.of(net, made.box)
    values = layers.values(np.concatenate([least.x, np.ones((len(least.x), 1))], axis=1))
    paths = np.abs(values[0])
    for w, after in zip(layers.weights, values[1:], strict=True):
        paths = (after != 0) * (paths @ np.abs(w).T)
    share = len(layers.weights) * made.rounded
    return 2 * (made.doubt * steep + share * float(paths.max(initial=0.0)))


def threshold(cone: Cone, least: float = THRESHOLD) -> float:
    """Return the radius that a claim must exceed where nobody knows the residual of the truth.

    A share of |theta|; at 1 nothing can be claimed.
    """
    left = cone.least.high
    far = NEAR if cone.neurons.d == 2 and left <= CONVERGED else FAR
    return min(max(least, far * left) + cone.assumptions.stray, 1.0)


def _thinned(net: Network, box: float, most: int) -> tuple[float, float]:
    """Return the angle of groups and the share of light neurons that leave `most` groups.

    Only neurons of two layers are grouped.
    """
    if len(net.weights) > 2 or len(parts_of(net)[1]) <= most:
        return 0.0, 0.0
    light = next(s for s in LIGHT if s == 0 or grouped(net, 0.0, 0.0, box, s).slack <= WIDER)
    left = {a: len(grouped(net, a, 0.0, box, light).v) for a in ANGLES}
    limit = most if min(left.values()) <= most else HEAVY
    return next((a for a in ANGLES if left[a] <= limit), ANGLES[-1]), light


def groups_left(net: Network) -> int:
    """Return how many groups of neurons of two layers `assumed` would work with."""
    wide = extent(net)
    angle, light = _thinned(net, wide, MOST[net.d])
    return len(grouped(net, angle, 0.0, wide, light).v)
