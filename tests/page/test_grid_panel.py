"""The landscape stage without a browser: run, cancel, go on, click a cell, change the problem."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from explorer.engine.data import preset
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.panels.grid import GridPanel
from explorer.page.parts.grid_box import CANCEL, RUN, GridBox
from explorer.page.parts.job_row import CANCELLING
from explorer.page.stages import attack, draw
from tests.page.pages import click_mark, opened


@pytest.fixture
def app():
    made = opened("landscape", "moons", n=8)
    yield made
    made.close()


def panel(app: App) -> GridBox:
    made = app.panel("GridPanel")
    assert isinstance(made, GridPanel)
    made.grid.steps.value = 3
    return made.grid


def run(grid: GridBox, until: int | None = None) -> None:
    """Press the button and wait; cancel once `until` cells are done."""

    async def go() -> None:
        grid.go.click()
        while grid.busy:
            if until is not None and len(grid.found.rows) >= until:
                grid.cancel()
            await asyncio.sleep(0.001)

    asyncio.run(go())


def test_a_cancelled_grid_goes_on_and_fills_the_maps(app: App) -> None:
    grid = panel(app)
    assert "Press Run" in grid.said.value
    assert not grid.body.children
    run(grid, until=4)
    done = len(grid.found.rows)
    assert 4 <= done < 21 and grid.go.description == RUN
    first = dict(grid.found.rows)
    run(grid)
    assert len(grid.found.rows) == 21
    assert all(grid.found.rows[key] is row for key, row in first.items())
    assert grid.progress.value == 1
    assert len(grid.board.maps[0].marks.x) == 25  # one start stands for the row of noise
    assert np.isfinite(grid.board.maps[0].marks.color).all()
    assert "Of 25 cells" in grid.said.value
    assert "to truth" in grid.board.maps[0].marks.names[0]
    assert app.panels["GridPanel"].failure.layout.display == "none"
    assert not app.session.message


def test_a_cell_puts_its_run_on_the_plane(app: App) -> None:
    grid, session = panel(app), app.session
    run(grid)
    with pytest.raises(ValueError, match="not done"):
        grid.load(0.1, 0.1)
    grid.load(0.5, 0.75)
    assert session.mix == (0.5, 0.75)
    kept = grid.found.states[(0, 0.5, 0.75)]
    assert session.frame.attack.state is kept[-1]
    np.testing.assert_allclose(session.branch.attack.states[0].x, kept[0].x)
    assert session.branch.attack.states[-1].t == 3
    assert len(grid.found.rows) == 21  # the same problem still
    play.go(session, "attack")
    assert session.frame.attack.state is kept[-1]
    for name, one in app.panels.items():
        assert one.failure.layout.display == "none", (name, one.failure.value)


def test_another_problem_begins_anew_and_the_old_one_is_kept(app: App) -> None:
    grid = panel(app)
    grid.host.attack.value = "bilevel"
    assert app.session.frame.attack.name == "bilevel"
    run(grid)
    held = grid.found
    assert len(held.rows) == 21
    truth = held.rows[(0, 1.0, 1.0)]["result"]
    assert truth["truth"] == 0 and truth["steps"] == 0
    grid.load(1.0, 1.0)
    assert float(app.session.frame.attack.state.l_upper) == 0
    grid.host.attack.value = "kkt"
    assert grid.found is not held and not grid.found.rows
    grid.host.attack.value = "bilevel"
    assert grid.found is held and len(grid.board.maps[0].marks.x) == 25


def test_finer_grids_and_more_seeds(app: App) -> None:
    grid = panel(app)
    grid.seeds.value = 2
    run(grid)
    assert len(grid.found.rows) == 42
    wide = grid.board.edges[0].bands[0]
    assert wide.y.shape == (2, 5) and (wide.y[1] >= wide.y[0]).all()
    grid.side.value = 11
    run(grid, until=3)
    assert 3 <= len(grid.found.rows) < 222
    assert all(len(kept) <= 4 for kept in grid.found.states.values())


def test_the_stage_opens_after_an_attack_that_takes_no_start(app: App) -> None:
    play.go(app.session, "attack")
    attack.choose(app.session, "hinge")
    play.go(app.session, "landscape")
    grid = panel(app)
    assert app.panels["GridPanel"].failure.layout.display == "none", app.panels[
        "GridPanel"
    ].failure.value
    run(grid, until=1)
    attack.choose(app.session, "hinge")
    assert grid.found.rows and grid.found.of.attack == "kkt"  # still those on screen
    grid.load(*grid.board.cells[0])
    assert app.session.frame.attack.name == "kkt"


def press_and_wait(grid: GridBox, act) -> None:
    """Run, and `act` once two cells are done; until the run has ended."""

    async def go() -> None:
        grid.go.click()
        while len(grid.found.rows) < 2:
            await asyncio.sleep(0.001)
        assert grid.go.description == CANCEL
        act()
        while grid.busy:
            await asyncio.sleep(0.001)

    asyncio.run(go())


def test_what_to_do_first_counts_the_starts_of_this_grid(app: App) -> None:
    grid = panel(app)
    grid.side.value = 26
    assert "from 651 mixtures" in grid.said.value


def test_more_seeds_are_not_done_yet(app: App) -> None:
    grid = panel(app)
    run(grid)
    assert grid.progress.value == 1
    grid.seeds.value = 3
    assert grid.progress.value == pytest.approx(1 / 3)


def test_a_grid_ends_with_its_problem_even_out_of_sight(app: App) -> None:
    grid, session = panel(app), app.session
    grid.side.value, grid.steps.value = 26, 50

    def elsewhere() -> None:
        play.go(session, "attack")  # the same weights: the run goes on
        assert not grid.ending
        play.go(session, "draw")
        draw.load(session, preset("xor", n=8))
        assert grid.ending and "was cancelled" in session.message

    press_and_wait(grid, elsewhere)
    assert 2 <= len(grid.found.rows) < 651


def test_training_on_ends_a_grid_of_the_weights_before(app: App) -> None:
    grid, session = panel(app), app.session
    grid.side.value, grid.steps.value = 26, 50

    def train_on() -> None:
        play.go(session, "train")
        play.step(session, 1)

    press_and_wait(grid, train_on)
    assert 2 <= len(grid.found.rows) < 651


def test_a_second_press_on_cancel_does_not_run_again(app: App, monkeypatch) -> None:
    grid, now = panel(app), [100.0]
    monkeypatch.setattr("explorer.page.parts.job_row.perf_counter", lambda: now[0])

    def twice() -> None:
        grid.go.click()
        assert grid.ending and grid.go.description == CANCELLING
        grid.go.click()

    grid.side.value = 11
    press_and_wait(grid, twice)
    done = len(grid.found.rows)
    assert done < 111 and grid.go.description == RUN

    async def press() -> bool:
        grid.go.click()
        began = grid.busy
        grid.cancel()
        if began:
            await grid.job.done()
        return began

    now[0] += 0.4  # a double click whose second half comes after the end
    assert not asyncio.run(press())


def test_the_sentence_and_the_frame_of_a_cell_outlive_new_cells(app: App) -> None:
    grid = panel(app)
    run(grid)
    grid.load(0.5, 0.75)
    grid.seeds.value = 2
    run(grid)
    assert grid.cells.said.value.startswith("λ₁ = 0.5, λ₂ = 0.75: the candidates")
    for one in (*grid.board.maps, grid.board.nearest):
        assert (list(one.frame.x), list(one.frame.y)) == ([0.5], [0.75])
        assert one.frame.default_size == one.marks.default_size
    grid.load(0.25, 0.0)  # one start stands for the row of noise
    assert list(grid.board.nearest.frame.y) == [0.0] * 5
    assert "2 seeds, 0" in grid.cells.said.value
    grid.steps.value = 4
    assert grid.cells.said.value == "" and grid.cells.chosen is None
    grid.steps.value = 3
    assert len(grid.board.nearest.marks.x) == 25 and not len(grid.board.nearest.frame.x)


def test_a_cell_is_chosen_by_keyboard(app: App) -> None:
    grid, session = panel(app), app.session
    run(grid)
    names = [name for name, _ in grid.cells.list.options]
    assert len(names) == 22 and names[1].startswith("λ₁ 0, λ₂ 0: ") and "to truth" in names[1]
    grid.cells.list.value = (0.5, 0.75)
    assert session.mix == (0.5, 0.75) and session.frame.attack.state.t == 3
    marks = grid.board.maps[0].marks
    click_mark(marks, 24)
    assert grid.cells.list.value == (1.0, 1.0) and session.mix == (1.0, 1.0)


def test_the_run_that_was_there_is_kept_on_its_branch(app: App) -> None:
    grid, session = panel(app), app.session
    play.go(session, "attack")
    play.configure(session, m=6, lr_x=0.011)
    play.step(session, 7)
    before, config = session.frame.attack.state, session.attack_config
    play.go(session, "landscape")
    run(grid)
    grid.load(0.5, 0.75)
    assert len(session.branches) == 2 and "branch “main”" in grid.cells.said.value
    assert session.attack_config.m == 8
    grid.load(0.5, 1.0)  # a loaded run can be loaded again: no branch for it
    assert len(session.branches) == 2 and "branch" not in grid.cells.said.value
    branches.select(session, 0)
    assert session.frame.attack.state is before and session.frame.stage == "attack"
    assert session.attack_config == config and session.mix == (0.0, 0.0)
    assert [s.t for s in session.branch.attack.states] == list(range(8))
    branches.select(session, 1)
    assert session.mix == (0.5, 1.0) and session.frame.attack.state.t == 3
    play.go(session, "attack")
    branches.seek(session, 1)
    play.step(session, 1)  # played on from the middle, it is a run of one's own
    grid.load(0.5, 0.75)
    assert len(session.branches) == 3
    while len(session.branches) < branches.MOST_BRANCHES:
        branches.branch(session)
    play.step(session, 1)
    held = session.frame.attack.state
    with pytest.raises(ValueError, match="At most 8 branches"):
        grid.load(0.5, 1.0)
    assert session.frame.attack.state is held
