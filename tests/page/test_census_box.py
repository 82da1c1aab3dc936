"""The census on the page: counted, cancelled, refused; its basins and its ends."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.job import JobState
from explorer.page.stages.landscape import census_box, words
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.energy_words import unexplained_share
from explorer.page.stages.landscape.starts import StartsPanel
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.census import CensusConfig, census_starts
from tests.page.pages import choose, on_plane, opened, page_in, panel_of, press, send

MANY = 30

app = pytest.fixture(lambda: opened("landscape", "moons", n=8))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few starts, which cost little."""
    monkeypatch.setattr(census_box, "STARTS", MANY)


def panel(app: App) -> StartsPanel:
    return panel_of(app, StartsPanel)


def test_a_census_colours_the_triangle_and_its_ends_are_chosen(app: App) -> None:
    starts, session = panel(app), app.session
    press(starts.census.go, "go")
    found, frame = starts.census.found, starts.view.originals
    assert found is not None and session.frame.starts.census is found.census
    basins, total = found.census.basins, sum(len(one.starts) for one in found.census.basins)
    assert total == MANY == len(found.census.basin) and starts.aside.value("fill") == "basins"
    # Each start on the triangle has the colour of the basin that it is in.
    mixes, _ = census_starts(found.problem.parts, CensusConfig(starts=MANY))
    assert np.allclose(frame["starts"], mixes[::2])
    inside = {i: k for k, one in enumerate(basins) for i in one.starts}
    assert frame["basins"].tolist() == [frame["tints"][inside[i]] for i in range(0, MANY, 2)]
    coloured = [k for k, tint in enumerate(frame["tints"]) if tint]
    assert all(basins[k].kind == "truth" or len(basins[k].starts) > 1 for k in coloured)
    by_size = np.argsort([-len(one.starts) for one in basins], kind="stable")
    assert (np.diff(frame["sizes"][by_size]) <= 0).all()
    counts = np.array([len(one.starts) for one in basins])
    assert np.array_equal(counts[:, None] > counts, frame["sizes"][:, None] > frame["sizes"])
    assert np.allclose(frame["trails"][:, 0].sum(1), 1, atol=1e-6)
    # The headline counts, the table tells the same, and a press shows an end.
    said = headline(session.frame)
    assert f"{round(found.census.home.value * MANY)} of {MANY} starts" in said.title
    assert ("distinct ends", str(len(basins))) in said.fold
    assert f"{found.census.unseen.volume.value:.0%}" in said.words
    assert [row[2] for row in starts.view.rows[1:]] == [str(len(one.starts)) for one in basins]
    last = len(basins) - 1
    send(starts.view, kind="ball", index=last)
    held = session.frame.starts
    assert torch.equal(held.candidates.x, basins[last].x) and held.energy == basins[last].hard
    assert starts.aside.value("ends") == last and starts.view.frame["chosen"] == last
    there = held.landscape.energy(held.weights)  # of the handle, not of the end
    assert starts.strip.frame["handle"][1] == there != held.energy
    assert len(on_plane(app)["candidates"]) == len(basins[last].x)
    assert str(last + 1) in headline(session.frame).title
    choose(starts.aside, "ends", 0)
    assert torch.equal(session.frame.starts.candidates.x, basins[0].x)
    send(starts.view, kind="ball", index=last + 1)  # there is none
    assert session.frame.starts.end == 0 and session.message == ""


def test_an_end_leaves_what_the_triangle_says_of_its_points(app: App) -> None:
    starts, session = panel(app), app.session
    press(starts.census.go, "go")
    ends = starts.census.found.census.basins
    shares = [row[3] for row in starts.view.rows[1:]]
    measure = session.frame.starts.landscape.measure
    assert shares == [unexplained_share(measure(one.x)) for one in ends]


