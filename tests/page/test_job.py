"""The background job: each way it can end, what is told, and that its thread returns."""

from __future__ import annotations

import asyncio
import threading

import pytest

from explorer.engine.progress import Stopped
from explorer.page.job import Job, JobState


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
