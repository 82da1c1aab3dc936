"""The grid of starts on the page of images: run, cancel, go on, keep, take up, click."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from explorer.page.apps.digits import DigitsApp
from explorer.page.stages.landscape.runs_box import RunsBox
from explorer.research.grid import landscape as live
from explorer.research.grid.store import KEEP, folder
from tests.page.pages import choose, label, press
from tests.page.test_digits import TINY, well
from tests.page.test_runs import hand_in, offered

page = pytest.fixture(lambda: DigitsApp(TINY))


def ready(page: DigitsApp) -> RunsBox:
    page.run_training()
    choose(page.grid.grid.settings, "steps", 2)
    return page.grid.grid


def test_a_grid_of_starts_runs_and_a_click_shows_its_end(page: DigitsApp) -> None:
    said, sent = page.grid.said, []
    page.grid.view.show = sent.append
    assert page.grid.grid.go.items["go"].disabled and said.value.startswith("Train the")
    choose(page.grid.grid.settings, "side", 11)
    assert "66 starts" in label(page.grid.grid.go, "go")
    choose(page.grid.grid.settings, "side", 6)
    page.run_training()
    assert not page.grid.grid.go.items["go"].disabled and "button" in said.value
    choose(page.grid.grid.settings, "steps", 2)
    page.grid.grid.run()
    assert sum(page.grid.grid.counts()) == 21 and not said.value
    assert sent[-1]["trails"].shape[0] == 21 and "fill" not in sent[-1]
    page.grid.grid.load((0, 1.0, 1.0))  # began at the training images: two steps do not leave them
    assert "10 of" in page.sentence.value and "100% truth" in page.sentence.value
    assert "training images" in page.grid.grid.list.text
    choose(page.controls, "attack", "inversion")
    assert page.grid.grid.go.items["go"].disabled  # it takes no start
    choose(page.controls, "seed", 1)
    assert page.grid.grid.found is None and not sent[-1]
    well(page)


def test_a_cancelled_grid_keeps_its_cells_and_goes_on(page: DigitsApp) -> None:
    page.run_training()
    choose(page.grid.grid.settings, "steps", 2)

    async def impatient():
        page.grid.grid.run()
        while page.grid.grid.found is None or len(page.grid.grid.found.rows) < 3:
            await asyncio.sleep(0.01)
        page.grid.grid.cancel()
        await page.grid.grid.job.wait()

    asyncio.run(impatient())
    first = dict(page.grid.grid.found.rows)
    assert 3 <= len(first) < 21
    page.grid.grid.run()
    rows = page.grid.grid.found.rows
    assert len(rows) == 21 and all(rows[key] is first[key] for key in first)
    well(page)


async def some(grid: RunsBox, cells: int) -> None:
    """Run until so many cells are done, then cancel."""
    grid.run()
    while len(grid.found.rows) < cells:
        await asyncio.sleep(0.001)
    grid.cancel()
    await grid.job.wait()


@pytest.mark.parametrize("attack", ["kkt", "decoreco", "bilevel"])
def test_cells_are_kept_on_disk_and_a_new_page_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    monkeypatch.setenv(KEEP, "1")
    first, second = DigitsApp(TINY), DigitsApp(TINY)
    try:
        for page in (first, second):
            choose(page.controls, "attack", attack)
        grid = ready(first)
        asyncio.run(some(grid, 3))
        done = dict(grid.found.rows)
        assert 3 <= len(done) < 21 and len(list(folder().glob("*.jsonl"))) == 1
        lines = offered(grid)["grid.jsonl"]
        again = ready(second)  # the same images, seeds and settings, trained anew
        assert again.found.rows.keys() == done.keys()
        assert f"{len(done)} cells" in again.files.value("kept")
        assert offered(again)["grid.jsonl"] == lines
        key = next(iter(done))
        assert not again.found.states
        again.load(key)  # it has no states: it runs again, and ends where it did
        (last,) = again.found.states[key]
        assert again.found.problems[0].parts.distances(last.x)[0] == done[key]["truth"]
        assert "training images" in second.sentence.value
        for page in (first, second):
            well(page)
    finally:
        first.close()
        second.close()


def test_saved_cells_are_taken_up_and_those_of_other_images_refused(page: DigitsApp) -> None:
    assert page.grid.grid.files.items["open"].disabled
    grid = ready(page)
    asyncio.run(some(grid, 2))
    lines, done = offered(grid)["grid.jsonl"], len(grid.found.rows)
    press(grid.files, "forget")
    press(grid.files, "forget")
    assert not grid.found.rows
    hand_in(grid, lines)
    assert len(grid.found.rows) == done
    assert f"{done} cells" in page.sentence.value
    choose(grid.settings, "side", 11)  # on which the coarser ones lie too
    assert not grid.found.rows and grid.found.of.side == 11
    hand_in(grid, lines)
    assert len(grid.found.rows) == done
    choose(page.controls, "seed", 1)
    page.run_training()
    hand_in(grid, lines)
    assert "other weights" in page.sentence.value
    well(page)


def test_nearest_is_by_structure_and_noise_is_made_of_pixels(page: DigitsApp) -> None:
    grid = ready(page)
    grid.found.prepare(1)
    parts, drawn = grid.found.problems[0].parts, page.draw
    noise = drawn.pictures(parts.noise)
    assert 0 <= float(noise.min()) < 0.05 and 0.95 < float(noise.max()) <= 1
    torch.testing.assert_close(parts.pictures.of(parts.truth), drawn.pictures(parts.truth))
    assert parts.distances(parts.truth.flip(0))[0] == 0  # of whichever class


def test_states_of_the_oldest_cells_go_where_there_are_too_many(
    page: DigitsApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_NUMBERS", 3 * 10 * 64)  # three cells of ten images
    grid = ready(page)
    grid.run()
    assert len(grid.found.rows) == 21 and len(grid.found.states) == 3
    gone = next(key for key in grid.found.rows if key not in grid.found.states)
    grid.load(gone)
    assert gone in grid.found.states and len(grid.found.states) == 3
    well(page)
