"""How certain claims and places are, on the page: computed beside it, drawn, ended by any edit."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer.engine.data import Dataset
from explorer.engine.explanations import assumptions
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.number_words import percent
from explorer.engine.roster import DEFAULT
from explorer.engine.training import TrainConfig
from explorer.page import ahead, play
from explorer.page.apps.explorer import App
from explorer.page.frame import Proof
from explorer.page.job import JobState
from explorer.page.opening import open_recorded
from explorer.page.session import Session
from explorer.page.stages.attack import scoreboard
from explorer.page.stages.attack.scoreboard import Scoreboard
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain.panel import HIDE, ExplainPanel
from explorer.page.stages.explain.words import LIKELY
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.proof.commands import proofs
from explorer.page.stages.proof.panel import gauge, known_chart
from explorer.page.stages.proof.words import MET, known_points
from explorer.page.words.headline import headline
from explorer.research.pictures.axes import Axes
from tests.page.pages import hold_jobs, on_plane, opened, press

STEPS = 400


def board(app: App) -> Scoreboard:
    made = app.panel("Scoreboard")
    assert isinstance(made, Scoreboard)
    return made


def known(app: App) -> Certainty | None:
    """How certain the points of the attacked weights are, if it is computed."""
    aim = app.session.frame.aim
    return None if aim is None else aim.certainty


async def ended(name: str = "alternating-line", n: int = 5, attack: str = DEFAULT) -> App:
    """A page at the end of an attack on exact weights."""
    app = opened("attack", name, n=n)
    play.choose_attack(app.session, attack)
    if attack == DEFAULT:
        play.configure(app.session, steps=STEPS)
    while not app.session.frame.status.over:
        play.advance(app.session, steps=STEPS)
        await asyncio.sleep(0)
    play.assess(app.session)
    return app


def test_places_are_certified_after_a_run_and_drawn_so() -> None:
    async def run() -> None:
        app = await ended(attack="certified_places")
        await board(app).job.wait()
        made = known(app)
        assert made is not None and made.certain.any()
        kinds = on_plane(app)["claims"][:, 2]
        assert (kinds == 2).any() and not (kinds == 1).any()
        play.reset(app.session)  # other claims on the same weights: the same points are certain
        assert known(app) is made
        app.close()

    asyncio.run(run())


def test_claims_on_known_points_wait_for_no_certificate() -> None:
    async def run() -> None:
        app = await ended()
        assert not board(app).job.busy and known(app) is None
        assert not (on_plane(app)["claims"][:, 2] == 2).any()
        app.close()

    asyncio.run(run())


def test_an_edit_ends_the_work_and_nothing_is_shown() -> None:
    async def run() -> None:
        app = await ended(attack="certified_places")
        assert board(app).job.busy
        play.go(app.session, "draw")
        draw.clear(app.session)
        await board(app).job.wait()
        assert board(app).job.state in (JobState.CANCELLED, JobState.STALE)
        assert known(app) is None
        app.close()

    asyncio.run(run())


def test_three_layers_of_many_weights_have_no_map_and_say_so() -> None:
    async def run() -> None:
        app = App(opened_points())
        app.session.train_config = TrainConfig(widths=(80, 80), steps=200)
        play.go(app.session, "train")
        play.advance(app.session, steps=200)
        play.go(app.session, "explain")
        press(app.panel("ExplainPanel").radii.row, "ask")
        assert app.session.message and app.session.frame.certain is None
        app.close()

    asyncio.run(run())


def opened_points() -> Dataset:
    return Dataset.of([[-1.5, 0.0], [1.5, 0.0], [0.0, 1.5], [0.0, -1.5]], [1, -1, 1, 1])


def test_the_map_is_drawn_from_the_weights_alone_and_taken_away_again() -> None:
    async def run() -> None:
        app = opened("explain", "alternating-line", n=5)
        panel = app.panel("ExplainPanel")
        assert isinstance(panel, ExplainPanel)
        press(panel.radii.row, "ask")
        await panel.radii.wait()
        held, data = app.session.frame.certain, app.session.frame.truth
        assert held is not None and held.done and data is not None
        drawn = on_plane(app)
        assert drawn["energy"].shape[0] % 2 == 0 and (drawn["energy"] > 0).any()
        assert "marks" not in drawn and "likely" not in drawn  # what must be, the proof says
        said = headline(app.session.frame)
        assert said.action.key == "places" and percent(float(held.map.values.max())) in said.words
        assert panel.radii.row.items["ask"].label == HIDE and "%" in panel.radii.text
        press(panel.radii.row, "ask")
        assert app.session.frame.certain is None and "energy" not in on_plane(app)
        assert not panel.radii.text
        app.close()

    asyncio.run(run())


@pytest.mark.parametrize("button", ["ask", "cancel"])
def test_an_unfinished_map_is_taken_away_by_either_button(
    button: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        app = opened("explain", "alternating-line", n=5)
        panel = app.panel("ExplainPanel")
        hold_jobs(monkeypatch)
        press(panel.radii.row, "ask")
        while app.session.frame.certain is None:
            await asyncio.sleep(0.01)
        assert panel.radii.busy and panel.radii.row.items["ask"].label == HIDE
        press(panel.radii.row, button)
        await panel.radii.wait()
        assert app.session.frame.certain is None and not panel.radii.text
        assert panel.radii.row.items["ask"].label == LIKELY
        app.close()

    asyncio.run(run())


def test_a_map_that_nobody_wants_any_more_ends() -> None:
    async def run() -> None:
        app = opened("explain", "alternating-line", n=5)
        panel = app.panel("ExplainPanel")
        press(panel.radii.row, "ask")
        panel.radii.cancel()
        await panel.radii.wait()
        assert app.session.frame.certain is None and not np.size(on_plane(app).get("energy", ()))
        press(panel.radii.row, "ask")
        play.go(app.session, "draw")
        draw.clear(app.session)  # there are no such weights any more
        await panel.radii.wait()
        assert panel.radii.state is JobState.STALE and app.session.frame.certain is None
        app.close()

    asyncio.run(run())


def test_a_proven_share_is_rounded_down_and_never_to_nothing() -> None:
    digits = {ord(high): low for high, low in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True)}
    for value in (0.9999, 0.05499, 0.0011, 0.00099, 6.2e-4, 3.5e-7):
        lead, _, power = percent(value)[:-1].partition(" × 10")
        assert 0 < float(lead) * 10.0 ** int(power.translate(digits) or 0) <= 100 * value


def test_in_a_class_claims_are_certified_when_somebody_asks(monkeypatch) -> None:
    monkeypatch.setattr(scoreboard, "IN_CLASS", True)

    async def run() -> None:
        app = await ended(attack="certified_places")
        panel = board(app)
        assert not panel.job.busy and panel.ask in panel.widget.children
        press(panel.ask, "ask")
        assert panel.job.busy and panel.ask not in panel.widget.children
        await panel.job.wait()
        assert known(app) is not None
        assert panel.ask not in panel.widget.children
        play.reset(app.session)
        assert panel.ask not in panel.widget.children, "nothing has run yet"
        app.close()

    asyncio.run(run())


# --- the last act --------------------------------------------------------------------------------


def asked(name: str = "alternating-line", n: int = 5) -> App:
    """A page whose last act was asked for, not yet answered where a loop runs."""
    app = opened("explain", name, n=n)
    proof.begin(app.session)
    return app


def panel(app: App):
    return app.panel("ProofPanel")


def hand(app: App, *events: dict) -> None:
    """What a browser sends of a hand on the plane."""
    app.plane.view.tell("events", {"events": [{"x": 0.5, "y": 0.5, **event} for event in events]})


def at(app: App, x: float) -> dict:
    """A place of the line as a browser sends it."""
    centre, half = app.session.axes.x
    return {"x": ((x - centre) / half + 1) / 2, "y": 0.5}


@pytest.mark.parametrize("known", [True, False])
def test_the_bar_of_the_places_never_falls(known: bool) -> None:
    app, said = asked(), []
    aim = app.session.frame.aim
    list(proofs(aim.target, aim if known else replace(aim, needed=None), said.append))
    assert said == sorted(said) and said[-1] <= 1
    assert known == (0.5 in said)  # places that were known before take half of it
    app.close()


def test_places_come_from_the_weights_alone_and_the_truth_comes_back_at_a_press() -> None:
    app = asked()
    now, data = app.session.frame, app.session.frame.truth
    assert now.proof is not None and now.proof.done and data is not None
    assert now.aim is not None and now.aim.needed is now.proof.needed
    drawn = on_plane(app)
    rings = len(drawn["places"])
    assert "certified" not in {key for key, *_ in drawn["legend"]}  # so is a point, not a place
    assert rings == data.n and "points" not in drawn and "graph" not in drawn
    assert drawn["placesAre"] == "place"
    app.session.choose(pointed=1)  # its stem in the chart
    assert np.allclose(on_plane(app)["hands"][-1], drawn["places"][1, :2])
    app.session.choose(pointed=-1)
    said = headline(now)
    assert said.action is not None and str(rings) in said.title
    hand(app, {"kind": "down", **at(app, 0.0)}, {"kind": "up", **at(app, 0.0)})
    assert app.session.frame.proof.centre is not None and "disc" in on_plane(app)
    play.act(app.session, said.action.key)
    assert app.session.frame.proof.centre is None and "disc" not in on_plane(app)
    assert len(on_plane(app)["points"]) == data.n and "marks" not in on_plane(app)
    assert f"{rings} of {data.n}" in headline(app.session.frame).title
    proof.leave(app.session)
    assert "places" not in on_plane(app) and "graph" in on_plane(app)
    app.close()


def test_a_disc_over_a_point_costs_more_than_the_points_leave_and_beside_it_nothing() -> None:
    app = asked()
    least = app.session.frame.proof.cone.least.high
    x = float(app.session.frame.truth.x[2])
    hand(app, {"kind": "down", **at(app, x)}, {"kind": "up", **at(app, x)})
    held = app.session.frame.proof
    assert held.exact and held.refit.low > held.needed.limit >= least
    assert (
        held.refit.avoids(proof.hole_of(held.disc)) and headline(app.session.frame).tone == "good"
    )
    drawn = on_plane(app)
    assert len(drawn["disc"]) == 1 and len(drawn["candidates"])
    centre, radius = held.centre[0], held.radius
    for kind, factor in (("larger", 1.15), ("smaller", 1 / 1.15), ("smaller", 1 / 1.15)):
        hand(app, {"kind": kind})
        radius *= factor
        assert app.session.frame.proof.radius == pytest.approx(radius)
    hand(app, {"kind": "left"})
    assert app.session.frame.proof.centre[0] < centre and app.plane.view.say
    far = app.session.axes.x[0] + app.session.axes.x[1]
    hand(app, {"kind": "down", **at(app, far)}, {"kind": "move", **at(app, far)})
    held = app.session.frame.proof
    assert held.refit.high == pytest.approx(least, rel=0.05, abs=1e-4)
    hand(app, {"kind": "erase"})
    assert app.session.frame.proof.centre is None and "disc" not in on_plane(app)
    app.close()


def test_where_no_place_needs_a_point_the_plane_shows_another_set_and_the_best() -> None:
    app = asked("random-circle", n=8)
    held, drawn = app.session.frame.proof, on_plane(app)
    assert not held.places and "places" not in drawn
    assert held.refit.high <= held.limit and held.refit.avoids(proof.hole_of(held.disc))
    assert len(drawn["disc"]) == 1 and len(drawn["candidates"])
    title = headline(app.session.frame).title
    proof.allow(app.session)
    drawn = on_plane(app)
    assert "disc" not in drawn and len(drawn["candidates"])
    assert headline(app.session.frame).title == title
    app.close()


def test_the_disc_of_the_other_set_lies_whole_on_the_plane() -> None:
    app = asked("random-circle", n=8)
    first = app.session.frame.proof.centre
    low = tuple((x + 1.0, 1.0) for x in first)  # of a plane that ends in the middle of that disc
    proof.allow(app.session)
    app.session.axes = Axes(*low)
    proof.finish(app.session, app.session.frame.proof.cone)
    held = app.session.frame.proof
    away = [abs(x - centre) for x, (centre, _) in zip(held.centre or (), low, strict=False)]
    assert held.centre != first and all(at + held.radius <= 1 + 1e-9 for at in away)
    assert held.refit is None or held.refit.high <= held.limit
    app.close()


def test_the_gauge_marks_what_is_left_the_least_and_what_is_allowed_each_once() -> None:
    app = asked()
    proof.forbid(app.session, app.session.frame.truth.x[2])
    held = app.session.frame.proof
    chart = gauge(app.session.frame, held)
    marks = {one.name: np.asarray(one.x).item() for one in chart.series if one.kind == "mark"}
    assert sorted(marks.values()) == sorted(
        (held.refit.high, held.cone.least.high, held.limit)
    ) and all(marks)
    assert bool(chart.note) == (not held.exact and held.refit.low <= held.limit < held.refit.high)
    proof.allow(app.session)
    assert not gauge(app.session.frame, app.session.frame.proof).series
    app.close()


def test_cancel_goes_back_to_the_points_and_another_network_ends_the_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        hold_jobs(monkeypatch)
        app = asked()
        assert panel(app).places.busy and "points" not in on_plane(app)
        press(panel(app).row, "cancel")
        await panel(app).places.wait()
        assert app.session.frame.proof is None and "points" in on_plane(app)
        proof.begin(app.session)
        play.go(app.session, "draw")
        draw.clear(app.session)
        await panel(app).places.wait()
        assert panel(app).places.state in (JobState.CANCELLED, JobState.STALE)
        app.close()

    asyncio.run(run())


@pytest.mark.parametrize("stage", ["explain", "attack"])
def test_the_places_are_found_while_one_looks(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise AssertionError("made at the press")

    async def run() -> None:
        if stage == "attack":
            app = await ended()
        else:
            app = opened("explain", "alternating-line", n=5)
        await app.panel("Ahead").job.wait()
        monkeypatch.setattr(assumptions, "assumed_cone", late)
        monkeypatch.setattr(proof, "needed_places", late)
        play.go(app.session, "explain")
        proof.begin(app.session)
        await panel(app).places.wait()
        assert panel(app).places.error is None and app.session.frame.proof.done
        app.close()

    asyncio.run(run())


def test_explain_goes_on_with_the_search_that_the_attack_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, search = [], threading.Event(), ahead.places

    def slow(target: Any, aim: Any, progress: Any) -> Any:
        begun.append(target)
        while not may_end.is_set():
            progress(0.0)
            time.sleep(0.01)
        return search(target, aim, progress)

    monkeypatch.setattr(ahead, "places", slow)

    async def run() -> None:
        app = await ended()
        job = app.panel("Ahead").job
        assert job.busy
        while not begun:
            await asyncio.sleep(0.01)
        play.go(app.session, "explain")
        play.go(app.session, "attack")
        assert job.state is JobState.RUNNING, "it goes on"
        play.go(app.session, "draw")
        await job.wait()
        assert job.state is JobState.CANCELLED and app.session.frame.aim.needed is None
        play.go(app.session, "explain")
        assert job.busy, "it begins anew"
        may_end.set()
        await job.wait()
        assert len(begun) == 2 and app.session.frame.aim.needed is not None
        app.close()

    asyncio.run(run())


def test_a_disc_that_rests_is_searched_to_the_end_beside_the_page() -> None:
    async def run() -> None:
        app = asked()
        await panel(app).places.wait()
        for x in (-0.4, -0.2, 0.0):  # faster than the search: the newest counts
            hand(app, {"kind": "down", **at(app, x)})
        assert not app.session.frame.proof.exact
        while not app.session.frame.proof.exact:
            await asyncio.sleep(0.01)
        held = app.session.frame.proof
        assert held.refit.avoids(proof.hole_of(held.disc))
        app.close()

    asyncio.run(run())


def test_kept_places_are_revealed_before_the_cone_and_a_disc_waits_for_it() -> None:
    app = asked()
    session = app.session
    session.put(asked=Proof(session.frame.target))  # no panel hears of it, and begins a search
    *places, cone = proofs(session.frame.target, session.frame.aim)
    for made in places:
        assert not session.frame.proof.done
        proof.take(session, made)
    assert session.frame.proof.done and headline(session.frame).action is not None
    proof.reveal(session)
    assert panel(app).row.items["cancel"].hidden, "nobody waits for the cone"
    proof.forbid(session, session.frame.truth.x[2])
    assert not panel(app).row.items["cancel"].hidden
    assert session.frame.proof.refit is None and headline(session.frame).title
    proof.take(session, cone)
    held = session.frame.proof
    assert held.revealed and held.refit is not None and held.refit.high > held.limit
    app.close()


def test_the_opening_knows_its_places_and_says_what_holds() -> None:
    session = Session()
    open_recorded(session)
    aim = session.frame.aim
    rows = aim.needed.rows
    x, y = aim.truth.x.numpy(), aim.truth.y.numpy()
    assert len(rows) > aim.truth.n / 2 and aim.needed.holds(x, y).all()
    assert aim.needed.limit == pytest.approx(aim.certainty.limit)
    assert (np.diff(aim.needed.log[:, 3]) <= 1e-9).all(), "wide places first"
    assert headline(session.frame).action.key == "places"


def test_each_point_of_the_opening_is_of_one_kind_as_the_sentence_counts() -> None:
    session = Session()
    open_recorded(session)
    frame = session.frame
    held = Proof(frame.target, frame.aim.needed, revealed=True, whole=True)
    shown, known = known_chart(frame, held), known_points(frame, held)
    n = frame.truth.n
    counts = {s.name: len(s.x) for s in shown.series}
    assert sum(counts.values()) == n
    assert not (known.proven & (known.gone | known.met)).any()
    assert sorted(known.place[known.proven]) == list(range(len(held.needed.rows)))
    play.go(session, "explain")
    session.put(asked=held)
    said = headline(session.frame)
    assert said.title.startswith(f"{known.proven.sum()} of {n} ")
    assert counts[MET] == known.met.sum() == frame.attack.verdict.found - known.proven.sum()
    assert not known_chart(frame, replace(held, revealed=False)).series, "it would tell the truth"


def test_without_weights_there_is_nothing_to_ask() -> None:
    session = Session()
    with pytest.raises(ValueError, match="Turn to Explain"):
        proof.begin(session)
    with pytest.raises(ValueError, match="Nothing is asked"):
        proof.reveal(session)
