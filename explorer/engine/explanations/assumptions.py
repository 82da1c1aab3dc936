"""What to assume of the points that trained given weights, found from the weights alone.

`assumed_cone` makes the cone whose radii are certified (`cone`), and `threshold` says how large a
radius must be where nobody knows what the true points leave of the weights. Three things put
weights off a KKT point: training that ended, which the least residual and the balance tell; moves
of all weights, which the balance tells; and storage in few bits, which the weights themselves tell.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import gammaincinv

from explorer.engine.arrays import Array
from explorer.engine.attacks.target import Target, WeightDecay
from explorer.engine.explanations.cone import Assumptions, Cone, refusal
from explorer.engine.explanations.places import STEEP, neuron_groups, parts_of
from explorer.engine.explanations.regions import Layers, regions
from explorer.engine.network import Network, scaled_network
from explorer.engine.progress import Progress, no_progress, with_progress
from explorer.engine.rounding import NOTHING

# Found from the weights alone, the narrower first: shares of the scale for tau, and bands.
LADDER = {1: ((0.002, 0.01), (0.008, 0.05)), 2: ((0.0, 0.01), (0.0, 0.05))}
REACH = {1: 0.0, 2: 0.008}  # of the scale: chattering neurons leave points of the plane off by it
FITS = 0.05  # arbitrary: assumptions with a least residual up to this are taken
# Radians, the first with few enough groups.
ANGLES = (0.0, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 7e-3, 1e-2)
MOST_LINES = 0.95  # of the path weight; arbitrary
ROOM = 3.0  # of 60 sets of the plane no point on the margin was beyond 0.5 of the box; arbitrary
MIDDLE = 1.5  # of the scale: the middle of the box; arbitrary
WAYS, ENDED = 128, 0.9  # directions; share of them in which the level set is in the box; arbitrary
SPREAD = 0.03  # of the larger: neurons' lines that spread less are parallel; arbitrary
FLAT = 0.003  # arbitrary: a slope below this share of those that it sums is noise
MOST = {1: 400, 2: 60}  # groups: 130 in the plane prove little more and take eight times as long
MOST_ASKED = {1: MOST[1], 2: 200}  # groups where one asks for it; a place of 160 takes a second
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
# Of networks of the line as made, after 5,000 to 20,000 steps, none was in balance to less than
# 4e-6; exact and finished ones are, stored in float32 to 5e-7, but explained to 3e-5.
BALANCED = 1e-6  # scatter of weights, a share of |theta|: training alone leaves more
SETTLED = 1e-3  # least residual of weights that are in balance as they stand at a KKT point
PRUNED = 0.1  # share of neurons that are 0; arbitrary: training leaves none
OF_PRUNED = "{share:.0%} of the neurons are 0, as after pruning"
OF_BALANCED = "the neurons are in balance far beyond what training leaves, as after merging"
THRESHOLD = 0.05  # arbitrary: a radius up to this is no claim
WEIGHTS = {1: 20_000, 2: 5_000}  # of more layers, without being asked: a tenth of a second a place
WEIGHTS_ASKED = {1: 60_000, 2: 25_000}  # where one asks for it: one to two seconds a place
TRACE = 5.0  # arbitrary: logits beyond the least margin at which a point's trace is e^-5 of it
WIDEST_DECAYED = 300  # neurons: arbitrary, a tenth of a second a place
DECAYED = (
    "with weight decay points at all margins leave a trace, and only weights of one input and one "
    f"output, of at most {WIDEST_DECAYED} neurons, can be certified then. Train without decay, or "
    "points on the line."
)


class Domain(NamedTuple):
    """Where the points that trained weights can be.

    Attributes:
        box: half width of a box that holds them.
        scale: how far the level set |Phi| = 1 reaches in its middle; what tau and reach go by.
    """

    box: float
    scale: float


def extent(net: Network) -> Domain:
    """Return where the points which trained these weights, at margin 1, can be.

    They lie on the level set |Phi| = 1, which has an end on the line and mostly none in the plane.
    """
    layers = Layers.of(net, 1.0)
    path = np.ones((1, net.outputs))
    for later in layers.weights[:0:-1]:
        path = path @ np.abs(later)
    return (_on_the_line if layers.d == 1 else _in_the_plane)(layers, path[0])


def _on_the_line(layers: Layers, path: Array) -> Domain:
    """Return a box `ROOM` times as wide as where |Phi| is 1 for the last time.

    Neurons may have their lines anywhere.

    A neuron that is nearly constant has its own far away: the scale is the last level and a fifth.
    """
    w = layers.weights[0]
    width, size = np.abs(w[:, 0]), np.linalg.norm(w, axis=1)
    lines = width > STEEP * size
    away = np.abs(w[lines, -1]) / width[lines]
    order = np.argsort(away)
    share = np.cumsum((path * size)[lines][order])
    far = float(away[order][np.searchsorted(share, MOST_LINES * share[-1])]) if len(away) else 1.0
    steps = max(far, 1e-300) * np.geomspace(1e-3, 1e3, 600)
    high = np.stack([_size(layers, np.array([[-t, 1.0], [t, 1.0]])) for t in steps])
    first = np.where((high >= 1).any(0), steps[(high >= 1).argmax(0)], 0.0)
    wide = 6 * max(far, float(first.max()))
    x = np.abs(regions(replace(layers, box=wide), 1.0, 1.01).pieces)
    last = float(x[x < wide * (1 - 1e-9)].max(initial=0.0))
    if len(layers.weights) == 2 and len(layers.weights[-1]) == 1:
        last = max(last, _last_level(*layers.weights))
    scale = 1.2 * (last if last > 0 else far)
    return Domain(ROOM * scale, scale)


def _in_the_plane(layers: Layers, path: Array) -> Domain:
    """Return a box `ROOM` times as wide as where |Phi| is 1 last, in nine directions of ten.

    Along the line where Phi is 0 the level set has no end. Directions go out from the middle of the
    neurons' lines; the scale is the median of the last places with |Phi| = 1.
    """
    w = layers.weights[0]
    size = np.linalg.norm(w, axis=1)
    pull = np.sqrt(path / np.maximum(size, 1e-300))[:, None] * w
    centre = np.linalg.lstsq(pull[:, :2], -pull[:, 2], rcond=SPREAD)[0]
    turns = np.linspace(0, 2 * np.pi, WAYS, endpoint=False)
    ways = np.stack([np.cos(turns), np.sin(turns), np.zeros(WAYS)], axis=1)
    steepest = float(path @ np.linalg.norm(w[:, :2], axis=1))
    steps = np.geomspace(1e-2, 1e6, 400) / max(steepest, 1e-300)
    above = np.stack([_size(layers, np.append(centre, 1.0) + t * ways) >= 1 for t in steps])
    crossed = np.where(above[1:] != above[:-1], steps[1:, None], 0.0).max(axis=0)
    crossed = crossed[crossed > 0] if crossed.any() else np.ones(1)
    outer = float(np.quantile(crossed, ENDED, method="higher"))
    return Domain(float(np.abs(centre).max()) + ROOM * outer, float(np.median(crossed)))


def _last_level(w: Array, v: Array) -> float:
    """Return the largest |x| on the line at which Phi passes 1 or -1; 0 where it does not.

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
    """Return the margin of the class seen there, at x with a 1 at the end (r, d + 1)."""
    outputs = layers.values(x)[-1]
    if outputs.shape[1] == 1:
        return np.asarray(np.abs(outputs[:, 0]))
    best = np.sort(outputs, axis=1)
    return np.asarray(best[:, -1] - best[:, -2])


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


