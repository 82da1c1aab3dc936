"""Questions to the energy of a page's weights, and pictures that answer them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.certificate import TAU_TRAINED, certify
from explorer.engine.data import Dataset
from explorer.engine.energy.landscape import StartLandscape
from explorer.engine.energy.maps import (
    MapLine,
    Split,
    bilevel,
    grid,
    line,
    split,
    tau_of,
)
from explorer.engine.energy.points import Archetype, Energies, check_energy, energy, moving_point
from explorer.engine.energy.starts import CORNERS, Parts, partner_points
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.others import Rivals, forced_mass
from explorer.engine.explanations.splitting import USED
from explorer.engine.merging import MERGE_ANGLE, Merged, merge_neurons
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress
from explorer.engine.settings import setting, settings

MAPS = {
    "point": "One point moves",
    "split": "A point splits in two",
    "starts": "All starts of an attack",
    "ridge": "Bilevel loss, affine",
    "last": "Bilevel loss, last layer",
}
OF_CLASSES = ("point",)  # those of networks with several outputs, too
TRIANGLE = (11, 26, 51)  # starts along a side, refined like pixels: 66, 351 and 1326 in all
LITTLE = 0.01  # arbitrary: what lies below this share of the highest value is counted as low
STANDARD = 61  # pixels a side that `pixels` counts in, so that refining changes nothing else


@settings
class MapConfig:
    """The settings of a map."""

    # fmt: off
    pixels: Annotated[float, setting(
        "A slope is free within so many pixels of a 61 × 61 map", title="kinks (px)", ge=0,
        form="more", page=(0, 4), unit="px",
    )] = 0.5
    angle: Annotated[float, setting(
        "Radians within which neurons count as one; 0: none", title="merge angle", ge=0,
        form="more", page=(0, 0.5), unit="rad",
    )] = MERGE_ANGLE
    frozen: Annotated[bool, setting(
        "Whether the other points' multipliers follow the moving point", title="others",
        form="more", labels=(("refitted", False), ("frozen", True)),
    )] = False
    kappa: Annotated[float, setting(
        "κ: charges points in use that are off the margin", title="margin price", ge=0,
        form="more", page=(0, 100),
    )] = 0.0
    extent: Annotated[float, setting("Half width of the map", gt=0, unit="of the data")] = 2.0
    # fmt: on


@dataclass(frozen=True, eq=False)
class MapQuestion:
    """What is asked.

    Attributes:
        kind: a key of MAPS.
        net: the attacked network at margin 1, before neurons are merged.
        truth: what it was trained on.
        heldout: the other corner of the starts.
        x: the candidates (n, d).
        index: which of them moves or splits.
        config: how.
        seed: of the noise corner.
    """

    kind: str
    net: Network
    truth: Dataset
    heldout: Dataset | None
    x: Tensor
    index: int
    config: MapConfig
    seed: int = 0

    def same(self, other: MapQuestion | None) -> bool:
        """Return whether both have one answer: equal numbers on the very same tensors."""
        if other is None:
            return False
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return all(
            a is b if isinstance(a, Tensor | Network | Dataset) else a == b for a, b in pairs
        )

    def moved_to(self, other: MapQuestion) -> bool:
        """Return whether `other` differs in places of the candidates alone."""
        return replace(self, x=other.x).same(other) and self.x.shape == other.x.shape

    @property
    def tau(self) -> float:
        """Return the relative distance of a kink."""
        return tau_of(self.config.extent, STANDARD, self.config.pixels)


@dataclass(frozen=True)
class StartsSummary:
    """What a map of starts shows: energies as shares of ||theta||^2.

    Attributes:
        truth: of the start at the truth.
        heldout: of the start at held-out points.
        noise: of the start at noise.
        low: share of the starts below `LITTLE` of the highest.
        count: how many starts there are.
    """

    truth: float
    heldout: float
    noise: float
    low: float
    count: int


@dataclass(frozen=True)
class RidgeSummary:
    """What a map of the bilevel loss shows: losses as shares of ||theta*||^2.

    Attributes:
        last: whether the features are the last hidden layer; else the points themselves.
        here: of the point where it is.
        most: of the worst place.
        low: share of the places below `LITTLE` of that.
    """

    last: bool
    here: float
    most: float
    low: float


@dataclass(frozen=True, eq=False)
class Picture:
    """An answer.

    Attributes:
        kind: as asked.
        values: (h, w), first row on top; of a curve (1, p); of the starts a lattice (side, side)
            over their triangle, row noise and column truth, nan where there is no start.
        box: (left, right, bottom, top) of the map.
        names: of the two axes.
        here: the value at the candidates as they are.
        reference: the energy without the point, or nan.
        about: the numbers behind what is seen; None for a sketch, of which nothing is to be read.
        archetype: its name, or an empty string.
        lowest: where the least value is.
        curve: of a line, else None.
        size: pixels a side.
        forced: share of the point's multiplier that stays at its place by
            `forced_share`; 0 where it does not say so.
    """

    kind: str
    values: Array
    box: tuple[float, float, float, float]
    names: tuple[str, str]
    here: float
    reference: float = math.nan
    about: Energies | Split | StartsSummary | RidgeSummary | None = None
    archetype: str = ""
    lowest: tuple[float, float] = (0.0, 0.0)
    curve: MapLine | None = None
    size: int = 0
    forced: float = 0.0


# --- Maps of a moving point that are kept: where the others are refitted, they hold wherever it is

Map = tuple[Array, int]  # energies of all places (size^2,), and how many of these are crowded


class MapCache:
    """The last map of each size, with what it was of."""

    def __init__(self) -> None:
        """Keep no map yet."""
        self._maps: dict[int, tuple[MapQuestion, Map]] = {}

    def put(self, q: MapQuestion, size: int, values: Array, few: int) -> Map:
        """Keep a map, and give it back as `get` would."""
        if not q.config.frozen:  # frozen multipliers are those with the point where it is
            self._maps[size] = (q, (values.copy(), few))
        return values, few

    def get(self, q: MapQuestion, size: int) -> Map | None:
        """Return the map that `q` asks for, to be drawn on, where it is known."""
        if q.config.frozen or size not in self._maps:
            return None
        old, (values, few) = self._maps[size]
        if not old.moved_to(q):
            return None
        apart = (old.x != q.x).any(dim=1)
        apart[q.index] = False
        return None if bool(torch.any(apart)) else (values.copy(), few)

    def finest(self, q: MapQuestion) -> int:
        """Return the largest size that is known of `q`; 0 for none."""
        sizes = [s for s in list(self._maps) if self.get(q, s) is not None]
        return max(sizes, default=0)


# --- Energies of many places in slices, between which they can be stopped -----------------------

SLICE = 400  # places at first; arbitrary: some ms where neurons are few
LEAST = 100  # of a slice; arbitrary
SLOW_S = 0.1  # the next slice is half as large after one that took more; arbitrary
QUICK_S = 0.03  # the next slice is twice as large after one that took less; arbitrary


def in_slices(
    places: Tensor, at: Callable[[Tensor], Array], progress: Progress, first: int = SLICE
) -> Array:
    """Return all places, in slices that grow while they are quick: larger ones share more work.

    They shrink again where they are slow, since nothing stops within one.
    """
    out, low, size = [], 0, first
    while low < len(places):
        progress(low / len(places))
        begun = perf_counter()
        out.append(at(places[low : low + size]))
        low, took = low + size, perf_counter() - begun
        size = 2 * size if took < QUICK_S else max(LEAST, size // 2) if took > SLOW_S else size
    return np.concatenate(out)


# --- Energy maps beside the linear program of forced masses, which has the last word on a name --

NEEDLE = Archetype.NEEDLE.value


def forced_share(net: Network, truth: Dataset, progress: Progress = no_progress) -> Tensor | None:
    """Return the least share of each training point's multiplier that stays at its place (n,).

    Over all sets that explain the weights as well (`others`); 0 where it is at the edge, see
    `masses.forced_points`; None where nothing is known.
    """
    x, y = truth.x.double(), truth.y.double()
    share = torch.zeros(truth.n, dtype=torch.float64)
    try:
        lam = certify(net, x, y).lam
        used = (lam > USED * lam.sum()).nonzero().squeeze(1)
        reach = max(float(x.abs().max()), 1.0)
        rivals = Rivals.of(net, x[used], y[used], 2 * reach, TAU_TRAINED)
        mass = forced_mass(rivals, progress)
    except ValueError:  # no margin, or a margin set without a point
        return None
    own = used[rivals.truth.origin]
    share[own] = torch.where(forced_points(mass, rivals.mass)[0], mass / lam[own], 0.0)
    return share


def with_forced_share(picture: Picture, share: float) -> Picture:
    """Return a map of a point beside what must be there: `share` of its multiplier.

    The energy asks for stationarity alone. So a map may be low where a multiplier would stand off
    the margin, which no KKT point allows: the share has the last word.
    """
    return replace(picture, forced=share, archetype=NEEDLE) if share > 0 else picture


# --- The answers: each kind of energy map from a question, in slices that can be stopped --------

DROP = 1e-3  # of the path weight: lighter neurons go, and with them most kinks; error is shown
SLICE_OF_PAIRS = 100  # splits at first, each of which has the rays of two points; arbitrary


def refusal(kind: str, net: Network) -> str:
    """Return why there is no map of this kind of weights with several outputs; "" where there is.

    `kind`: a key of MAPS.
    """
    if net.outputs == 1 or kind in OF_CLASSES:
        return ""
    return (
        f"This map is known of two classes alone; these weights tell {net.outputs} apart. "
        f"Choose “{MAPS['point']}”."
    )


class Answers:
    """Answers questions about one page's weights, keeping the merged network."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._merged: tuple[Network | None, float, Merged | None] = (None, 0.0, None)
        self.kept = MapCache()
        self._forced: tuple[Network | None, Dataset | None, Tensor | None] = (None, None, None)

    def merged_network(self, q: MapQuestion) -> Merged:
        """Return the merged network, and the change of Phi on the truth."""
        net, angle, made = self._merged
        if made is None or net is not q.net or angle != q.config.angle:
            if q.config.angle > 0:
                made = merge_neurons(q.net.to(dtype=torch.float64), q.config.angle, DROP, q.truth.x)
            else:
                made = Merged(q.net.to(dtype=torch.float64), 0.0, ())
            self._merged = (q.net, q.config.angle, made)
        return made

    def forced_shares(self, q: MapQuestion, progress: Progress = no_progress) -> Tensor | None:
        """Return the share of each training point's multiplier that all explanations have there.

        (n,).

        None where no program says it: deeper networks, for which it takes seconds.
        """
        net = self.merged_network(q).net
        if net.depth != 2 or net.d > 2 or net.outputs > 1 or not net.homogeneous:
            return None
        known, truth, share = self._forced
        if known is not net or truth is not q.truth:
            share = forced_share(net, q.truth, progress)
            self._forced = (net, q.truth, share)
        return share

    def answer(self, q: MapQuestion, size: int, progress: Progress = no_progress) -> Picture:
        """Return the map at a size.

        Raises:
            ValueError: where this map does not exist for these weights.
        """
        net = self.merged_network(q).net
        kinds: dict[str, Any] = {
            "point": partial(_point, kept=self.kept), "split": _split, "starts": _starts,
            "ridge": _bilevel, "last": _bilevel,
        }  # fmt: skip
        if q.kind not in kinds:
            raise ValueError(f"a map is one of {', '.join(MAPS)}; got {q.kind!r}")
        why = refusal(q.kind, net)
        if why:
            raise ValueError(why)
        found: Picture = kinds[q.kind](q, net, size, progress)
        if not found.archetype:
            return found
        share = self.forced_shares(q, lambda _: progress(1.0))
        return found if share is None else with_forced_share(found, float(share[q.index]))


