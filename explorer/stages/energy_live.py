"""The answers: each kind of energy map from a question, in slices that can be stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.archetypes import Energies
from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.data import Dataset
from explorer.engine.energy import energy, prepared
from explorer.engine.energy_bilevel import bilevel
from explorer.engine.energy_maps import Line, grid, line, split_plane, triangle_rows
from explorer.engine.lambda_grid import Parts
from explorer.engine.merging import Merged, merge_neurons
from explorer.engine.network import Network
from explorer.stages.energy_forced import forced_share, told
from explorer.stages.energy_kept import Kept
from explorer.stages.energy_question import MAPS, TRIANGLE, Picture, Question
from explorer.stages.energy_slices import GoOn, sliced
from explorer.starts import paired
from explorer.triangle import CORNERS

Array = NDArray[np.float64]
DROP = 1e-3  # of the path weight: lighter neurons go, and with them most kinks; error is shown
SLICE_OF_PAIRS = 100  # splits at first, each of which has the rays of two points; arbitrary


class Answers:
    """Answers questions about one page's weights, keeping the merged network."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._merged: tuple[Network | None, float, Merged | None] = (None, 0.0, None)
        self.kept = Kept()
        self._forced: tuple[Network | None, Dataset | None, Tensor | None] = (None, None, None)

    def merged(self, q: Question) -> Merged:
        """The merged network, and the change of Phi on the truth."""
        net, angle, made = self._merged
        if made is None or net is not q.net or angle != q.angle:
            if q.angle > 0:
                made = merge_neurons(q.net.to(dtype=torch.float64), q.angle, DROP, q.truth.x)
            else:
                made = Merged(q.net.to(dtype=torch.float64), 0.0, ())
            self._merged = (q.net, q.angle, made)
        return made

    def forced(self, q: Question) -> Tensor | None:
        """Share of each training point's multiplier that every explanation has there (n,).

        None where no program says it: deeper networks, for which it takes seconds.
        """
        net = self.merged(q).net
        if net.depth != 2 or net.d > 2 or not net.homogeneous:
            return None
        known, truth, share = self._forced
        if known is not net or truth is not q.truth:
            share = forced_share(net, q.truth)
            self._forced = (net, q.truth, share)
        return share

    def answer(self, q: Question, size: int, go_on: GoOn = lambda _: True) -> Picture | None:
        """The map at a size; None where `go_on(share done)` said no.

        Raises:
            ValueError: where this map does not exist for these weights.
        """
        net = self.merged(q).net
        kinds: dict[str, Any] = {
            "point": partial(_point, kept=self.kept), "split": _split, "starts": _starts,
            "ridge": _bilevel, "last": _bilevel,
        }  # fmt: skip
        if q.kind not in kinds:
            raise ValueError(f"a map is one of {', '.join(MAPS)}; got {q.kind!r}")
        found: Picture | None = kinds[q.kind](q, net, size, go_on)
        if found is None or not found.archetype:
            return found
        share = self.forced(q)
        return found if share is None else told(found, float(share[q.index]))


def _plane(q: Question, size: int) -> tuple[float, float, float, float]:
    return (-q.extent, q.extent, -q.extent, q.extent)


def _point(q: Question, net: Network, size: int, go_on: GoOn, kept: Kept) -> Picture | None:
    y = q.truth.y.double()
    if net.d == 1:
        made = line(net, q.x, y, q.index, q.extent, 6 * size, q.tau, q.frozen, q.kappa)
        at_home = _home(q, net)
        return _curve(q, replace(made, seen=replace(made.seen, home=at_home)), size)
    if net.d != 2:
        raise ValueError(f"maps are of points on a line or a plane; got {net.d} coordinates")
    mover = prepared(net, q.x, y, q.index, q.tau, q.frozen, q.kappa)
    places = grid(q.extent, size)
    there = kept.get(q, size)
    if there is None:
        computed = sliced(places, mover.at, go_on)
        if computed is None:
            return None
        there = kept.put(q, size, computed, mover.crowded(places))
    values, few = there
    known, at_home = [(q.x[q.index], mover.here)], _home(q, net)
    if at_home is not None:
        known.append((q.truth.x[q.index].double(), at_home))
    low = _marked(places, values, known, q.extent, size)
    seen = replace(mover.energies(values, few), home=at_home)
    return Picture(
        q.kind, values.reshape(size, size), _plane(q, size), ("x₁", "x₂"), seen.here,
        seen.without, _words(seen), seen.archetype.name.lower(), low, size=size,
    )  # fmt: skip


def _home(q: Question, net: Network) -> float | None:
    """The energy with the point back at its training place; None where it is there, or frozen."""
    truth = q.truth.x.double()
    if q.frozen or q.index >= len(truth) or truth[q.index].equal(q.x[q.index]):
        return None
    there = q.x.clone()
    there[q.index] = truth[q.index]
    return energy(net, there, q.truth.y.double(), q.tau, q.kappa)


