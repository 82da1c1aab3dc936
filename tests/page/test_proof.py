"""The last act on the page: places come one by one, the truth comes back, a disc is argued with."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from explorer.engine.explanations import assumptions
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.job import JobState
from explorer.page.opening import open_recorded
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.proof.panel import proofs
from explorer.page.words.headline import headline
from tests.page.pages import hold_jobs, on_plane, opened, press


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
    assert rings == data.n and "points" not in drawn and "graph" not in drawn
    assert drawn["placesAre"] == "certified"
    said = headline(now)
    assert said.action is not None and str(rings) in said.title
    play.act(app.session, said.action.key)
    assert len(on_plane(app)["points"]) == data.n
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


def test_the_cone_is_made_while_explain_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise AssertionError("made at the press")

    async def run() -> None:
        app = opened("explain", "alternating-line", n=5)
        await app.panel("ExplainPanel").ahead.wait()
        monkeypatch.setattr(assumptions, "assumed_cone", late)
        proof.begin(app.session)
        await panel(app).places.wait()
        assert panel(app).places.error is None and app.session.frame.proof.done
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


def test_without_weights_there_is_nothing_to_ask() -> None:
    session = Session()
    with pytest.raises(ValueError, match="Turn to Explain"):
        proof.begin(session)
    with pytest.raises(ValueError, match="Nothing is asked"):
        proof.reveal(session)
