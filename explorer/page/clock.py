"""The clock: one asyncio task that steps the engine and shows frames no faster than they draw.

A frame is shown only after the browser has drawn the frame before the last. Faster frames would
wait in a queue, and the lag would grow without bound. Where many pages share a machine, frames are
drawn late, because all wait in the server's queue: then each page sends fewer, and clicks get by.
When no page draws any more, the clock stops by itself. Then the kernel of a lost browser becomes
idle and can be removed.
"""

from __future__ import annotations

import asyncio
import math
from time import perf_counter, process_time
from typing import Any

from explorer.engine.status import Status
from explorer.page import play
from explorer.page.session import IN_CLASS, SLOW_START, Refusal, Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.landscape import commands as landscape
from explorer.page.words.failures import failure
from explorer.research.words import weights

SLICE_S = 0.007  # engine time between two looks at the browser's messages; measured
TURNS = 8  # of the page's loop between two slices: it reads a message in five or six; measured
HEAVY_SLICE_S = 0.05  # of steps in a thread; arbitrary: the page has its loop to itself then
INTERVAL_S = 1 / 36  # at most so many frames a second: 30 where some come late
SHARE = 0.3  # of the kernel's CPU may go into making frames; the rest is the engine's
ASSESS_SHARE = 0.02  # likewise into certificates and verdicts
FIRST_ASSESS_S = 0.5  # after a run begins; arbitrary: where it begins was assessed before
YIELD = 2.0  # of each second that a page of a class waited for others; arbitrary
LONGEST_REST_S = 0.12  # arbitrary: with it frames come three times a second and more
WINDOW = 2  # frames on their way at once
PROMPT_S = 0.1  # a page alone draws a frame within 0.03 s; later ones wait in somebody's queue
SLOWEST_S = 1.0  # between two frames, however late they are drawn; arbitrary
REST_S = 0.1  # after a pause: who clicks once more meanwhile waits for no certificate; arbitrary
LONGEST_S = 0.1  # that the handle of the landscape travels between two frames; arbitrary
UNWATCHED = "Paused: no page has drawn a frame for 10 seconds."
PATIENCE_S = 10.0  # without a drawn frame: then nobody is looking
FIRST_RATE = 20.0  # steps per second at step 0 of a slow start: each is seen; arbitrary


def steps_due(t: int, seconds: float, speed: float) -> float:
    """Return how many steps a run that stood at step t may take within so many seconds.

    A `SLOW_START` has `FIRST_RATE` at step 0 and doubles it every second, so that the rate at step
    t is FIRST_RATE + t ln 2: a run that is resumed goes on at the speed it had.
    """
    if speed == math.inf:
        return math.inf
    if speed != SLOW_START:
        return seconds * speed
    doublings = min(seconds, 60.0)  # by then 1e19 steps: as fast as it goes
    return (FIRST_RATE / math.log(2) + t) * math.expm1(doublings * math.log(2))


class Pace:
    """How soon a frame may follow another: the later frames are drawn, the fewer are sent.

    One frame every two delays keeps a shared queue at half its length, whoever else fills it.
    """

    def __init__(self) -> None:
        """Nothing was sent, and nothing was late."""
        self.delay = 0.0  # seconds from a frame sent to the same frame drawn, smoothed
        self._sent: dict[int, float] = {}

    def send(self, frame: int, now: float) -> None:
        """Note that a frame was sent."""
        self._sent[frame] = now

    def draw(self, frame: int, now: float) -> None:
        """Note that a frame was drawn, and with it all before."""
        times = [self._sent.pop(each) for each in [*self._sent] if each <= frame]
        if times:
            self.delay += (now - max(times) - self.delay) / 4

    @property
    def interval(self) -> float:
        """Return the least number of seconds between two frames."""
        return INTERVAL_S if self.delay < PROMPT_S else min(2 * self.delay, SLOWEST_S)


class Rest:
    """How long a page of a class rests between two slices of work, so that no click has to queue.

    It sees by itself how many work at once: its own work takes that much longer than its processor
    time. Where all rest the more, the longer they wait, some of the processor is always free.
    """

    def __init__(self) -> None:
        """Nothing was waited for."""
        self._wall = self._own = 0.0  # seconds of the last slices, and of processor time in them

    def rest(self, wall: float, own: float) -> float:
        """Return how many seconds to rest after `wall` s of work, `own` of them computing."""
        self._wall, self._own = 0.8 * self._wall + wall, 0.8 * self._own + own
        waited = max(0.0, self._wall / max(self._own, 1e-6) - 1.0)  # seconds for each one computed
        return min(YIELD * waited * wall, LONGEST_REST_S)


