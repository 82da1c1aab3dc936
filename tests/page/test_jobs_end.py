"""Every background job of the pages: leaving the page ends it, and so does its button."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.explorer import App
from explorer.page.apps.membership import MembershipApp
from explorer.page.job import JobState
from explorer.page.stages import attack, landscape
from tests.page import pages
from tests.page.pages import opened, send
from tests.page.test_digits import TINY


def exact_solution():
    page = App(preset("moons", n=60))
    play.go(page.session, "train")
    form = page.panels["TrainForm"]
    return page, form.job, form.jump.press, form.jump.press


def finishing():
    page = App(preset("moons", n=60))
    play.go(page.session, "train")
    form = page.panels["TrainForm"]
    return page, form.finishing, form.finish.press, form.finish.press


def forced_mass():
    page = opened("explain", "moons", n=24)
    row = page.panels["ExplainPanel"].forced
    return (
        page,
        row.job,
        partial(pages.press, row.box, "ask"),
        partial(pages.press, row.box, "cancel"),
    )


def farthest_set():
    page = opened("explain", "moons", n=60)
    row = page.panels["ExplainPanel"].farthest
    return (
        page,
        row.job,
        partial(pages.press, row.box, "ask"),
        partial(pages.press, row.box, "cancel"),
    )


def other_set():
    page = opened("attack", "moons", n=10)
    panel = page.panel("OtherPanel")

    def press() -> None:
        panel.shown.value = True

    return page, panel.job, press, panel.stop.click


def arena():
    page = opened("arena", "moons", n=6)
    panel = page.panels["Arena"]
    return page, panel.job, panel.go.press, panel.go.press


def tuning():
    page = opened("attack", "alternating-line", n=6)
    panel = page.panel("Tuner")
    return page, panel.job, panel.go.press, panel.go.press


def margins():
    page = opened("attack", "alternating-line", n=6)
    attack.choose(page.session, "univariate")
    row = page.panels["OwnPanel"].question
    return (
        page,
        row.job,
        partial(pages.press, row.box, "ask"),
        partial(pages.press, row.box, "cancel"),
    )


def grid_of_starts():
    page = opened("landscape", "moons", n=6)
    runs = page.panels["StartsPanel"].runs
    return page, runs.job, runs.go.press, runs.go.press


def attack_from_the_handle():
    page = opened("landscape", "moons", n=6)
    panel = page.panels["StartsPanel"]
    return page, panel.attack_job, panel.here.press, panel.here.press


def energy():
    page = opened("landscape", "moons", n=8)
    panel = page.panels["EnergyPanel"]

    landscape.show_map(page.session, "point")

    def press() -> None:
        landscape.show_map(page.session, "split")

    return page, panel.work.job, press, partial(pages.press, panel.row, "stop")


def example():
    page = App()
    header = page.panels["Header"]

    def press() -> None:
        send(header.view, kind="example", value="inversion")

    return page, header.job, press, None


def training_on_images():
    page = DigitsApp(replace(TINY, train_steps=100_000))
    return page, page.job, page.controls.train.press, page.controls.train.press


def trained_experiment():
    page = MembershipApp()
    return page, page.job, page.trained.button.press, page.trained.button.press


JOBS = [
    exact_solution, finishing, forced_mass, farthest_set, other_set, arena, tuning, margins,
    grid_of_starts, attack_from_the_handle, energy, example, training_on_images, trained_experiment,
]  # fmt: skip


@pytest.mark.parametrize("made", JOBS, ids=lambda made: made.__name__)
@pytest.mark.parametrize("leave", [True, False], ids=["page left", "button pressed"])
def test_it_ends(made, leave: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through() -> None:
        page, job, press, cancel = made()
        await job.done()  # what the page does by itself when it opens
        pages.hold_jobs(monkeypatch)  # else some are over before they can be ended
        press()
        await asyncio.sleep(0.02)  # its thread has begun
        assert job.state is JobState.RUNNING
        if leave:
            page.close()
        elif cancel is None:  # it has no button: a newer one takes its place
            job.cancel()
        else:
            cancel()
        await job.done()  # its thread has returned
        assert job.state is JobState.CANCELLED
        page.close()

    asyncio.run(through())
