"""The triangle of starts on the page: the handle, its energy, the candidates, the map, refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.shapes import EMPTY
from explorer.engine.data import preset
from explorer.engine.energy.landscape import SIDES, between_places, read_lattice
from explorer.engine.energy.points import energy
from explorer.engine.scoring import score
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.controls.row import Row
from explorer.page.frame import Passed, Proof
from explorer.page.job import Job, JobState
from explorer.page.plane.marks import FOUND
from explorer.page.plane.scene import Look, scene
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape import start_energies, words
from explorer.page.stages.landscape.starts import StartsPanel
from explorer.page.stages.proof.words import way_on
from explorer.page.view.canvases import weights_in
from explorer.page.words.headline import headline
from explorer.page.words.screen import stage_gap
from explorer.research.grid import ages, grid_attacks
from explorer.research.grid.landscape import LEVEL, good_up_to
from explorer.research.pictures.shades import NOISE, SCALES, start_shades, start_top
from explorer.research.runs import RADIUS
from tests.page.pages import (
    choose,
    hold_jobs,
    no_failures,
    opened,
    page_in,
    panel_of,
    press,
    send,
    trained,
)

CORNERS = {"truth": (1.0, 0.0, 0.0), "heldout": (0.0, 1.0, 0.0), "noise": (0.0, 0.0, 1.0)}


app = pytest.fixture(lambda: opened("landscape", "moons", n=8))


def panel(app: App) -> StartsPanel:
    return panel_of(app, StartsPanel)


def drag(app: App, *weights: float) -> None:
    """What the browser says while the hand moves the handle there."""
    view = panel(app).view
    send(view, kind="handle", weights=list(weights), number=view.taken + 1)


def test_a_drag_moves_the_handle_the_candidates_and_the_energy_and_nothing_else(app: App) -> None:
    session, view = app.session, panel(app).view
    before = session.frame
    drag(app, 0.5, 0.2, 0.3)
    held, now = session.frame.starts, session.frame
    assert held.weights == pytest.approx((0.5, 0.2, 0.3)) and view.taken == 1
    parts = held.problem.parts
    mixed = 0.5 * parts.truth + 0.2 * parts.heldout + 0.3 * parts.noise
    torch.testing.assert_close(now.starts.candidates.x, mixed)
    assert held.energy == pytest.approx(held.landscape.measure(mixed), abs=1e-12)
    assert tuple(view.handle) == pytest.approx(held.weights) and "50% truth" in view.say
    assert "50% truth" in panel(app).aside.value("read")
    assert (now.attack, now.training, now.drawing, now.landscape, now.aim) == (
        before.attack, before.training, before.drawing, before.landscape, before.aim,
    )  # fmt: skip
    assert session.mix == (0.0, 0.0) and not session.message


def test_a_passing_drag_reads_the_map_and_says_so_until_it_rests(app: App) -> None:
    session, view, told = app.session, panel(app).view, headline(app.session.frame)
    shares, fitted = (0.41, 0.33, 0.26), []
    held = session.frame.starts
    session.show(starts=replace(
        held, landscape=replace(held.landscape, measure=lambda x: fitted.append(x) or 0.125)
    ))  # fmt: skip
    for number, place in enumerate(((0.2, 0.5, 0.3), (0.6, 0.3, 0.1), shares), 1):
        send(view, kind="handle", weights=list(place), number=number, dragged=True)
    held, plane = session.frame.starts, app.panels["PlanePanel"].view
    assert plane.frame["unasked"] and tuple(view.handle) == held.weights == pytest.approx(shares)
    assert words.readout(held.weights, held.energy, rough=True) == panel(app).aside.value("read")
    near = read_lattice(held.energies, np.array([held.weights]))[0]
    assert not fitted and held.energy == pytest.approx(near) and "the map" in view.say
    assert headline(session.frame) == told
    send(view, kind="rest")
    there = session.frame.starts
    assert there.weights == held.weights and there.energy == 0.125 and len(fitted) == 1
    assert "the map" not in view.say and headline(session.frame) == told
    assert "unasked" not in plane.frame


def test_a_relief_has_the_landscapes_of_other_steps_of_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ages, "AGES", (300, 600, None))
    made = trained("landscape")
    view, held, plan = panel(made).view, made.session.frame.starts, made.session.frame.training.plan
    begun = held.landscape.lattice(ages.COARSE)
    assert "ages" not in view.frame
    send(view, kind="tilt", on=True)
    drawn = view.frame
    first, here, exact = drawn["ages"]
    assert drawn["present"] == 1 and len(drawn["names"]) == 3
    *_, whole = ages.landscape_ages(held.problem.of, plan)
    rows = {one.steps: one.energies for one in whole}
    shown = between_places(panel(made).energies.values, ages.FINE)
    np.testing.assert_array_equal(here, start_shades(shown, "log"))
    step = (ages.FINE - 1) // (ages.COARSE - 1)
    np.testing.assert_allclose(rows[600][::step, ::step], begun, atol=1e-9)  # as on screen
    for seen, steps in ((first, 300), (exact, None)):
        np.testing.assert_array_equal(seen, start_shades(rows[steps], "log"))
        assert np.nanmax(np.abs(rows[steps] - rows[600])) > NOISE
    choose(panel(made).runs.settings, "colours", "rank")
    assert "ages" not in view.frame  # ranks of two landscapes do not compare
    no_failures(made)


def test_the_landscapes_of_other_steps_end_with_their_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ages, "AGES", (300, None))
    monkeypatch.setattr(start_energies, "SIDES", SIDES[:1])

    async def run() -> None:
        made = trained("landscape")
        job = panel(made).ages_job
        await panel(made).energies.job.wait()
        hold_jobs(monkeypatch)
        send(panel(made).view, kind="tilt", on=True)
        assert job.state is JobState.RUNNING
        play.go(made.session, "attack")
        await job.wait()
        assert job.state is JobState.CANCELLED
        play.go(made.session, "landscape")
        assert job.state is JobState.RUNNING, "it begins anew"
        no_failures(made)
        made.close()

    asyncio.run(run())


@pytest.mark.parametrize("name", CORNERS)
def test_the_candidates_at_a_corner_are_its_set(app: App, name: str) -> None:
    drag(app, *CORNERS[name])
    held = app.session.frame.starts
    torch.testing.assert_close(held.candidates.x, getattr(held.problem.parts, name))


def test_at_the_truth_the_energy_is_what_the_truth_leaves_unexplained(app: App) -> None:
    drag(app, 1, 0, 0)
    frame = app.session.frame
    truth = frame.truth
    left = energy(
        frame.target.net.to(dtype=torch.float64), truth.x.double(), truth.y.double(), 0.03
    )
    assert frame.starts.energy == pytest.approx(left, abs=1e-9) and left < 1e-9


def test_classes_of_different_size_start_at_all_their_points() -> None:
    data = preset("moons", n=8)
    made = page_in("landscape", data.without([0, 1]))
    drag(made, 1, 0, 0)
    held = made.session.frame.starts
    places = {tuple(place) for place in held.candidates.x.tolist()}
    assert places == {tuple(place) for place in made.session.frame.truth.x.tolist()}
    assert held.energy < 1e-9


def test_the_energy_at_a_place_is_that_of_the_map(app: App) -> None:
    values = panel(app).energies.values
    last = len(values) - 1
    for k, i in ((0, 0), (1, 2), (2, 1)):
        drag(app, i / last, (last - i - k) / last, k / last)
        assert app.session.frame.starts.energy == pytest.approx(values[k, i], abs=1e-12)


def test_the_map_begins_with_a_sketch_and_a_cancel_keeps_it(app: App) -> None:
    energies, seen = panel(app).energies, []
    finest: list[bool] = []

    async def go() -> None:
        play.choose_attack(app.session, "decoreco")
        app.session.seed = 3
        landscape.begin_starts(app.session)
        while energies.job.busy:
            if energies.values is not None and len(energies.values) not in seen:
                seen.append(len(energies.values))
                finest.append(app.session.frame.starts.finest)
            if len(seen) == 2:
                energies.job.cancel()
            await asyncio.sleep(0.001)
        await energies.job.wait()

    asyncio.run(go())
    assert seen[0] == SIDES[0] and len(seen) < len(SIDES)
    assert np.isfinite(energies.values).any()
    assert not finest[1] and app.session.frame.starts.finest


def test_another_attack_has_its_own_energies_and_one_without_a_start_says_so(app: App) -> None:
    first = app.session.frame.starts.energy
    play.choose_attack(app.session, "bilevel")
    held = app.session.frame.starts
    assert held.problem.of.attack == "bilevel" and held.energy != first
    assert words.UNIT_BILEVEL in panel(app).aside.value("title")
    drag(app, 1, 0, 0)
    assert app.session.frame.starts.energy < 1e-12  # trained on the truth it is what was trained
    play.go(app.session, "attack")
    attack.choose(app.session, "hinge")
    play.go(app.session, "landscape")
    assert app.session.frame.starts is None
    assert headline(app.session.frame).title == words.NONE
    why = headline(app.session.frame).words
    assert app.session.entry.title in why and "KKT" in why and "Bilevel" in why
    drag(app, 1, 0, 0)
    assert app.session.message


@pytest.mark.parametrize("key", grid_attacks())
@pytest.mark.parametrize("name", ["moons", "alternating-line"])
def test_every_attack_with_a_start_has_a_triangle_on_the_plane_and_the_line(
    key: str, name: str
) -> None:
    made = opened("landscape", name, n=6)
    play.choose_attack(made.session, key)
    drag(made, 0.2, 0.3, 0.5)
    assert np.isfinite(made.session.frame.starts.energy)
    no_failures(made)


def test_three_layers_have_a_triangle() -> None:
    made = page_in("landscape", preset("moons", n=6), 3000, widths=(8, 8))
    values = panel(made).energies.values
    assert np.isfinite(values).any() and float(np.nanmax(values)) <= 1 + 1e-9


@pytest.mark.parametrize(("name", "n"), [("moons", 4), ("alternating-line", 3)])
def test_every_attack_is_dragged_and_run_on_three_layers(name: str, n: int) -> None:
    made = page_in("landscape", preset(name, n=n), 400, widths=(8, 8), method="ascent")
    session = made.session
    assert not session.message, session.message
    for key in grid_attacks():
        play.choose_attack(session, key)
        if key == "bilevel":
            play.configure(session, model="deep", width=4, mu=1e-3)
            assert session.frame.starts.problem.target.net.depth == 3
        play.configure(session, steps=5)
        drag(made, 0.8, 0.1, 0.1)
        first = session.frame.starts
        assert first is not None and first.problem.of.attack == key and np.isfinite(first.energy)
        press(panel(made).here, "go")
        last = session.frame.starts
        assert len(last.trail) > 2 and np.isfinite(last.energy)
        assert last.trail[0][1] == pytest.approx(first.energy) and not session.message
        assert "start" in panel(made).strip.frame and panel(made).strip.frame["handle"] is not None


def test_settings_of_the_attack_are_changed_in_the_landscape_and_its_run_begins_anew() -> None:
    made = opened("attack", "moons", n=6)
    session = made.session
    attack.choose(session, "bilevel")
    play.advance(session, steps=3)
    play.go(session, "landscape")
    before = session.frame.starts
    play.configure(session, model="hidden", width=5)
    held = session.frame.starts
    assert held.problem.target.lower.shape.width == 5 and held.energy != before.energy
    assert session.frame.attack.state is None
    play.go(session, "attack")
    assert session.frame.attack.state.victim.lower.shape.width == 5


def test_an_attack_that_refuses_the_points_says_why_and_another_setting_helps() -> None:
    made = opened("landscape", "alternating-circle", n=8)
    session = made.session
    play.choose_attack(session, "bilevel")  # an affine model of a symmetric set is zero
    assert session.frame.starts is None and session.frame.no_starts
    made_of = headline(session.frame)  # it asks for no handle to be dragged
    assert made_of.title == words.NONE and session.frame.no_starts[1:] in made_of.words
    play.configure(session, model="hidden", mu=1e-4)
    assert session.frame.starts is not None and session.frame.no_starts == ""


def test_three_classes_have_a_triangle_and_the_tab_of_a_split_says_why_it_is_empty() -> None:
    made = page_in("attack", preset("three-blobs"), 600)
    session = made.session
    play.configure(session, m=12, steps=20)
    play.go(session, "landscape")
    drag(made, 1, 0, 0)
    truth = session.frame.starts.energy
    drag(made, 0, 0, 1)
    assert 0 < truth < session.frame.starts.energy <= 1
    press(panel(made).here, "go")
    held = session.frame.starts
    assert held.trail[0].energy == pytest.approx(session.frame.starts.landscape.energy((0, 0, 1)))
    landscape.show_map(session, "split")
    assert "two classes" in headline(session.frame).words


def test_weights_without_an_energy_say_why_on_the_tab() -> None:
    made = page_in("train", preset("moons", n=6), 600, widths=(8, 8), all_biases=True)
    session = made.session
    gap = stage_gap(session.frame, "landscape")
    assert "homogeneous" in gap or "first layer" in gap
    tab = next(
        one for one in made.panels["Header"].view.state["stages"] if one["key"] == "landscape"
    )
    assert tab["state"] == "later" and gap in tab["tip"]


def test_a_message_that_is_no_place_moves_nothing(app: App) -> None:
    before = app.session.frame.starts
    for bad in ([1, 0], ["1", 0, 0], [float("nan"), 0, 0], [0, 0, 0], None, [True, 0, 0]):
        assert weights_in(bad) is None
        send(panel(app).view, kind="handle", weights=bad, number=1)
    assert app.session.frame.starts is before
    assert weights_in([2, -1, 1]) == pytest.approx((0.5, 0.0, 0.5))


def test_bright_is_low_on_one_scale_and_ranks_are_order_alone() -> None:
    values = np.array([[1.0, 0.1, 0.01], [0.5, 0.3, np.nan], [0.9, np.nan, np.nan]])
    known = np.isfinite(values)
    order = np.argsort(values[known])
    for how in SCALES:
        made = start_shades(values, how)
        assert (made[~known] == 0).all() and (made[known] > 0).all()
        assert (np.diff(made[known][order].astype(int)) < 0).all()
        assert ("yellow" in words.unit("kkt", how)) == (how != "rank")
        assert bool(words.unit("kkt", how, scaled=True)) == (how == "rank")
    for how in ("log", "linear"):  # a value has its colour whatever the others are
        whole = start_shades(values, how)
        assert start_shades(values[:, :1], how).tolist() == whole[:, :1].tolist()
    assert start_top(np.array([0.2, np.nan])) == 1 and start_top(np.array([1.7])) == 1.7


def test_starts_that_agree_within_noise_have_one_colour() -> None:
    draws = np.random.default_rng(0)
    for value in (0.5 * NOISE, 0.9):
        near = value * (1 + 1e-4 * draws.uniform(-1, 1, size=(6, 6)))
        for how in ("log", "linear"):
            assert np.ptp(start_shades(near, how).astype(int)) <= 1
    low = 10 ** draws.uniform(-9, -3, 60)
    assert set(start_shades(low, "log")) == {255}
    assert len(set(start_shades(low, "rank"))) == 1


def test_shares_in_per_cent_sum_to_a_hundred() -> None:
    for weights in np.random.default_rng(0).dirichlet([1, 1, 1], 200):
        assert sum(words.percents(weights)) == 100


def test_play_carries_the_handle_round_the_edges(app: App) -> None:
    session, seen = app.session, []
    landscape.place_handle(session, (0.4, 0.3, 0.3))  # from within it begins at the truth
    landscape.travel(session, 1.0)
    assert session.frame.starts.weights == (1.0, 0.0, 0.0)
    for _ in range(48):
        seen.append(session.frame.starts.weights)
        landscape.travel(session, landscape.PERIOD_S / 48)
    assert session.frame.starts.weights == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)
    assert seen[16] == pytest.approx((0, 1, 0), abs=1e-9)
    assert seen[32] == pytest.approx((0, 0, 1), abs=1e-9)
    assert all(min(weights) < 1e-9 for weights in seen)


def test_the_headline_of_the_runs_counts_where_they_ended() -> None:
    made = opened("landscape", "alternating-line", n=8)
    runs, session = panel(made).runs, made.session
    play.configure(session, m=8, steps=2000)
    seen = []
    session.observe(lambda _: seen.append(session.frame.starts.arrivals), names=["shown"])
    press(runs.go, "go")  # without a loop it runs to the end
    assert any(one is not None and one.going and not one.ended for one in seen)
    found, parts = session.frame.starts.arrivals, session.frame.starts.problem.parts
    problem, least = session.frame.starts.problem, 8  # all: 7 would be less than MOST
    at, alike, problem_energy = 0, 0, session.frame.starts.landscape.measure
    left = session.frame.starts.landscape.measure(parts.truth)
    for states in runs.found.states.values():
        last = states[-1]
        claims = session.entry.report(problem.target, last, problem.of.config)
        met = int(score(session.frame.truth, claims.x, claims.y, (RADIUS,)).found)
        at += met >= least
        alike += met < least and problem_energy(last.x) <= good_up_to(left, own=False)
    assert (found.total, found.ended, found.truth, found.other) == (21, 21, at, alike)
    assert found.left == pytest.approx(left) and found.level + found.stuck >= 0
    title = headline(session.frame).title
    assert f"{found.truth} of 21" in title or found.truth == 21
    row = runs.found.rows[0, 1.0, 1.0]
    runs.found.rows[0, 0.123, 0.5] = {**row, "mix_truth": 0.123, "mix_data": 0.5}
    assert runs.arrivals() == found  # a row of a file that lies beside the lattice
    del runs.found.rows[0, 0.123, 0.5]
    runs.found.rows[0, 1.0, 1.0] = {**row, "recovered": [least - 1, least]}
    assert runs.arrivals().truth == found.truth - 1
    runs.found.rows[0, 1.0, 1.0] = row
    drag(made, 0.3, 0.4, 0.3)
    assert headline(session.frame).title == title, "a hand changes what is read, and no headline"
    assert words.unexplained_share(session.frame.starts.energy) in panel(made).aside.value("read")
    assert words.AT_START in panel(made).aside.value("title")
    choose(panel(made).aside, "fill", "end")
    assert words.AT_END in panel(made).aside.value("title")
    play.configure(session, steps=7)
    assert session.frame.starts.arrivals is None and headline(session.frame).title != title


def test_runs_that_are_cancelled_say_how_many_ended(app: App) -> None:
    runs, session = panel(app).runs, app.session

    async def go() -> None:
        press(runs.go, "go")
        while not runs.found.rolling:
            await asyncio.sleep(0.001)
        press(runs.go, "go")
        await runs.job.wait()

    play.configure(session, steps=3000)
    asyncio.run(go())
    held = session.frame.starts.arrivals
    assert held is not None and not held.going and held.ended < held.total == 21
    made = headline(session.frame)
    assert (made.title, made.words) == words.arrival_words(held)


def test_a_run_from_the_handle_has_a_headline_of_its_own(app: App) -> None:
    session = app.session
    drag(app, 0.4, 0.3, 0.3)
    first = session.frame.starts.energy
    press(panel(app).here, "go")
    held = session.frame.starts
    made = headline(session.frame)
    assert f"{held.trail[-1].found} of 8" in made.title
    told = [value for _, value in made.fold]
    assert words.unexplained_share(first) in told and words.unexplained_share(held.energy) in told
    drag(app, 0.2, 0.4, 0.4)
    assert headline(session.frame).title != made.title


def test_a_run_from_the_handle_has_rings_and_its_number_follows_the_switch(app: App) -> None:
    session, aside = app.session, panel(app).aside
    drag(app, 0.9, 0.05, 0.05)
    assert aside.items["fill"].hidden
    press(panel(app).here, "go")
    held = session.frame.starts

    def rings() -> int:
        kinds = scene(session.frame, session.axes, Look(), EMPTY, {})[0].get("claims")
        return 0 if kinds is None else int((kinds[:, 2] == FOUND).sum())

    assert aside.value("fill") == "end" and not aside.items["fill"].hidden
    assert "the end" in aside.value("read") and words.OF_START in aside.value("title")
    assert rings() == held.trail[-1].found
    truth = session.frame.truth
    right = Report(truth.x[:5], truth.y[:5], torch.ones(5))
    last = held.trail[-1]
    some = type(last)(*(right if part is last.claims else part for part in last))
    session.put(starts=replace(held, trail=(*held.trail[:-1], some)))
    assert rings() == 5
    choose(aside, "fill", "start")
    assert session.frame.starts.energy == held.trail[0].energy and not rings()
    assert "the end" not in aside.value("read") and words.OF_START not in aside.value("title")


def test_the_profile_of_the_edges_marks_the_handle_only_where_it_is_on_an_edge(app: App) -> None:
    choose(panel(app).path, "along", "edges")
    strip = panel(app).strip
    drag(app, 0.4, 0.3, 0.3)
    assert strip.frame["handle"] is None and "within" in panel(app).path.value("title")
    round_trip = {(0.3, 0.7, 0): 0.7 / 3, (0, 0.2, 0.8): 1.8 / 3, (0.9, 0, 0.1): 2.9 / 3}
    for weights, along in round_trip.items():
        drag(app, *weights)
        at, energy = strip.frame["handle"]
        assert at == pytest.approx(along) and energy == app.session.frame.starts.energy
        line = strip.frame["start"]
        read = float(line[np.abs(line[:, 0] - at).argmin(), 1])
        known = read_lattice(app.session.frame.starts.energies, np.array([weights]))
        assert read == pytest.approx(float(known[0])), "the line is of the map"
        assert "within" not in panel(app).path.value("title")
    choose(panel(app).path, "along", "noise")  # this line bends to pass it, wherever it is
    drag(app, 0.4, 0.3, 0.3)
    assert strip.frame["handle"] is not None


def test_play_and_pause_in_the_landscape(app: App) -> None:
    session = app.session

    async def go() -> set[tuple[float, ...]]:
        places = set()
        play.play(session)
        while len(places) < 4:
            session.choose(drawn=session.shown)
            places.add(session.frame.starts.weights)
            await asyncio.sleep(0.001)
        play.pause(session)
        return places

    assert len(asyncio.run(go())) == 4
    play.go(session, "attack")
    attack.choose(session, "hinge")
    play.go(session, "landscape")
    with pytest.raises(ValueError, match="choose"):
        play.play(session)


def test_the_headline_tells_what_the_map_of_its_frame_shows(app: App) -> None:
    frame = app.session.frame
    assert np.array_equal(frame.starts.energies, panel(app).energies.values, equal_nan=True)
    title, said = words.headline(frame)
    made = headline(frame)
    assert (title, said) == (made.title, made.words)
    assert (title, said) == words.title(frame.starts.energies)


def test_the_small_triangle_of_the_attack_moves_its_start(app: App) -> None:
    session = app.session
    play.go(session, "attack")
    view = app.panels["MixPad"].view
    send(view, kind="handle", weights=[0.5, 0.25, 0.25], number=1)
    assert session.mix == pytest.approx((2 / 3, 0.75)) and session.frame.attack.state.t == 0
    assert tuple(view.handle) == pytest.approx((0.5, 0.25, 0.25)) and view.taken == 1


def test_the_map_goes_on_where_it_was_when_it_is_looked_at_again(app: App) -> None:
    energies, session = panel(app).energies, app.session

    async def go() -> None:
        session.seed = 5
        landscape.begin_starts(session)
        while energies.values is None or len(energies.values) < SIDES[1]:
            await asyncio.sleep(0.001)
        landscape.show_map(session, "point")
        await energies.job.wait()
        held, known = energies.values, len(session.frame.starts.landscape.known)
        landscape.show_map(session, "starts")
        while len(energies.values) <= len(held):
            await asyncio.sleep(0.001)
        assert len(session.frame.starts.landscape.known) > known
        energies.close()
        await energies.job.wait()

    asyncio.run(go())


def test_the_attack_stage_has_a_verdict_on_a_run_that_came_from_the_landscape(app: App) -> None:
    session = app.session
    play.configure(session, steps=40)
    drag(app, 0.4, 0.3, 0.3)
    press(panel(app).here, "go")
    branches.branch(session)
    part = session.frame.attack
    assert part.state.t == 40 and part.judged is part.state
    assert headline(session.frame).action is not None


def test_an_attack_that_was_left_while_it_ran_is_judged_where_it_is_taken_up(app: App) -> None:
    session = app.session
    play.go(session, "attack")
    play.advance(session, steps=30)  # as the clock does, between two verdicts
    play.go(session, "explain")
    play.go(session, "attack")
    assert session.frame.attack.judged is session.frame.attack.state
    assert headline(session.frame).action is not None


def test_a_run_from_the_handle_is_replayed_scrubbed_and_branched(app: App) -> None:
    session, bar = app.session, app.panels["TransportPanel"].view
    play.configure(session, steps=60)
    drag(app, 0.4, 0.3, 0.3)
    place = session.frame.starts
    press(panel(app).here, "go")
    held = session.frame.starts
    assert held.trail[0].energy == pytest.approx(place.energy, abs=1e-9)
    assert (session.frame.t, held.t, held.trail[-1].t) == (60, 60, 60)
    assert [one.t for one in held.trail] == [state.t for state in session.timeline.states]
    for share, t in ((0.0, 0), (0.5, 30), (1.0, 60)):
        send(bar, kind="seek", value=share)
        shown = session.frame.starts
        at = next(one for one in held.trail if one.t == t)
        assert (shown.t, shown.energy, session.frame.t) == (t, at.energy, t)
        assert shown.energy == pytest.approx(shown.landscape.measure(shown.candidates.x), abs=1e-9)
        assert panel(app).view.frame["trails"].shape[1] == len(shown.trail_so_far)
    play.reset(session)
    seen = [session.frame.t]
    while landscape.replay(session, 0.5):
        seen.append(session.frame.t)
    assert seen == sorted(set(seen)) and session.frame.t == 60
    send(bar, kind="seek", value=0.5)
    branches.branch(session)
    assert session.frame.stage == "attack" and session.frame.t == 30
    assert session.timeline.last_t == 30 and len(session.branches) > 1
    play.advance(session, steps=5)
    assert session.frame.t == 35


def test_a_run_that_rises_says_why(app: App) -> None:
    session = app.session
    landscape.choose_multipliers(session, "drawn")
    play.configure(session, steps=200)
    drag(app, 1, 0, 0)
    assert session.frame.starts.energy < 1e-6
    press(panel(app).here, "go")
    assert max(one.energy for one in session.frame.starts.trail) > LEVEL
    assert any(words.DRAWN in value for _, value in headline(session.frame).fold)
    landscape.choose_multipliers(session, "fitted")
    drag(app, 1, 0, 0)
    press(panel(app).here, "go")
    fold, trail = headline(session.frame).fold, session.frame.starts.trail
    rose = max(one.energy for one in trail) > trail[0].energy + LEVEL
    assert any("most on" in name for name, _ in fold) == rose


def test_a_run_says_how_many_points_its_claims_meet() -> None:
    app = opened("landscape", "alternating-circle", n=8)
    for corner, most in (((1, 0, 0), 8), ((0, 1, 0), 0)):
        drag(app, *corner)
        press(panel(app).here, "go")
        trail = app.session.frame.starts.trail
        assert trail[0].found == most
        assert f"{trail[-1].found} of 8" in headline(app.session.frame).title


def test_the_way_on_after_a_run_leaves_out_an_act_that_was_seen(app: App) -> None:
    press(panel(app).here, "go")
    ways = []
    for revealed in (False, True):
        app.session.show(asked=Proof(app.session.frame.target, revealed=revealed))
        press(panel(app).way, "on")
        ways.append(app.session.frame.stage)
        play.go(app.session, "landscape")
    assert ways == ["explain", "arena"]


def test_the_proof_leads_past_a_landscape_that_has_answered(app: App) -> None:
    assert way_on(app.session.frame).key == "landscape"
    press(panel(app).here, "go")
    assert way_on(app.session.frame).key == "compare"
    play.act(app.session, "compare")
    assert app.session.frame.stage == "arena"


def test_a_run_whose_energy_rises_again_says_so(app: App) -> None:
    held = app.session.frame.starts
    went = [Passed(held.weights, energy, t) for t, energy in enumerate((0.4, 0.01, 0.03))]
    below, above = (
        str(words.run_numbers(
            replace(held, trail=tuple(went), shown=SimpleNamespace(t=t), energy=went[t].energy),
            False,
        ))
        for t in (1, 2)
    )  # fmt: skip
    assert words.OWN_LOSS in above and words.OWN_LOSS not in below


def drawn_map(rng: np.random.Generator, side: int, begins: float) -> np.ndarray:
    """Energies of all starts, of which some with at least a share `begins` of truth are low.

    The truth leaves nothing.
    """
    noise, truth = np.indices((side, side))
    low = (truth / (side - 1) >= begins) & (rng.random((side, side)) < 0.4)
    values = np.where(low, good_up_to(0.0, own=False) * rng.random((side, side)), 0.5)
    values[noise + truth >= side] = np.nan
    values[0, -1] = 0.0
    return values


def test_the_headline_of_the_map_follows_from_its_energies_and_waits_for_the_finest() -> None:
    rng, seen = np.random.default_rng(0), set()
    for begins in np.repeat((0.0, 0.1, 0.3, 0.4, 0.6, 0.9, 1.1), 12):
        values = drawn_map(rng, 13, begins)
        least = (
            min(int(truth) for _, truth in np.argwhere(values <= good_up_to(0.0, own=False))) / 12
        )
        made = words.title(values)[1]
        seen.add(made.replace(", even noise,", ""))
        assert ("only" in made) == (words.BESIDE <= least)
        assert ("far off" in made) == (least < words.FAR)
        assert ("half way" in made) == (words.FAR <= least < words.BESIDE)
        assert words.MOVES_ON not in words.title(values, finest=False)[1]
    assert len(seen) == 3


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("truth", [0.0, 0.0059, 0.3])
def test_starts_are_as_good_by_the_rule_of_ends(truth: float, own: bool) -> None:
    values = np.where(np.add.outer(range(4), range(4)) < 4, 0.9, np.nan)
    up_to = good_up_to(truth, own)
    values[0, -1], values[0, 0] = truth, 1.01 * up_to
    assert "only" in words.title(values, own)[1]
    values[0, 0] = up_to
    assert "far off" in words.title(values, own)[1]


def test_a_finer_map_moves_the_headline_only_away_from_the_truth() -> None:
    rng, order = np.random.default_rng(1), ("only", "half way", "far off")
    for _ in range(60):
        fine = drawn_map(rng, 25, rng.random())
        ranks = [
            next(k for k, words_ in enumerate(order) if words_ in words.title(fine[::s, ::s])[1])
            for s in (4, 2, 1)
        ]
        assert ranks == sorted(ranks)


def test_play_shows_that_attacks_go_on_and_pause_ends_them(app: App) -> None:
    session, bar = app.session, app.panels["TransportPanel"].view
    play.configure(session, steps=3000)

    async def go(row: Row, jobs: Job) -> None:
        press(row, "go")
        while jobs.state is not JobState.RUNNING:
            await asyncio.sleep(0.001)
        assert bar.state["running"] and "play" in bar.state["able"]
        play.go(session, "attack")
        assert not bar.state["running"]
        play.go(session, "landscape")

    async def every() -> None:
        made = panel(app)
        for row, job in ((made.runs.go, made.runs.job), (made.census.go, made.census.job)):
            await go(row, job)
            send(bar, kind="pause")
            assert job.state is not JobState.RUNNING and not bar.state["running"]
            await job.wait()
        assert not session.running

    asyncio.run(every())


def test_one_button_ends_what_goes_on_for_the_map_waits(app: App) -> None:
    made, session = panel(app), app.session

    async def roll() -> None:
        play.configure(session, m=12, steps=3000)
        while not (made.energies.complete and made.energies.job.busy):
            await asyncio.sleep(0.001)
        press(made.runs.go, "go")
        await made.energies.job.wait()
        assert made.runs.busy and not made.energies.finest
        made.runs.cancel()
        await made.runs.job.wait()
        assert made.energies.job.busy
        await made.energies.job.wait()
        assert made.energies.finest

    asyncio.run(roll())


def test_runs_are_those_of_the_attack_stage_unless_changed(app: App) -> None:
    session = app.session
    held, config = session.frame.starts.problem.of.config, session.attack_config
    assert held == config
    choose(panel(app).runs.settings, "m", 12)
    assert session.attack_config.m == 12 == session.frame.starts.problem.of.config.m
    assert len(session.frame.starts.candidates.x) == 12
    choose(panel(app).runs.settings, "first", "drawn")
    assert session.frame.starts.problem.of.drawn
    assert not session.frame.starts.problem.of.settings_at(1.0).near


@pytest.mark.parametrize("mix", [(0.0, 0.0), (1.0, 0.0), (0.5, 0.8)])
def test_a_run_is_the_one_that_the_attack_stage_makes_from_the_same_start(
    app: App, mix: tuple[float, float]
) -> None:
    session = app.session
    play.go(session, "attack")
    play.configure(session, steps=30)
    attack.remix(session, *mix)
    play.step(session, 30)
    played = session.frame.attack.state
    play.go(session, "landscape")
    *_, last = session.frame.starts.problem.states(*mix)
    assert last.t == played.t == 30
    assert torch.equal(last.x, played.x) and torch.equal(last.lam, played.lam)
