"""The one road: every way to run an attack gives the same states, and a watch sees them all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks.kkt import ATTACK, KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.data import heldout, preset
from explorer.engine.energy.starts import attack_start
from explorer.engine.margin import q_of
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import report, runs
from explorer.research.grid import Grid
from explorer.research.sweep.experiment import Experiment, key_of, run_experiment

DATA = preset("moons", 6, 0.05, 0)
TRAINING = TrainConfig(widths=(20,), steps=600)
CONFIG = KKTConfig(m=6, steps=30)


@pytest.fixture(scope="module")
def trained() -> runs.Trained:
    return runs.train(Run(DATA, TRAINING))


@pytest.fixture(scope="module")
def target(trained) -> Target:
    return runs.aim(trained.net, DATA, None)[0]


def test_a_start_a_grid_and_a_run_end_in_one_state(target) -> None:
    entry, control = ATTACK, heldout(DATA, 1)
    problem = Grid(target, DATA, control, entry.key, CONFIG, 3, 2, fair=True).problem()
    *_, cell = problem.states(1.0, 0.5)
    start = attack_start(DATA, control, CONFIG.m, CONFIG.sigma_x, 3, (1.0, 0.5))
    suited = entry.suit(CONFIG, 0.5)
    done = runs.attack(target, suited, 3, name=entry, start=start, keep=1)
    assert torch.equal(done.states[-1].x, cell.x) and torch.equal(done.states[-1].lam, cell.lam)
    assert [state.t for state in done.states] == [0, CONFIG.steps]


def test_a_watch_sees_every_step_and_may_end_a_run(target) -> None:
    seen = []

    def few(states, total, label):
        for state in states:
            seen.append((state.t, total, label))
            yield state
            if state.t == 4:
                return

    done = runs.attack(target, CONFIG, 0, watch=few)
    assert seen == [(t, CONFIG.steps, "attack") for t in (1, 2, 3, 4)]
    assert done.states[-1].t == 4
    seen.clear()
    assert runs.train(Run(DATA, TRAINING, exact=True), watch=few).states[-1].t == 0 and not seen


def test_a_watch_that_raises_cancels(target) -> None:
    class Cancelled(Exception):
        pass

    def never(states, total, label):
        raise Cancelled
        yield from states

    for run in (lambda: runs.attack(target, CONFIG, 0, watch=never),
                lambda: runs.train(Run(DATA, TRAINING), watch=never)):  # fmt: skip
        with pytest.raises(Cancelled):
            run()


@pytest.mark.parametrize("keep", [1, 3, 100])
def test_states_are_kept_evenly_with_the_first_and_the_last(trained, keep: int) -> None:
    kept = [state.t for state in runs.train(Run(DATA, TRAINING), keep=keep).states]
    stride = runs.stride_of(TRAINING.steps, keep)
    assert kept == sorted({*range(0, TRAINING.steps, stride), TRAINING.steps})
    assert len(kept) <= keep + 2


def test_a_generator_is_a_seed_and_sets_that_were_made_are_taken(trained, target) -> None:
    sets = control_sets(DATA, 20)
    given = {"truth": DATA, "certificate": trained.certificate, "controls": sets}
    a = runs.attack(target, CONFIG, 5, **given)
    b = runs.attack(target, CONFIG, torch.Generator().manual_seed(5), **given)
    assert torch.equal(a.states[-1].x, b.states[-1].x)
    assert a.verdict is not None and repr(a.verdict) == repr(b.verdict)  # a p-value may be nan
    assert (a.verdict.controls, a.verdict.origin) == (20, sets.origin)
    found = runs.judgement(a.claims, DATA, sets, trained.certificate)
    assert repr(found.verdict) == repr(a.verdict)


def test_a_row_of_a_file_refuses_other_content(tmp_path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("x1,x2,y\n1.0,0.5,1\n-0.5,0.25,-1\n")
    row = Experiment(data=str(path), widths=(10,), steps=200, attack="")
    assert row.data_digest == runs.fingerprint(path)
    path.write_text("x1,x2,y\n1.0,0.5,1\n-0.5,0.5,-1\n")
    with pytest.raises(ValueError, match="has changed since this row was made"):
        run_experiment(row)
    with pytest.raises(ValueError, match="leave n away"):
        Experiment(data=str(path), n=5)


def test_where_a_row_runs_and_on_which_file_is_part_of_its_key_and_nothing_is_by_default() -> None:
    row = Experiment()
    assert key_of(row) == "484be582d1162a69"  # as it was before rows had these fields
    assert len({key_of(row), key_of(replace(row, device="cuda"))}) == 2


def test_training_to_the_end_is_some_hundred_steps_and_a_network_whose_points_are_level() -> None:
    data = preset("alternating-circle", 20, 0.0)
    done = runs.train(Run(data, TrainConfig(), finish=0))
    q = q_of(done.net, data.x, data.y)
    assert done.finished is not None and done.finished.proved
    assert float(q.max() / q.min()) < 1 + 1e-6
    assert done.states[0].t == 0 and done.states[-1].t < 700
    assert done.certificate is not None and done.certificate.residual < 1e-6
    shown = json.loads(report.of_training(done).json)["training"]["finished"]
    assert shown["proved"] and shown["gap"] < 1e-8


def test_a_run_to_the_end_that_cannot_separate_the_points_fails_in_words() -> None:
    data = preset("alternating-circle", 20, 0.0)
    with pytest.raises(runs.RunFailed, match="no network over the cells"):
        runs.train(Run(data, TrainConfig(widths=(2,), steps=5), finish=0))


@pytest.mark.parametrize("decayed", [False, True])
def test_what_is_known_of_the_training_stays_with_the_target(trained, decayed) -> None:
    made = runs.aim(trained.net, DATA, None, decayed)[0]
    moved = runs.target_on(made, ATTACK, "cpu", torch.float32)
    assert made.decayed == moved.decayed == decayed and moved.net.dtype == torch.float32
