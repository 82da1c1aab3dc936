"""The tuner's panel: a live front, cancel, loading a trial, published settings, other attacks."""

from __future__ import annotations

import asyncio

import pytest

from explorer import tune
from explorer.apps import App
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import preset


@pytest.fixture
def app(monkeypatch):
    """A page in the attack stage, with trials of a few steps."""
    monkeypatch.setattr("explorer.panels.tuner.SIZE", {"restarts": 2, "m": 4, "steps": 4})
    made = App(preset("alternating-line"))
    made.session.go("train")
    made.session.jump_to_exact()
    made.session.go("attack")
    yield made
    made.close()


def tuner(app):
    panel = app.panels["Tuner"]
    panel.trials.value = 3
    return panel


def run(panel, until=None):
    """Press Tune and let it run; press again after `until` trials."""

    async def through():
        panel.go.click()
        while panel._task is not None and not panel._task.done():
            if until is not None and len(panel.rows) >= until:
                panel.go.click()
                until_done = panel._task
                await asyncio.gather(until_done, return_exceptions=True)
                return
            await asyncio.sleep(0.005)

    asyncio.run(through())


def test_it_is_folded_at_first_and_holds_its_figure_only_when_open(app) -> None:
    panel = tuner(app)
    assert panel.fold.selected_index is None
    assert panel.plot.children == ()
    panel.fold.selected_index = 0
    assert panel.plot.children == (panel.chart,)


def test_tuning_draws_the_front_and_says_what_the_best_is_worth(app) -> None:
    panel = tuner(app)
    run(panel)
    assert len(panel.rows) == 3
    assert panel.progress.value == 1
    assert len(panel.dots.x) == 3
    assert len(panel.best.x) == 1
    assert "best of 3" in panel.said.value
    assert "The defaults:" in panel.said.value
    assert panel.go.description == "Tune"
    assert panel._failure.layout.display == "none"


def test_a_trial_is_loaded_by_a_click(app) -> None:
    panel = tuner(app)
    run(panel)
    before = app.session.attack_config
    panel._on_trial(None, {"data": {"index": 2}})
    config = app.session.attack_config
    assert config != before
    assert config == tune.full_length(panel._good()[2], before.m, before.steps)
    assert app.session.now.attack.t == 0
    assert "is loaded" in panel.said.value


def test_cancel_keeps_what_is_done(app) -> None:
    panel = tuner(app)
    panel.trials.value = 400
    run(panel, until=2)
    assert 2 <= len(panel.rows) < 400
    assert "Cancelled" in panel.said.value
    assert panel.go.description == "Tune"


def test_published_settings_and_back(app) -> None:
    panel, session = tuner(app), app.session
    panel.ready.value = "MNIST kcf9bhbi"
    panel._load_ready()
    now = session.now
    assert session.attack_config == KKTConfig.published(now.target, "MNIST kcf9bhbi", 100, 2000)
    form = app.panels["AttackForm"].forms["kkt"]
    shown = {row.field: row.widget.value for row in form.all}
    assert shown["multipliers"] == "joint"
    assert shown["lr_x"] == session.attack_config.lr_x  # no bound of the form cuts it
    panel.ready.value = ""
    panel._load_ready()
    assert session.attack_config == KKTConfig()


def test_new_weights_forget_the_trials(app) -> None:
    panel = tuner(app)
    run(panel)
    app.session.begin_attack()
    assert panel.rows == []
    assert len(panel.dots.x) == 0


def test_it_belongs_to_the_kkt_attack_alone(app) -> None:
    panel = tuner(app)
    assert panel.box.children
    app.session.choose_attack("inversion")
    assert not panel.box.children
    app.session.step(5)
    assert app.session.now.attack.t == 5
    assert app.panels["AttackForm"]._failure.layout.display == "none"


def test_biases_everywhere_are_said_on_the_page(app) -> None:
    session = app.session
    session.go("train")
    session.configure(all_biases=True)
    session.step(800)
    header = app.panels["Header"]
    assert "no theorem" in header.sentence.value
    session.go("attack")
    session.step(3)
    assert "no theorem" in header.sentence.value
    for name, panel in app.panels.items():
        assert panel._failure.layout.display == "none", (name, panel._failure.value)
