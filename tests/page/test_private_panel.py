"""The slider of epsilon: one private network at each, told of as it moves, gone with its points."""

from __future__ import annotations

import math

import pytest

from explorer.engine import private
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.job import JobState
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train.private import PrivatePanel, sentence_of
from explorer.research import epsilons
from explorer.research.epsilons import CLIPPED, EPSILONS, private_run
from tests.page.pages import choose, no_failures, opened, panel_of, press


def panel(app: App) -> PrivatePanel:
    return panel_of(app, PrivatePanel)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App:
    """A page whose private networks take few steps."""
    monkeypatch.setattr(epsilons, "STEPS", 60)
    made = opened("train", "blobs", n=6)
    made.panel("PrivatePanel")
    return made


def test_the_slider_tells_of_the_network_at_its_epsilon(app: App) -> None:
    held = panel(app)
    assert held.row.items["epsilon"].disabled
    press(held.row, "go")
    assert [run.epsilon for run in held.runs] == [*EPSILONS]
    assert not held.row.items["epsilon"].disabled and held.row.text == sentence_of(held.runs[-1])
    for run in (held.runs[0], held.runs[3]):
        choose(held.row, "epsilon", run.epsilon)
        assert held.row.text == sentence_of(run)
    points, widths = app.session.frame.dataset, app.session.train_config.widths
    assert held.runs[-1] == private_run(points, CLIPPED, widths, app.session.seed)
    no_failures(app)


def test_other_points_drop_what_was_told_and_none_are_refused(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epsilons, "EPSILONS", (CLIPPED,))
    held = panel(app)
    press(held.row, "go")
    play.go(app.session, "attack")
    play.go(app.session, "train")
    assert held.runs, "a look at another stage drops nothing"
    draw.load(app.session, preset("moons", n=6))
    play.go(app.session, "train")
    assert not held.runs and held.row.items["epsilon"].disabled
    draw.clear(app.session)
    press(held.row, "go")
    assert held.job.state is JobState.DONE and not held.runs and app.session.message


def test_a_private_network_spends_its_epsilon_and_a_hidden_point_is_bound() -> None:
    points = preset("alternating-circle", 10)
    strict, free = (private_run(points, epsilon, (100,), 0) for epsilon in (1.0, CLIPPED))
    spent = private.separation(private.noise_for(1.0, epsilons.STEPS), epsilons.STEPS)
    assert private.epsilon_of(spent) == pytest.approx(1.0, rel=1e-6)
    prior = math.pi * 0.03**2 / (2 * epsilons.BOX) ** 2
    assert prior < strict.bound < 20 * prior and free.bound == 1.0
    assert strict.right < points.n and strict.why_not and strict.found == 0
    assert free.right == points.n and not free.why_not and free.found > free.control
