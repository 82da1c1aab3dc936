"""What a hall guesses, and how it is scored beside the machine."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
import torch

from explorer import Run, TrainConfig, control_sets, judge, maximum_margin, preset, score
from explorer.engine.data import Dataset
from explorer.engine.margin import q_of
from explorer.engine.scoring import Verdict
from explorer.research import runs
from explorer.research.game import GameError, Hidden, computer_guess, hide
from explorer.research.hall import (
    PREPARED,
    blind_hits,
    board,
    densest,
    finger_radius,
    hall_run,
    next_set,
    point_rows,
    read_taps,
    score_hall,
    strongest,
)
from explorer.research.pictures.axes import Axes
from explorer.research.runs import RADIUS


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
    taps = read_taps(made.challenge.net, {"4": [*rows, [0.0, 0.0]]}, axes, data.n)
    torch.testing.assert_close(taps[4].x, data.x.double(), atol=2e-3, rtol=0)
    assert torch.equal(taps[4].y, data.y.double())
    assert float(q_of(made.challenge.net, taps[4].x, taps[4].y).min()) > 0


def verdict(truth: Dataset, claims: Dataset) -> Verdict:
    return judge(truth, control_sets(truth), claims.x, claims.y, finger_radius(Axes()))


def test_machine_and_hall_are_judged_within_the_same_distance(
    hidden: tuple[Dataset, Hidden],
) -> None:
    data, _ = hidden
    rng = np.random.default_rng(0)
    off = Dataset(data.x + 0.05 / 2**0.5, data.y)  # near, not found
    random = Dataset(torch.from_numpy(rng.uniform(-2, 2, (8, 2))), data.y)
    machine = verdict(data, data)
    made = score_hall(data, {1: data, 2: off, 3: random}, machine, 0.5)
    assert made.machine is machine and made.machine.found == 8
    assert made.each[1] == made.each[2] == 8 and made.each[3] <= 3
    guess, places = made.guess, made.guess.places
    assert places.n <= data.n < guess.taps
    assert made.hall == int(score(data, places.x, places.y, (machine.radius,)).found)
    near = score_hall(data, {2: off}, verdict(data, off), 0.5)
    assert near.machine.found == near.hall == 8
    none = score_hall(data, {}, machine, 0.5)
    assert none.hall == none.guess.taps == none.guess.places.n == 0 and none.each == {}


def test_many_taps_are_merged_and_a_place_meets_one_point(hidden: tuple[Dataset, Hidden]) -> None:
    data, _ = hidden
    around = data.x[:1] + 0.02 * torch.from_numpy(np.random.default_rng(2).normal(size=(12, 2)))
    spread = Dataset(around, data.y[:1].expand(12))
    made = score_hall(data, {1: spread}, verdict(data, data), 0.5)
    assert made.hall == made.each[1] == 1, "twelve taps at one point"


def test_chance_is_that_of_blind_hands_on_the_lines_of_the_margin(
    hidden: tuple[Dataset, Hidden],
) -> None:
    data, made = hidden
    net = made.challenge.net
    met = blind_hits(net, data, Axes(), 0.1)
    assert met == blind_hits(net, data, Axes(), 0.1), "the same each time"
    assert 0 < met < blind_hits(net, data, Axes(), 0.3) < data.n
    rng = np.random.default_rng(0)
    anywhere = {str(k): rng.uniform(-1, 1, (data.n, 2)).tolist() for k in range(200)}
    taps = read_taps(net, anywhere, Axes(), data.n)
    each = score_hall(data, taps, verdict(data, data), met).each
    assert met > np.mean(list(each.values())), "who knows the lines does better than who does not"


def test_of_the_prepared_networks_the_machine_finds_most_and_no_preset_has_their_points() -> None:
    n = len(PREPARED)
    turns = [next_set(k) for k in range(4 * n)]
    orders = {tuple(turns[k : k + n]) for k in range(0, 4 * n, n)}
    assert len(orders) == 4, "another order each time"
    assert all(set(order) == set(PREPARED) and len(set(order)) == n >= 10 for order in orders)
    assert all(one != after for one, after in itertools.pairwise(turns))
    run = hall_run(*turns[0])
    net = runs.train(run).net
    claims = strongest(computer_guess(hide(run, net).challenge), run.dataset.n)
    found = score(run.dataset, claims.x, claims.y, (finger_radius(Axes()),)).found
    assert claims.n == run.dataset.n and int(found) >= 0.9 * run.dataset.n
    assert run.dataset.source is None


def test_a_taps_reach_grows_with_the_plane() -> None:
    near, far = (finger_radius(Axes((0.0, half), (0.0, half))) for half in (0.2, 6.0))
    assert near == RADIUS and far == pytest.approx(0.3)


@pytest.mark.parametrize("wrong", [{"x": []}, {"1": [[0, "b"]]}, {"1": "ab"}, {"1": [[0]]}])
def test_what_is_no_taps_is_refused(hidden: tuple[Dataset, Hidden], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        read_taps(hidden[1].challenge.net, wrong, Axes(), 8)
