"""The explain stage without a browser: drags, pins, merges, undo, and the linear programs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.explanations.cells import Extent
from explorer.engine.explanations.masses import FORCED
from explorer.engine.explanations.splitting import free_direction, margins
from explorer.page import history, play
from explorer.page.apps.explorer import App
from explorer.page.job import JobState
from explorer.page.plane import shapes
from explorer.page.plane.marks import explain_marks
from explorer.page.plane.scene import Look, scene
from explorer.page.plane.shapes import pointed_at, shapes_of
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.explain.panel import drag_chart
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research import explained
from explorer.research.explained import Explained, lengths, split_toward
from explorer.research.pictures.axes import Axes
from tests.page.pages import no_failures, opened, page_in, press, send

app = pytest.fixture(lambda: opened("explain", "moons", n=12, seed=1))


def state(app: App) -> Explained:
    return explain.explanation(app.session)


def free_point(app: App) -> int:
    return int((~state(app).pinned).nonzero()[0])


def share(app: App, x: torch.Tensor) -> dict[str, float]:
    e = app.session.extent
    return {"x": (float(x[0]) / e + 1) / 2, "y": (float(x[1]) / e + 1) / 2}


def least_way(app: App, i: int) -> float:
    """How far both halves of point i of the truth went at least."""
    now = state(app)
    return float((now.now.x[[i, -1]] - now.truth.x[i]).norm(dim=1).min())


def values_on_plane(app: App) -> dict[str, object]:
    frame, axes = app.session.frame, app.session.axes
    return scene(frame, axes, Look(), shapes_of(frame, axes), {})[1]


def hand(app: App, *events: dict[str, object]) -> None:
    send(app.panels["PlanePanel"].view, kind="events", events=list(events))


def test_a_drag_by_the_mouse_makes_two_points_that_explain_the_same(app: App) -> None:
    before, i = state(app).now.n, free_point(app)
    x = state(app).now.x[i]
    hand(app, {"kind": "down", **share(app, x)})
    assert state(app).selected == i
    hand(app, {"kind": "move", **share(app, x + 0.05)}, {"kind": "up", **share(app, x + 0.05)})
    assert state(app).now.n == before + 1
    assert state(app).change < 1e-9 and state(app).margin_error < 1e-9
    assert headline(app.session.frame).tone not in ("warn", "bad")
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


def test_before_a_drag_each_point_has_a_stem_as_high_as_its_multiplier(app: App) -> None:
    now = state(app).now
    seen = drag_chart(state(app))
    drawn = {int(i): float(v) for s in seen.series for i, v in zip(s.ids, s.y, strict=True)}
    assert drawn == pytest.approx(dict(enumerate(now.lam.tolist())))
    circle = opened("explain", "alternating-circle", n=8)
    assert bool(state(circle).pinned.all())  # no signs: the strongest first
    alike = drag_chart(state(circle)).series
    heights = [v for s in alike for v in zip(s.x, s.y, strict=True)]
    assert [v for _, v in sorted(heights)] == sorted((v for _, v in heights), reverse=True)
    send(app.panel("ExplainPanel").drag, kind="hover", id=3)
    assert app.session.pointed == 3


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


def test_a_half_that_leaves_the_plane_is_in_sight_again_as_the_hand_lets_go(app: App) -> None:
    explain.set_free(app.session, True)
    right, far = state(app).now.x[:, 0].argmax(), {"x": 0.02, "y": 0.5}
    hand(app, {"kind": "down", **share(app, state(app).now.x[right])}, {"kind": "move", **far})
    before = app.session.axes
    assert np.abs(before.shares(state(app).now.x.numpy())).max() > 1
    hand(app, {"kind": "up", **far})
    assert np.abs(app.session.axes.shares(state(app).now.x.numpy())).max() < 1
    play.ask_places(app.session)  # it is no longer on screen
    assert app.session.axes == before
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
        press(panel.forced.row, "ask")
        await panel.forced.wait()
        assert len(state(app).forced) == state(app).truth.n
        assert app.session.frame.question == "certified"
        press(panel.farthest.row, "ask")
        await panel.farthest.wait()

    asyncio.run(ask())
    assert state(app).forced is None and app.session.frame.question == "farthest"
    assert state(app).now is state(app).far.explanation
    draw.load(app.session, preset("moons", n=6))  # other weights: what was said of these goes
    train.jump_to_exact(app.session)
    play.go(app.session, "attack")
    play.go(app.session, "explain")
    assert app.session.frame.question == "split"
    no_failures(app)


def test_a_new_question_takes_the_place_of_the_last_one(app: App) -> None:
    session, panel = app.session, app.panels["ExplainPanel"]
    seen = set()

    async def ask() -> None:
        for name in ("farthest", "radii", "farthest", "forced", "radii"):
            one = getattr(panel, name)
            press(one.row, "ask")
            await one.wait()
            now = session.frame
            answers = (now.certain, now.proof, state(app).far, state(app).forced)
            assert sum(one is not None for one in answers) == 1
            assert headline(now).question
            seen.add((now.question, headline(now).question))

    asyncio.run(ask())
    assert len(seen) == 3
    explain.choose(session, free_point(app))  # a hand asks what a point can do
    assert session.frame.question == "split" and session.frame.radii is None
    play.undo(session)
    play.ask_places(session)
    assert session.frame.question == "places" and state(app).now is state(app).truth
    proof.leave(session)
    assert session.frame.question == "split" and not headline(session.frame).question
    no_failures(app)


def test_a_map_without_any_colour_leaves_the_points_in_sight(app: App) -> None:
    session, panel = app.session, app.panels["ExplainPanel"]

    async def ask() -> None:
        press(panel.radii.row, "ask")
        await panel.radii.wait()

    asyncio.run(ask())
    held = session.frame.certain
    session.show(radii=replace(held, map=replace(held.map, values=0 * held.map.values, least=0.0)))
    drawn = app.panels["PlanePanel"].view.originals
    assert "map" in drawn and "energy" not in drawn and "marks" in drawn
    assert panel.drag.shown.series and panel.radii.row.json("ask")["hidden"]
    assert not panel.radii.text and headline(session.frame).action.key == "places"


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
    assert not len(explain_marks(made.session.frame, made.session.axes, True)["marks"])
    assert not made.panels["ExplainPanel"].dots.shown.series
    explain.choose(made.session, 0)
    made.session.attempt(
        explain.pull, made.session, explain.explanation(made.session).now.x[0] + 0.05
    )
    play.go(made.session, "attack")
    no_failures(made)


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


# --- the explain stage in numbers: what a drag makes, what is undone, drawn, said and cancelled ---


def movable(app: App) -> list[int]:
    return [int(i) for i in (~state(app).pinned).nonzero()]


def test_both_children_go_the_same_share_of_their_way_and_wait_at_their_walls() -> None:
    extent = Extent(2.0, 1.0, (), (), 0)
    assert lengths(extent, 1.0, 5.0) == (1.0, 0.5)
    assert lengths(extent, 4.0, 5.0) == (4.0, 1.0)
    assert lengths(extent, -0.25, 5.0) == (0.5, 0.25)
    assert lengths(extent, -3.0, 5.0) == (2.0, 3.0)
    assert lengths(Extent(float("inf"), 1.0, (), (), 0), 1.0, 4.0) == (1.0, 0.25)
    assert lengths(Extent(0.0, 0.0, (), (), 1), 0.3, 5.0) == (0.3, 0.3)
    assert lengths(Extent(0.0, 0.2, (), (), 1), 0.3, 5.0) == (0.3, 0.2)


@pytest.mark.parametrize("at", [0.01, -0.01])
def test_the_child_in_hand_is_where_it_was_dragged(app: App, at: float) -> None:
    e, i = state(app).truth, movable(app)[0]
    u, extent = free_direction(state(app).net, e, i)
    made = split_toward(state(app).net, e, i, u, extent, at, 4.0)
    torch.testing.assert_close(made.x[i], e.x[i] + at * u)
    back = (made.x[-1] - e.x[i]) @ u
    assert float(back) * at < 0
    lam = made.lam[i] * (made.x[i] - e.x[i]) + made.lam[-1] * (made.x[-1] - e.x[i])
    torch.testing.assert_close(lam, torch.zeros(2, dtype=torch.float64), atol=1e-9, rtol=0)


def test_a_drag_of_many_moves_is_one_step_of_undo(app: App) -> None:
    x = state(app).now.x[movable(app)[0]]
    steps = [{"kind": "down", **share(app, x)}]
    steps += [{"kind": "move", **share(app, x + 0.02 * k)} for k in (1, 2, 3)]
    for event in [*steps, {"kind": "up", **share(app, x + 0.06)}]:
        send(app.panels["PlanePanel"].view, kind="events", events=[event])
    assert state(app).now.n == state(app).truth.n + 1
    play.undo(app.session)
    assert state(app).now is state(app).truth and app.session.frame.explain.past == ()


def test_a_reset_is_undone_and_does_nothing_at_the_truth(app: App) -> None:
    explain.reset(app.session)
    assert app.session.frame.explain.past == ()
    explain.choose(app.session, movable(app)[0])
    explain.split_widest(app.session)
    present = state(app).now
    explain.reset(app.session)
    assert state(app).now is state(app).truth
    play.undo(app.session)
    assert state(app).now is present


def test_only_the_last_steps_are_kept(app: App, monkeypatch) -> None:
    monkeypatch.setattr(history, "MOST_UNDO", 3)
    for k in range(5):
        explain.choose(app.session, movable(app)[0])
        app.session.attempt(
            explain.pull, app.session, state(app).now.x[movable(app)[0]] + 1e-3 * (k + 1)
        )
        explain.drop(app.session)
    past = explain.history(app.session).past
    assert len(past) == 3 and past[-1].now.n == state(app).now.n - 1


def test_a_merge_keeps_hold_of_the_point_whichever_was_chosen_first(app: App) -> None:
    i = movable(app)[0]
    for first_child in (True, False):
        explain.reset(app.session)
        explain.choose(app.session, i)
        explain.split_widest(app.session)
        last = state(app).now.n - 1
        for one in (i, last) if first_child else (last, i):
            explain.choose(app.session, one)
        explain.combine(app.session)
        held = state(app).selected
        torch.testing.assert_close(state(app).now.x[held], state(app).truth.x[i])


def test_the_widest_split_ends_at_a_wall_or_at_the_edge_of_the_plane(app: App) -> None:
    edge = app.session.extent
    for i in movable(app):
        explain.reset(app.session)
        net, e = state(app).net, state(app).truth
        _, extent = free_direction(net, e, i)
        explain.choose(app.session, i)
        explain.split_widest(app.session)
        assert state(app).now.n == e.n + 1 and not app.session.message
        ends = torch.stack([state(app).now.x[i], state(app).now.x[-1]])
        assert float(ends.abs().max()) <= edge + 1e-9 and state(app).change < 1e-9
        went = (ends - e.x[i]).norm(dim=1)
        limits = [extent.plus - went, extent.minus - went, edge - ends.abs().max(dim=1).values]
        assert min(float(v.abs().min()) for v in limits if torch.isfinite(v).all()) < 1e-6


def test_trained_weights_are_explained_by_points_near_their_margin() -> None:
    made = page_in("explain", preset("moons", n=12, seed=1), 600)
    e = state(made).truth
    assert not state(made).exact
    assert float(margins(state(made).net, e).max()) <= 1 + explained.TRAINED_MARGIN + 1e-9
    q = margins(state(made).net, e)
    assert float(q.min()) == pytest.approx(1.0)


def test_the_chart_shows_the_numbers_of_the_drag(app: App) -> None:
    panel, i = app.panels["ExplainPanel"], movable(app)[0]
    explain.set_free(app.session, True)
    explain.choose(app.session, i)
    before = panel.drag.shown
    assert before.handle is None and before.lit == i
    app.session.attempt(explain.pull, app.session, state(app).now.x[i] + torch.tensor([0.5, 0.4]))
    slide, off = state(app).slide, state(app).change
    assert off > 1e-3
    shown = panel.drag.shown
    named = {s.name: s for s in shown.series}
    assert [*named["now"].x, *named["now"].y] == pytest.approx([slide.at, off])
    assert shown.handle == pytest.approx(slide.at)
    inside = np.abs(slide.curve[:, 0].numpy()) <= shown.x.high
    curve = slide.curve.numpy()[inside]
    assert named["change of the sum"].x == pytest.approx(curve[:, 0])
    assert named["change of the sum"].y == pytest.approx(curve[:, 1])
    assert named["margin error"].y == pytest.approx(np.minimum(curve[:, 2], shown.y.high))
    assert shown.y.high >= curve[:, 1].max()


def test_the_line_of_the_chart_drags_the_point(app: App) -> None:
    panel, i = app.panels["ExplainPanel"], movable(app)[0]
    explain.choose(app.session, i)
    app.session.attempt(explain.pull, app.session, state(app).now.x[i] + 1e-3)
    slide = state(app).slide
    send(panel.drag, kind="handle", at=0.5 * slide.extent.plus)
    assert state(app).slide.at == pytest.approx(0.5 * slide.extent.plus)
    torch.testing.assert_close(
        state(app).now.x[i], slide.before.x[i] + 0.5 * slide.extent.plus * slide.u
    )
    assert panel.drag.shown.handle == pytest.approx(state(app).slide.at)


def test_every_point_has_its_sign_on_its_stem_and_a_click_takes_it(app: App) -> None:
    panel = app.panels["ExplainPanel"]
    assert not panel.dots.shown.series  # beside the chart of a drag alone
    drawn = panel.drag.shown.series
    signs = {s.name: s.ids.tolist() for s in drawn if s.name and s.kind == "dots"}
    lam = state(app).now.lam.numpy()
    order = np.argsort(-lam, kind="stable").tolist()
    assert signs["can become two"] == [i for i in order if i in movable(app)]
    both = [*signs["can become two"], *signs["cannot be split"]]
    assert sorted(both) == list(range(state(app).now.n))
    for kind in ("stems", "dots"):
        mine = [s for s in drawn if s.kind == kind]
        at = {i: at for s in mine for i, *at in zip(s.ids, s.x, s.y, strict=True)}
        assert at == {i: [rank, lam[i]] for rank, i in enumerate(order, start=1)}
    send(panel.drag, kind="choose", id=movable(app)[0])
    assert state(app).selected == movable(app)[0] == panel.drag.shown.lit
    send(panel.drag, kind="hover", id=3)
    assert app.session.pointed == 3
    app.session.attempt(explain.pull, app.session, state(app).now.x[movable(app)[0]] + 1e-3)
    beside = [i for s in panel.dots.shown.series if s.name for i in s.ids.tolist()]
    assert sorted(beside) == list(range(state(app).now.n))
    assert panel.dots.shown.lit == state(app).selected


def test_forced_points_are_counted_and_one_program_runs_at_a_time(app: App) -> None:
    panel = app.panels["ExplainPanel"]

    async def ask() -> None:
        press(panel.forced.row, "ask")
        await asyncio.sleep(0)
        press(panel.farthest.row, "ask")
        assert panel.forced.state is JobState.RUNNING
        both = (panel.forced, panel.farthest)
        assert [one.row.json("cancel")["hidden"] for one in both] == [False, True]
        await panel.forced.wait()
        await panel.farthest.wait()

    asyncio.run(ask())
    made = app.session.frame.aim.certainty
    count = int(made.certain.sum())
    assert 0 < count < state(app).truth.n
    assert str(count) in headline(app.session.frame).title
    sure = made.certain[state(app).truth.origin]
    assert bool((state(app).forced[sure] > FORCED * state(app).truth.mass).all())
    assert state(app).now is state(app).truth  # the second program was never begun
    assert panel.forced.row.json("cancel")["hidden"]


def test_both_halves_are_marked_with_their_shares_of_the_multiplier(app: App) -> None:
    i = movable(app)[0]
    explain.choose(app.session, i)
    assert len(shapes_of(app.session.frame, app.session.axes).hands) == 1
    app.session.attempt(explain.pull, app.session, state(app).now.x[i] + 0.05)
    now = state(app).now
    drawn = shapes_of(app.session.frame, app.session.axes)
    both = now.x[[i, now.n - 1]].numpy()
    assert drawn.hands == pytest.approx(both) and drawn.lines == pytest.approx(both)
    total = float(now.lam[i] + now.lam[-1])
    assert total == pytest.approx(float(state(app).truth.lam[i]))
    said = [words for *_, words in drawn.texts if "%" in words]
    assert said == [f"{float(now.lam[k]) / total:.0%} of its weight" for k in (i, now.n - 1)]


def test_a_point_under_the_pointer_in_a_chart_is_marked_on_the_plane(app: App) -> None:
    app.session.choose(pointed=2)
    assert pointed_at(app.session.frame, 2) == pytest.approx(state(app).now.x[2:3].numpy())
    app.session.choose(pointed=10**6)  # gone meanwhile
    assert len(pointed_at(app.session.frame, 10**6)) == 0
    app.session.choose(pointed=-1)
    assert app.panels["PlanePanel"].failure.layout.display == "none"


def test_a_visitor_sees_the_point_that_can_move_farthest_as_two(app: App, monkeypatch) -> None:
    monkeypatch.setattr(explain, "IN_SIGHT", (1.0,))  # as far as a hand can split it
    session, before = app.session, state(app).now
    explain.show_split(session)
    now = state(app)
    i, mate = now.halves
    assert now.now.n == before.n + 1 and now.change < 1e-9 and i in movable(app)
    apart = values_on_plane(app)["apart"]
    at = session.axes.shares(torch.stack([before.x[i], now.now.x[i], now.now.x[mate]]).numpy())
    assert apart == pytest.approx(at.ravel().tolist()) and np.abs(at).max() < 1 + 1e-9
    longest = least_way(app, i)
    order = headline(session.frame).order
    assert order
    # The drag goes on with either of the two, and no third one comes.
    for one in (mate, i):
        there = state(app).now.x[one]
        x = (2 * there + now.truth.x[i]) / 3
        hand(app, {"kind": "down", **share(app, there)}, {"kind": "move", **share(app, x)})
        assert state(app).now.n == before.n + 1 and state(app).halves == [i, mate]
        assert "apart" not in values_on_plane(app)
        assert not headline(session.frame).order
    hand(app, {"kind": "up", **share(app, x)})
    explain.reset(session)
    for k in movable(app):  # no other goes farther
        explain.reset(session)
        explain.choose(session, k)
        explain.split_widest(session)
        assert least_way(app, k) <= longest + 1e-9
    no_failures(app)


def test_the_tab_asks_where_a_point_must_be_unless_a_hand_was_there_and_in_no_lesson(
    app: App,
) -> None:
    session = app.session
    for asked in ("places", "split"):
        play.turn(session, "attack")
        play.turn(session, "explain")
        assert session.frame.question == asked
        explain.show_split(session)
    play.undo(session)
    play.turn(session, "explain")
    assert session.frame.question == "split" and state(app).now is state(app).truth
    taught = App(lesson=7)
    play.go(taught.session, "explain")
    play.turn(taught.session, "explain")
    assert taught.session.frame.question == "split"
    assert state(taught).now is state(taught).truth
    taught.close()


def test_a_run_that_is_opened_at_explain_shows_a_split(app: App) -> None:
    play.go(app.session, "attack")
    play.open_at(app.session, "explain")
    assert app.session.frame.question == "split" and state(app).slide.shown


def test_where_nothing_can_be_proven_the_tab_asks_which_points_can_become_two(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "obstacle", lambda _: "too wide")
    play.turn(app.session, "explain")
    assert app.session.frame.question == "split" and state(app).slide.shown