def trace_of_change(net: Network) -> str:
    """Return by what the weights show that they were changed after training, or an empty string.

    Balance is what tells how far weights are off. Whatever restores it, and neurons that are
    missing, leave the threshold without a ground. Exact weights are in balance by themselves.
    """
    if len(net.weights) > 2:
        return ""
    share = 1 - len(parts_of(net)[1]) / net.weights[0].shape[0]
    if share >= PRUNED:
        return OF_PRUNED.format(share=share)
    return OF_BALANCED if scatter(net) <= BALANCED * float(net.rho) else ""


def assumed_cone(
    net: Network, margin_error: float = 0.0, box: float | None = None,
    progress: Progress = no_progress, decay: WeightDecay | None = None,
) -> Cone:  # fmt: skip
    """Return the cone of a network at margin 1 under assumptions that its weights alone suggest.

    The narrowest of a short ladder of bands and slopes under which some explanation leaves at most
    `FITS` of the weights; the one that leaves least, if none does. What rounding of storage and the
    imbalance of the weights leave in doubt widens both. Neurons are grouped, and light ones left
    out, as far as time asks for it in the plane; nothing of what is said depends on it.
    `progress` hears of each rung. `decay`: what weight decay trained them, if any did: points then
    have all margins (`decayed`). ValueError for other networks.
    """
    why = refusal(net)
    if why:
        raise ValueError(why)
    found, scale = extent(net)
    wide = found if box is None else box
    rounded = SPARE * rounding(net)
    off = scatter(net, rounded)
    if off < NOTHING * float(net.rho):
        off = 0.0
    stray = 2 * (rounded + off * math.sqrt(len(net.theta)) / float(net.rho))
    base = Assumptions(
        box=wide, margin_error=margin_error, reach=REACH[net.d] * scale, doubt=DOUBT * off,
        rounded=rounded, stray=stray, middle=MIDDLE * scale,
        changed=trace_of_change(net),
    )  # fmt: skip
    if decay is not None:
        return _priced_cone(net, replace(base, tau=LADDER[1][0][0] * scale), decay, box)
    if net.d == 2 and len(net.weights) > 2:  # no slope is free there: lines that moved are reached
        base = replace(base, reach=base.reach + 2 * rounded * scale)
    angle, light = _grouping(net, base, MOST[net.d])
    cones: list[Cone] = []
    for tau, band in with_progress(LADDER[net.d], len(LADDER[net.d]), progress):
        made = replace(base, band=band, tau=tau * scale)
        made = replace(made, band=band + _wider(net, made), angle=angle, light=light)
        cones.append(Cone.of(net, made))
        if cones[-1].least.high <= FITS:
            return cones[-1]
    return min(cones, key=lambda cone: cone.least.high)


