"""The hall attacks: what many hands say where the points are, scored beside the machine.

The hall sees the weights alone, as the machine does. Of n points each hand has n taps, the hall
names the n places that most hands tap, and the machine its n strongest claims; one place meets one
point, within as much as a finger taps. Chance is n blind taps on the lines of the margin.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from explorer.engine.arrays import Array, as_array
from explorer.engine.data import PRESETS, Dataset, preset
from explorer.engine.network import Network, phi
from explorer.engine.number_words import count
from explorer.engine.scoring import Verdict, score
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.game import Challenge, GameError
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import (
    FINE_SIZE,
    field,
    margin_map,
    neuron_lines,
    samples,
)
from explorer.research.pictures.needles import needles
from explorer.research.runs import RADIUS

# How near a finger taps, as a share of half the plane: 9 of the 181 px of a phone 390 px wide, a
# millimetre and a half. Arbitrary: where it is wider, chance alone meets most of a circle.
FINGER = 0.05
SIZE = 64  # samples of the map a side: 5 kB for a phone; arbitrary
# What a class gets in turn: a drawing that no page shows, and its seed. Of these the machine finds
# most points, and most places are proven, as scripts/hall.py measures. They are a prime number, so
# that any stride meets each once.
PREPARED = (
    ("square", 20), ("pentagon", 6), ("square", 6), ("pentagon", 5), ("square", 10),
    ("pentagon", 12), ("square", 11), ("pentagon", 15), ("pentagon", 13), ("pentagon", 11),
    ("pentagon", 4),
)  # fmt: skip
BUILT_IN = ("random-circle", "moons", "xor", "alternating-circle")  # of three the machine finds few
JITTER, STEPS = 0.05, 12_000  # of a set made for the hall, off its ruler; arbitrary
CORNER, STRAYS = 1.3, 0.02  # of a drawing: how far out, how far points stray; arbitrary
BLIND = 200  # blind hands that stand for chance; arbitrary: the mean is known to a tenth


def finger_radius(axes: Axes) -> float:
    """Return within what of a point a tap or a claim counts: a finger's reach, in the data's units.

    Example:
        >>> finger_radius(Axes())
        0.1
    """
    return max(RADIUS, float(f"{FINGER * axes.half.min():.2g}"))


def next_set(turn: int) -> tuple[str, int]:
    """Return the drawing of a hall's turn, counted from 0, and its seed.

    Once all were had they come in another order: others may have no place to prove.

    Example:
        >>> next_set(0), next_set(len(PREPARED))
        (('square', 20), ('pentagon', 6))
    """
    again, at = divmod(turn, len(PREPARED))
    stride = 1 + again % (len(PREPARED) - 1)
    return PREPARED[(at * stride + again) % len(PREPARED)]


def hall_run(name: str, seed: int) -> Run:
    """Return a run to train for the hall, of new points a seed: a drawing or a built-in set.

    Example:
        >>> hall_run("moons", 1).dataset.n, hall_run("square", 1).dataset.n
        (24, 20)
    """
    if name in DRAWINGS:
        return Run(_around(DRAWINGS[name], seed), TrainConfig(), seed=seed)
    row = PRESETS[name]
    data = preset(name, row.n, max(row.noise, JITTER), seed)
    return Run(data, TrainConfig(steps=STEPS), seed=seed)


def _corners(n: int) -> Array:
    """Return the corners (n, 2) of an equal-sided drawing."""
    angles = np.pi / 2 + 2 * np.pi / n * np.arange(n)
    return CORNER * np.column_stack([np.cos(angles), np.sin(angles)])


DRAWINGS = {"square": _corners(4), "pentagon": _corners(5)}


def _around(corners: Array, seed: int) -> Dataset:
    """Return 20 points at equal steps around a drawing, every neighbour of the other class.

    The seed says where they begin, and how the drawing is turned.
    """
    n, rng = 20, np.random.default_rng(seed)
    ring = np.vstack([corners, corners[:1]])
    ends = np.concatenate([[0], np.linalg.norm(np.diff(ring, axis=0), axis=1).cumsum()])
    at = ends[-1] * (np.arange(n) + rng.random()) / n
    x = np.column_stack([np.interp(at, ends, side) for side in ring.T])
    turn = rng.uniform(-np.pi, np.pi)
    turned = x @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    strayed = turned + rng.normal(0, STRAYS, (n, 2))
    return Dataset(torch.from_numpy(strayed), torch.tensor([1.0, -1.0] * (n // 2)).double())


def board(challenge: Challenge, axes: Axes) -> dict[str, Any]:
    """Return what the hall sees of a challenge, as JSON: its boundary, needles and seal.

    Args:
        challenge: the weights at margin 1, and the commitment to their points.
        axes: of the plane, in units of the data.

    Returns:
        `map`, bytes (b - 128) / 50 of Phi on a grid of `size` squared in base64, first row on top;
        `lines` (l, 5) and `needles` (k, 3) as shares of the plane and of the longest; `seal`.

    Raises:
        GameError: for a network of other than two inputs and two classes.

    Example:
        >>> from explorer import Run, TrainConfig, maximum_margin, preset
        >>> from explorer.research.game import hide
        >>> data = preset("xor")
        >>> made = hide(Run(data, TrainConfig()), maximum_margin(data.x, data.y).net)
        >>> sorted(board(made.challenge, Axes()))
        ['lines', 'map', 'needles', 'seal', 'size']
    """
    net = challenge.net
    if net.d != 2 or net.outputs != 1:
        raise GameError(
            f"The hall taps on a plane of two classes; this network has {count(net.d, 'input')} "
            f"and {max(net.outputs, 2)} classes. Draw points of two classes on the plane."
        )
    shades = np.clip(np.rint(50 * margin_map(net, axes, 1.0, SIZE)) + 128, 0, 255)
    made = needles(net, axes)
    drawn = np.asarray(made["needles"], dtype=float)
    drawn = drawn / max(np.linalg.norm(drawn, axis=1).max(initial=0.0), 1e-300)
    return {
        "seal": challenge.commitment, "size": SIZE,
        "map": base64.b64encode(shades.astype(np.uint8).tobytes()).decode(),
        "lines": rows_of(neuron_lines(net, axes)),
        "needles": rows_of(np.column_stack([drawn, made["ink"]])),
    }  # fmt: skip


def rows_of(array: Array) -> list[list[float]]:
    """Return an array as rows of JSON, to a thousandth of the plane."""
    return np.round(np.asarray(array, dtype=float), 3).tolist()  # type: ignore[no-any-return]


def point_rows(data: Dataset, axes: Axes) -> list[list[float]]:
    """Return points (n, 2) as rows of JSON: place and class; those off the plane are left out."""
    rows = np.column_stack([axes.shares(as_array(data.x)), as_array(data.y)])
    return rows_of(rows[np.abs(rows[:, :2]).max(axis=1) <= 1])


def read_taps(net: Network, taps: Mapping[str, Any], axes: Axes, most: int) -> dict[int, Dataset]:
    """Return the taps of each phone as points, each of the class that the network gives its place.

    Args:
        net: the attacked network.
        taps: by the phone's number, places as shares of the plane, as a browser sends them.
        axes: of the plane.
        most: how many of a phone count, its first ones: as many as there are points.

    Raises:
        ValueError: where they are no rows of two numbers.
    """
    made = {}
    for number, rows in taps.items():
        shares = np.array(rows, dtype=float).reshape(-1, 2)[:most]
        made[int(number)] = _with_class(net, axes.centre + shares * axes.half)
    return made


def _with_class(net: Network, places: Array) -> Dataset:
    """Return places (k, 2) as points of the class that the network gives them."""
    x = torch.from_numpy(places)
    return Dataset(x, torch.where(phi(net, x) >= 0, 1.0, -1.0).to(x.dtype))


def strongest(claims: Dataset, most: int) -> Dataset:
    """Return the first so many of claims, which begin with the largest multipliers."""
    return Dataset(claims.x[:most], claims.y[:most])


def blind_hits(net: Network, truth: Dataset, axes: Axes, within: float) -> float:
    """Return how many points as many blind taps meet, on average: the board's chance.

    They fall at random where |Phi| is the margin: all points that hold it lie there.

    Args:
        net: the attacked network, at margin 1.
        truth: the points.
        axes: of the plane.
        within: in units of the data.

    Example:
        >>> from explorer import maximum_margin
        >>> data = preset("xor")
        >>> net = maximum_margin(data.x, data.y).net
        >>> 0 < blind_hits(net, data, Axes(), 0.1) < data.n / 4
        True
    """
    over = np.abs(field(net, axes, FINE_SIZE)) - 1
    line, rng = _zeros(over, axes), np.random.default_rng(0)
    if not len(line):
        return 0.0
    hands = (_with_class(net, line[rng.choice(len(line), truth.n)]) for _ in range(BLIND))
    return sum(int(score(truth, by.x, by.y, (within,)).found) for by in hands) / BLIND


def beside_boundary(net: Network, truth: Dataset, axes: Axes) -> tuple[float, float] | None:
    """Return between which distances from the boundary the middle half of the points stand.

    None where the plane shows no boundary.

    Example:
        >>> from explorer import maximum_margin
        >>> data = preset("xor")
        >>> near, far = beside_boundary(maximum_margin(data.x, data.y).net, data, Axes())
        >>> 0 < near < far < 2
        True
    """
    line = _zeros(field(net, axes, FINE_SIZE), axes)
    if not len(line):
        return None
    near, far = np.quantile(cKDTree(line).query(as_array(truth.x))[0], (0.25, 0.75))
    return float(near), float(far)


def _zeros(over: Array, axes: Axes) -> Array:
    """Return places (k, 2) where a field is 0, about as dense everywhere along these lines."""
    place = as_array(samples(FINE_SIZE, axes)).reshape(FINE_SIZE, FINE_SIZE, 2)
    found = []
    for value, at in ((over, place), (over.T, place.transpose(1, 0, 2))):
        cut = value[:-1] * value[1:] < 0
        share = (value[:-1][cut] / (value[:-1][cut] - value[1:][cut]))[:, None]
        found.append(at[:-1][cut] * (1 - share) + at[1:][cut] * share)
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class HallGuess:
    """Where the hall believes the points are.

    Attributes:
        places: where most phones tap.
        taps: how many taps they are made of.
        phones: of how many phones.
    """

    places: Dataset
    taps: int
    phones: int


def hall_guess(taps: Mapping[int, Dataset], most: int, within: float) -> HallGuess:
    """Return what the hall guesses: where most phones tap.

    Args:
        taps: of each phone (`read_taps`).
        most: how many places at most: as many as there are points.
        within: in units of the data (`densest`).

    Example:
        >>> from explorer import empty
        >>> phones = {n: empty(2).with_point([v, 0.0], 1) for n, v in enumerate((0.0, 0.02, 1.0))}
        >>> hall_guess(phones, 3, 0.1).places.n, hall_guess(phones, 1, 0.1).places.n
        (2, 1)
    """
    each = list(taps.values())
    return HallGuess(densest(each, most, within), sum(phone.n for phone in each), len(each))


def densest(taps: Sequence[Dataset], most: int, within: float) -> Dataset:
    """Return the `most` places where most phones tap, the fullest first.

    Taps of one class that lie `within` this of each other are one place, at their middle; of one
    phone a place counts once. Taps that made a place make no other.

    Args:
        taps: of each phone.
        most: how many places at most.
        within: in units of the data.

    Example:
        >>> from explorer import empty
        >>> phone = [empty(2).with_point([v, 0.0], 1) for v in (0.0, 0.02, 1.0)]
        >>> densest(phone, 1, 0.1).x
        tensor([[0.0100, 0.0000]], dtype=torch.float64)
    """
    once = [_apart(phone, within / 2) for phone in taps if phone.n]
    if not once:
        return Dataset(torch.zeros(0, 2, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    x, y = (np.concatenate([as_array(part) for part in parts]) for parts in zip(*once, strict=True))
    pairs = cKDTree(x).query_pairs(within, output_type="ndarray")
    pairs = pairs[y[pairs[:, 0]] == y[pairs[:, 1]]]
    i, j = np.concatenate([pairs, pairs[:, ::-1], np.arange(len(x))[:, None].repeat(2, 1)]).T
    near = csr_matrix((np.ones(len(i)), (i, j)), shape=(len(x), len(x)))
    left = np.ones(len(x))
    places: list[list[float]] = []
    while len(places) < most and left.any():
        heart = int(np.argmax((near @ left) * left))
        members = near.indices[near.indptr[heart] : near.indptr[heart + 1]]
        members = members[left[members] > 0]
        places.append([*x[members].mean(0), y[heart]])
        left[members] = 0
    rows = torch.tensor(places, dtype=torch.float64).reshape(-1, 3)
    return Dataset(rows[:, :2], rows[:, 2])


def _apart(phone: Dataset, least: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the taps of a phone without those nearer than `least` to an earlier one."""
    kept: list[int] = []
    for i in range(phone.n):
        if not kept or float((phone.x[kept] - phone.x[i]).norm(dim=1).min()) >= least:
            kept.append(i)
    return phone.x[kept], phone.y[kept]


