"""Answers to energy questions: names beside the linear program, known places, words."""

from __future__ import annotations

import torch

from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.energy.points import Archetype
from explorer.engine.energy.questions import Answers, MapConfig, MapQuestion, Picture
from explorer.engine.exact import maximum_margin
from explorer.engine.network import Network


def asked(data: Dataset, net: Network, index: int, x: torch.Tensor | None = None) -> Picture:
    question = MapQuestion(
        "point", net, data, heldout(data, 1), data.x if x is None else x, index, MapConfig()
    )
    found = Answers().answer(question, 61)
    assert found is not None
    return found


def test_what_must_be_there_is_a_needle_whatever_the_energy_says() -> None:
    data = preset("pairs-line")
    exact = maximum_margin(data.x, data.y)
    names = [asked(data, exact.net, i) for i in range(data.n)]
    held = [i for i in range(data.n) if exact.lam[i] > 0]
    for i, one in enumerate(names):
        assert one.archetype == ("needle" if i in held else "redundant"), (i, one)
    second = names[1]  # off the margin, its neighbour could carry the multiplier
    assert second.reference < 1e-9
    assert second.about.archetype is not Archetype.NEEDLE and second.forced > 0


def pixel(picture, x: torch.Tensor) -> float:
    left, right, bottom, top = picture.box
    h, w = picture.values.shape
    i, j = (top - float(x[1])) / (top - bottom) * h, (float(x[0]) - left) / (right - left) * w
    return float(picture.values[int(i), int(j)])


def test_a_needle_is_seen_in_its_pixel_and_stays_when_dragged_off() -> None:
    data, i = preset("moons", 10, seed=1), 7
    net = maximum_margin(data.x, data.y).net
    first = asked(data, net, i)
    assert first.archetype == "needle" and first.reference > 0.1
    assert first.here < 1e-9 and pixel(first, data.x[i]) <= first.here
    there = data.x.clone()
    there[i] = torch.tensor([-1.9, 1.9])
    moved = asked(data, net, i, there)
    assert moved.here > 1e-3 and pixel(moved, data.x[i]) < 1e-9
    assert moved.archetype == first.archetype
    assert moved.about.least < 0.9 * moved.about.here


def test_no_merging_leaves_the_network_as_it_is() -> None:
    data = preset("moons", 8)
    net = maximum_margin(data.x, data.y).net
    question = MapQuestion("point", net, data, None, data.x, 0, MapConfig(angle=0.0))
    made = Answers().merged_network(question)
    assert made.net.theta.equal(net.theta) and made.error == 0
