"""Attacks from the handle and from all places: run, cancel, go on, load, change the problem."""

from __future__ import annotations

import asyncio
import base64
import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.engine.energy.starts import mix_of, mix_weights, places_of
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.controls.row import BEGIN, CANCELLING, END
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.runs_box import CANCEL, RunsBox, trail_arrays
from explorer.page.stages.landscape.starts import StartsPanel
from explorer.page.stages.landscape.words import arrival_words, headline, mixture
from explorer.page.stages.train import commands as train
from explorer.research.grid import grid_attacks
from explorer.research.grid import store as grid_keep
from explorer.research.grid.landscape import ROLLING, SIDES
from explorer.research.grid.store import CELLS, KEEP, MOST_FILES, folder
from explorer.research.records import rows_in, text_of
from explorer.serve import server
from tests.page import pages
from tests.page.pages import choose, label, no_failures, opened, panel_of, press, send

PLACES = 21


app = pytest.fixture(lambda: opened("landscape", "moons", n=8))


def card(app: App) -> StartsPanel:
    return panel_of(app, StartsPanel)


def panel(app: App) -> RunsBox:
    made = card(app).runs
    steps(app, 3)
    return made


def steps(app: App, count: int) -> None:
    """The attack's own length, which is that of all runs from a start."""
    play.configure(app.session, steps=count)


def run(box: RunsBox, until: int | None = None) -> None:
    """Press the button and wait; cancel once `until` runs are done."""

    async def go() -> None:
        press(box.go, "go")
        while box.busy:
            if until is not None and len(box.found.rows) >= until:
                box.cancel()
            await asyncio.sleep(0.001)

    asyncio.run(go())


# --- from the handle --------------------------------------------------------------------------
def test_an_attack_from_the_handle_begins_at_its_candidates_and_is_kept(app: App) -> None:
    session, panel = app.session, card(app)
    weights = (0.25, 0.5, 0.25)
    landscape.place_handle(session, weights)
    before = session.frame.starts
    play.go(session, "attack")
    play.configure(session, steps=30)
    play.go(session, "landscape")
    landscape.place_handle(session, weights)
    press(panel.here, "go")
    held = session.frame.starts
    assert held.trail[0][0] == pytest.approx(weights)
    assert held.trail[0][1] == pytest.approx(before.energy, abs=1e-12)
    assert len(held.trail) == 31 and held.weights == pytest.approx(weights)
    assert (
        held.energy
        == held.trail[-1][1]
        == pytest.approx(held.landscape.measure(held.candidates.x), abs=1e-12)
    )
    first, last = session.timeline.states[0], session.timeline.states[-1]
    torch.testing.assert_close(first.x, before.candidates.x)
    assert session.frame.state is last and last.t == 30
    no_failures(app)


def test_a_drag_ends_the_attack_from_the_handle(app: App) -> None:
    panel = card(app)

    async def go() -> None:
        press(panel.here, "go")
        while len(app.session.frame.starts.trail) < 2:
            await asyncio.sleep(0.001)
        send(panel.view, kind="handle", weights=[0.5, 0.5, 0.0], number=1)
        await panel.attack_job.wait()

    asyncio.run(go())
    assert app.session.frame.starts.weights == pytest.approx((0.5, 0.5, 0.0))
    assert not app.session.frame.starts.trail