def _picture(
    q: MapQuestion, size: int, places: Tensor, values: Array, here: float, name: str = "energy",
    **more: Any,  # noqa: ANN401 - further fields of a picture
) -> Picture:  # fmt: skip
    """Return values (p,) at places of the line or the plane (p, d) as a picture."""
    half, at = q.config.extent, int(values.argmin())
    if places.shape[1] == 1:
        z, none = places[:, 0].numpy(), np.zeros(0)
        curve = MapLine(z, Energies(values, here, math.nan, 0.0), none, none)
        more = {"curve": curve, "lowest": (float(z[at]), float(values[at])), **more}
        return Picture(
            q.kind, values[None], (-half, half, 0.0, 1.0), ("x", name), here, size=size, **more
        )
    x, y = places[at].tolist()
    box, table = (-half, half, -half, half), values.reshape(size, size)
    return Picture(q.kind, table, box, ("x₁", "x₂"), here, size=size, **{"lowest": (x, y), **more})


def _places(q: MapQuestion, net: Network, size: int) -> Tensor:
    """Return pixels of the plane, or even places of a line with the point among them (p, d)."""
    if net.d > 1:
        return grid(q.config.extent, size)
    z = torch.linspace(-q.config.extent, q.config.extent, 6 * size, dtype=torch.float64)
    return torch.cat([z, q.x[q.index]]).sort().values[:, None]


