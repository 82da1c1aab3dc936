"""Laws of charts: their numbers are those of the run, the verdict and the points."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.certificate import ON_MARGIN
from explorer.engine.charts import Axis, Chart, Series
from explorer.engine.controls import control_sets
from explorer.engine.data import empty, preset
from explorer.engine.scoring import RADII, judge, recall_curve, score
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.history import LOG_STEPS
from explorer.page.plane.words import NO_SUM
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.page.view.chart import ChartView
from tests.page.pages import page_in, send

app = pytest.fixture(lambda: page_in("train", preset("alternating-circle", n=6), 0, widths=(20,)))


def attacked(app: App, steps: int = 60) -> None:
    """Train until the points are separated, and attack."""
    play.step(app.session, 600)
    app.session.attack_config = KKTConfig(m=12, steps=60)
    play.go(app.session, "attack")
    play.step(app.session, steps)


def chart_of(app: App, name: str, view: str = "view") -> Chart:
    """What a panel's chart holds."""
    return getattr(app.panel(name), view).shown


def named(chart: Chart, name: str) -> Series:
    """The one series of this name."""
    (found,) = [s for s in chart.series if s.name == name]
    return found


class Browser:
    """Counts what a view is sent, and looks at it or not."""

    def __init__(self, view: ChartView, monkeypatch: pytest.MonkeyPatch) -> None:
        self.view, self.frames = view, 0
        monkeypatch.setattr(view, "send", self._took)

    def _took(self, content: dict, buffers: list[bytes]) -> None:
        self.frames += content["kind"] == "frame"

    def look(self, seen: bool) -> None:
        send(self.view, kind="sight", seen=seen, view=0.5)


def test_a_chart_that_nobody_sees_or_that_is_the_same_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def some(y: float) -> Chart:
        return Chart([Series([1, 2], [0, y])], Axis(0, 2), Axis(0, 9))

    view = ChartView()
    browser = Browser(view, monkeypatch)
    view.draw(some(1))
    view.draw(some(2))
    assert browser.frames == 0
    browser.look(True)
    assert browser.frames == 1  # the newest, once
    view.draw(some(2))
    assert browser.frames == 1
    view.draw(some(3))
    assert browser.frames == 2
    browser.look(False)
    view.draw(some(4))
    assert browser.frames == 2
    browser.look(True)
    assert browser.frames == 3


def test_one_message_a_frame_holds_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    view = ChartView()
    browser = Browser(view, monkeypatch)
    browser.look(True)
    lines = [Series(np.arange(k), np.arange(k) / 2) for k in (3, 0, 5)]
    chart = Chart(lines, Axis(0, 5), Axis(0, 9))
    view.draw(chart)
    data, ends = chart.numbers
    assert browser.frames == 1 and ends.tolist() == [3, 3, 8]
    assert np.array_equal(data[3:, :2], np.column_stack([np.arange(5), np.arange(5) / 2]))


@pytest.mark.parametrize("content", [
    {"kind": "handle", "at": "1"}, {"kind": "handle"}, {"kind": "hover", "id": 7},
    {"kind": "choose", "id": -1}, {"kind": "choose", "id": None}, {"kind": "sight", "view": "x"},
])  # fmt: skip
def test_what_a_browser_may_not_say_changes_nothing(content: dict) -> None:
    view, heard = ChartView(), []
    view.draw(Chart([Series([0], [1], kind="dots", ids=[0])], Axis(0, 1), Axis(0, 1), handle=0.5))
    view.on("handle", heard.append)
    view.on("hover", heard.append)
    view.on("choose", heard.append)
    send(view, **content)
    assert heard == []
    send(view, kind="handle", at=9)
    send(view, kind="choose", id=0)
    assert heard == [1.0, 0]  # a line stays on its axis


