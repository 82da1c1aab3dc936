"""The hall attacks: what many hands say where the points are, scored beside the machine.

The hall sees the weights alone, as the machine does. Its places are its taps, or where they are
more than the claims, the places where most hands meet. Claims and places are judged in the same
way: within as much as a finger taps.
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
from explorer.engine.controls import control_sets
from explorer.engine.data import PRESETS, Dataset, preset
from explorer.engine.network import Network, phi
from explorer.engine.number_words import count
from explorer.engine.scoring import Verdict, judge, score
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.game import Challenge, GameError
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import margin_map, neuron_lines
from explorer.research.pictures.needles import needles
from explorer.research.runs import RADIUS

# How near a finger taps, as a share of half the plane: 9 of the 181 px of a phone 390 px wide, a
# millimetre and a half. Arbitrary: where it is wider, chance alone meets most of a circle.
FINGER = 0.05
SIZE = 64  # samples of the map a side: 5 kB for a phone; arbitrary
# Of a class in turn: a machine that takes all points, one that takes most, two that fail; at last
# the set of the opening, which the class has seen.
FIRST = "triangle"  # no preset: nobody has seen it
ROUNDS = (FIRST, "random-circle", "moons", "xor", "alternating-circle")
JITTER, STEPS = 0.05, 12_000  # of a set made for the hall, off its ruler; arbitrary
CORNER, STRAYS = 1.3, 0.02  # of the triangle: how far out, and how far points stray; arbitrary


def finger_radius(axes: Axes) -> float:
    """Return within what of a point a tap or a claim counts: a finger's reach, in the data's units.

    Example:
        >>> finger_radius(Axes())
        0.1
    """
    return max(RADIUS, float(f"{FINGER * axes.half.min():.2g}"))


def next_set(name: str) -> str:
    """Return the set that a hall gets after this one; the first after one of another name.

    Example:
        >>> [next_set(name) for name in ("moons", "triangle", "spiral", "")]
        ['xor', 'random-circle', 'triangle', 'triangle']
    """
    return ROUNDS[(ROUNDS.index(name) + 1) % len(ROUNDS)] if name in ROUNDS else ROUNDS[0]


def hall_run(name: str, seed: int) -> Run:
    """Return a run to train for the hall: `FIRST` as it is, of other sets new points a seed.

    Example:
        >>> hall_run("moons", 1).dataset.n, hall_run("triangle", 1).dataset.n
        (24, 20)
    """
    if name == FIRST:
        return Run(_triangle(), TrainConfig(), seed=seed)
    row = PRESETS[name]
    data = preset(name, row.n, max(row.noise, JITTER), seed)
    return Run(data, TrainConfig(steps=STEPS), seed=seed)


def _triangle() -> Dataset:
    """Return 20 points at equal steps along a triangle, every neighbour of the other class."""
    n, angles = 20, np.pi / 2 + 2 * np.pi / 3 * np.arange(4)
    corners = CORNER * np.column_stack([np.cos(angles), np.sin(angles)])
    at = 3 / n * np.arange(n)
    x = np.column_stack([np.interp(at, np.arange(4), side) for side in corners.T])
    strayed = x + np.random.default_rng(0).normal(0, STRAYS, (n, 2))
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


def read_taps(net: Network, taps: Mapping[str, Any], axes: Axes) -> dict[int, Dataset]:
    """Return the taps of each phone as points, each of the class that the network gives its place.

    Args:
        net: the attacked network.
        taps: by the phone's number, places as shares of the plane, as a browser sends them.
        axes: of the plane.

    Raises:
        ValueError: where they are no rows of two numbers.
    """
    made = {}
    for number, rows in taps.items():
        shares = np.array(rows, dtype=float).reshape(-1, 2)
        x = torch.from_numpy(axes.centre + shares * axes.half)
        made[int(number)] = Dataset(x, torch.where(phi(net, x) >= 0, 1.0, -1.0).to(x.dtype))
    return made


@dataclass(frozen=True, eq=False)
class HallGuess:
    """Where the hall believes the points are.

    Attributes:
        places: the taps while they are few, else the places where most phones tap.
        taps: how many taps they are made of.
        phones: of how many phones.
    """

    places: Dataset
    taps: int
    phones: int


def hall_guess(taps: Mapping[int, Dataset], most: int, within: float) -> HallGuess:
    """Return what the hall guesses: its taps while they are at most `most`, else the densest.

    No tap of a few is moved, so the hall then scores as well as each of its phones.

    Args:
        taps: of each phone (`read_taps`).
        most: how many places at most.
        within: in units of the data (`densest`).

    Example:
        >>> from explorer import empty
        >>> phones = {n: empty(2).with_point([v, 0.0], 1) for n, v in enumerate((0.0, 0.02, 1.0))}
        >>> hall_guess(phones, 3, 0.1).places.n, hall_guess(phones, 2, 0.1).places.n
        (3, 2)
    """
    each = list(taps.values())
    total = sum(phone.n for phone in each)
    if not each or total > most:
        return HallGuess(densest(each, most, within), total, len(each))
    x, y = torch.cat([phone.x for phone in each]), torch.cat([phone.y for phone in each])
    return HallGuess(Dataset(x, y), total, len(each))


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
    """A round that is over.

    Attributes:
        machine: the verdict on all claims of the machine.
        hall: the verdict on the hall's places, within the same distance.
        guess: the hall's places.
        each: points that the taps of a phone come as near to, by its number.
    """

    machine: Verdict
    hall: Verdict
    guess: HallGuess
    each: dict[int, int]


def score_hall(truth: Dataset, taps: Mapping[int, Dataset], machine: Verdict) -> HallScore:
    """Score the hall and each phone, beside the machine and within the distance of its verdict.

    Args:
        truth: the points.
        taps: of each phone (`read_taps`).
        machine: the verdict on the machine's claims; the hall names no more places than it claims,
            or than there are points.

    Example:
        >>> from explorer import judge, preset
        >>> data = preset("moons", n=10)
        >>> machine = judge(data, control_sets(data), data.x, data.y, radius=0.1)
        >>> taps = {1: Dataset(data.x[4:], data.y[4:]), 2: Dataset(data.x[:4], data.y[:4])}
        >>> made = score_hall(data, taps, machine)
        >>> made.hall.found, made.each
        (10, {1: 6, 2: 4})
    """
    within = machine.radius
    guess = hall_guess(taps, max(machine.claims, truth.n), within)
    hall = judge(truth, control_sets(truth), guess.places.x, guess.places.y, within)
    each = {n: int(score(truth, by.x, by.y, (within,)).found) for n, by in taps.items()}
    return HallScore(machine, hall, guess, each)