class Player:
    """Plays a session: while `session.running`, it steps, shows frames and assesses in turns."""

    def __init__(self, session: Session) -> None:
        """Follow `session.running`."""
        self.session = session
        self._task: asyncio.Task[None] | None = None
        self._run = 0  # of the runs that were begun: a click may end one and begin the next
        session.observe(self._on_running, names=["running"])

    def close(self) -> None:
        """Stop, and forget the session."""
        self.session.unobserve(self._on_running, names=["running"])
        self.session.running = False

    def _on_running(self, change: dict[str, Any]) -> None:
        if not change["new"]:
            self.session.stop_at = -1
            return
        self._run += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_event_loop().create_task(self._play())

    async def _play(self) -> None:
        """Run until paused, show where it stands, and assess it unless the visitor goes on."""
        session = self.session
        while session.running:
            run = self._run
            try:
                await (self._travel() if session.frame.stage == "landscape" else self._loop(run))
            except Exception as error:  # a task's error would vanish unseen
                session.message = Refusal(f"Stopped: {failure(error)}")
            finally:
                if self._run == run:
                    session.running = False
                session.show()
            last = session.frame.state
            await self._settle()
            if not session.running and session.frame.state is last:
                play.assess(session)

    async def _settle(self) -> None:
        """Wait until the last frame is drawn and a moment more, or until the run goes on."""
        session, begun = self.session, perf_counter()
        shown, drawn = session.shown, begun
        while not session.running and (now := perf_counter()) - begun < SLOWEST_S:
            if session.drawn < shown:
                drawn = now
            elif now - drawn > REST_S:
                break
            await asyncio.sleep(REST_S / 4)

    async def _travel(self) -> None:
        """Carry the handle round its triangle, or the run from it on, by each drawn frame."""
        session, moved = self.session, perf_counter()
        heard, drawn = moved, session.drawn
        while session.running and session.frame.stage == "landscape":
            now = perf_counter()
            if session.drawn != drawn:
                drawn, heard = session.drawn, now
            if now - heard > PATIENCE_S:
                session.message = UNWATCHED
                break
            if session.shown - session.drawn < WINDOW:
                seconds, moved = min(now - moved, LONGEST_S), now
                if not session.frame.rolled:
                    landscape.travel(session, seconds)
                elif not landscape.replay(session, seconds):
                    break
            await asyncio.sleep(INTERVAL_S)

    async def _loop(self, run: int) -> None:
        """Take the steps of one run, until it ends or another begins."""
        session = self.session
        await asyncio.sleep(INTERVAL_S)  # the answer to the click leaves the kernel first
        begun = heard = perf_counter()
        drawn, taken, speed, first = session.drawn, 0, _speed(session), session.frame.t
        next_frame, next_assess = 0.0, begun + FIRST_ASSESS_S
        pace, rests = Pace(), Rest()
        while session.running and self._run == run:
            turn, own = perf_counter(), process_time()
            if _speed(session) != speed:  # what was due until now is forgotten
                speed, first, taken = _speed(session), session.frame.t, 0
                begun = perf_counter()
            due = min(steps_due(first, perf_counter() - begun, speed) - taken, 1e9)
            if session.stop_at >= 0:
                due = min(due, session.stop_at - session.frame.t)
                if due <= 0:
                    break
            if due >= 1:
                taken += await self._advance(int(due))
            now = perf_counter()
            if session.drawn != drawn or (attack.heavy(session) and session.drawn == session.shown):
                drawn, heard = session.drawn, now  # no frame is on its way during a heavy step
                pace.draw(drawn, now)
            if session.frame.status.over:
                # The headline tells what an attack came to; who plays a finished one is told why.
                told = taken > 0 and session.frame.stage == "attack"
                if not told or session.frame.status is Status.DIVERGED:
                    session.message = weights.status(session.frame.status)
                break
            if now - heard > PATIENCE_S:
                session.message = UNWATCHED
                break
            if now >= next_frame and session.shown - session.drawn < WINDOW:
                assessing = now >= next_assess
                cost = process_time()  # not the clock: a busy browser must not slow the frames
                play.assess(session) if assessing else session.show()
                cost = process_time() - cost
                if assessing:
                    next_assess = now + cost / ASSESS_SHARE
                pace.send(session.shown, now)
                next_frame = now + max(pace.interval, cost / SHARE)
            rest = rests.rest(perf_counter() - turn, process_time() - own) if IN_CLASS else 0.0
            wait = 0.0 if due >= 1 else _rest(due, speed)
            await (asyncio.sleep(max(rest, wait)) if rest or wait else _give_way())

    async def _advance(self, steps: int) -> int:
        """Take steps; heavy ones in a thread, so that the page answers meanwhile."""
        if not attack.heavy(self.session):
            return play.advance(self.session, seconds=SLICE_S, steps=steps)
        work, take = attack.steps_beside(self.session, steps, HEAVY_SLICE_S)
        return take(await asyncio.to_thread(work))


async def _give_way() -> None:
    """Let the page's loop do all that waits there: it reads a message in several turns."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def _rest(due: float, speed: float) -> float:
    """Return the seconds until the next step is due, at most so many that messages are read."""
    return min(0.02, (1 - due) / (speed or FIRST_RATE))


def _speed(session: Session) -> float:
    """Return the speed of the run; steps that were asked for by number are taken at once."""
    return session.steps_per_second if session.stop_at < 0 else math.inf
