"""Every background job of the pages: it begins, is cancelled, goes stale, fails, ends with a page.

A job is one row of the table: the page that has it, and how a hand begins and ends it there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from explorer.engine.data import preset
from explorer.engine.progress import Stopped
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

    def train_on() -> None:
        play.go(page.session, "train")
        play.step(page.session, 1)

    return by_button(page, page.panels["StartsPanel"].runs.go, "go", change=train_on)


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


# --- the background job: each way it can end, what is told, and that its thread returns -----------


class Rounds:
    """Work of many rounds, which counts them and says when its thread has left."""

    def __init__(self, rounds: int = 10**9, each: int = 10**9, fail_at: int = -1) -> None:
        self.rounds, self.each, self.fail_at = rounds, each, fail_at
        self.made, self.left, self.begun = 0, False, threading.Event()

    def __call__(self, progress):
        try:
            for k in range(self.rounds):
                progress(k / self.rounds)
                if k == self.fail_at:
                    raise RuntimeError("round broke")
                self.made += 1
                self.begun.set()
                if self.made % self.each == 0:
                    yield self.made
        finally:
            self.left = True


class Ends:
    """Notes of a job's end."""

    def __init__(self, job: Job) -> None:
        self.job, self.states = job, []

    def __call__(self) -> None:
        self.states.append(self.job.state)


async def until_begun(work: Rounds) -> None:
    while not work.begun.is_set():
        await asyncio.sleep(0)


def test_parts_are_taken_in_order_with_and_without_a_loop() -> None:
    async def beside():
        job, taken = Job(), []
        job.start(Rounds(6, 2), taken.append)
        assert job.state is JobState.RUNNING and not taken  # the page has its turn first
        await job.wait()
        return job, taken

    job, taken = asyncio.run(beside())
    here, at_once = Job(), []
    here.start(Rounds(6, 2), at_once.append)
    assert taken == at_once == [2, 4, 6]
    assert job.state is here.state is JobState.DONE and job.error is None
    assert job.share == pytest.approx(5 / 6)


@pytest.mark.parametrize("in_thread", [True, False])
def test_no_round_is_made_after_a_cancel_and_the_thread_returns(in_thread) -> None:
    async def through():
        job, work = Job(in_thread), Rounds(each=1 if not in_thread else 10**9)
        ends, taken = Ends(job), []
        job.start(work, taken.append, ends)
        await until_begun(work)
        job.cancel()
        assert job.state is JobState.CANCELLING and job.busy
        before, had = work.made, len(taken)
        await job.wait()
        assert work.made <= before + 1  # the one that was under way
        assert work.left and len(taken) == had
        assert ends.states == [JobState.CANCELLED] and not job.busy
        job.cancel()  # nothing goes on
        assert job.state is JobState.CANCELLED

    asyncio.run(through())


def test_work_on_what_has_changed_ends_by_itself() -> None:
    async def through():
        job, work, changed = Job(), Rounds(), []
        ends = Ends(job)
        job.start(work, ended=ends, stale=lambda: bool(changed))
        await until_begun(work)
        changed.append(True)
        await job.wait()
        assert work.left and ends.states == [JobState.STALE]

    asyncio.run(through())


def test_a_part_of_what_has_changed_is_not_taken() -> None:
    changed, taken = [], []

    def work(progress):
        yield 1
        changed.append(True)
        yield 2

    async def beside(job):
        job.start(work, taken.append, stale=lambda: bool(changed))
        await job.wait()

    job = Job()
    asyncio.run(beside(job))
    assert taken == [1] and job.state is JobState.STALE
    changed.clear()
    taken.clear()
    job.start(work, taken.append, stale=lambda: bool(changed))
    assert taken == [1] and job.state is JobState.STALE


def test_a_failure_is_kept_and_told_once() -> None:
    async def through():
        job = Job()
        ends = Ends(job)
        job.start(Rounds(fail_at=3), ended=ends)
        await job.wait()
        assert ends.states == [JobState.FAILED] and str(job.error) == "round broke"
        job.start(Rounds(2, 1), ended=ends)
        await job.wait()
        assert ends.states[-1] is JobState.DONE and job.error is None

    asyncio.run(through())

    def broken(part):
        raise RuntimeError("broken on purpose")

    job = Job()
    job.start(Rounds(2, 1), broken)
    assert job.state is JobState.FAILED and isinstance(job.error, RuntimeError)


def test_newer_work_follows_the_older_whose_end_is_not_told() -> None:
    async def through():
        job, old, newer, newest = Job(), Rounds(), Rounds(2, 1), Rounds(4, 1)
        ends, taken = Ends(job), []
        job.start(old, taken.append, ends)
        await until_begun(old)
        job.start(newer, taken.append, ends)
        job.start(newest, taken.append, ends)
        await job.wait()
        assert old.left and not newer.made and taken == [1, 2, 3, 4]
        assert ends.states == [JobState.DONE]

    asyncio.run(through())


def test_a_cancel_forgets_what_was_to_follow() -> None:
    async def through():
        job, old, newer = Job(), Rounds(), Rounds(2, 1)
        job.start(old)
        await until_begun(old)
        job.start(newer)
        job.cancel()
        await job.wait()
        assert old.left and not newer.made and job.state is JobState.CANCELLED

    asyncio.run(through())


def test_a_closed_page_is_told_nothing_and_its_work_ends() -> None:
    async def through():
        job, work, told = Job(), Rounds(), []
        job.observe(lambda: told.append(job.state))
        ends = Ends(job)
        job.start(work, ended=ends)
        await until_begun(work)
        job.close()
        before = len(told)
        await job.wait()
        assert work.left and not ends.states and len(told) == before

    asyncio.run(through())


def test_the_end_of_the_loop_ends_the_thread() -> None:
    work, job = Rounds(), Job()

    async def leave():
        job.start(work)
        await until_begun(work)

    asyncio.run(leave())  # waits for its threads, so that a thread that stays hangs here
    assert work.left and not job.busy


def test_observers_hear_of_the_state_and_the_share() -> None:
    job, told = Job(), []
    job.observe(lambda: told.append((job.state, job.share)))
    job.start(Rounds(2, 1))
    assert told[0] == (JobState.RUNNING, 0.0) and told[-1] == (JobState.DONE, 0.5)
    assert (JobState.RUNNING, 0.5) in told


def test_the_work_may_tidy_up_when_it_is_stopped() -> None:
    tidied = []

    def work(progress):
        try:
            while True:
                progress(0.0)
        except Stopped:
            tidied.append(True)
            raise
        yield

    async def through():
        job = Job()
        job.start(work)
        await asyncio.sleep(0)
        job.cancel()
        await job.wait()
        return job.state

    assert asyncio.run(through()) is JobState.CANCELLED and tidied