# --- from all places --------------------------------------------------------------------------
def test_a_cancelled_set_of_runs_goes_on_where_it_was(app: App, monkeypatch) -> None:
    monkeypatch.setattr(
        "explorer.page.stages.landscape.runs_box.DRAW_S", -1.0
    )  # each round is drawn
    box = panel(app)
    steps(app, 60)
    assert str(PLACES) in label(box.go, "go")

    async def some() -> None:
        press(box.go, "go")
        while not box.found.rolling or len(box.found.trails()) < PLACES:
            await asyncio.sleep(0.001)
        box.cancel()
        await box.job.wait()

    asyncio.run(some())
    rolled = {key: trace.last.t for key, trace in box.found.rolling.items()}
    assert not box.found.rows and max(rolled.values()) < 60
    assert (box.arrays()["ends"] == ROLLING).all()  # all side by side
    run(box)
    assert len(box.found.rows) == PLACES and not box.found.rolling
    sent = card(app).view.frame  # the browser has seen that they ended
    ends = sent["ends"]  # and the path of the one on the plane comes last
    assert len(ends) == PLACES + 1 and (ends[:-1] != ROLLING).all() and ends[-1] == ROLLING
    assert all(row["steps"] == 60 for row in box.found.rows.values())
    assert sum(box.counts()) == PLACES and ROLLING not in box.arrays()["ends"]
    no_failures(app)
    fresh = opened("landscape", "moons", n=8)  # in one go: the same runs
    other = card(fresh).runs
    steps(fresh, 60)
    other.run()
    for key, row in box.found.rows.items():
        again = dict(other.found.rows[key])  # but for rounding: a fit begins from the one before
        assert row["energy"] == pytest.approx(again.pop("energy"), abs=1e-12)
        assert {name: value for name, value in row.items() if name != "energy"} == again


def test_the_ends_of_the_runs_are_a_map_and_a_profile(app: App) -> None:
    box, panel_ = panel(app), card(app)
    assert panel_.aside.items["fill"].hidden
    assert panel_.runs.go.items["go"].filled and panel_.way.items["on"].hidden
    run(box)
    assert not panel_.aside.items["fill"].hidden
    assert not panel_.runs.go.items["go"].filled  # the filled button leads on
    assert panel_.way.items["on"].filled and not panel_.way.items["on"].hidden
    ends, last = box.found.ends(), SIDES[0] - 1
    assert np.isfinite(ends).sum() == PLACES
    for k, i in ((0, 0), (2, 1), (0, last)):
        mix = mix_of(i, last - i - k, k)
        x = box.found.states[0, *mix][-1].x
        assert ends[k, i] == pytest.approx(app.session.frame.starts.landscape.measure(x), abs=1e-12)
    choose(panel_.aside, "fill", "start")
    sent: list[dict] = []
    panel_.view.show = lambda arrays, **_: sent.append(arrays)
    panel_.strip.show = lambda arrays, **values: sent.append({**arrays, **values})
    choose(panel_.aside, "fill", "end")
    fill, profile = next(one for one in sent[::-1] if "fill" in one), sent[-1]
    assert (fill["fill"] > 0).sum() == PLACES and {"start", "end", "handle"} <= set(profile)


def test_the_plane_shows_the_side_of_the_best_run_that_the_switch_names(app: App) -> None:
    box, panel_, session = panel(app), card(app), app.session
    run(box)
    met = {key: box.found.met(key) for key in box.found.rows}
    here = box.chosen
    assert met[here] == max(met.values()) and panel_.aside.value("fill") == "end"
    states = box.found.states[here]
    assert session.frame.state is states[-1] and box.list.value("run") == here
    title, words = headline(session.frame)
    assert title == arrival_words(session.frame.starts.arrivals)[0] and "best" in words
    choose(panel_.aside, "fill", "start")
    assert session.frame.state is states[0] and "best" not in headline(session.frame)[1]
    assert headline(session.frame)[0] == title
    choose(panel_.aside, "fill", "end")
    send(panel_.view, kind="handle", weights=[0.5, 0.3, 0.2], number=1)
    assert panel_.aside.value("fill") == "start" and not session.frame.starts.trail
    other = next(key for key in box.found.rows if key != here)
    box.found.rows[other]["recovered"] = [8, 0]
    choose(panel_.aside, "fill", "end")  # of a start without a run: that of the best
    assert session.frame.starts.best and box.chosen == other
    assert session.frame.state is box.found.states[other][-1]


