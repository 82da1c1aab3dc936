"""The arena's panel without a browser: run, cancel, claims on the plane, other weights."""

from __future__ import annotations

import asyncio

import pytest

from explorer.engine.confidence import share
from explorer.engine.roster import ROSTER
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.attack.arena import CANCEL, RUN
from tests.page.pages import label, on_plane, press, send, trained


@pytest.fixture
def app():
    made = trained()
    play.go(made.session, "arena")
    yield made
    made.close()


def only(app: App, *keys: str) -> None:
    """Tick these attacks and no others."""
    for r in app.panels["Arena"].table.rows:
        if r["ticked"] != (r["key"] in keys):
            send(app.panels["Arena"].table, kind="tick", key=r["key"], ticked=r["key"] in keys)
    assert {r["key"] for r in app.panels["Arena"].table.rows if r["ticked"]} == {*keys}


def run(app: App) -> None:
    """Press Run, and wait."""
    panel = app.panels["Arena"]

    async def pressed() -> None:
        press(panel.row, "go")
        assert panel.job.busy and label(panel.row, "go") == CANCEL
        await panel.job.wait()

    asyncio.run(pressed())
    assert panel.failure.layout.display == "none", panel.failure.value


def row(app: App, key: str) -> dict:
    (found,) = [r for r in app.panels["Arena"].table.rows if r["key"] == key]
    return found


def test_it_opens_with_several_attacks_ticked_and_says_which_cannot_run(app: App) -> None:
    rows = app.panels["Arena"].table.rows
    assert [r["key"] for r in rows] == list(ROSTER)
    assert sum(r["ticked"] for r in rows) >= 3
    for r in rows:
        assert r["off"] == bool(r["words"]) and not (r["off"] and r["ticked"])
    assert "one input" in row(app, "univariate")["words"] and row(app, "bilevel")["off"]


def test_runs_fill_the_rows_with_the_numbers_of_the_scoreboard(app: App) -> None:
    panel = app.panels["Arena"]
    only(app, "kkt", "inversion")
    run(app)
    for line in panel.lines():
        assert line.runs == 3
        shown = row(app, line.key)
        assert shown["share"] == [line.recall[1].value, line.recall[1].low, line.recall[1].high]
        known = share(line.chance, [line.n] * len(line.chance))
        assert shown["chance"] == [known.value, known.low, known.high]
        right, false, chance, seconds = shown["cells"]
        assert right == f"{line.found[1]} of {line.claims}"
        assert int(false) == line.claims - line.found[1]
        assert chance.startswith(f"{line.control[1] * line.n:.2g} (")
        assert float(seconds) == pytest.approx(line.cpu, rel=0.1) and line.cpu > 0
    assert label(panel.row, "go") == RUN and panel.row.json("share")["hidden"]
    send(panel.table, kind="choose", key="inversion")
    claims = app.session.frame.claims
    assert claims is not None and panel.table.chosen == "inversion"
    assert len(on_plane(app)["candidates"]) == len(claims.x)
    shown = app.session.frame.arena
    assert app.panels["HeadlinePanel"].text == f"{shown.title} {shown.sentence}" and shown.title
    send(panel.table, kind="choose", key="other")  # another set that explains the weights
    assert app.session.frame.claims is panel.other.other
    assert "other points" in app.session.frame.arena.sentence
    send(panel.table, kind="choose", key="hinge")  # it did not run: nothing to draw
    assert panel.table.chosen == "other"
    play.go(app.session, "attack")
    assert app.session.frame.claims is None


def test_other_weights_clear_the_board(app: App) -> None:
    panel = app.panels["Arena"]
    only(app, "inversion")
    run(app)
    assert panel.rows and panel.table.chosen
    play.go(app.session, "train")
    play.step(app.session, 50)
    play.go(app.session, "arena")
    assert panel.rows == [] and panel.table.chosen == "" and app.session.frame.claims is None
    assert not any("share" in r for r in panel.table.rows)


def test_nothing_chosen_is_said(app: App) -> None:
    panel = app.panels["Arena"]
    only(app)
    press(panel.row, "go")
    assert "tick" in app.session.message