def _priced_cone(net: Network, base: Assumptions, decay: WeightDecay, box: float | None) -> Cone:
    """Return the cone of weights trained with decay, in a box that holds all points of some trace.

    The least margin is 1 of separated weights; others are as they were trained. Weights f theta
    have gradients f^(L-1) g, so that multipliers are f^(2-L) times as large, and mu is f^(L-2) mu.
    """
    apart = decay.margin > 0
    gain = decay.margin if apart else 1.0
    mu = decay.mu * gain ** (2 / net.order - 1)
    if box is None:
        far = extent(scaled_network(net, (gain / (TRACE + gain)) ** (1 / net.order))).box
        base = replace(base, box=max(base.box, far))
    return Cone.of(net, replace(
        base, band=math.inf, decay=mu, gain=gain, lowest=1.0 if apart else decay.margin,
        loss=decay.loss,
    ))  # fmt: skip


def _wider(net: Network, made: Assumptions) -> float:
    """Return by what doubt and rounding can move y Phi apart at the points that a cone uses."""
    if not (made.doubt or made.rounded):
        return 0.0
    angle, light = _grouping(net, made, ROUGH[net.d])
    least = Cone.of(net, replace(made, angle=angle, light=light)).least
    steep = float(np.linalg.norm(least.columns, axis=1).max(initial=0.0))
    layers = Layers.of(net, made.box)
    values = layers.values(np.concatenate([least.x, np.ones((len(least.x), 1))], axis=1))
    paths = np.abs(values[0])
    for w, after in zip(layers.weights, values[1:], strict=True):
        paths = (after != 0) * (paths @ np.abs(w).T)
    share = len(layers.weights) * made.rounded * min(net.outputs, 2)  # a margin is of two outputs
    return 2 * (made.doubt * steep + share * float(paths.max(initial=0.0)))