def test_finer_triangles_and_more_seeds(app: App) -> None:
    box = panel(app)
    choose(box.settings, "seeds", 2)
    assert "42 starts" in label(box.go, "go")
    run(box)
    assert len(box.found.rows) == 2 * PLACES
    choose(box.settings, "side", SIDES[1])
    assert "132 starts" in label(box.go, "go") and not box.found.rows
    run(box, until=3)
    assert 3 <= len(box.found.rows) < 132
    assert all(len(kept) <= 4 for kept in box.found.states.values())


def test_a_run_is_put_on_the_plane_from_its_end_and_from_the_list(app: App) -> None:
    box, session = panel(app), app.session
    run(box)
    with pytest.raises(ValueError, match="not ended"):
        box.load((0, 0.1, 0.1))
    keys = [key for key, _, _ in box.found.trails()]
    send(card(app).view, kind="ball", index=5)
    mix = keys[5][1:]
    kept = box.found.states[keys[5]]
    held = session.frame.starts
    assert held.weights == pytest.approx(mix_weights(*mix)) and session.frame.state is kept[-1]
    assert held.candidates.x is kept[-1].x
    torch.testing.assert_close(session.timeline.states[0].x, kept[0].x)
    assert session.timeline.states[-1].t == 3 and len(box.found.rows) == PLACES
    names = [name for name, *_ in box.list.items["run"].options]
    assert len(names) == PLACES + 1 and "noise" in names[1] and "unexplained" in names[1]
    choose(box.list, "run", keys[7])
    assert session.frame.state is box.found.states[keys[7]][-1] and "step 3" in box.list.text
    send(card(app).view, kind="ball", index=999)
    assert session.frame.state is box.found.states[keys[7]][-1]
    no_failures(app)


def test_another_attack_has_runs_of_its_own_and_the_old_ones_are_kept(app: App) -> None:
    box = panel(app)
    choose(card(app).runs.settings, "attack", "bilevel")
    assert app.session.frame.attack.name == "bilevel"
    steps(app, 3)
    run(box)
    held = box.found
    assert len(held.rows) == PLACES
    truth = held.rows[0, 1.0, 1.0]
    assert truth["truth"] == 0 and truth["steps"] == 0 and truth["energy"] < 1e-12
    choose(card(app).runs.settings, "attack", "kkt")
    assert box.found is not held and not box.found.rows
    choose(card(app).runs.settings, "attack", "bilevel")
    assert box.found is held


def test_the_stage_opens_after_an_attack_that_takes_no_start(app: App) -> None:
    play.go(app.session, "attack")
    attack.choose(app.session, "hinge")
    play.go(app.session, "landscape")
    no_failures(app)
    offered = card(app).refusal
    assert offered in card(app).whole.children and not offered.items["attack"].hidden
    assert offered.items["attack"].place < 0
    choose(offered, "attack", "kkt")
    run(panel(app), until=1)
    assert card(app).runs.found.rows and app.session.frame.starts is not None


def press_and_wait(box: RunsBox, act) -> None:
    """Run, and `act` once all roll; until the work has ended."""

    async def go() -> None:
        press(box.go, "go")
        while len(box.found.trails()) < PLACES:
            await asyncio.sleep(0.001)
        assert label(box.go, "go") == CANCEL
        act()
        while box.busy:
            await asyncio.sleep(0.001)

    asyncio.run(go())


def test_runs_end_with_their_problem_even_out_of_sight(app: App) -> None:
    box, session = panel(app), app.session
    choose(box.settings, "side", SIDES[2])
    steps(app, 50)

    def elsewhere() -> None:
        play.go(session, "attack")  # the same weights: the runs go on
        assert not box.ending
        play.go(session, "draw")
        draw.load(session, preset("xor", n=8))
        assert box.ending and "were cancelled" in session.message

    press_and_wait(box, elsewhere)
    assert len(box.found.rows) < 351


