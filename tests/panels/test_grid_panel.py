"""The landscape stage without a browser: run, cancel, go on, click a cell, change the problem."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from explorer.apps import App
from explorer.panels.grid import GridPanel
from explorer.parts.grid_box import RUN, GridBox
from tests.panels.pages import opened


@pytest.fixture
def app():
    made = opened("landscape", "moons", n=8)
    yield made
    made.close()


def panel(app: App) -> GridBox:
    made = app.panels["GridPanel"]
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

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(go())
    finally:
        loop.close()
        asyncio.set_event_loop(None)


def test_a_cancelled_grid_goes_on_and_fills_the_maps(app: App) -> None:
    grid = panel(app)
    assert GridPanel.empty in grid.said.value and not grid.body.children
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
    assert app.panels["GridPanel"]._failure.layout.display == "none"
    assert not app.session.message


def test_a_cell_puts_its_run_on_the_plane(app: App) -> None:
    grid, session = panel(app), app.session
    run(grid)
    with pytest.raises(ValueError, match="not done"):
        grid.load(0.1, 0.1)
    grid.load(0.5, 0.75)
    assert session.mix == (0.5, 0.75)
    kept = grid.found.states[(0, 0.5, 0.75)]
    assert session.now.attack is kept[-1]
    np.testing.assert_allclose(session.branch.attack.states[0].x, kept[0].x)
    assert session.branch.attack.states[-1].t == 3
    assert len(grid.found.rows) == 21  # the same problem still
    session.go("attack")
    assert session.now.attack is kept[-1]
    for name, one in app.panels.items():
        assert one._failure.layout.display == "none", (name, one._failure.value)


def test_another_problem_begins_anew_and_the_old_one_is_kept(app: App) -> None:
    grid = panel(app)
    grid.host.attack.value = "bilevel"
    assert app.session.now.attack_name == "bilevel"
    run(grid)
    held = grid.found
    assert len(held.rows) == 21
    truth = held.rows[(0, 1.0, 1.0)]["result"]
    assert truth["truth"] == 0 and truth["steps"] == 0
    grid.load(1.0, 1.0)
    assert float(app.session.now.attack.l_upper) == 0
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
    app.session.go("attack")
    app.session.choose_attack("hinge")
    app.session.go("landscape")
    grid = panel(app)
    assert app.panels["GridPanel"]._failure.layout.display == "none", app.panels[
        "GridPanel"
    ]._failure.value
    run(grid, until=1)
    app.session.choose_attack("hinge")
    assert grid.found.rows and grid.found.of.attack == "kkt"  # still those on screen
    grid.load(*grid.board.cells[0])
    assert app.session.now.attack_name == "kkt"
