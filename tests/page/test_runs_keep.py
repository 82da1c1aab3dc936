"""Runs outside the kernel: kept on disk, downloaded, taken up, refused, forgotten."""

from __future__ import annotations

import base64
import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.runs_box import RunsBox
from explorer.page.stages.landscape.starts import StartsPanel
from explorer.page.stages.train import commands as train
from explorer.research.grid import grid_attacks
from explorer.research.grid import store as grid_keep
from explorer.research.grid.landscape import SIDES
from explorer.research.grid.store import CELLS, KEEP, MOST_FILES, folder
from explorer.research.records import rows_in, text_of
from explorer.serve import server
from tests.page import pages
from tests.page.pages import choose, press
from tests.page.test_runs import run

N = 6


def opened(n: int = N, seed: int = 0) -> App:
    made = App(preset("moons", n=n), seed=seed)
    play.go(made.session, "train")
    train.jump_to_exact(made.session)
    play.go(made.session, "landscape")
    play.configure(made.session, steps=3)
    return made


def panel(app: App) -> RunsBox:
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
    app = opened()
    run(panel(app), until=2)
    assert not list(home.rglob("*")) and "lost" in panel(app).files.value("kept")
    app.close()


def test_a_grid_goes_on_in_a_new_kernel_and_is_forgotten(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    app = opened()
    run(panel(app), until=4)
    done = dict(panel(app).found.rows)
    assert 4 <= len(done) < 21
    app.close()
    (path,) = folder().glob("*.jsonl")
    with path.open("a") as file:
        file.write('{"key": "torn')  # as a kill in the middle of a line leaves it

    app = opened()  # the same points, seed and exact weights
    grid = panel(app)
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
    assert grid.files.items["forget"].disabled and not grid.links.value
    app.close()


def test_other_weights_have_a_file_of_their_own_and_old_ones_go(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    app = opened()
    run(panel(app), until=2)
    for k in range(MOST_FILES + 3):
        (folder() / f"old{k:02d}.jsonl").touch()
    play.go(app.session, "train")
    play.step(app.session, 1)
    play.go(app.session, "landscape")
    assert not panel(app).found.rows
    run(panel(app), until=2)
    assert len(list(folder().glob("*.jsonl"))) <= MOST_FILES
    app.close()


def test_a_damaged_or_closed_folder_is_told_and_the_grid_runs(home, monkeypatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    (home / "margin-explorer").write_text("in the way")
    app = opened()
    run(panel(app), until=2)
    assert len(panel(app).found.rows) >= 2
    assert "Nothing is" in panel(app).files.value("kept")
    assert str(home) not in panel(app).files.value("kept")
    app.close()


def test_what_is_downloaded_is_taken_up_in_another_kernel(home) -> None:
    app = opened()
    run(panel(app), until=5)
    done = dict(panel(app).found.rows)
    files = offered(panel(app))
    app.close()
    table = list(csv.DictReader(files["grid.csv"].decode().splitlines()))
    assert len(table) == len(done) and float(table[0]["start.truth"]) >= 0
    app = opened()
    grid = panel(app)
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
    assert app.session.frame.attack.state is last
    assert grid.found.problems[0].parts.distances(last.x)[0] == done[key]["truth"]
    app.close()


@pytest.mark.parametrize("key", grid_attacks())
def test_every_attack_with_a_start_can_be_kept(home, key: str) -> None:
    app = opened()
    grid = panel(app)
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
    app = opened()
    run(panel(app))
    lines = offered(panel(app))["grid.jsonl"]
    grid = panel(app)
    choose(grid.settings, "side", SIDES[1])
    hand_in(grid, lines)
    assert len(grid.found.rows) == 21 and len(grid.found.todo(1)) == 66 - 21
    choose(grid.settings, "side", SIDES[0])
    app.session.seed = 1
    landscape.begin_starts(app.session)
    assert not grid.found.rows
    hand_in(grid, lines)
    assert not grid.found.rows and "21 have" in app.session.message
    app.close()


def test_cells_of_another_problem_are_refused_and_nothing_is_lost(home) -> None:
    app = opened()
    run(panel(app), until=3)
    lines = offered(panel(app))["grid.jsonl"]
    row = json.loads(lines.splitlines()[0])
    grid = panel(app)
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
    app.close()


def test_one_changed_bit_of_weights_or_points_is_another_problem(home) -> None:
    app = opened()
    found = panel(app).found
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
    app.close()
