"""The one road: every way to run an attack gives the same states, and a watch sees them all."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict, replace
from itertools import islice

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.attack import Attack
from explorer.engine.attacks.kkt import ATTACK, KKTConfig
from explorer.engine.attacks.target import Target, WeightDecay
from explorer.engine.controls import control_sets
from explorer.engine.data import PRESETS, heldout, preset
from explorer.engine.energy.starts import attack_start
from explorer.engine.exact import maximum_margin
from explorer.engine.margin import q_of
from explorer.engine.network import init_network
from explorer.engine.roster import ROSTER
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import report, runs
from explorer.research.grid import Grid, GridCell, run_cell
from explorer.research.scenarios import SCENARIOS, TOPICS, by_name
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


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_what_is_known_of_the_training_stays_with_the_target(trained, decay) -> None:
    config = TrainConfig(weight_decay=decay, loss="logistic")
    made = runs.aim(trained.net, DATA, None, config)[0]
    moved = runs.target_on(made, ATTACK, "cpu", torch.float32)
    known = WeightDecay(decay, trained.q_min, "logistic") if decay else None
    assert made.decay == moved.decay == known and moved.net.dtype == torch.float32


# --- a run that nobody watches step by step takes its steps in blocks, and comes to the same ------

JOINT = KKTConfig(m=6, steps=250, multipliers="joint", lr_x=0.002, lr_lam=0.002)


@pytest.fixture
def no_single_step(monkeypatch):
    def refused(*_):
        raise AssertionError("a single step was taken")

    monkeypatch.setattr(kkt, "step", refused)


def one_by_one(entry, target, state, config, _):
    while not entry.terminate(state, config).over:
        state = entry.step(target, state, config)
        yield state


def attacked(config=JOINT):
    generator = torch.Generator().manual_seed(0)
    target = Target(init_network(2, (20,), generator=generator, first_scale=0.7))
    return runs.attack(target, config, 0)


def test_an_attack_without_a_page_goes_in_blocks(monkeypatch, no_single_step):
    fast = attacked()
    monkeypatch.undo()
    monkeypatch.setattr(Attack, "iterate", one_by_one)
    slow = attacked()
    assert [s.t for s in fast.states] == [s.t for s in slow.states]
    for ours, theirs in zip(fast.states, slow.states, strict=True):
        torch.testing.assert_close(ours.x, theirs.x, rtol=1e-8, atol=1e-10)
        assert ours.numbers() == pytest.approx(theirs.numbers(), rel=1e-8, abs=1e-12)


def test_a_cell_of_the_grid_goes_in_blocks(monkeypatch, no_single_step):
    settings = {k: v for k, v in asdict(JOINT).items() if k in ("multipliers", "steps", "lr_x")}
    cell = GridCell("alternating-circle", "kkt", 0.5, 0.25, n=6, settings=settings)
    fast = run_cell(cell)
    monkeypatch.undo()
    monkeypatch.setattr(Attack, "iterate", one_by_one)
    slow = run_cell(cell)
    assert fast["steps"] == slow["steps"] == JOINT.steps and len(fast["trail"]) >= 20
    for name in ("start", "truth", "heldout", "noise"):
        assert fast[name] == pytest.approx(slow[name], rel=1e-6)


def test_projected_multipliers_go_in_blocks_too(no_single_step):
    states = attacked(replace(JOINT, multipliers="projected", steps=130)).states
    assert [s.t for s in states] == list(range(0, 131, 2))


def test_a_watch_sees_states_between_those_that_are_kept():
    seen = []

    def watch(states, total, label):
        for state in states:
            seen.append(state.t)
            yield state
        assert total == 65 and label == "attack"

    generator = torch.Generator().manual_seed(0)
    target = Target(init_network(2, (5,), generator=generator, first_scale=0.7))
    done = runs.attack(target, KKTConfig(m=4, steps=130), 0, keep=1, watch=watch)
    assert seen == list(range(2, 131, 2)) and [s.t for s in done.states] == [0, 130]


# --- every row can be drawn, trained and attacked, and says what is to be seen --------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_row_runs_from_end_to_end(name):
    run = SCENARIOS[name].run
    data, config = run.dataset, run.train_config
    assert data.n == data.source.n
    assert PRESETS[data.source.preset].d == data.d
    assert run.steps[0] in (0, 100, config.steps) and not run.train_states
    states = list(islice(runs.training_states(replace(run, exact=False)), 21))
    state = states[0]
    assert states[-1].t == 20
    assert states[-1].log_loss < state.log_loss
    net = states[-1].net  # exact networks are known for two classes
    exact = maximum_margin(data.x, data.y).net if data.outputs == 1 else net
    target = Target.of(exact, 1.0)
    entry, hit = ROSTER[run.attack_name], run.attack_config
    target = entry.target_for(target, data.x, data.y, hit, run.seed)
    following = entry.states(target, hit, torch.Generator().manual_seed(run.seed))
    last = list(islice(following, 6))[-1]
    assert 0 < last.t <= 5
    assert torch.isfinite(last.x).all()


def test_rows_are_a_handful_of_frozen_sentences():
    assert len(SCENARIOS) >= 6
    assert sorted(name for names in TOPICS.values() for name in names) == sorted(SCENARIOS)
    assert {1, 2} == {row.run.dataset.d for row in SCENARIOS.values()}
    for name, row in SCENARIOS.items():
        assert row.name == name
        assert row.sentence.endswith((".", "?"))
        with pytest.raises(FrozenInstanceError):
            row.name = name  # type: ignore[misc]


def test_an_unknown_name_is_answered_with_the_known_ones():
    assert by_name("xor").run.dataset.source.preset == "xor"
    with pytest.raises(ValueError, match=r"no scenario 'x'; there are: .*two points"):
        by_name("x")