def threshold_obstacle(cone: Cone) -> str:
    """Return why no threshold has a ground for these weights, as a sentence, or ""."""
    why = cone.assumptions.changed
    if not why or (why == OF_BALANCED and cone.least.high <= SETTLED):
        return ""
    return f"Nothing is likely by a threshold: {why}. Give the weights as they were trained."


def threshold(cone: Cone, least: float = THRESHOLD) -> float:
    """Return the radius that a claim must exceed where nobody knows the residual of the truth.

    A share of |theta|; at 1 nothing can be claimed, as of weights that were `trace_of_change`.
    """
    left = cone.least.high
    if threshold_obstacle(cone):
        return 1.0
    far = NEAR if cone.neurons.d == 2 and left <= CONVERGED else FAR
    return min(max(least, far * left) + cone.assumptions.stray, 1.0)


def _grouping(net: Network, made: Assumptions, most: int) -> tuple[float, float]:
    """Return the angle of groups and the share of light neurons that leave `most` groups.

    Only neurons of two layers and one output are grouped. What light ones add is bounded in the
    middle of the box.
    """
    box = min(made.middle, made.box)
    if not net.has_signs or len(parts_of(net)[1]) <= most:
        return 0.0, 0.0
    light = next(s for s in LIGHT if s == 0 or neuron_groups(net, 0.0, 0.0, box, s).slack <= WIDER)
    left = {a: len(neuron_groups(net, a, 0.0, box, light).v) for a in ANGLES}
    limit = most if min(left.values()) <= most else HEAVY
    return next((a for a in ANGLES if left[a] <= limit), ANGLES[-1]), light


def groups_left(net: Network) -> int:
    """Return how many groups of neurons of two layers `assumed_cone` would work with."""
    box, scale = extent(net)
    made = Assumptions(box=box, middle=MIDDLE * scale)
    angle, light = _grouping(net, made, MOST[net.d])
    return len(neuron_groups(net, angle, 0.0, box, light).v)


def obstacle(target: Target, asked: bool = False) -> str:
    """Return why nothing can be certified of these weights, or an empty string.

    Args:
        target: the weights at margin 1.
        asked: whether somebody waits for it, for minutes; else it is to take seconds.
    """
    most, weights = (MOST_ASKED, WEIGHTS_ASKED) if asked else (MOST, WEIGHTS)
    why, d = refusal(target.net), target.net.d
    if why:
        return why
    if target.decay is not None:
        small = sum(target.net.widths) <= WIDEST_DECAYED
        return "" if d == 1 and target.net.outputs == 1 and small else DECAYED
    if not target.separated:
        return "the points are not separated yet, so there is no margin: train on."
    minutes = "Choose the attack “Likely places”: it takes minutes."
    if not target.net.has_signs:
        count = len(target.net.theta)
        if count <= weights[d]:
            return ""
        return (
            f"of three layers or several outputs at most {weights[d]} weights are certified here; "
            f"these are {count}. {minutes if count <= WEIGHTS_ASKED[d] else 'Train fewer neurons.'}"
        )
    groups = target.kept("certified, groups", lambda: groups_left(target.net))
    if groups <= most[d]:
        return ""
    return (
        f"at most {most[d]} neurons of different directions are certified here; these weights have "
        f"{groups}. {minutes if groups <= MOST_ASKED[d] else 'Train fewer neurons.'}"
    )


def cone_of(
    target: Target, margin_error: float = 0.0, box: float | None = None,
    progress: Progress = no_progress,
) -> Cone:  # fmt: skip
    """Return the cone of a target (`assumed_cone`), kept there once made.

    Args:
        target: the weights at margin 1.
        margin_error: by how much the margin may be off, as a share of it.
        box: half width of the box of all points, in units of the data; None: from the weights.
        progress: hears of the search for assumptions, and may end it.

    Raises:
        ValueError: where nothing can be certified of these weights within minutes.
    """
    why = obstacle(target, asked=True)
    if why:
        raise ValueError(why)
    key = ("certified", margin_error, box)
    net = target.net.to(dtype=torch.float64, device="cpu")
    found: Cone = target.kept(
        key, lambda: assumed_cone(net, margin_error, box, progress, target.decay)
    )
    return found