def test_the_runs_take_the_headline_back_and_the_handle_does_not(app: App) -> None:
    starts, session = panel(app), app.session
    play.configure(session, steps=60)
    press(starts.census.go, "go")
    counted = headline(session.frame)
    landscape.show_end(session, starts.census.found.problem.parts.y, starts.census.found.census, 0)
    landscape.place_handle(session, (0.2, 0.3, 0.5))
    moved = headline(session.frame)
    assert moved.title == counted.title  # a drag changes the number beside the triangle alone
    assert session.frame.starts.end == -1
    choose(starts.aside, "fill", "basins")
    assert headline(session.frame).title == counted.title
    press(starts.runs.go, "go")
    assert headline(session.frame).title == words.arrival_words(session.frame.starts.arrivals)[0]
    assert starts.aside.value("fill") == "end" and len(starts.view.originals["ends"]) == 22
    assert session.frame.starts.census is None and starts.census.found is not None


def test_a_cancelled_census_ends_and_leaves_nothing(app: App) -> None:
    starts = panel(app)

    async def go() -> None:
        press(starts.census.go, "go")
        while not starts.census.job.share:
            await asyncio.sleep(0.001)
        press(starts.census.go, "go")
        await starts.census.job.wait()

    asyncio.run(go())
    assert starts.census.job.state is JobState.CANCELLED and starts.census.found is None
    assert "cancelled" in app.session.message and starts.aside.value("fill") == "start"


def test_a_census_ends_a_run_from_the_handle(app: App) -> None:
    starts, session = panel(app), app.session

    async def go() -> None:
        press(starts.here, "go")
        while not starts.attack_job.busy:
            await asyncio.sleep(0.001)
        press(starts.census.go, "go")
        await starts.census.job.wait()

    asyncio.run(go())
    assert starts.attack_job.state is JobState.CANCELLED
    assert session.frame.starts.census is not None


def test_a_census_under_way_shows_what_it_has_come_to(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, session, seen = panel(app), app.session, []
    real = census_box.census

    def watched(problem, config, progress, look):
        def both(x, basin):
            look(x, basin)
            going, drawn = starts.census.going, starts.census.arrays()
            landscape.note_counting(session, going.counts)
            told, ends = session.frame.starts.counting, len(set(basin[basin >= 0]))
            seen.append((told, ends, len(drawn["trails"]), drawn["sizes"].sum()))

        return real(problem, config, progress, both)

    monkeypatch.setattr(census_box, "census", watched)
    press(starts.census.go, "go")
    counts = [one for one, *_ in seen]
    assert counts[0] == (MANY, 0) and counts[-1] == (MANY, MANY)
    assert [ended for _, ended in counts] == sorted(ended for _, ended in counts)
    assert all(dots == n - ended + ends for (n, ended), ends, dots, _ in seen)
    assert seen[-1][-1] > seen[0][-1]  # where one has ended is a dot, not a speck
    assert session.frame.starts.counting is None and starts.census.going is None


def test_a_census_out_of_sight_shows_no_pause(app: App) -> None:
    starts, session, seen = panel(app), app.session, []

    async def go() -> None:
        press(starts.census.go, "go")
        while not starts.census.job.share:
            await asyncio.sleep(0.001)
        for kind in ("starts", "split"):
            landscape.show_map(session, kind)
            seen.append(play.at_work(session))
        press(starts.census.go, "go")
        await starts.census.job.wait()

    asyncio.run(go())
    assert seen == [True, False]


def test_other_weights_take_a_census_away(app: App) -> None:
    starts, session = panel(app), app.session
    press(starts.census.go, "go")
    play.go(session, "train")
    play.reset(session)
    train.jump_to_exact(session)
    play.go(session, "landscape")
    assert starts.census.found is None and session.frame.starts.census is None
    assert starts.aside.value("fill") == "start" and not starts.path.items["along"].hidden


def test_a_census_that_cannot_be_says_why(app: App) -> None:
    starts, session = panel(app), app.session
    play.choose_attack(session, "bilevel")
    press(starts.census.go, "go")
    assert session.message == landscape.OWN and starts.census.found is None


def test_a_census_of_three_layers_says_what_it_needs() -> None:
    made = page_in("landscape", preset("moons", n=6), 3000, widths=(8, 8))
    press(panel(made).census.go, "go")
    assert "two layers" in made.session.message