def _point(q: MapQuestion, net: Network, size: int, progress: Progress, kept: MapCache) -> Picture:
    y = q.truth.y.double()
    if net.d == 1:
        made = line(
            net, q.x, y, q.index, q.config.extent, 6 * size, q.tau, q.config.frozen, q.config.kappa,
            lambda places, at: in_slices(places, at, progress),
        )  # fmt: skip
        seen = replace(made.seen, home=_home(q, net))
        return _picture(
            q, size, torch.from_numpy(made.z)[:, None], seen.values, seen.here, about=seen,
            reference=seen.without, archetype=seen.archetype.value, curve=replace(made, seen=seen),
        )  # fmt: skip
    if net.d != 2:
        raise ValueError(f"maps are of points on a line or a plane; got {net.d} coordinates")
    mover = moving_point(net, q.x, y, q.index, q.tau, q.config.frozen, q.config.kappa)
    places = grid(q.config.extent, size)
    there = kept.get(q, size)
    if there is None:
        there = kept.put(
            q, size, in_slices(places, mover.at, progress), mover.crowded_count(places)
        )
    values, few = there
    known, at_home = [(q.x[q.index], mover.here)], _home(q, net)
    if at_home is not None:
        known.append((q.truth.x[q.index].double(), at_home))
    low = _mark(places, values, known, q.config.extent, size)
    seen = replace(mover.energies(values, few), home=at_home)
    return _picture(
        q, size, places, values, seen.here, about=seen, reference=seen.without,
        archetype=seen.archetype.value, lowest=low,
    )  # fmt: skip


