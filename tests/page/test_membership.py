"""The membership page without a browser: what it says and draws, its rules, its experiment."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import explorer
from explorer.engine.data.highdim import LAWS
from explorer.page.apps.membership import MembershipApp
from explorer.page.apps.membership_charts import BINS, WIDEST, steps
from explorer.page.apps.membership_scene import (
    RULES,
    MembershipScene,
    outcome,
    rule_of,
    scene,
    world,
)
from explorer.page.apps.membership_words import sentence
from explorer.research.pages import pages
from tests.page.pages import choose, classes, label, press

SMALL = MembershipScene(d=200, n=10)


app = pytest.fixture(lambda: MembershipApp(SMALL))


def well(app: MembershipApp) -> None:
    assert app.failure.layout.display == "none", app.failure.value


def test_says_what_is_measured(app: MembershipApp) -> None:
    found = outcome(SMALL, world(*SMALL.points))
    assert f"{found.alarms} of 2,000" in app.sentence.value
    assert "10 of 10 members" in app.sentence.value
    assert "Assumes" in app.theorem.value and "KKT point" in app.theorem.value
    well(app)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", LAWS)
def test_every_rule_and_distribution_draws(app: MembershipApp, rule: str, law: str) -> None:
    choose(app.controls, "law", law)
    choose(app.controls, "rule", rule)
    assert "margins" in app.sentence.value
    assert {"known": "known", "leaked": "suspects", "bounded": "bound"}[rule] in app.theorem.value
    well(app)


def test_false_positives_fall_as_d_grows_and_vanish_at_2000(app: MembershipApp) -> None:
    rates = []
    for d in (20, 60, 200, 2000):
        settings = replace(SMALL, d=d)
        rates.append(outcome(settings, world(*settings.points)).fpr)
    assert sorted(rates, reverse=True) == rates
    assert rates[-1] == 0
    choose(app.controls, "d", 2000)
    assert "promises nothing" in app.sentence.value
    assert "good" in classes(app.verdict)


def test_few_points_in_many_dimensions_are_certified(app: MembershipApp) -> None:
    choose(app.controls, "d", 2000)
    choose(app.controls, "n", 3)
    assert "impossible" in app.sentence.value
    there = world(*app.controls.settings().points)
    assert there.proof.error_free
    found = outcome(app.controls.settings(), there)
    assert (found.tpr, found.fpr) == (1, 0)


def test_nothing_to_attack_is_an_empty_state_with_a_remedy(app: MembershipApp) -> None:
    choose(app.controls, "d", 2)
    choose(app.controls, "n", 40)
    assert "No network" in app.sentence.value and "Raise d" in app.sentence.value
    assert "warn" in classes(app.verdict)
    choose(app.controls, "d", 200)
    assert "members" in app.sentence.value
    well(app)


def test_labels_by_component_are_offered_for_the_mixture_alone(app: MembershipApp) -> None:
    choose(app.controls, "law", "mixture")
    choose(app.controls, "labels", "component")
    assert app.controls.settings().labels == "component"
    choose(app.controls, "law", "sphere")
    assert app.controls.settings().labels == "parity"
    well(app)


def test_rules_use_what_their_attacker_knows() -> None:
    there = world(*SMALL.points)
    assert rule_of(SMALL, there).threshold == 0.5
    leaked = rule_of(replace(SMALL, rule="leaked", share=0.9), there)
    assert leaked.threshold == pytest.approx(0.9 * max(1, float(there.queries[:9].max())))
    ceiling = float(there.queries.max())
    bounded = rule_of(replace(SMALL, rule="bounded", low=0.95), there)
    assert bounded.threshold == pytest.approx(math.sqrt(ceiling * 0.95))


def test_the_interval_of_no_false_positive_is_clopper_and_pearsons() -> None:
    settings = replace(SMALL, d=2000)
    low, high = outcome(settings, world(*settings.points)).fpr_interval
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 2000), rel=1e-6)


def test_where_two_neurons_are_too_few_it_says_so() -> None:
    settings = MembershipScene(d=20, n=20)
    there = world(*settings.points)
    assert not there.made.ok
    assert "impossible" not in sentence(there, outcome(settings, there))[2]


RATES = r"finds (\d+) of .* takes (\d+) of (\d+) unseen"


def test_outline_of_a_histogram_by_hand() -> None:
    x, y = steps(np.array([0.01, 0.02, 1.0, 9.0]))
    assert len(x) == len(y) == 2 * (BINS + 1)
    assert x[0] == 0 and x[-1] == WIDEST
    assert y[0] == y[-1] == 0
    assert sorted(set(y)) == [0, 0.5, 1]
    assert y[-2] == 0.5  # beyond the end: in the last bin


def test_a_line_in_the_roc_restates_the_rates_of_that_threshold(app: MembershipApp) -> None:
    there = world(*app.controls.settings().points)
    for level in (0.02, 0.5, 1.0):
        app.roc.figure.interaction.selected = np.array([level])
        hits, alarms, m = map(int, re.findall(RATES, app.roc_title.value.replace(",", ""))[0])
        limit = sorted(there.held_out.tolist(), reverse=True)[min(int(level * m), m - 1)]
        assert alarms == sum(v > limit for v in there.held_out.tolist()) <= level * m
        assert hits == sum(v > limit for v in there.members.tolist())
    line, before = app.roc.figure.interaction, app.roc.figure.marks
    choose(app.controls, "share", 0.9)  # another rule moves its dot; the line stays
    assert app.roc.figure.marks == before and app.roc.figure.interaction is line
    press(app.roc.tools, "zoom")
    assert app.roc.figure.interaction.scales == {"x": [app.roc.figure.axes[0].scale]}
    press(app.roc.tools, "zoom")
    assert app.roc.figure.interaction is line
    press(app.roc.tools, "reset")
    assert "At most 0.1%" in app.roc_title.value


def test_experiment_shows_each_network_and_can_be_cancelled(
    app: MembershipApp, monkeypatch
) -> None:
    full = app.trained.config
    monkeypatch.setattr(
        app.trained,
        "config",
        lambda s: replace(full(s), dims=(12, 60), trials=2, width=50, test=40),
    )
    app.run_training()
    assert [t.d for t in app.trials] == [12, 12, 60, 60]
    assert "At d = 60" in app.trained.text
    say = app.trained.say

    def stop(words: str) -> None:
        say(words)
        if words.startswith("2 of"):
            app.job.cancel()

    monkeypatch.setattr(app.trained, "say", stop)
    app.run_training()
    assert len(app.trials) == 2
    assert "2 of 4" in app.trained.text
    assert label(app.trained, "go").startswith("Run")
    well(app)


def test_wrong_dimensions_are_said_on_the_page(app: MembershipApp) -> None:
    choose(app.trained, "dims", "ten")
    press(app.trained, "go")
    assert "10, 20, 100" in app.failure.value
    app.redraw()
    well(app)


def test_a_failure_is_shown_and_the_next_moment_heals(app: MembershipApp, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("explorer.research.rates.roc", lambda *_: 1 / 0)
        app.redraw()
    assert "ZeroDivisionError" in app.failure.value
    app.redraw()
    well(app)


def test_every_control_explains_itself(app: MembershipApp) -> None:
    for name, item in app.controls.items.items():
        assert item.tip or item.kind == "break", name
    assert all(tip for _, _, tip in app.controls.items["rule"].options)


def test_it_is_exported_and_served() -> None:
    assert explorer.membership.__name__ == "membership"
    (page,) = (page for page in pages() if page.name == "membership.ipynb")
    assert "membership();" in page.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [("few dimensions", "errs"), ("threshold", "errs"), ("vacuous certificate", "same"),
     ("certified", "impossible")],
)  # fmt: skip
def test_rows_show_what_their_sentence_says(name: str, words: str) -> None:
    settings = scene(name)
    there = world(*settings.points)
    assert there.made.ok
    assert words in sentence(there, outcome(settings, there))[2]


def test_a_larger_threshold_heals_the_row_on_thresholds() -> None:
    settings = replace(scene("threshold"), share=0.95)
    found = outcome(settings, world(*settings.points))
    assert (found.hits, found.alarms) == (20, 0)


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ValueError, match="few dimensions"):
        scene("no such row")