def test_a_press_means_what_the_button_said(app: App) -> None:
    box = panel(app)
    steps(app, 100)

    def twice() -> None:
        press(box.go, "go")
        assert box.ending and label(box.go, "go") == CANCELLING
        press(box.go, "go")

    press_and_wait(box, twice)
    assert len(box.found.rows) < PLACES and "Attack" in label(box.go, "go")

    async def said(what: str) -> bool:
        send(box.go, kind="set", value=["go", what])
        began = box.busy
        if began:  # the second click of a double click, which came before the Cancel was shown
            send(box.go, kind="set", value=["go", what])
            assert not box.ending
        box.cancel()
        await box.job.wait()
        return began

    assert not asyncio.run(said(END)), "a Cancel that came after the end"
    assert asyncio.run(said(BEGIN))


def test_the_run_of_the_attack_stage_stands_again_after_runs_of_the_landscape(app: App) -> None:
    box, session = panel(app), app.session
    play.go(session, "attack")
    play.configure(session, m=6, lr_x=0.011, steps=7)
    play.step(session, 7)
    part, config, line = session.frame.attack, session.attack_config, session.branch.attack
    play.go(session, "landscape")
    press(card(app).here, "go")
    assert session.frame.starts.t == 7
    run(box)
    key = box.found.trails()[4][0]
    box.load(key)
    play.go(session, "attack")
    assert session.frame.attack.state is part.state and session.attack_config == config
    assert session.branch.attack is line and session.mix == (0.0, 0.0)
    assert len(session.branches) == 1 and not session.message
    play.go(session, "landscape")
    branches.branch(session)
    taken = session.frame.attack
    assert session.frame.stage == "attack" and taken.state is box.found.states[key][-1]
    assert taken.judged is taken.state and session.mix == key[1:]
    assert session.branch.name == f"from {mixture(mix_weights(*key[1:]), short=True)}"
    branches.select(session, 0)
    assert session.frame.stage == "attack" and session.frame.attack.state is part.state
    assert session.attack_config == config and session.mix == (0.0, 0.0)
    while len(session.branches) < branches.MOST_BRANCHES:
        branches.branch(session)
    play.go(session, "landscape")
    box.load(key)
    with pytest.raises(ValueError, match="At most 8 branches"):
        branches.branch(session)
    assert session.frame.stage == "landscape" and session.frame.rolled


def test_a_run_that_fails_is_told_and_does_not_hold_the_others_up(app: App, monkeypatch) -> None:
    box = panel(app)
    problem = box.host.problem().problem()
    real, broken = type(problem).states_from, [True]

    def states(self, start, config, stride=1):
        if broken[0] and torch.equal(start, self.parts.start(1.0, 1.0)):
            raise ValueError("no such start")
        return real(self, start, config, stride)

    monkeypatch.setattr(type(problem), "states_from", states)
    run(box)
    assert "such start" in app.session.message and len(box.found.rows) < PLACES
    broken[0] = False
    run(box)
    assert len(box.found.rows) == PLACES


def test_places_lie_evenly_corners_first_and_coarse_ones_are_among_the_fine() -> None:
    for side in SIDES:
        places = places_of(side)
        assert len(set(places)) == len(places) == side * (side + 1) // 2
        assert set(places[:3]) == {(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)}
    assert set(places_of(SIDES[0])) <= set(places_of(SIDES[1])) and set(places_of(6)) <= set(
        places_of(26)
    )
    with pytest.raises(ValueError, match="2 or more"):
        places_of(1)


def test_runs_of_different_length_are_one_array_and_stay_at_their_ends() -> None:
    made = trail_arrays([([[1.0, 0, 0], [0, 1.0, 0]], 1), ([[0, 0, 1.0]], ROLLING)])
    assert made["trails"].shape == (2, 2, 3) and made["ends"].tolist() == [1, ROLLING]
    assert made["trails"][1].tolist() == [[0, 0, 1], [0, 0, 1]]
    assert trail_arrays([]) == {}


# --- runs outside the kernel: kept on disk, downloaded, taken up, refused, forgotten --------------

N = 6


def page_of(n: int = N, seed: int = 0) -> App:
    made = App(preset("moons", n=n), seed=seed)
    play.go(made.session, "train")
    train.jump_to_exact(made.session)
    play.go(made.session, "landscape")
    play.configure(made.session, steps=3)
    return made