def _home(q: MapQuestion, net: Network) -> float | None:
    """Return the energy with the point back at its training place.

    None where it is there, or frozen.
    """
    truth = q.truth.x.double()
    if q.config.frozen or q.index >= len(truth) or truth[q.index].equal(q.x[q.index]):
        return None
    there = q.x.clone()
    there[q.index] = truth[q.index]
    return energy(net, there, q.truth.y.double(), q.tau, q.config.kappa)


def _mark(
    places: Tensor, values: Array, known: list[tuple[Tensor, float]], extent: float, size: int
) -> tuple[float, float]:
    """Put energies that are known within a pixel into it, if lower; -> where the least is.

    No centre of a pixel lies on the neurons' lines that a needle stands on.
    """
    low = places[int(values.argmin())].tolist()
    for at, value in known:
        column, row = ((at / extent + 1) / 2 * size).floor().long().tolist()
        if 0 <= min(column, row) and max(column, row) < size:
            if value < values.min():
                low = at.tolist()
            i = (size - 1 - row) * size + column
            values[i] = min(values[i], value)
    return low[0], low[1]


def _split(q: MapQuestion, net: Network, size: int, progress: Progress) -> Picture:
    places = _places(q, net, size)
    made = split(
        net, q.x, q.truth.y.double(), q.index, places, q.tau, q.net,
        lambda some, at: in_slices(some, at, progress, SLICE_OF_PAIRS),
    )  # fmt: skip
    return _picture(q, size, places, made.values, made.here, about=made)


def parts_of(q: MapQuestion) -> Parts:
    """Return the corners of the starts: as many of truth, held-out points and noise as points."""
    if q.heldout is None:
        raise ValueError("No held-out points: train a network, then turn to Landscape.")
    y = q.truth.y.double()
    noise = torch.Generator().manual_seed(q.seed)
    drawn = torch.randn(q.truth.x.shape, generator=noise, dtype=torch.float64)
    return Parts(y, q.truth.x.double(), partner_points(q.heldout, y).double(), drawn)


def _starts(q: MapQuestion, net: Network, size: int, progress: Progress) -> Picture:
    side = min(size, TRIANGLE[-1])
    parts = parts_of(q)
    check_energy(net, parts.truth, parts.y, q.tau)
    made = StartLandscape(parts, lambda x: energy(net, x, parts.y, q.tau))
    values = made.lattice(side, progress)
    known = values[np.isfinite(values)]
    noise, truth = divmod(int(np.nanargmin(values)), side)
    at = np.array([truth, side - 1 - truth - noise, noise]) / (side - 1) @ CORNERS
    made_of = StartsSummary(
        float(values[0, -1]), float(values[0, 0]), float(values[-1, 0]),
        float((known < LITTLE * known.max()).mean()), len(known),
    )  # fmt: skip
    return Picture(
        q.kind, values, (0.0, 1.0, 0.0, 1.0), ("", ""), float(values[0, -1]), about=made_of,
        lowest=(float(at[0]), float(at[1])), size=side,
    )  # fmt: skip


def _bilevel(q: MapQuestion, net: Network, size: int, progress: Progress) -> Picture:
    truth = (q.truth.x.double(), q.truth.y.double())
    places = _places(q, net, size)
    known = torch.cat([places, q.x[q.index : q.index + 1]])
    last = net if q.kind == "last" else None
    found = in_slices(
        known, lambda some: bilevel(truth, q.x, q.index, some, net=last).values, progress
    )
    values, here = found[:-1], float(found[-1])
    low = float((values < LITTLE * values.max()).mean())
    about = RidgeSummary(q.kind == "last", here, float(values.max()), low)
    return _picture(q, size, places, values, here, "loss", about=about)
