"""What the energy panel asks, draws and says, number by number."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.energy.points import energy
from explorer.engine.energy.questions import Answers, Picture
from explorer.engine.explanations.splitting import free_direction
from explorer.engine.progress import no_progress
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.frame import first_candidates
from explorer.page.history import History
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.energy_work import colour_bar
from explorer.research.pictures.shades import shades, span_of
from tests.page.pages import choose, on_plane, opened, press, send

WIDE = Picture("point", np.array([[1e-3, 2e-2], [4e-1, 5e-2], [1e-1, 3e-2]]), (-2, 2, -3, 3),
               ("x₁", "x₂"), 0.0, 0.8, None)  # fmt: skip


@pytest.fixture
def app():
    made = opened("landscape", "moons", n=8)
    landscape.show_map(made.session, "point")
    yield made
    made.close()


def test_one_question_is_answered_once_and_a_choice_asks_about_that_point(
    app: App, monkeypatch
) -> None:
    panel, asked = app.panels["EnergyPanel"], []
    answer = Answers.answer
    monkeypatch.setattr(
        Answers, "answer", lambda self, q, *rest: (asked.append(q), answer(self, q, *rest))[1]
    )
    panel.render(app.session.frame)
    assert not asked
    choose(panel.row, "point", 3)
    assert [q.index for q in asked] == [3] and landscape.candidates(app.session).mapped == 3
    app.session.seed = 7
    choose(panel.row, "kappa", 2.0)
    assert (asked[-1].seed, asked[-1].config.kappa) == (7, 2.0) and len(asked) == 2
    walk = landscape.candidates(app.session)
    assert (asked[-1].x, asked[-1].truth) == (walk.x, walk.truth)


def test_the_map_is_that_of_the_candidates_and_its_marks_stand_on_them(app: App) -> None:
    panel, session = app.panels["EnergyPanel"], app.session
    landscape.map_point(session, 2)
    place = landscape.candidates(session).x[2] + torch.tensor([0.31, -0.17])
    landscape.move_point(session, 2, place, 1)
    x, truth, y = (
        landscape.candidates(session).x.numpy(),
        landscape.candidates(session).truth.x.numpy(),
        landscape.candidates(session).y.numpy(),
    )
    drawn, axes = on_plane(app), session.axes
    np.testing.assert_allclose(drawn["hands"], axes.shares(place.numpy()), atol=1e-6)
    np.testing.assert_allclose(drawn["candidates"][:, :2], axes.shares(x), atol=1e-6)
    np.testing.assert_array_equal(drawn["candidates"][:, 2], y)
    np.testing.assert_allclose(drawn["points"][:, :2], axes.shares(truth), atol=1e-6)
    assert drawn["energyBox"] == [-1.0, -1.0, 1.0, 1.0] and panel.body.children == ()
    q = panel.work.asked
    there = energy(
        panel.work.answers.merged_network(q).net,
        landscape.candidates(session).x,
        landscape.candidates(session).y,
        q.tau,
    )
    assert panel.picture.here == pytest.approx(there, abs=1e-9)


def test_a_drag_is_one_step_of_undo_and_redo_waits_for_an_undo(app: App) -> None:
    panel, session = app.panels["EnergyPanel"], app.session
    start = landscape.candidates(session).x[1]
    for k in (1, 2, 3):
        landscape.move_point(session, 1, start + 0.1 * k, 5)
    row = panel.row.items
    assert not row["undo"].disabled and row["redo"].disabled
    landscape.move_point(session, 1, start + 0.9, 6)
    press(panel.row, "undo")
    assert (
        torch.allclose(landscape.candidates(session).x[1], start + 0.3)
        and not panel.row.items["redo"].disabled
    )
    press(panel.row, "undo")
    assert (
        torch.equal(landscape.candidates(session).x[1], start) and panel.row.items["undo"].disabled
    )


def test_keys_go_from_point_to_point_and_say_where_they_are(app: App) -> None:
    plane, session = app.panels["PlanePanel"].view, app.session
    at = {"x": 0.5, "y": 0.5}
    send(plane, kind="events", events=[{"kind": "next", **at}, {"kind": "next", **at}])
    assert landscape.candidates(session).mapped == 2 and "point 3 of 8" in plane.say
    send(plane, kind="events", events=[{"kind": "previous", **at}] * 3)
    assert landscape.candidates(session).mapped == 7
    before = landscape.candidates(session).x[7].clone()
    send(plane, kind="events", events=[{"kind": "right", **at}])
    assert (
        (landscape.candidates(session).x[7] - before)[0]
        > 0
        == float((landscape.candidates(session).x[7] - before)[1])
    )


def test_the_line_of_a_split_is_where_both_halves_stay_in_the_cell(app: App) -> None:
    play.go(app.session, "explain")
    state = explain.explanation(app.session)
    play.go(app.session, "landscape")
    landscape.show_map(app.session, "point")
    panel = app.panels["EnergyPanel"]
    choose(panel.row, "angle", 0.0)
    landscape.show_map(app.session, "split")
    seen = 0
    for i in range(state.truth.n):
        found = free_direction(state.net, state.truth, i)
        if found is None:
            continue
        landscape.map_point(app.session, int(state.truth.origin[i]))
        free = min(found[1].plus, found[1].minus)
        ends = app.session.frame.point_map.segment
        assert panel.picture.about.free == pytest.approx(free, rel=1e-3)
        place = landscape.candidates(app.session).x[landscape.candidates(app.session).mapped]
        np.testing.assert_allclose(ends.mean(0), place.numpy(), atol=1e-9)
        drawn = np.hypot(*(ends[1] - ends[0])) / 2
        assert drawn == pytest.approx(min(free, np.hypot(*app.session.axes.half)), rel=1e-3)
        assert len(on_plane(app)["strong"]) == 2
        seen += 1
    assert seen


def test_merging_is_said_with_what_it_changes_and_follows_its_angle() -> None:
    made = App(preset("moons", n=8))
    play.go(made.session, "train")
    play.advance(made.session, steps=600)
    play.go(made.session, "landscape")
    landscape.show_map(made.session, "point")
    panel = made.panels["EnergyPanel"]
    counts, errors = [], []
    for angle in (0.02, 0.5):
        choose(panel.row, "angle", angle)
        merged = panel.work.answers.merged_network(panel.work.asked)
        counts.append(sum(merged.net.widths))
        errors.append(merged.error)
        assert f"merged to {counts[-1]};" in panel.told.value("rest")
        assert f"by {errors[-1]:.1g} on" in panel.told.value("rest")
    assert counts[1] < counts[0] < 100
    assert 0 < errors[0] <= errors[1] * (1 + 1e-9)  # what is merged besides may change nothing
    choose(panel.row, "angle", 0.0)
    assert "merged" not in panel.told.value("rest")
    made.close()


def test_weights_that_changed_have_no_map_of_the_old_ones(app: App) -> None:
    panel, frame = app.panels["EnergyPanel"], app.session.frame
    other = replace(frame.landscape.present, target=replace(frame.target))
    panel.render(replace(frame, landscape=History(other)))
    assert "No energy" in panel.told.value("said")
    assert first_candidates(frame.target, frame.landscape.present.truth).mapped == 0


def test_a_map_that_does_not_exist_is_refused_in_a_sentence(app: App, monkeypatch) -> None:
    panel, why = app.panels["EnergyPanel"], "There is no such map."

    def refuse(*_: object) -> None:
        raise ValueError(why)

    monkeypatch.setattr(panel.work.answers, "answer", refuse)

    async def ask() -> None:
        landscape.show_map(panel.session, "split")
        await panel.work.job.wait()

    asyncio.run(ask())
    assert panel.told.value("said") == why and panel.picture is None
    assert app.session.frame.point_map is None and panel.failure.layout.display == "none"


def test_closing_the_page_ends_the_work(app: App) -> None:
    other = opened("landscape", "moons", n=8)
    landscape.show_map(other.session, "point")
    panel, sizes = other.panels["EnergyPanel"], []
    answer = panel.work.answers.answer

    def slow(q, size, progress=no_progress):
        sizes.append(size)
        return answer(q, size, progress)

    panel.work.answers.answer = slow

    async def ask() -> None:
        panel.work.pace["point"] = 1.0  # as on a slow machine: the coarsest comes first
        landscape.map_point(other.session, 2)
        await asyncio.sleep(0)
        other.close()
        await panel.work.job.wait()

    asyncio.run(ask())
    assert len(sizes) <= 1


def test_colours_run_from_bright_to_dark_over_the_span_and_its_reference() -> None:
    low, top = span_of(WIDE.values, WIDE.reference)
    assert top == 0.8  # the reference lies above all values
    assert low == pytest.approx(1e-3)
    order = np.argsort(WIDE.values.ravel())
    assert (np.diff(shades(WIDE.values, False, (low, top)).ravel()[order].astype(int)) < 0).all()
    assert f"{top:.2g}" in colour_bar(WIDE, low, top)


def test_numbers_of_the_colours_are_plain_and_are_not_broken() -> None:
    """The last one stands at the right end, where a line would break within it."""
    drawn = colour_bar(WIDE, 1e-13, 1e-12)
    ticks = re.findall(r"<span style='([^']*)'>([^<]*)</span>", drawn)
    assert len(ticks) == 3
    assert all("white-space:nowrap" in style for style, _ in ticks)
    assert not any(re.search(r"\de[+-]?\d", text) for _, text in ticks)