def test_curves_hold_the_numbers_of_the_timeline_and_the_step_on_screen(app: App) -> None:
    play.step(app.session, 600)
    line = app.session.timeline
    margin = named(chart_of(app, "MarginCurves"), "margin")
    t, v = (np.array(x) for x in line.column("gamma_bar"))
    drawn = dict(zip(np.asarray(margin.x), np.asarray(margin.y), strict=True))
    assert all(drawn[a] == b for a, b in zip(t, v, strict=True) if a in drawn and b > 0)
    assert len(drawn) > 100 and max(drawn) == 600
    assert chart_of(app, "MarginCurves").handle == 600
    send(app.panel("MarginCurves").view, kind="handle", at=100.2)
    assert app.session.frame.training.state.t == 100
    assert chart_of(app, "MarginCurves").handle == 100
    assert app.panels["TransportPanel"].view.state["time"] == pytest.approx(1000 * 100 / 600, abs=1)


def test_the_unexplained_share_has_a_value_at_every_even_log_step(app: App) -> None:
    play.step(app.session, 3000)
    share = named(chart_of(app, "ResidualCurves"), "unexplained")
    due = [t for t in LOG_STEPS if 1 <= t <= 3000]
    assert set(due) <= set(np.asarray(share.x).tolist())
    assert len(share.x) >= 60 > 0.9 * len(due)
    made = app.session.frame.training.certificate
    assert np.asarray(share.y)[-1] == made.residual
    axis = chart_of(app, "ResidualCurves").y
    assert axis.log and axis.low <= np.nanmin(share.y) and axis.high == 1.0


def test_stopped_on_the_way_the_curve_of_what_is_unexplained_has_even_gaps() -> None:
    session = Session(preset("moons", 6))
    train.begin(session)
    play.advance(session, steps=3000)  # no panel looks at its states
    due = [state.t for state in train.uncertified_states(session)]
    for first in (8, 16):
        gaps = np.diff(np.log(sorted({*due[:first], 3000})))
        assert gaps.max() < 2.5 * np.log(3000) / first
    assert len(due) > 50


def test_an_exact_network_has_no_curve_and_the_words_say_so(app: App) -> None:
    jump = app.panels["TrainForm"].buttons
    assert not jump.json("jump").get("hidden")
    before = chart_of(app, "ResidualCurves").foot
    train.jump_to_exact(app.session)
    made = chart_of(app, "ResidualCurves")
    assert not made.series  # so that there are no axes of nothing
    assert made.foot not in ("", before) and "unexplained" in made.foot
    kept, asked = (sum(w) for w in (app.session.frame.training.state.net.widths,
                                    app.session.train_config.widths))  # fmt: skip
    assert kept < asked and f"{kept} neurons" in made.foot and str(asked) in made.foot
    assert not app.panels["TrainForm"].belongs(app.session.frame)  # no way is left to go
    play.step(app.session, 1)
    assert chart_of(app, "ResidualCurves").foot in ("", before)


def test_with_biases_in_every_layer_the_words_say_why_there_is_no_curve() -> None:
    made = page_in("train", preset("moons", n=6), 100, widths=(8,), all_biases=True)
    shown = chart_of(made, "ResidualCurves")
    assert not shown.series and shown.foot == NO_SUM


def test_every_point_has_one_stem_in_the_colour_of_its_class(app: App) -> None:
    play.step(app.session, 600)
    state, y = app.session.frame.training.state, app.session.frame.dataset.y
    q = state.q.numpy()
    series = chart_of(app, "MarginsPanel").series
    of = {int(i): (s, h) for s in series for i, h in zip(s.ids, s.y, strict=True)}
    assert sorted(of) == list(range(6)) and sum(len(s.y) for s in series) == 6
    for i, (stem, height) in of.items():
        assert stem.colour == {1: "pos", -1: "neg"}[int(y[i])]
        assert height == pytest.approx(min(q[i] / q.min(), 3.0))
        on = q[i] <= (1 + ON_MARGIN) * q.min()
        assert stem.look["opacity"] == (1.0 if on else pytest.approx(0.4))