def box(app: App) -> RunsBox:
    made = app.panels["StartsPanel"]
    assert isinstance(made, StartsPanel)
    return made.runs


def offered(grid: RunsBox) -> dict[str, bytes]:
    """The files in the page's links."""
    found = re.findall(r"download='([^']+)' href='data:[^;]+;base64,([^']+)'", grid.links.value)
    return {name: base64.b64decode(coded) for name, coded in found}


def hand_in(grid: RunsBox, content: bytes, name: str = "mine.jsonl") -> None:
    pages.hand_in(grid.files, "open", content, name)


def test_no_page_keeps_anything_on_disk_unless_its_user_asks(home, monkeypatch) -> None:
    assert folder() is None
    monkeypatch.setenv(KEEP, "0")
    assert folder() is None
    monkeypatch.setenv(KEEP, "1")
    assert folder() == home / "margin-explorer" / "grid"
    with monkeypatch.context() as homeless:
        homeless.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
        assert folder() is None
    assert server.environment("0.0.0.0", ())[KEEP] == "1"  # who set it knows
    monkeypatch.delenv(KEEP)
    for host in ("127.0.0.1", "0.0.0.0"):
        assert KEEP not in server.environment(host, ()), "two visitors would share a file"
    app = page_of()
    run(box(app), until=2)
    assert not list(home.rglob("*")) and "lost" in box(app).files.value("kept")


