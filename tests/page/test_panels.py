"""Panels without a browser: what they show of a frame, and that one broken view is alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import ipywidgets as w
import numpy as np
import pytest

from explorer.engine.data import preset
from explorer.engine.roster import ROSTER
from explorer.page import play
from explorer.page.apps.explorer import FOLDS, App
from explorer.page.controls.row import Row
from explorer.page.frame import STAGES
from explorer.page.panels.base import Panel
from explorer.page.session import Note
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train
from tests.page.pages import choose, no_failures, on_plane, press, send, walk

app = pytest.fixture(lambda: App(preset("alternating-line")))


def test_the_whole_road_by_its_buttons(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.page.play.AT_ONCE_S", float("inf"))  # however loaded the machine
    session = app.session
    header, transport = app.panels["Header"], app.panels["TransportPanel"]
    send(header.view, kind="stage", value="train")
    send(transport.view, kind="steps", value=1500)
    assert session.frame.training.state.t == 1500
    assert "unexplained" in app.panels["HeadlinePanel"].text
    send(header.view, kind="stage", value="attack")
    send(transport.view, kind="steps", value=20)
    assert session.frame.attack.state.t == 20
    said = app.panels["HeadlinePanel"].text
    assert "of 8" in said or "claim" in said
    no_failures(app)


def test_a_press_on_pause_that_comes_after_the_end_does_not_play_again(app: App) -> None:
    bar = app.panels["TransportPanel"].view
    send(bar, kind="pause")
    assert not app.session.running

    async def press_twice() -> None:  # on a slow line
        send(bar, kind="play")
        send(bar, kind="play")
        assert app.session.running and bar.state["running"]
        send(bar, kind="pause")
        send(bar, kind="pause")

    asyncio.run(press_twice())
    assert not app.session.running and not bar.state["running"]


@pytest.mark.parametrize("name", ["moons", "two-points", "alternating-circle"])
def test_every_stage_of_every_kind_of_preset_renders(app: App, name: str) -> None:
    draw.load(app.session, preset(name))
    play.go(app.session, "train")
    no_failures(app)
    play.step(app.session, 2000)
    play.go(app.session, "attack")
    play.step(app.session, 3)
    no_failures(app)
    draw.clear(app.session)
    no_failures(app)


def test_a_refused_turn_leaves_the_tab_where_it_was_and_says_why(app: App) -> None:
    header, notice = app.panels["Header"].view, app.panels["Notice"].view
    draw.clear(app.session)
    send(header, kind="stage", value="train")
    assert header.state["now"] == "draw"
    assert "No points" in notice.state["words"]
    send(notice, kind="close")
    assert app.session.message == notice.state["words"] == ""


def test_a_note_stands_beside_the_plane_until_the_next_command(app: App) -> None:
    note, notice = app.panels["NoteBox"].view, app.panels["Notice"].view
    app.session.message = Note("note")
    assert note.state["words"] == "note" and note.state["stays"]
    assert notice.state["words"] == ""  # that one stands over the points
    app.session.attempt(draw.clear, app.session)
    assert note.state["words"] == ""


def test_the_tabs_say_what_is_done_and_why_others_are_not_to_be_had(app: App) -> None:
    def states() -> dict[str, str]:
        return {row["key"]: row["state"] for row in app.panels["Header"].view.state["stages"]}

    draw.clear(app.session)
    assert set(states().values()) == {"open", "later"} and states()["draw"] == "open"
    tips = [row["tip"] for row in app.panels["Header"].view.state["stages"]]
    assert all("Not yet" in tip for tip in tips[1:])
    draw.load(app.session, preset("alternating-line"))
    assert states()["draw"] == "done" and states()["train"] == "open"
    train.jump_to_exact(app.session)
    assert states()["train"] == "done" and states()["attack"] == "open"
    play.go(app.session, "attack")
    play.step(app.session, 3)
    assert states()["attack"] == "done"


@pytest.mark.parametrize("content", [
    {}, {"kind": "stage"}, {"kind": "stage", "value": ["draw"]}, {"kind": "example", "value": {}},
    {"kind": "steps", "value": "9"}, {"kind": "seek", "value": float("nan")},
    {"kind": "select", "value": 7}, {"kind": "speed", "value": -1}, {"kind": "label", "value": {}},
    {"kind": "layer", "value": []}, {"kind": "preset", "value": {}}, {"kind": "redraw", "value": 3},
    {"kind": "seed", "value": -1}, {"kind": "fold", "value": 3}, {"kind": 3},
])  # fmt: skip
def test_what_no_hand_can_send_changes_nothing(app: App, content: dict) -> None:
    before = app.session.frame
    for name in ("Header", "TransportPanel", "Tools", "Presets"):
        send(app.panels[name].view, **content)
    send(app.folds, **content)
    assert app.session.frame is before and app.open == ""
    no_failures(app)


def test_a_press_on_a_stage_or_a_lesson_closes_what_covers_it(app: App) -> None:
    header, stage = app.panels["Header"].view, app.session.frame.stage
    send(header, kind="share", value=None)
    assert app.open == "Share"
    send(header, kind="stage", value=stage)
    assert app.open == "" and app.session.frame.stage == stage
    send(header, kind="share", value=None)
    for begun in (0, 1):  # a lesson, and another that follows it
        send(header, kind="lesson", value=begun)
        assert app.open == "" and app.session.lesson is not None
        send(header, kind="share", value=None)
        assert app.open == "Share"


def test_the_landscape_shows_the_candidates_at_its_handle(app: App) -> None:
    session = app.session

    train.jump_to_exact(session)
    play.go(session, "attack")
    play.step(session, 3)
    play.go(session, "landscape")
    for weights in ((0.0, 0.0, 1.0), (0.5, 0.2, 0.3)):
        landscape.place_handle(session, weights)
        shown = on_plane(app)
        held = session.frame.starts.candidates
        places = session.axes.shares(np.column_stack([held.x, held.y]))  # on a line, by label
        np.testing.assert_allclose(shown["candidates"][:, :2], places, atol=1e-6)
        ends = shown["lines"][1::3]  # from the point that each is mixed from
        np.testing.assert_allclose(ends, places, atol=1e-6)


def test_a_panel_is_built_when_it_is_first_seen(app: App) -> None:
    arena = app.panels["Arena"]
    assert arena.widget is None
    train.jump_to_exact(app.session)
    play.go(app.session, "arena")
    built = arena.widget
    assert built is not None
    play.go(app.session, "attack")
    play.go(app.session, "arena")
    assert arena.widget is built


def test_a_broken_view_says_so_in_its_box_and_the_others_go_on(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(frame: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(app.panels["MarginsPanel"], "render", broken)
    play.go(app.session, "train")
    assert "on purpose" in app.panels["MarginsPanel"].failure.value
    play.step(app.session, 5)
    assert "5" in app.panels["TransportPanel"].view.state["where"]


def test_an_attack_that_cannot_draw_leaves_the_page_answering(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(target: object, state: object) -> None:
        raise RuntimeError("cannot draw")

    monkeypatch.setitem(ROSTER, "kkt", replace(ROSTER["kkt"], shapes=broken))
    train.jump_to_exact(app.session)
    play.go(app.session, "attack")
    assert any("cannot draw" in said.value for said in said_by(app.panels["PlanePanel"]))
    answered = app.panels["PlanePanel"].view
    send(answered, kind="drawn", frame=answered.number)
    assert app.session.drawn == app.session.shown


def said_by(panel: Panel) -> list[w.HTML]:
    return [child for child in panel.box.children if isinstance(child, w.HTML)]


def test_a_refused_setting_jumps_back(app: App) -> None:
    play.go(app.session, "train")
    play.step(app.session, 2000)
    play.go(app.session, "attack")
    form = app.panel("AttackForm").forms["kkt"]
    before = form.row.value("m")
    choose(form.row, "m", 41)
    assert form.row.value("m") == before
    assert "even" in app.session.message


def test_every_control_explains_itself(app: App) -> None:
    train.jump_to_exact(app.session)
    for stage in STAGES:
        play.go(app.session, stage)
        for title in FOLDS:
            app.unfold(title)
        if stage == "landscape":
            press(app.panels["StartsPanel"].further, "more")
            landscape.show_map(app.session, "point")
    built = [panel.widget for panel in app.panels.values() if panel.widget is not None]
    below = [x for widget in built for x in walk(widget)]
    items = [item for x in below if isinstance(x, Row) for item in x.items.values()]
    kinds = {type(x) for x in below if isinstance(x, w.ValueWidget | w.Button)}
    assert kinds <= {w.HTML}, "one kit of controls"
    items = [item for item in items if item.kind not in ("words", "break")]
    assert len(items) > 60
    assert all(item.tip or all(tip for *_, tip in item.options) for item in items)


def test_closing_unfollows_the_session(app: App) -> None:
    app.close()
    before = app.panels["HeadlinePanel"].text
    draw.load(app.session, preset("moons"))
    assert app.panels["HeadlinePanel"].text == before


def test_many_points_are_solved_beside_the_page(app: App) -> None:
    draw.load(app.session, preset("alternating-line", n=50))
    form = app.panels["TrainForm"]

    async def solve(meanwhile: Callable[[], None]) -> None:
        play.go(app.session, "train")
        press(form.buttons, "jump")
        await asyncio.sleep(0)
        meanwhile()
        await form.job.wait()

    points = app.session.frame.dataset.without([0])
    asyncio.run(solve(lambda: draw.edit(app.session, points)))
    now = app.session.frame.training
    assert now.t == 0 and now.certificate is None and "changed meanwhile" in app.session.message
    asyncio.run(solve(lambda: None))
    assert app.session.frame.training.certificate.light.name == "EXACT"