def test_the_curve_of_recall_goes_through_the_verdict(app: App) -> None:
    attacked(app)
    verdict = app.session.frame.attack.verdict
    shown = app.panels["Scoreboard"].view.curve.shown
    assert shown.handle == verdict.radius
    found = named(shown, "training points")
    at = np.isclose(np.asarray(found.x), verdict.radius)
    assert at.any() and set(np.asarray(found.y)[at]) == {verdict.found}
    chance = np.asarray(named(shown, "unseen points").y)
    assert chance[at][0] == pytest.approx(verdict.chance)
    assert shown.y.high == 6 and shown.y.whole
    assert (np.diff(np.asarray(found.y)) >= 0).all()


def test_a_drag_of_the_line_fills_the_dots_that_are_recovered_within(app: App) -> None:
    attacked(app)
    session, panel = app.session, app.panels["Scoreboard"]
    aim, state = session.frame.aim, session.frame.attack.state
    claims = session.entry.report(aim.target, state, session.attack_config)
    for radius in (0.3, 0.02, 0.1):
        send(panel.view.curve, kind="handle", at=radius)
        met = score(aim.truth, claims.x, claims.y, (radius,)).matches[0] >= 0
        full = [s for s in panel.view.dots.shown.series if s.name == "recovered"]
        assert sorted(int(i) for s in full for i in s.ids) == torch.nonzero(met)[:, 0].tolist()
        assert panel.view.curve.shown.handle == radius


def test_where_chance_is_not_ruled_out_no_dot_is_green() -> None:
    made = page_in("train", preset("two-points"), 0, widths=(20,))
    attacked(made)
    verdict = made.session.frame.attack.verdict
    assert verdict.found and not verdict.beyond_chance
    shown = made.panel("Scoreboard").view.dots.shown
    full = [s for s in shown.series if s.name == "recovered"]
    assert full and all(s.colour != "good" for s in full)


def test_a_dot_under_the_pointer_is_told_to_the_session(app: App) -> None:
    attacked(app)
    send(app.panels["Scoreboard"].view.dots, kind="hover", id=4)
    assert app.session.pointed == 4
    send(app.panels["Scoreboard"].view.dots, kind="hover", id=-1)
    assert app.session.pointed == -1


def test_charts_of_other_stages_are_left_alone(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    play.step(app.session, 600)
    browsers = [
        Browser(app.panels[name].view, monkeypatch) for name in ("ResidualCurves", "MarginsPanel")
    ]
    for one in browsers:
        one.look(True)
    before = [one.frames for one in browsers]
    play.go(app.session, "attack")
    play.step(app.session, 20)
    assert [one.frames for one in browsers] == before


def test_no_points_are_no_charts(app: App) -> None:
    draw.edit(app.session, empty(2))
    assert not chart_of(app, "MarginsPanel").series


def test_the_curve_of_recall_has_the_counts_of_score_and_judge() -> None:
    data = preset("moons", n=12)
    controls = control_sets(data, 19)
    x, y = torch.cat([data.x[:7] + 0.02, data.x[7:9] + 0.2]), data.y[:9]
    made = recall_curve(data, controls, x, y, (0.3, *RADII))
    assert made.radii == (*RADII, 0.3)
    assert made.found.tolist() == score(data, x, y, made.radii).found.tolist()
    assert made.met.sum(1).tolist() == made.found.tolist()
    verdict = judge(data, controls, x, y, 0.03)
    assert float(made.chance[1]) == verdict.chance and int(made.found[1]) == verdict.found
    counts = [score(s, x, y, (0.3,)).found for s in controls.sets]
    low, high = float(made.low[-1]), float(made.high[-1])
    assert sum(low <= int(c) <= high for c in counts) >= 0.9 * len(counts)
    assert low <= float(made.chance[-1]) <= high
