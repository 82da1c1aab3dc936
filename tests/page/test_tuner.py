"""The tuner's panel: a live front, cancel, loading a trial, published settings, other attacks."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.roster import ROSTER
from explorer.engine.status import Status
from explorer.page import branches, play
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.attack.tuner import EMPTY, TUNE
from explorer.research import tuning as tune
from explorer.research.tuning import Trial
from explorer.research.words import weights
from tests.page.pages import choose, label, opened, press


@pytest.fixture
def app(monkeypatch):
    """A page in the attack stage, with trials of a few steps."""
    monkeypatch.setattr(
        "explorer.page.stages.attack.tuner.SIZE", {"restarts": 2, "m": 4, "steps": 4}
    )
    made = opened("attack", "alternating-line")
    yield made
    made.close()


def tuner(app):
    panel = app.panel("Tuner")
    choose(panel.row, "trials", 3)
    return panel


def run(panel, until=None):
    """Press Tune and let it run; press again after `until` trials."""

    async def through():
        press(panel.row, "go")
        while panel.job.busy:
            if until is not None and len(panel.rows) >= until:
                press(panel.row, "go")
                await panel.job.wait()
                return
            await asyncio.sleep(0.005)

    asyncio.run(through())


def drawn(panel, name):
    """The series of this name in the chart of trials."""
    (found,) = [s for s in panel.view.shown.series if s.name == name]
    return found


def test_tuning_draws_the_front_and_says_what_the_best_is_worth(app) -> None:
    panel = tuner(app)
    run(panel)
    assert len(panel.rows) == 3
    assert panel.row.json("share")["hidden"]  # a bar is there while it runs
    assert len(drawn(panel, "trials").x) == 3
    assert len(drawn(panel, "chosen").x) == 1
    assert "best of 3" in panel.answer.text
    assert "The defaults:" in panel.answer.text
    assert label(panel.row, "go") == "Tune"
    assert panel.failure.layout.display == "none"


def test_the_best_trial_in_a_lasso_is_run(app) -> None:
    panel = tuner(app)
    run(panel)
    (dots,) = [mark for mark in panel.view.figure.marks if mark.labels == ["trials"]]
    assert panel.view.figure.interaction.marks == [dots]
    assert panel.answer.items["best"].hidden
    dots.selected = np.array([0, 2])
    assert not panel.answer.items["best"].hidden
    press(panel.answer, "best")
    chosen = tune.best([panel.rows[0], panel.rows[2]])
    now = app.session.attack_config
    assert app.session.running and now == tune.full_length(chosen, now.m, now.steps)
    play.pause(app.session)
    dots.selected = None
    assert panel.answer.items["best"].hidden


def test_a_trial_is_loaded_from_the_list(app) -> None:
    panel = tuner(app)
    run(panel)
    before = app.session.attack_config
    choose(panel.answer, "trial", 2)
    config = app.session.attack_config
    assert config != before
    assert config == tune.full_length(panel.rows[2], before.m, before.steps)
    assert app.session.frame.attack.state.t == 0
    assert "is loaded" in panel.answer.text


def row(number, residual, agreed, lr_x=0.02, failure=""):
    return Trial(number, {}, KKTConfig(m=4, steps=4, lr_x=lr_x), residual, agreed, 0.0, failure)


ROWS = [
    row(0, math.inf, 0.0, failure="diverged"), row(1, 0.1, 1.0), row(2, 0.2, 0.5),
    row(3, 0.4, 3.0, lr_x=0.07),
]  # fmt: skip


def test_the_drawing_has_all_that_ran_their_front_and_a_ring_around_the_best(app) -> None:
    panel = tuner(app)
    panel.rows = list(ROWS)
    panel.draw()
    dots, front, best = (drawn(panel, name) for name in ("trials", "best of both", "chosen"))
    assert dots.x == pytest.approx([0.1, 0.2, 0.4]) and list(dots.y) == [1.0, 0.5, 3.0]
    assert front.x == pytest.approx([0.1, 0.4, 1.0])  # to the right edge
    assert list(front.y) == [1.0, 3.0, 3.0] and panel.view.shown.x.high == 1.0
    assert list(best.x) == [0.4] and list(best.y) == [3.0]
    panel.load(1)  # the second dot
    assert app.session.attack_config.lr_x == 0.02 and "Trial 2" in panel.answer.text


def test_the_best_and_the_defaults_are_tried_from_a_noise_that_no_trial_had(
    app, monkeypatch
) -> None:
    panel, tried = tuner(app), []

    def init(target, config, generator, start):
        tried.append((config, generator.initial_seed()))
        return kkt.init(target, config, generator, start)

    monkeypatch.setitem(ROSTER, "kkt", replace(kkt.ATTACK, first=init))
    panel.rows, panel.target = list(ROWS), app.session.frame.target
    config = tune.TuneConfig(trials=4, restarts=3, m=4, steps=4)
    words = panel.verdict(config, panel.rows, app.session.frame)
    assert [each for each, _ in tried] == [ROWS[3].config, KKTConfig(m=4, steps=4)]
    noises = {seed for _, seed in tried}
    assert len(noises) == 1 and not noises & {1000 * config.seed + r + 1 for r in range(3)}
    assert "Trial 3" in words
    panel.rows = ROWS[:1]
    assert "trial failed" in panel.verdict(config, panel.rows, app.session.frame)


def test_a_best_trial_that_diverges_from_a_fresh_noise_is_said_beside_the_defaults(
    app, monkeypatch
) -> None:
    def terminate(state, config):
        ended = kkt.terminate(state, config)
        return Status.DIVERGED if config == ROWS[3].config else ended

    panel = tuner(app)
    monkeypatch.setitem(ROSTER, "kkt", replace(kkt.ATTACK, terminate=terminate))
    config = tune.TuneConfig(trials=4, m=4, steps=4)
    words = panel.verdict(config, ROWS, app.session.frame)
    best, usual = words.split("<br>")[1:]
    said = weights.status(Status.DIVERGED)
    assert said in best and said not in usual


def test_the_search_is_the_one_that_was_chosen(app, monkeypatch) -> None:
    panel, asked = tuner(app), []

    def search(target, config, done, progress):
        asked.append((target, config))
        assert done == ()
        return iter(ROWS)

    monkeypatch.setattr("explorer.page.stages.attack.tuner.tuning.tune", search)
    app.session.seed = 5
    choose(panel.row, "search", "random")
    choose(panel.row, "trials", 4)
    run(panel)
    wanted = tune.TuneConfig("random", 4, seed=5, restarts=2, m=4, steps=4)
    assert asked == [(app.session.frame.target, wanted)]
    assert "Trial 1" in panel.answer.text  # of "random" the smallest residual


def test_new_weights_and_the_end_of_the_page_end_a_search(app) -> None:
    async def through(page, end):
        panel = tuner(page)
        choose(panel.row, "trials", 400)
        page.session.running = True
        press(panel.row, "go")
        assert not page.session.running  # the weights stand still while they are searched
        while len(panel.rows) < 2:
            await asyncio.sleep(0.005)
        end()
        await panel.job.wait()
        return panel

    panel = asyncio.run(through(app, lambda: attack.begin(app.session)))
    assert panel.rows == [] and label(panel.row, "go") == TUNE
    assert re.match(r"The weights changed: [2-9]\d* trials .* dropped", panel.answer.text)
    assert panel.answer.text.endswith(EMPTY)

    def out_of_sight():
        play.go(app.session, "train")
        app.session.attempt(play.step, app.session)

    panel = asyncio.run(through(app, out_of_sight))
    assert panel.rows == [] and "was cancelled" in app.session.message
    other = opened("attack", "alternating-line")
    panel = asyncio.run(through(other, other.close))
    assert 2 <= len(panel.rows) < 400


def test_cancel_keeps_what_is_done(app) -> None:
    panel = tuner(app)
    choose(panel.row, "trials", 400)
    run(panel, until=2)
    assert 2 <= len(panel.rows) < 400
    assert "Cancelled after" in panel.answer.text and "a verdict" in panel.answer.text
    assert label(panel.row, "go") == "Tune"


def test_the_same_search_goes_on_and_another_begins_anew(app) -> None:
    panel = tuner(app)
    choose(panel.row, "trials", 400)
    run(panel, until=2)
    first = list(panel.rows)
    choose(panel.row, "trials", len(first) + 2)
    said = watched(panel)
    run(panel)
    assert len(panel.rows) == len(first) + 2
    assert all(a is b for a, b in zip(panel.rows, first, strict=False))
    assert any(f"the {len(first)} trials" in words for words in said)
    assert [t.number for t in panel.rows] == list(range(len(panel.rows)))
    assert f"best of {len(panel.rows)}" in panel.answer.text
    choose(panel.row, "search", "random")
    choose(panel.row, "trials", 1)
    run(panel)
    assert len(panel.rows) == 1
    assert any("new search" in words for words in said)


def watched(panel):
    """All that the panel says from now on."""
    said = []
    panel.answer.observe(lambda _: said.append(panel.answer.text), names=["state"])
    return said


def test_a_cancel_during_the_verdict_says_that_there_is_none(app, monkeypatch) -> None:
    panel, verdict = tuner(app), tuner(app).verdict

    def endless(config, rows, frame, progress):
        while True:
            progress(0.0)

    panel.verdict = endless

    async def through():
        press(panel.row, "go")
        while "fresh noise" not in panel.answer.text:
            await asyncio.sleep(0.005)
        press(panel.row, "go")
        await panel.job.wait()

    asyncio.run(through())
    panel.verdict = verdict
    assert "3 trials" in panel.answer.text
    run(panel)
    assert len(panel.rows) == 3 and "best of 3" in panel.answer.text


def test_trials_are_a_list_for_the_keyboard(app) -> None:
    panel = tuner(app)
    panel.rows = list(ROWS)
    panel.draw()
    names = [name for name, *_ in panel.answer.items["trial"].options]
    assert names[1:] == [
        "1: residual 0.1, agreement 1",
        "2: residual 0.2, agreement 0.5",
        "3: residual 0.4, agreement 3",
    ]
    choose(panel.answer, "trial", 2)
    assert app.session.attack_config.lr_x == 0.07 and "Trial 3" in panel.answer.text
    panel.load(0)
    assert panel.answer.value("trial") == 0
    panel.draw()
    assert panel.answer.value("trial") == 0 and app.session.attack_config.lr_x == 0.02


def test_a_loaded_trial_leaves_the_run_that_was_there_on_its_branch(app) -> None:
    panel, session = tuner(app), app.session
    play.step(session, 5)
    before, config = session.frame.attack.state, session.attack_config
    panel.rows = list(ROWS)
    panel.draw()
    panel.load(2)
    assert "branch “main”" in panel.answer.text and session.frame.attack.state.t == 0
    panel.load(1)  # at step 0 there is nothing to keep
    assert len(session.branches) == 2
    branches.select(session, 0)
    assert session.frame.attack.state is before and session.attack_config == config


def test_published_settings_and_back(app) -> None:
    panel, session = tuner(app), app.session
    choose(panel.row, "ready", "MNIST kcf9bhbi")
    press(panel.row, "load")
    now = session.frame
    assert session.attack_config == KKTConfig.from_paper(now.target, "MNIST kcf9bhbi", 100, 2000)
    form = app.panel("AttackForm").forms["kkt"]
    assert form.row.value("multipliers") == "joint"
    assert form.row.value("lr_x") == session.attack_config.lr_x  # no bound of the form cuts it
    choose(panel.row, "ready", "")
    press(panel.row, "load")
    assert session.attack_config == KKTConfig()


def test_new_weights_forget_the_trials(app) -> None:
    panel = tuner(app)
    run(panel)
    attack.begin(app.session)
    assert panel.rows == []
    assert not panel.view.shown.series


def test_it_belongs_to_the_kkt_attack_alone(app) -> None:
    panel = tuner(app)
    assert panel.box.children
    attack.choose(app.session, "inversion")
    assert not panel.box.children
    play.step(app.session, 5)
    assert app.session.frame.attack.state.t == 5
    assert app.panels["AttackForm"].failure.layout.display == "none"


def test_nothing_stands_where_trials_will_be(app) -> None:
    panel = tuner(app)
    assert panel.view.layout.display == "none" and panel.answer.items["trial"].hidden
    run(panel)
    assert panel.view.layout.display == "" and not panel.answer.items["trial"].hidden
