"""The energy maps without a browser: choose, drag, undo, refine, refuse, and the hand's events."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.energy import questions
from explorer.engine.energy.points import energy
from explorer.engine.energy.questions import MAPS, STANDARD, Answers, Picture
from explorer.engine.explanations.splitting import free_direction
from explorer.engine.progress import no_progress
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.frame import first_candidates
from explorer.page.history import History
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape import words as starts
from explorer.page.stages.landscape.energy import LADDER, ON, STOP, EnergyPanel, colour_bar
from explorer.page.stages.landscape.energy_words import COMPUTING
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.pictures.shades import shades, span_of
from explorer.research.words import energy as words
from explorer.research.words import sentence
from explorer.style import CSS
from tests.page.pages import choose, classes, on_plane, opened, page_in, panel_of, press, send


@pytest.fixture
def app():
    made = opened("landscape", "moons", n=8)
    landscape.show_map(made.session, "point")
    return made


def panel(app: App) -> EnergyPanel:
    return panel_of(app, EnergyPanel)


def share(app: App, at) -> dict[str, float]:
    e = app.session.extent
    return {"x": (float(at[0]) / e + 1) / 2, "y": (float(at[1]) / e + 1) / 2}


def test_the_map_is_there_with_its_words_and_reference(app: App) -> None:
    energy = panel(app)
    picture = energy.picture
    assert picture is not None and picture.values.shape == (STANDARD, STANDARD)
    assert (picture.values <= picture.reference + 1e-9).all()
    said = energy.told.value("rest")
    assert words.picture(energy.picture) in said
    assert "merged" not in said  # an exact network has no parallel neurons
    assert energy.told.items["rest"].hidden and energy.told.value("said") == ""
    press(energy.row, "more")
    assert not energy.told.items["rest"].hidden
    assert energy.failure.layout.display == "none"
    low, top = span_of(picture.values, picture.reference)
    assert "linear-gradient" in colour_bar(picture, low, top)


def test_a_click_chooses_and_a_drag_moves_and_is_undone(app: App) -> None:
    energy, session = panel(app), app.session
    hand = app.panels["PlanePanel"]
    where = landscape.candidates(session).x[3]
    down = {"kind": "down", "gesture": 1, **share(app, where)}
    send(hand.view, kind="events", events=[down, {**down, "kind": "up"}])
    assert landscape.candidates(session).mapped == 3 and energy.row.value("point") == 3
    before = energy.picture
    place = landscape.candidates(session).x[0].tolist()
    events = [{"kind": "down", "gesture": 2, **share(app, place)}]
    to = [place[0] + 0.3, place[1]]
    events += [{"kind": "move", "gesture": 2, **share(app, t)} for t in (place, to)]
    send(hand.view, kind="events", events=[*events, {**events[-1], "kind": "up"}])
    assert landscape.candidates(session).x[0].tolist() == pytest.approx(to)
    assert landscape.candidates(session).mapped == 3
    assert not np.array_equal(energy.picture.values, before.values)
    assert len(session.frame.landscape.past) == 1 and not energy.row.items["undo"].disabled
    press(energy.row, "undo")
    np.testing.assert_allclose(energy.picture.values, before.values, atol=1e-12)
    press(energy.row, "redo")
    assert landscape.candidates(session).x[0].tolist() == pytest.approx(to)
    press(energy.row, "back")
    assert landscape.candidates(session).x[0].tolist() == pytest.approx(place)


@pytest.mark.parametrize("kind", [kind for kind in MAPS if kind != "starts"])
def test_every_map_is_drawn(app: App, kind: str) -> None:
    energy = panel(app)
    landscape.show_map(energy.session, kind)
    assert energy.picture.kind == kind and np.isfinite(energy.picture.values).all()
    assert energy.body.children == () and energy.failure.layout.display == "none"
    drawn = app.session.frame.point_map
    assert drawn.values is energy.picture.values
    assert on_plane(app)["energy"].shape == drawn.values.shape


def test_settings_ask_anew(app: App) -> None:
    energy = panel(app)
    first = energy.picture.values
    choose(energy.row, "frozen", True)
    frozen = energy.picture.values
    assert (frozen >= first - 1e-9).all() and (frozen > first + 1e-6).any()
    choose(energy.row, "frozen", False)
    choose(energy.row, "kappa", 1.0)
    assert (energy.picture.values >= first - 1e-12).all()


def test_a_line_has_a_curve() -> None:
    app = opened("landscape", "alternating-line", n=6)
    landscape.show_map(app.session, "point")
    energy = panel(app)
    assert energy.picture.curve is not None
    assert energy.curve in energy.body.children
    drawn = {s.name: len(s.x) for s in energy.curve.shown.series}
    assert drawn["breakpoints of Φ"] > 2 and drawn["on the margin"] > 0
    assert "breakpoints" in energy.told.value("bar") and "yΦ = 1" in energy.told.value("bar")
    landscape.show_map(energy.session, "split")
    assert energy.picture.curve is not None and np.isfinite(energy.picture.values).all()
    landscape.show_map(energy.session, "last")
    assert energy.picture.curve is not None and "breakpoints" not in energy.told.value("bar")


def test_it_refines_in_a_loop_and_a_stop_keeps_what_is_there(app: App) -> None:
    energy, session = panel(app), app.session

    async def go() -> list[int]:
        sizes = []
        landscape.map_point(session, 2)
        while energy.work.job.busy:
            if energy.picture and energy.picture.size not in sizes[-1:]:
                sizes.append(energy.picture.size)
            await asyncio.sleep(0.001)
        sizes.append(energy.picture.size)
        assert energy.row.items["stop"].disabled and energy.row.items["stop"].label == STOP
        choose(energy.row, "frozen", True)
        while energy.picture.size == LADDER[-1]:
            await asyncio.sleep(0.001)
        press(energy.row, "stop")
        await energy.work.job.wait()
        return sizes

    sizes = asyncio.run(go())
    assert sizes[-1] == LADDER[-1]
    assert energy.picture.size in LADDER[:2]
    assert energy.row.items["stop"].label == ON and not energy.row.items["stop"].disabled


async def interrupted(energy: EnergyPanel, act) -> None:
    """Ask for a split, and `act` once a slice of its first map was computed; to the end."""
    seen, answer = [], energy.work.answers.answer

    def watched(q, size, progress=no_progress):
        return answer(q, size, lambda share: (seen.append((q.kind, share)), progress(share))[1])

    energy.work.answers.answer = watched
    energy.map_seen = seen
    landscape.show_map(energy.session, "split")
    while not any(share > 0 for _, share in seen):
        await asyncio.sleep(0.001)
    act()
    await energy.work.job.wait()


def test_a_first_map_is_stopped_and_gone_on_with(app: App, monkeypatch) -> None:
    energy = panel(app)
    monkeypatch.setattr("explorer.engine.energy.questions.SLICE_OF_PAIRS", 1)
    monkeypatch.setattr("explorer.engine.energy.questions.QUICK_S", 0.0)  # slices stay small

    async def go() -> None:
        await interrupted(energy, lambda: press(energy.row, "stop"))
        assert energy.picture is None and energy.row.items["stop"].label == ON
        assert "Stopped before" in energy.told.value("said")
        assert "mx-old" in classes(energy.body)
        monkeypatch.setattr("explorer.engine.energy.questions.SLICE_OF_PAIRS", 400)
        press(energy.row, "stop")
        assert energy.row.items["stop"].label == STOP
        await energy.work.job.wait()

    asyncio.run(go())
    assert energy.picture.kind == "split" and energy.picture.size == LADDER[-1]
    assert "mx-old" not in classes(energy.body)


def test_a_new_question_interrupts_the_first_map_of_another(app: App, monkeypatch) -> None:
    energy = panel(app)
    monkeypatch.setattr("explorer.engine.energy.questions.SLICE_OF_PAIRS", 1)
    monkeypatch.setattr("explorer.engine.energy.questions.QUICK_S", 0.0)

    def turn() -> None:
        landscape.show_map(energy.session, "last")

    asyncio.run(interrupted(energy, turn))
    assert energy.picture.kind == "last"
    assert max(share for kind, share in energy.map_seen if kind == "split") < 1 - 1e-9
    assert len([1 for kind, _ in energy.map_seen if kind == "split"]) < LADDER[0] ** 2


def test_a_map_that_takes_long_is_sketched_while_one_drags(app: App) -> None:
    energy, session = panel(app), app.session
    told: list[tuple[str, int]] = []
    answered = energy.show_map

    def note(q, picture, seconds) -> None:
        answered(q, picture, seconds)
        told.append((energy.told.value("said"), picture.size))

    energy.show_map = note

    async def go() -> None:
        energy.work.pace["point"] = 1.0  # seconds a pixel: too long for a glance
        landscape.move_point(session, 1, landscape.candidates(session).x[1] + 0.1, 1)
        await energy.work.job.wait()

    asyncio.run(go())
    assert [size for _, size in told] == [STANDARD, *LADDER]
    assert told[0][0].startswith("A sketch") and "sketch" not in told[1][0]
    assert energy.shown.same(energy.work.asked) and not energy.shown.config.frozen


def test_what_is_said_of_a_map_goes_when_another_kind_is_asked(app: App) -> None:
    energy, session = panel(app), app.session

    async def go() -> None:
        assert energy.told.value("bar")
        landscape.show_map(session, "split")
        assert energy.told.value("bar") == "" and session.frame.point_map is None
        assert headline(session.frame).title == starts.HALVES
        assert energy.told.value("said") == COMPUTING
        energy.work.halt()
        await energy.work.job.wait()

    asyncio.run(go())


def test_the_headline_of_a_map_names_what_it_shows(app: App) -> None:
    landscape.show_map(app.session, "point")
    shown = app.session.frame.point_map
    assert shown.archetype == panel(app).picture.archetype in starts.ANSWERS
    assert headline(app.session.frame).title == starts.ANSWERS[shown.archetype]


def test_an_old_map_is_dimmed_while_another_is_computed(app: App) -> None:
    energy, asked = panel(app), panel(app).work.asked
    words = energy.told.value("said")
    energy.work.asked = replace(asked, x=asked.x + 0.1)  # a drag: the next map comes soon
    energy.show_progress(0.3, True, 0.5)
    assert "mx-old" not in classes(energy.body) and energy.told.value("said") == words
    assert energy.row.value("share") == 0.3
    energy.show_progress(0.4, True, 1.5)
    assert "mx-old" in classes(energy.body)
    energy.show_map(asked, energy.picture, 0.1)
    assert "mx-old" not in classes(energy.body)
    energy.work.asked = replace(asked, kind="split")
    energy.show_progress(0.1, False, 9.0)  # it is only refined
    assert energy.told.value("said") == words
    energy.show_progress(0.1, True, 0.3)
    assert "mx-old" in classes(energy.body) and energy.told.value("said") == COMPUTING


def test_slices_grow_where_they_are_quick_and_shrink_where_they_are_slow(monkeypatch) -> None:
    def sizes(seconds: float) -> list[int]:
        now, out = [0.0], []
        monkeypatch.setattr(questions, "perf_counter", lambda: now[0])

        def at(places):
            out.append(len(places))
            now[0] += seconds
            return places.numpy()

        questions.in_slices(torch.zeros(1500), at, lambda _: True)
        return out

    assert sizes(0.01) == [400, 800, 300]
    assert sizes(0.05) == [400, 400, 400, 300]
    assert sizes(0.5) == [400, 200, *[100] * 9]


def test_the_mapped_point_moves_over_its_map_without_computing_it_anew(
    app: App, monkeypatch
) -> None:
    energy, session = panel(app), app.session
    before, computed = energy.picture, []
    sliced = questions.in_slices

    def counted(places, *rest):
        computed.append(len(places))
        return sliced(places, *rest)

    monkeypatch.setattr(questions, "in_slices", counted)
    place = landscape.candidates(session).x[0] + torch.tensor([0.7, 0.4])
    landscape.move_point(session, 0, place, 1)
    assert not computed and energy.shown.x is landscape.candidates(session).x
    fresh = Answers().answer(energy.shown, STANDARD)
    np.testing.assert_allclose(energy.picture.values, fresh.values, atol=1e-12)
    assert energy.picture.here == fresh.here and sentence(energy.picture) == sentence(fresh)
    assert energy.picture is not before
    computed.clear()
    landscape.move_point(session, 1, landscape.candidates(session).x[1] + 0.1, 2)
    assert computed == [STANDARD**2]
    choose(energy.row, "frozen", True)  # frozen, it depends on where the point is
    landscape.move_point(session, 0, place + 0.1, 3)
    assert computed == [STANDARD**2] * 3
    choose(energy.row, "frozen", False)  # the refitted map is there still
    assert computed == [STANDARD**2] * 3


def test_out_of_sight_nothing_is_refined(app: App) -> None:
    energy, session = panel(app), app.session

    async def go() -> None:
        landscape.map_point(session, 2)
        play.go(session, "attack")
        await energy.work.job.wait()
        assert energy.work.asked is None

    asyncio.run(go())
    play.go(session, "landscape")
    landscape.show_map(session, "point")
    assert energy.work.asked is not None and energy.shown.index == 2


def test_the_legend_names_what_is_drawn(app: App) -> None:
    energy = panel(app)
    assert "dashed" not in energy.told.value("bar") and "point is" in energy.told.value("bar")
    landscape.show_map(energy.session, "split")
    assert "point is" not in energy.told.value("bar")
    for i in range(8):
        landscape.map_point(app.session, i)
        lowest = app.session.frame.point_map.lowest is not None
        assert ("▽" in energy.told.value("bar")) == lowest


def test_weights_without_an_energy_are_told() -> None:
    app = App(preset("moons", n=8))
    play.configure(app.session, all_biases=True)
    train.begin(app.session)
    play.advance(app.session, steps=300)
    play.assess(app.session)
    play.go(app.session, "landscape")
    landscape.show_map(app.session, "point")
    energy = panel(app)
    assert "biases beyond" in energy.told.value("said") and not energy.body.children
    assert "2 Train" in energy.told.value("said")


def test_before_a_map_is_there_the_page_says_that_it_is_computed() -> None:
    app = page_in("train", preset("moons", n=8))

    async def go() -> None:
        play.go(app.session, "landscape")
        landscape.show_map(app.session, "point")
        assert panel(app).told.value("said") == COMPUTING
        app.close()

    asyncio.run(go())


def test_weights_of_more_classes_are_told_so() -> None:
    app = page_in("landscape", preset("three-blobs", n=6), 600, widths=(20,))
    landscape.show_map(app.session, "point")
    assert app.session.frame.point_map.archetype
    landscape.show_map(app.session, "split")
    assert "two classes" in panel(app).told.value("said")


# --- what the energy panel asks, draws and says, number by number ---------------------------------

WIDE = Picture("point", np.array([[1e-3, 2e-2], [4e-1, 5e-2], [1e-1, 3e-2]]), (-2, 2, -3, 3),
               ("x₁", "x₂"), 0.0, 0.8, None)  # fmt: skip


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
    made = page_in("landscape", preset("moons", n=6), 600, widths=(40,))
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
    assert counts[1] < counts[0] < 40
    assert 0 < errors[0] <= errors[1] * (1 + 1e-9)  # what is merged besides may change nothing
    choose(panel.row, "angle", 0.0)
    assert "merged" not in panel.told.value("rest")


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


def test_colours_run_from_bright_to_dark_over_the_span_and_its_reference() -> None:
    low, top = span_of(WIDE.values, WIDE.reference)
    assert top == 0.8  # the reference lies above all values
    assert low == pytest.approx(1e-3)
    order = np.argsort(WIDE.values.ravel())
    assert (np.diff(shades(WIDE.values, False, (low, top)).ravel()[order].astype(int)) < 0).all()
    assert f"{top**0.5:.1%}" in colour_bar(WIDE, low, top)


def test_numbers_of_the_colours_are_plain_and_are_not_broken() -> None:
    """The last one stands at the right end, where a line would break within it."""
    drawn = colour_bar(WIDE, 1e-13, 1e-12)
    ticks = re.findall(r"<span>([^<]*)</span>", drawn)
    assert len(ticks) == 3 and "class='mx-scale'" in drawn
    assert re.search(r"\.mx-scale > div \+ div \{[^}]*white-space: nowrap", CSS)
    assert not any(re.search(r"\de[+-]?\d", text) for text in ticks)


def test_the_headline_answers_for_a_split_and_the_row_holds_what_can_be_used(app: App) -> None:
    energy, session = panel(app), app.session
    assert energy.row.items["back"].hidden and energy.row.items["undo"].hidden
    start = landscape.candidates(session).x[1]
    landscape.move_point(session, 1, start + 0.1)
    assert not energy.row.items["back"].hidden and not energy.row.items["undo"].hidden
    landscape.show_map(session, "split")
    about = energy.picture.about
    answer = "nothing" if not about.carries else "one" if about.pinned else "two"
    assert session.frame.point_map.archetype == answer
