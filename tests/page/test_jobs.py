"""Every background job of the pages: it begins, is cancelled, goes stale, fails, ends with a page.

A job is one row of the table: the page that has it, and how a hand begins and ends it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.explorer import App
from explorer.page.apps.membership import MembershipApp
from explorer.page.ask import Question
from explorer.page.controls.row import CANCELLING, Row
from explorer.page.job import Job, JobState
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.landscape import commands as landscape
from tests.page import pages
from tests.page.pages import opened, send
from tests.page.test_digits import TINY


def nothing() -> str:
    return ""


@dataclass
class Case:
    """A job of a page.

    `cancel`: None where it has no button, as a newer job takes its place. `said`: what its page
    says of it; `cancelled`: part of that after a cancel. `change`: makes the question another one.
    """

    page: Any
    job: Job
    begin: Callable[[], None]
    cancel: Callable[[], None] | None
    said: Callable[[], str] = nothing
    cancelled: str = ""
    change: Callable[[], None] | None = None


def by_button(page: Any, row: Row, name: str, **more: Any) -> Case:
    return Case(page, row.items[name].job, *[partial(pages.press, row, name)] * 2, **more)


def by_question(page: App, asked: Question, **more: Any) -> Case:
    ask, cancel = (partial(pages.press, asked.row, name) for name in ("ask", "cancel"))
    return Case(page, asked, ask, cancel, lambda: asked.text, **more)


def form(name: str) -> Case:
    page = App(preset("moons", n=60))
    play.go(page.session, "train")
    points = page.session.frame.dataset.without([0])
    return by_button(
        page, page.panels["TrainForm"].buttons, name, said=lambda: page.session.message,
        cancelled="was cancelled; ", change=lambda: draw.edit(page.session, points),
    )  # fmt: skip


def exact_solution() -> Case:
    return form("jump")


def finishing() -> Case:
    return form("finish")


def question(name: str, **more: Any) -> Case:
    page = opened("explain", "moons", n=10)
    row = getattr(page.panels["ExplainPanel"], name)

    def change() -> None:
        attack.begin(page.session)
        play.go(page.session, "explain")

    return by_question(page, row, change=change, **more)


def forced_mass() -> Case:
    return question("forced", cancelled="Cancelled; nothing was changed.")


def farthest_set() -> Case:
    return question("farthest", cancelled="Cancelled; nothing was changed.")


def map_of_radii() -> Case:
    return question("radii")


def other_set() -> Case:
    page = opened("attack", "moons", n=10)
    panel = page.panel("OtherPanel")
    begin = panel.job.begin
    # The answer is one part, and held back: a hand ends the search before it has come.
    panel.job.begin = lambda work, take, *more: begin(work, lambda found: None, *more)

    def said() -> str:
        assert not panel.row.value("shown") and page.session.frame.attack.other is None
        return panel.row.text

    return Case(
        page, panel.job, *(partial(pages.press, panel.row, name) for name in ("shown", "stop")),
        said, "Cancelled; press again", lambda: attack.begin(page.session),
    )  # fmt: skip


def arena() -> Case:
    page = opened("arena", "moons", n=6)
    panel = page.panels["Arena"]
    return by_button(
        page, panel.row, "go", said=lambda: panel.row.text, cancelled="runs, which stay.",
        change=lambda: attack.begin(page.session),
    )  # fmt: skip


def tuning() -> Case:
    page = opened("attack", "alternating-line", n=6)
    panel = page.panel("Tuner")
    return by_button(
        page, panel.row, "go", said=lambda: panel.answer.text, cancelled="Cancelled ",
        change=lambda: attack.begin(page.session),
    )  # fmt: skip


def margins() -> Case:
    page = opened("attack", "alternating-line", n=6)
    attack.choose(page.session, "univariate")
    return by_question(
        page, page.panels["OwnPanel"].question, cancelled="The sweep was cancelled.",
        change=lambda: attack.begin(page.session),
    )  # fmt: skip


def grid_of_starts() -> Case:
    page = opened("landscape", "moons", n=6)
    return by_button(page, page.panels["StartsPanel"].runs.go, "go")


def attack_from_the_handle() -> Case:
    page = opened("landscape", "moons", n=6)
    return by_button(
        page,
        page.panels["StartsPanel"].here,
        "go",
        change=lambda: landscape.place_handle(page.session, (0.5, 0.25, 0.25)),
    )


def energy() -> Case:
    page = opened("landscape", "moons", n=8)
    panel = page.panels["EnergyPanel"]
    landscape.show_map(page.session, "point")
    split = partial(landscape.show_map, page.session, "split")
    return Case(page, panel.work.job, split, partial(pages.press, panel.row, "stop"))


def example() -> Case:
    page = App()
    header = page.panels["Header"]
    return Case(
        page, header.job, partial(send, header.view, kind="example", value="inversion"), None
    )


def film() -> Case:
    page = opened("attack", "moons", n=6)
    play.step(page.session, 3)
    panel = page.panel("SharePanel")
    return Case(page, panel.job, partial(send, panel.view, kind="save", value="attack"), None)


def game() -> Case:
    page = App(preset("moons", n=6))
    panel = page.panel("GamePanel")
    return Case(page, panel.job, partial(send, panel.view, kind="computer"), None)


def training_on_images() -> Case:
    page = DigitsApp(replace(TINY, train_steps=100_000))
    return by_button(page, page.controls, "train")


def trained_experiment() -> Case:
    page = MembershipApp()
    return by_button(page, page.trained, "go")


JOBS = [
    exact_solution, finishing, forced_mass, farthest_set, map_of_radii, other_set, arena, tuning,
    margins, grid_of_starts, attack_from_the_handle, energy, example, film, game,
    training_on_images, trained_experiment,
]  # fmt: skip
every_job = pytest.mark.parametrize("made", JOBS, ids=lambda made: made.__name__)


def run(
    made: Callable[[], Case], prepare: Callable[[], None], then: Callable[[Case], None]
) -> Case:
    """Begin a job, with `prepare` before it, and do `then` while its thread works; wait for it."""

    async def through() -> Case:
        case = made()
        await case.job.wait()  # what the page does by itself when it opens
        prepare()
        case.begin()
        if case.job.busy:
            await asyncio.sleep(0.02)  # its thread has begun
        then(case)
        await case.job.wait()  # its thread has returned
        return case

    return asyncio.run(through())


@every_job
def test_it_begins_and_its_button_ends_it_with_a_word(made, monkeypatch) -> None:
    def cancel(case: Case) -> None:
        assert case.job.state is JobState.RUNNING
        (case.cancel or case.job.cancel)()
        assert case.job.state is JobState.CANCELLING

    case = run(made, partial(pages.hold_jobs, monkeypatch), cancel)
    assert case.job.state is JobState.CANCELLED
    assert case.cancelled in case.said()
    case.page.close()


@every_job
def test_it_ends_with_its_page(made, monkeypatch) -> None:
    case = run(made, partial(pages.hold_jobs, monkeypatch), lambda case: case.page.close())
    assert case.job.state is JobState.CANCELLED


@every_job
def test_it_ends_when_its_question_is_another_one(made, monkeypatch) -> None:
    def change(case: Case) -> None:
        if case.change is None:
            case.job.cancel()  # no question of the present frame: its answer is never stale
        else:
            case.change()

    case = run(made, partial(pages.hold_jobs, monkeypatch), change)
    assert case.job.state in (JobState.STALE, JobState.CANCELLED) and not case.job.busy
    case.page.close()


@every_job
@pytest.mark.parametrize("error", [ValueError("refused"), RuntimeError("broken")], ids=str)
def test_its_failure_is_shown_and_the_page_goes_on(made, error: Exception, monkeypatch) -> None:
    start = Job.start

    def fails(job: Job, work: Any, *given: Any, **named: Any) -> None:
        def failing(progress: Any) -> Any:
            raise error
            yield

        start(job, failing, *given, **named)

    case = run(made, lambda: monkeypatch.setattr(Job, "start", fails), lambda _: None)
    assert case.job.state is JobState.FAILED and case.job.error is error
    assert str(error) in shown(case)
    case.page.close()


def shown(case: Case) -> str:
    """Return what a page says of failures, and what the job's own place says."""
    if not isinstance(case.page, App):
        return str(case.page.failure.value)
    panels = [panel.failure.value for panel in case.page.panels.values()]
    energy = case.page.panels["EnergyPanel"]
    told = [] if energy.widget is None else [energy.told.value("said")]
    return " ".join([case.page.session.message, case.said(), *panels, *told])


def test_its_button_says_what_a_press_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def through() -> None:
        case = exact_solution()
        row = case.page.panels["TrainForm"].buttons
        usual, seen = pages.label(row, "jump"), []
        case.job.observe(lambda: seen.append(pages.label(row, "jump")))
        pages.hold_jobs(monkeypatch)
        case.begin()
        assert pages.label(row, "jump") == "Cancel solving"
        pages.press(row, "jump")
        assert pages.label(row, "jump") == CANCELLING
        await case.job.wait()
        assert pages.label(row, "jump") == usual == seen[-1]
        case.page.close()

    asyncio.run(through())