def test_a_grid_goes_on_in_a_new_kernel_and_is_forgotten(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    app = page_of()
    run(box(app), until=4)
    done = dict(box(app).found.rows)
    assert 4 <= len(done) < 21
    app.close()
    (path,) = folder().glob("*.jsonl")
    with path.open("a") as file:
        file.write('{"key": "torn')  # as a kill in the middle of a line leaves it

    app = page_of()  # the same points, seed and exact weights
    grid = box(app)
    assert grid.found.rows.keys() == done.keys() and not grid.found.states
    assert f"{len(done)} cells" in grid.files.value("kept")
    assert "whoever" in grid.files.value("kept") and str(home) not in grid.files.value("kept")
    run(grid)
    assert len(grid.found.rows) == 21 == len(rows_in(path.read_bytes(), CELLS))
    assert all(grid.found.rows[key] == row for key, row in done.items())
    press(grid.files, "forget")
    assert len(grid.found.rows) == 21 and path.exists()  # asked once
    press(grid.files, "forget")
    assert not grid.found.rows and not path.exists()
    assert grid.files.items["forget"].hidden and not grid.links.value


def test_other_weights_have_a_file_of_their_own_and_old_ones_go(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    app = page_of()
    run(box(app), until=2)
    for k in range(MOST_FILES + 3):
        (folder() / f"old{k:02d}.jsonl").touch()
    play.go(app.session, "train")
    play.step(app.session, 1)
    play.go(app.session, "landscape")
    assert not box(app).found.rows
    run(box(app), until=2)
    assert len(list(folder().glob("*.jsonl"))) <= MOST_FILES


def test_a_damaged_or_closed_folder_is_told_and_the_grid_runs(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    (home / "margin-explorer").write_text("in the way")
    app = page_of()
    run(box(app), until=2)
    assert len(box(app).found.rows) >= 2
    assert "Nothing is" in box(app).files.value("kept")
    assert str(home) not in box(app).files.value("kept")


def test_what_is_downloaded_is_taken_up_in_another_kernel(home) -> None:
    app = page_of()
    run(box(app), until=5)
    done = dict(box(app).found.rows)
    files = offered(box(app))
    app.close()
    table = list(csv.DictReader(files["grid.csv"].decode().splitlines()))
    assert len(table) == len(done) and float(table[0]["start.truth"]) >= 0
    app = page_of()
    grid = box(app)
    hand_in(grid, files["grid.jsonl"])
    assert f"{len(done)} cells" in app.session.message
    assert grid.found.rows.keys() == done.keys()
    assert offered(grid)["grid.jsonl"] == files["grid.jsonl"]
    hand_in(grid, files["grid.jsonl"])
    assert "0 cells of mine.jsonl" in app.session.message  # nothing twice
    assert app.panels["StartsPanel"].failure.layout.display == "none"
    # A click runs the cell again: it ends where it ended before.
    key = next(k for k in done if k[2] > 0)
    grid.load(key)
    last = grid.found.states[key][-1]
    assert app.session.frame.state is last
    assert grid.found.problems[0].parts.distances(last.x)[0] == done[key]["truth"]


@pytest.mark.parametrize("key", grid_attacks())
def test_every_attack_with_a_start_can_be_kept(home, key: str) -> None:
    app = page_of()
    grid = box(app)
    try:
        choose(app.panels["StartsPanel"].runs.settings, "attack", key)
        assert grid.found.of.attack == key or app.session.message  # refused on this network
        run(grid, until=1)
        (text, table), of = grid.keeper.texts(), grid.keeper.of
        assert all(row["of"] == of for row in rows_in(text.encode(), CELLS)) and table.startswith(
            "key,"
        )
    finally:
        app.close()


def test_a_coarser_triangle_lies_on_a_finer_one_and_seeds_keep_their_number(home) -> None:
    app = page_of()
    run(box(app))
    lines = offered(box(app))["grid.jsonl"]
    grid = box(app)
    choose(grid.settings, "side", SIDES[1])
    hand_in(grid, lines)
    assert len(grid.found.rows) == 21 and len(grid.found.todo(1)) == 66 - 21
    choose(grid.settings, "side", SIDES[0])
    app.session.seed = 1
    landscape.begin_starts(app.session)
    assert not grid.found.rows
    hand_in(grid, lines)
    assert not grid.found.rows and "21 have" in app.session.message


def test_cells_of_another_problem_are_refused_and_nothing_is_lost(home) -> None:
    app = page_of()
    run(box(app), until=3)
    lines = offered(box(app))["grid.jsonl"]
    row = json.loads(lines.splitlines()[0])
    grid = box(app)
    before = dict(grid.found.rows)
    cases = {
        "other weights": {"weights": "0" * 24}, "other points": {"points": "0" * 24},
        "other held-out points": {"heldout": "0" * 24},
        "another attack (bilevel; here kkt)": {"attack": "bilevel"},
        "other settings (steps=7; here steps=3)":
            {"settings": {**row["of"]["settings"], "steps": 7}},
        "another version (0.0; here": {"version": "0.0"},
    }  # fmt: skip
    for words, changed in cases.items():
        other = {**row, "key": "new", "seed": 5, "of": {**row["of"], **changed}}
        hand_in(grid, lines + text_of([other]).encode())
        assert words in app.session.message and "here stays" in app.session.message
        assert grid.found.rows == before
    for content in (b"", b"{}", b"\x00\xff", lines.replace(b'"truth":', b'"truth":null,"a":'),
                    b"[" * 100_000, text_of([{**row, "seed": "0"}]).encode()):  # fmt: skip
        hand_in(grid, content)
        assert "here stays" in app.session.message
        assert (
            grid.found.rows == before and app.panels["StartsPanel"].failure.layout.display == "none"
        )


def test_one_changed_bit_of_weights_or_points_is_another_problem(home) -> None:
    app = page_of()
    found = box(app).found
    of = grid_keep.identity(found.of)
    moved = found.of.truth.x.clone()
    moved[0, 0] = torch.nextafter(moved[0, 0], torch.tensor(9.0, dtype=moved.dtype))
    other = grid_keep.identity(replace(found.of, truth=replace(found.of.truth, x=moved)))
    assert other["points"] != of["points"] and other["weights"] == of["weights"]
    assert grid_keep.identity(replace(found.of, seed=7, side=11)) == of
    bilevel = replace(found.of, attack="bilevel")  # trains a victim of its own
    assert grid_keep.identity(bilevel) == grid_keep.identity(replace(bilevel, target=None))
    with pytest.raises(ValueError, match="train a network first"):
        grid_keep.identity(replace(found.of, target=None))
