"""The explain stage without a browser: drags, pins, merges, undo, and the linear programs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import torch

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.plane import shapes
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.explained import Explained
from explorer.research.pictures.axes import Axes
from tests.page.pages import fixture_of, opened, press, send

app = fixture_of(lambda: opened("explain", "moons", n=12, seed=1))


def state(app: App) -> Explained:
    return explain.explanation(app.session)


def free_point(app: App) -> int:
    return int((~state(app).pinned).nonzero()[0])


def share(app: App, x: torch.Tensor) -> dict[str, float]:
    e = app.session.extent
    return {"x": (float(x[0]) / e + 1) / 2, "y": (float(x[1]) / e + 1) / 2}


def hand(app: App, *events: dict[str, object]) -> None:
    send(app.panels["PlanePanel"].view, kind="events", events=list(events))


def no_failures(app: App) -> None:
    for name, panel in app.panels.items():
        assert panel.failure.layout.display == "none", (name, panel.failure.value)


def test_a_drag_by_the_mouse_makes_two_points_that_explain_the_same(app: App) -> None:
    before, i = state(app).now.n, free_point(app)
    x = state(app).now.x[i]
    hand(app, {"kind": "down", **share(app, x)})
    assert state(app).selected == i
    hand(app, {"kind": "move", **share(app, x + 0.05)}, {"kind": "up", **share(app, x + 0.05)})
    assert state(app).now.n == before + 1
    assert state(app).change < 1e-9 and state(app).margin_error < 1e-9
    assert headline(app.session.frame).tone == "good"
    explain.combine(app.session)
    assert torch.allclose(state(app).now.x, state(app).truth.x, atol=1e-9)
    play.undo(app.session)
    play.undo(app.session)
    assert state(app).now is state(app).truth
    play.redo(app.session)
    assert state(app).now.n == before + 1
    explain.reset(app.session)
    assert state(app).now is state(app).truth
    no_failures(app)


def test_the_curve_is_flat_to_the_wall_and_jumps_there_as_predicted(app: App) -> None:
    found = 0
    for i in (~state(app).pinned).nonzero().flatten().tolist():
        explain.reset(app.session)
        explain.choose(app.session, i)
        app.session.attempt(explain.pull, app.session, state(app).now.x[i] + 1e-3)
        slide = state(app).slide
        if slide is None:
            continue
        at, off = slide.curve[:, 0], slide.curve[:, 1]
        inside = (at < slide.extent.plus) & (at > -slide.extent.minus)
        assert float(off[inside].max()) < 1e-9
        for wall, jump in slide.jumps:
            past = (at * (1 if wall > 0 else -1) > abs(wall)).nonzero().flatten()
            first = past[0] if wall > 0 else past[-1]
            assert float(off[first]) == pytest.approx(jump, rel=0.05)
            found += 1
        explain.drop(app.session)
    assert found
    no_failures(app)


def test_a_pinned_point_says_so_and_moves_only_freely(app: App) -> None:
    i = int(state(app).pinned.nonzero()[0])
    explain.choose(app.session, i)
    x = state(app).now.x[i]
    app.session.attempt(explain.pull, app.session, x + 0.1)
    assert "split" in app.session.message
    assert "split" in app.panels["ExplainPanel"].drag.shown.foot
    explain.set_free(app.session, True)
    app.session.attempt(explain.pull, app.session, x + 0.1)
    assert state(app).change > 1e-3
    assert headline(app.session.frame).tone == "bad"
    no_failures(app)


def test_keys_choose_drag_and_merge(app: App) -> None:
    at = {"x": 0.5, "y": 0.5}
    for _ in range(free_point(app) + 1):
        hand(app, {"kind": "next", **at})
    before = state(app).now.n
    assert state(app).selected == free_point(app)
    for kind in ("right", "left", "up-key", "down-key", "right", "right"):
        hand(app, {"kind": kind, **at})
    assert state(app).now.n == before + 1
    hand(app, {"kind": "act", **at}, {"kind": "move-tool", **at})
    assert state(app).now.n == before
    hand(app, {"kind": "free", **at})
    assert state(app).free
    hand(app, {"kind": "undo", **at}, {"kind": "redo", **at}, {"kind": "previous", **at})
    hand(app, {"kind": "nonsense", **at}, {"kind": "move", "x": float("nan"), "y": 0})
    no_failures(app)


def test_the_linear_programs_run_and_show_their_sets(app: App) -> None:
    panel = app.panels["ExplainPanel"]

    async def ask() -> None:
        for one in (panel.forced, panel.farthest):
            press(one.row, "ask")
            await one.wait()

    asyncio.run(ask())
    assert state(app).forced is not None and len(state(app).forced) == state(app).truth.n
    assert state(app).now is not state(app).truth
    assert panel.forced.text and panel.farthest.text
    draw.load(app.session, preset("moons", n=6))  # other weights: what was said of these goes
    train.jump_to_exact(app.session)
    play.go(app.session, "attack")
    play.go(app.session, "explain")
    assert not panel.forced.text and not panel.farthest.text
    no_failures(app)


def test_words_beside_a_point_stay_on_the_plane(app: App) -> None:
    forced = state(app).truth.lam / 2
    right = max(x for x, _ in state(app).truth.x.tolist())
    for extent in (2.0, 1.05 * right):
        held = replace(state(app), forced=forced)
        texts = shapes.explain_shapes(held, Axes((0.0, extent), (0.0, extent))).texts
        assert len(texts) == state(app).truth.n
        assert all(abs(x) < (1 - 0.2) * extent for x, *_ in texts)
    assert any(x < right < x + 0.5 for x, *_ in texts)  # left of the last one


@pytest.mark.parametrize("name", ["alternating-line", "two-points"])
def test_on_a_line_everything_is_pinned_and_free_drags_break_the_margin(name: str) -> None:
    made = opened("explain", name)
    assert explain.explanation(made.session).free
    explain.choose(made.session, 0)
    made.session.attempt(
        explain.pull, made.session, explain.explanation(made.session).now.x[0] + 0.05
    )
    play.go(made.session, "attack")
    no_failures(made)
    made.close()


def test_what_cannot_be_explained_is_refused_and_the_stage_stays() -> None:
    made = App()
    made.session.attempt(play.go, made.session, "explain")
    assert made.session.frame.stage == "draw" and "No network" in made.session.message
    for command in (
        lambda: explain.combine(made.session),
        lambda: explain.reset(made.session),
        lambda: explain.split_widest(made.session),
    ):
        made.session.attempt(command)
        assert "Nothing" in made.session.message
    made.close()