def _marked(
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


def _curve(q: Question, made: Line, size: int) -> Picture:
    seen = made.seen
    low = float(made.z[seen.values.argmin()])
    box = (-q.extent, q.extent, 0.0, 1.0)
    return Picture(
        q.kind, seen.values[None], box, ("x", "energy"), seen.here, seen.without, _words(seen),
        seen.archetype.name.lower(), (low, float(seen.values.min())), curve=made, size=size,
    )  # fmt: skip


def _words(seen: Energies) -> str:
    text = seen.sentence
    if seen.least < 0.9 * seen.here and seen.here > 1e-6:
        text += f" The lowest place leaves less than the point where it is now: {seen.least:.2g}."
    if seen.cut:
        text += (
            f" {seen.cut} of the points lie on more neurons than can all be freed: energies are "
            "upper bounds."
        )
    if seen.crowded:
        text += (
            f" So do {seen.crowded} of the places on the map, where what is drawn is an upper "
            "bound." if seen.cut else f" {seen.crowded} of the places lie on more neurons than "
            "can all be freed: what is drawn there is an upper bound."
        )  # fmt: skip
    return text


def _split(q: Question, net: Network, size: int, go_on: GoOn) -> Picture | None:
    if net.d == 1:
        raise ValueError("On a line the level set is made of points: there is no split plane.")
    made = split_plane(
        net, q.x, q.truth.y.double(), q.index, q.extent, size, q.tau, TAU_TRAINED,
        lambda places, at: sliced(places, at, go_on, SLICE_OF_PAIRS),
    )  # fmt: skip
    if made is None:
        return None
    at = divmod(int(made.values.argmin()), size)
    step = made.reach / size
    low = ((at[1] + 0.5) * step, made.reach - (at[0] + 0.5) * step)
    return Picture(
        q.kind, made.values, (0.0, made.reach, 0.0, made.reach), ("α", "β"),
        float(made.values[-1, 0]), float("nan"), made.sentence, lowest=low,
        free=(made.plus, made.minus), size=size,
    )  # fmt: skip


def parts_of(q: Question) -> Parts:
    """Corners of the starts: truth, held-out points and noise, as many as there are points."""
    if q.heldout is None:
        raise ValueError("No held-out points: train a network, then turn to Landscape.")
    y = q.truth.y.double()
    noise = torch.Generator().manual_seed(q.seed)
    drawn = torch.randn(q.truth.x.shape, generator=noise, dtype=torch.float64)
    return Parts(y, q.truth.x.double(), paired(q.heldout, y).double(), drawn)


def _starts(q: Question, net: Network, size: int, go_on: GoOn) -> Picture | None:
    side = min(size, TRIANGLE[-1])
    rows: list[Array] = []
    made: Iterator[Array] = triangle_rows(net, parts_of(q), q.tau, side)
    for k in range(side):
        if not go_on(1 - (1 - k / side) ** 2):
            return None
        rows.append(next(made))
    values = np.stack(rows)
    known = values[np.isfinite(values)]
    noise, truth = divmod(int(np.nanargmin(values)), side)
    at = np.array([truth, side - 1 - truth - noise, noise]) / (side - 1) @ CORNERS
    words = (
        f"The start at the truth leaves {values[0, -1]:.2g} of ‖θ‖² unexplained, held-out points "
        f"{values[0, 0]:.2g}, noise {values[-1, 0]:.2g}. "
        f"{100 * float((known < 0.01 * known.max()).mean()):.3g}% of {len(known)} starts lie below "
        "a hundredth of the highest."
    )
    return Picture(
        q.kind, values, (0.0, 1.0, 0.0, 1.0), ("", ""), float(values[0, -1]), float("nan"), words,
        lowest=(float(at[0]), float(at[1])), size=side,
    )  # fmt: skip


def _bilevel(q: Question, net: Network, size: int, go_on: GoOn) -> Picture | None:
    truth = (q.truth.x.double(), q.truth.y.double())
    if net.d == 1:
        z = torch.linspace(-q.extent, q.extent, 6 * size, dtype=torch.float64)
        places = torch.cat([z, q.x[q.index]]).sort().values[:, None]
    else:
        places = grid(q.extent, size)
    known = torch.cat([places, q.x[q.index : q.index + 1]])
    last = net if q.kind == "last" else None
    found = sliced(
        known, lambda some: bilevel(truth, q.x, q.index, some, net=last).values, go_on
    )  # fmt: skip
    if found is None:
        return None
    values, here = found[:-1], float(found[-1])
    at = int(values.argmin())
    low = (values < 0.01 * values.max()).mean()
    features = "the last hidden layer" if q.kind == "last" else "the points themselves"
    words = (
        f"Ridge regression on {features}, trained on these candidates: with the point where it is "
        f"the weights are {here:.2g} of ‖θ*‖² off, elsewhere up to {values.max():.2g}; "
        f"{100 * float(low):.3g}% of the places lie below a hundredth of that."
    )
    if net.d == 1:
        curve = Line(places[:, 0].numpy(), Energies(values, here, np.nan, 0.0),
                     np.zeros(0), np.zeros(0))  # fmt: skip
        spot = (float(places[at, 0]), float(values[at]))
        return Picture(
            q.kind, values[None], (-q.extent, q.extent, 0.0, 1.0), ("x", "loss"), here,
            float("nan"), words, lowest=spot, curve=curve, size=size,
        )  # fmt: skip
    spot = (float(places[at, 0]), float(places[at, 1]))
    return Picture(
        q.kind, values.reshape(size, size), _plane(q, size), ("x₁", "x₂"), here,
        float("nan"), words, lowest=spot, size=size,
    )  # fmt: skip