@dataclass(frozen=True, eq=False)
class HallScore:
    """A round that is over: each number is of points met, one to one and within one distance.

    Attributes:
        machine: the verdict on the machine's claims.
        hall: of the hall's places.
        chance: of blind taps, on average (`blind_hits`).
        guess: the hall's places.
        each: of the taps of a phone, by its number.
        hits: which of its taps met a point, likewise: bit k is of the tap k.
        beside: where the points stand (`beside_boundary`).
    """

    machine: Verdict
    hall: int
    chance: float
    guess: HallGuess
    each: dict[int, int]
    hits: dict[int, int]
    beside: tuple[float, float] | None = None


def score_hall(
    truth: Dataset, taps: Mapping[int, Dataset], machine: Verdict, chance: float,
    beside: tuple[float, float] | None = None,
) -> HallScore:  # fmt: skip
    """Score the hall and each phone, beside the machine and within the distance of its verdict.

    Args:
        truth: the points.
        taps: of each phone (`read_taps`).
        machine: the verdict on the machine's claims.
        chance: what blind taps meet (`blind_hits`).
        beside: where the points stand (`beside_boundary`).

    Example:
        >>> from explorer import control_sets, judge, preset
        >>> data = preset("moons", n=10)
        >>> machine = judge(data, control_sets(data), data.x, data.y, radius=0.1)
        >>> taps = {1: Dataset(data.x[4:], data.y[4:]), 2: Dataset(data.x[:4], data.y[:4])}
        >>> made = score_hall(data, taps, machine, 0.5)
        >>> made.hall, made.each
        (10, {1: 6, 2: 4})
    """
    within = machine.radius
    guess = hall_guess(taps, truth.n, within)

    def met(by: Dataset) -> list[int]:
        found = score(truth, by.x, by.y, (within,)).matches[0]
        return [int(k) for k in found if k >= 0]

    found = {n: met(by) for n, by in taps.items()}
    each = {n: len(own) for n, own in found.items()}
    hits = {n: sum(1 << k for k in own) for n, own in found.items()}
    return HallScore(machine, len(met(guess.places)), chance, guess, each, hits, beside)
