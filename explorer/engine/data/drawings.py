"""Other sets of the shape of a drawing, made from its points alone: what stands for its source.

A drawing does not say what law it follows, so there are six guesses. Resampled: groups and clouds.
Turned about the centre: rings and stars. Shifted by up to half of the way to a neighbour: grids,
lines and tight groups. Re-phased, each point moved by one share of the way round to the next of its
class: closed curves that are no circles. Slid, each point by itself on the line through its
neighbour: letters and other strokes. Followed, all points one share of a step along their strokes:
clicks in even steps on open and crossing curves. Each keeps how many points a class has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import cdist
from torch import Tensor

from explorer.engine.data.dataset import Dataset

LIFTED = 2.0  # arbitrary: of the usual step between points of a stroke
SHORTER = 1.5  # arbitrary: a chain is the stroke where the order given is as many times as long
CHAINS = 20  # starts of a chain that are tried; arbitrary
TINY = 1e-12  # of a step: points at one place; arbitrary
MIN_BANDWIDTH = 0.01  # arbitrary: the bootstrap of a class of equal points still moves


def generator_of(*seeds: int) -> torch.Generator:
    """Return a generator of mixed seeds: the control of seed 0 is not the set of seed 1."""
    if len(seeds) == 1:
        return torch.Generator().manual_seed(seeds[0])
    return torch.Generator().manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))


def bootstrap_copies(dataset: Dataset, seeds: Sequence[int]) -> Tensor:
    """Return the points of smoothed bootstraps of each class, one a seed. (n, d) -> (K, n, d).

    The bandwidth is Silverman's (1986, eq. 4.14) or, where that is less, the distance of a point's
    nearest neighbour: Silverman's alone smears groups that stand close together.
    """
    generators = [generator_of(seed, dataset.n, 1) for seed in seeds]
    x, d = dataset.x.to("cpu", torch.float64), dataset.d
    fresh = x.repeat(len(generators), 1, 1)
    for label in sorted({-1.0, 1.0, *dataset.y.tolist()}):
        members = (dataset.y.to("cpu") == label).nonzero().squeeze(1)
        own, count = x[members], members.numel()
        if not count or not generators:
            continue
        width = (4 / ((d + 2) * count)) ** (1 / (d + 4)) * own.std(0, correction=0)
        apart = torch.cdist(own, own).fill_diagonal_(torch.inf)
        apart = apart.masked_fill(apart == 0, torch.inf).amin(1)  # of points at one place, the next
        width = torch.minimum(width, apart[:, None]).clamp_min(MIN_BANDWIDTH)
        drawn = [
            (torch.randint(count, (count,), generator=one),
             torch.randn(count, d, generator=one, dtype=torch.float64))
            for one in generators
        ]  # fmt: skip
        chosen, noise = (torch.stack(parts) for parts in zip(*drawn, strict=True))
        fresh[:, members] = own[chosen] + width[chosen] * noise
    return fresh


def turned_copies(dataset: Dataset, count: int) -> Tensor:
    """Return the points turned about their mean by uniform angles. (n, 2) -> (count, n, 2)."""
    x = dataset.x.to("cpu", torch.float64)
    angle = 2 * math.pi * _uniform(dataset, 2, count)
    rows = [angle.cos(), -angle.sin(), angle.sin(), angle.cos()]
    return (x - x.mean(0)) @ torch.stack(rows, 1).view(-1, 2, 2).mT + x.mean(0)


def shifted_copies(dataset: Dataset, count: int) -> Tensor:
    """Return the points moved as one, by up to half of a step along each axis.

    (n, d) -> (count, n, d).

    The step is the median distance between nearest neighbours of one class.
    """
    x = dataset.x.to("cpu", torch.float64)
    apart = torch.cdist(x, x).fill_diagonal_(torch.inf)
    apart = apart.masked_fill(apart == 0, torch.inf)
    near = apart.masked_fill(dataset.y[:, None] != dataset.y[None], torch.inf).amin(1)
    near = near[near.isfinite()]
    step = max(float(near.median()) if len(near) else 0.0, MIN_BANDWIDTH)
    move = _uniform(dataset, 3, count * dataset.d).view(count, 1, dataset.d)
    return x + (move - 0.5) * step


def rephased_copies(dataset: Dataset, count: int) -> Tensor:
    """Return each point moved a share of the way round to the next of its class.

    In angle and radius.

    The share is one for all points of a set, uniform in [0, 1). (n, 2) -> (count, n, 2).
    """
    x = dataset.x.to("cpu", torch.float64)
    centre = x.mean(0)
    ends = x.new_zeros(4, len(x))  # radius, angle, and those of the next
    for label in dataset.y.unique():
        members = (dataset.y == label).nonzero().squeeze(1).cpu()
        places, place = torch.unique(x[members] - centre, dim=0, return_inverse=True)
        here = torch.stack([places.norm(dim=1), torch.atan2(*places.T.flip(0))])
        order, there = here[1].argsort(), torch.empty_like(here)
        there[:, order] = here[:, order.roll(-1)]
        there[1, order[-1]] += 2 * math.pi
        ends[:, members] = torch.cat([here, there])[:, place]
    radius, angle, wider, further = ends
    share = _uniform(dataset, 4, count)[:, None]
    radius, angle = radius + share * (wider - radius), angle + share * (further - angle)
    return centre + torch.stack([radius * angle.cos(), radius * angle.sin()], -1)


def slid_copies(dataset: Dataset, count: int) -> Tensor:
    """Return each point moved by itself on the line through its nearest place.

    (n, d) -> (count, n, d).

    By a uniform share of up to half of the way, to it or away from it: who draws a stroke puts
    points on it one after the other, and only their order and distance are given. Points at one
    place move as one.
    """
    x = dataset.x.to("cpu", torch.float64)
    places, place = torch.unique(x, dim=0, return_inverse=True)
    if len(places) < 2:
        return x.repeat(count, 1, 1)
    near = torch.cdist(places, places).fill_diagonal_(torch.inf).argmin(1)
    share = _uniform(dataset, 5, count * len(places)).view(count, -1, 1) - 0.5
    made: Tensor = places + share * (places[near] - places)
    return made[:, place]


def followed_copies(dataset: Dataset, count: int) -> Tensor:
    """Return each point moved a share of a step along the stroke that it was put on. (count, n, 2).

    The points are taken in the order of `stroke_order`; a step of more than `LIFTED` of the usual
    one lifts the pen. A cubic spline in their numbers leads through those of a stroke. The share is
    one for all points of a set, uniform from half a step back to half a step on. A point alone on
    its stroke moves on the line through its nearest place. Points at one place move as one.
    """
    given = dataset.x.to("cpu", torch.float64).numpy()
    _, first, place = np.unique(given, axis=0, return_index=True, return_inverse=True)
    if len(first) < 2:
        return dataset.x.to("cpu", torch.float64).repeat(count, 1, 1)
    clicked = first.argsort()  # places in the order given
    x = given[first[clicked]]
    order = stroke_order(x)
    x, place = x[order], order.argsort()[clicked.argsort()[place.reshape(-1)]]
    apart = cdist(x, x)
    np.fill_diagonal(apart, np.inf)
    near = x[apart.argmin(1)]
    step = np.linalg.norm(np.diff(x, axis=0), axis=1)
    lifted = np.flatnonzero(step > LIFTED * np.median(step)) + 1
    share = _uniform(dataset, 6, count).numpy()[:, None] - 0.5
    parts = []
    for stroke, beside in zip(np.split(x, lifted), np.split(near, lifted), strict=True):
        if len(stroke) < 3:
            end = beside if len(stroke) == 1 else stroke[1:]
            parts.append(stroke + share[:, :, None] * (end - stroke[0]))
        else:
            at = np.arange(len(stroke))
            parts.append(CubicSpline(at, stroke)(at + share))
    return torch.from_numpy(np.concatenate(parts, axis=1)[:, place])


def stroke_order(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the order (n,) in which points (n, 2) were clicked.

    Their own, unless a chain is far shorter.

    A chain goes on to the point that is near and ahead: a turn back makes a step thrice as long.
    """

    def length(order: np.ndarray[Any, Any]) -> float:
        return float(np.linalg.norm(np.diff(x[order], axis=0), axis=1).sum())

    own = np.arange(len(x))
    chains = [_chain(x, start) for start in own[:: max(1, len(x) // CHAINS)]]
    best = min(chains, key=length, default=own)
    return best if length(own) > SHORTER * length(best) else own


def _chain(x: np.ndarray[Any, Any], start: int) -> np.ndarray[Any, Any]:
    """Return a greedy chain through points (n, 2); see `stroke_order`."""
    order, left = [start], np.arange(len(x)) != start
    ahead = np.zeros(2)
    while left.any():
        way = x - x[order[-1]]
        far = np.linalg.norm(way, axis=1)
        cost = far * (2 - way @ ahead / np.maximum(far, TINY))
        order.append(int(np.where(left, cost, np.inf).argmin()))
        left[order[-1]] = False
        ahead = way[order[-1]] / max(far[order[-1]], TINY)
    return np.array(order)


def _uniform(dataset: Dataset, kind: int, count: int) -> Tensor:
    """Return numbers in [0, 1): the first are the same whatever the count."""
    drawn = np.random.default_rng((dataset.n, kind)).random(count)
    return torch.from_numpy(drawn)
