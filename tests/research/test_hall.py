"""What a hall guesses, and how it is scored beside the machine."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from explorer import Run, TrainConfig, maximum_margin, preset
from explorer.engine.data import Dataset
from explorer.engine.margin import q_of
from explorer.research.game import GameError, Hidden, hide
from explorer.research.hall import (
    board,
    densest,
    hall_radii,
    point_rows,
    read_taps,
    score_hall,
)
from explorer.research.pictures.axes import Axes


@pytest.fixture(scope="module")
def hidden() -> tuple[Dataset, Hidden]:
    data = preset("alternating-circle", n=8)
    return data, hide(Run(data, TrainConfig()), maximum_margin(data.x, data.y).net)


def phone(*places: tuple[float, float], y: float = 1.0) -> Dataset:
    x = torch.tensor(places, dtype=torch.float64)
    return Dataset(x, torch.full((len(places),), y, dtype=torch.float64))


def test_the_board_holds_weights_and_of_the_points_their_seal(
    hidden: tuple[Dataset, Hidden],
) -> None:
    _, made = hidden
    shown = board(made.challenge, Axes())
    assert set(shown) == {"seal", "size", "map", "lines", "needles"}
    assert shown["seal"] == made.challenge.commitment and len(json.dumps(shown)) < 12_000
    with pytest.raises(GameError, match="two classes"):
        line = preset("alternating-line", n=4)
        other = hide(Run(line, TrainConfig()), maximum_margin(line.x, line.y).net)
        board(other.challenge, Axes())


def test_the_fullest_places_come_first_and_one_phone_counts_once() -> None:
    spam = phone(*[(1.0, 1.0)] * 20)
    crowd = [phone((0.0, 0.0)), phone((0.02, 0.0)), phone((0.0, 0.03))]
    made = densest([spam, *crowd], 2, 0.1)
    torch.testing.assert_close(made.x[0], torch.tensor([0.02 / 3, 0.01], dtype=torch.float64))
    torch.testing.assert_close(made.x[1], torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert densest([*crowd, phone((0.0, 0.0), y=-1.0)], 5, 0.1).n == 2, "classes do not mix"
    assert densest([], 5, 0.1).n == 0 and densest(crowd, 0, 0.1).n == 0


def test_a_tap_has_the_class_that_the_network_gives_its_place(
    hidden: tuple[Dataset, Hidden],
) -> None:
    data, made = hidden
    axes = Axes((0.5, 3.0), (0.0, 3.0))
    rows = [row[:2] for row in point_rows(data, axes)]
    taps = read_taps(made.challenge.net, {"4": rows}, axes)
    torch.testing.assert_close(taps[4].x, data.x.double(), atol=2e-3, rtol=0)
    assert torch.equal(taps[4].y, data.y.double())
    assert float(q_of(made.challenge.net, taps[4].x, taps[4].y).min()) > 0


def test_scores_are_those_of_claims_with_chance_beside(hidden: tuple[Dataset, Hidden]) -> None:
    data, _ = hidden
    rng = np.random.default_rng(0)
    off = Dataset(data.x + 0.05 / 2**0.5, data.y)  # near, not found
    random = Dataset(torch.from_numpy(rng.uniform(-2, 2, (8, 2))), data.y)
    made = score_hall(data, {1: data, 2: off, 3: random}, data, Axes())
    assert made.each[1] == [8, 8] and made.each[2] == [0, 8] and made.each[3][1] <= 3
    assert made.machine.found.tolist() == [8, 8] and made.machine.n == 8
    assert made.guess.n <= made.claims.n, "the hall names no more places than the machine"
    assert float(made.machine.chance.max()) < 8
    none = score_hall(data, {}, data, Axes())
    assert none.hall.found.tolist() == [0, 0] and none.each == {} and none.claims.n == 8


def test_hall_and_machine_name_as_many_places(hidden: tuple[Dataset, Hidden]) -> None:
    data, _ = hidden
    few = Dataset(data.x[:3], data.y[:3])
    made = score_hall(data, {1: few}, data, Axes())
    assert made.guess.n == made.claims.n == 3 and made.claimed == 8
    assert torch.equal(made.claims.x, data.x[:3]), "the first are those of the largest multipliers"
    assert made.machine.found.tolist() == made.hall.found.tolist() == [3, 3]


def test_what_a_finger_meets_grows_with_the_plane() -> None:
    near, far = (hall_radii(Axes((0.0, half), (0.0, half)))[1] for half in (0.2, 6.0))
    assert near == hall_radii(Axes())[0] and far == pytest.approx(0.3)


@pytest.mark.parametrize("wrong", [{"x": []}, {"1": [[0, "b"]]}, {"1": "ab"}, {"1": [[0]]}])
def test_what_is_no_taps_is_refused(hidden: tuple[Dataset, Hidden], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        read_taps(hidden[1].challenge.net, wrong, Axes())
