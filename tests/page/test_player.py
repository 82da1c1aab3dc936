"""The clock: frames wait for the browser, and a run nobody looks at stops."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import pytest

from explorer.engine.data import preset
from explorer.engine.roster import ROSTER
from explorer.page import clock
from explorer.page import play as play_stage
from explorer.page.clock import Pace, Player, Rest, steps_due
from explorer.page.session import SLOW_START, Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw_stage
from explorer.page.stages.train import commands as train


def session_in_training() -> Session:
    session = Session(preset("alternating-line"), steps_per_second=math.inf)
    play_stage.go(session, "train")
    return session


def play(
    session: Session, until: Callable[[], bool], draw: bool = True, limit: int = 10**6
) -> None:
    """Run the clock, drawing each frame at once or never, until a condition holds."""

    async def run() -> None:
        player = Player(session)
        session.drawn = session.shown
        session.running = True
        for _ in range(limit):
            await asyncio.sleep(0)
            if draw:
                session.drawn = session.shown
            if until() or not session.running:
                break
        else:
            raise AssertionError("the condition never held")
        session.running = False
        await asyncio.sleep(0.05)
        player.close()

    asyncio.run(run())


def test_playing_advances_and_pausing_stops() -> None:
    session, told = session_in_training(), []
    session.observe(lambda _: told.append(session.frame.training.state.t), names=["shown"])
    play(session, lambda: session.frame.training.state.t > 200)
    t = session.frame.training.state.t
    assert t > 200
    assert told[-1] == t, "the last frame shows where the run stands"
    assert session.frame.training.certificate is not None


def test_without_a_drawn_frame_no_more_than_the_window_is_pushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "PATIENCE_S", 0.3)
    session = session_in_training()
    first = session.shown
    pushed = []
    session.observe(lambda c: pushed.append(c["new"]), names=["shown"])
    play(session, lambda: False, draw=False, limit=10**9)
    # the window, and the frame that shows how it ended
    assert max(pushed) - first <= clock.WINDOW + 2
    assert session.frame.training.state.t > 0, "the engine goes on meanwhile"
    assert not session.running
    assert "has drawn" in session.message


def test_a_finished_run_stops_the_clock_and_says_why() -> None:
    session = session_in_training()
    play_stage.configure(session, steps=50)
    play(session, lambda: False)
    assert session.frame.training.state.t == 50
    assert session.message.startswith("Finished")


def test_points_added_while_playing_stay_and_training_goes_on() -> None:
    session = session_in_training()
    added: list[int] = []

    def until() -> bool:
        if session.frame.training.state.t > 100 and not added:
            added.append(session.frame.training.state.t)
            draw_stage.add(session, [((0.05,), -1.0)])
        return bool(added) and session.frame.training.state.t > added[0] + 100

    play(session, until)
    assert session.frame.dataset.n == 9
    assert len(session.frame.training.state.q) == 9


def test_an_error_in_the_engine_stops_the_clock_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = session_in_training()

    def broken(*_: object, **__: object) -> int:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(play_stage, "advance", broken)
    play(session, lambda: False)
    assert "on purpose" in session.message


def test_no_more_steps_than_the_chosen_speed_allows() -> None:
    session = session_in_training()
    session.steps_per_second = 100.0
    begun = perf_counter()
    play(session, lambda: session.frame.training.state.t >= 20)
    assert 20 <= session.frame.training.state.t <= 100.0 * (perf_counter() - begun)


def test_a_long_number_of_steps_runs_as_a_run_and_pauses_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(play_stage, "AT_ONCE_S", 0.0)
    session = session_in_training()

    async def run() -> None:
        player = Player(session)
        play_stage.go_on(session, 300)
        assert session.running, "it has only begun"
        while session.running:
            session.drawn = session.shown
            await asyncio.sleep(0)
        player.close()

    asyncio.run(run())
    assert session.frame.training.state.t == 300
    assert session.stop_at == -1


MESSAGE = 6  # turns of the loop from a socket that can be read to the command, about


def test_a_message_waits_for_one_slice_of_the_engine_and_not_for_one_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, slices, advance = session_in_training(), [0], play_stage.advance

    def counted(*given: object, **named: object) -> int:
        slices[0] += 1
        return advance(*given, **named)

    monkeypatch.setattr(play_stage, "advance", counted)

    async def run() -> list[int]:
        player, waited = Player(session), []
        session.running = True
        for _ in range(10):
            while not slices[0]:
                await asyncio.sleep(0)
            slices[0] = 0
            for _ in range(MESSAGE):
                await asyncio.sleep(0)
            waited.append(slices[0])
            session.drawn = session.shown
        session.running = False
        await asyncio.sleep(0.05)
        player.close()
        return waited

    assert max(asyncio.run(run())) <= 1


def test_a_slice_takes_a_step_however_busy_the_machine() -> None:
    session = session_in_training()
    t = session.frame.training.state.t
    assert play_stage.advance(session, seconds=0.0) == 1
    assert session.frame.training.state.t == t + 1


# --- pace ---------------------------------------------------------------------------------------
def test_a_slow_start_begins_at_twenty_steps_a_second_and_doubles_every_second() -> None:
    def rate(seconds: float) -> float:
        return (steps_due(0, seconds + 1e-4, SLOW_START) - steps_due(0, seconds, SLOW_START)) / 1e-4

    assert rate(0) == pytest.approx(20, rel=1e-3)
    for seconds in range(8):
        assert rate(seconds + 1) == pytest.approx(2 * rate(seconds), rel=1e-6)
    assert steps_due(0, 1e6, SLOW_START) > 1e18, "full speed, and no overflow"


@pytest.mark.parametrize("speed", [SLOW_START, 10.0])
def test_a_pause_changes_nothing_about_the_pace(speed: float) -> None:
    first = steps_due(0, 3.0, speed)
    assert first + steps_due(int(first), 2.0, speed) == pytest.approx(
        steps_due(0, 5.0, speed), abs=4
    )


def test_the_clock_keeps_the_pace_of_a_slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seen, rest = [0.0], [], asyncio.sleep

    async def sleep(seconds: float) -> None:
        now[0] += max(seconds, 0.001)
        await rest(0)

    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    session = session_in_training()
    session.steps_per_second = SLOW_START

    def until() -> bool:
        seen.append((now[0], session.frame.training.state.t))
        return now[0] > 5

    play(session, until)
    assert all(t <= steps_due(0, seconds, SLOW_START) + 1 for seconds, t in seen)
    seconds, t = seen[-1]
    assert t >= 0.9 * steps_due(0, seconds - 0.1, SLOW_START) > 100


def test_frames_drawn_late_are_sent_less_often_and_prompt_ones_again_at_the_full_rate() -> None:
    def rate(delay: float, pace: Pace) -> float:
        for frame in range(100):
            pace.send(frame, float(frame))
            pace.draw(frame, frame + delay)
        return 1 / pace.interval

    pace = Pace()
    assert rate(0.03, pace) == pytest.approx(1 / clock.INTERVAL_S)
    assert rate(0.25, pace) == pytest.approx(2.0), "half of what the queue would take"
    assert rate(60.0, pace) == pytest.approx(1 / clock.SLOWEST_S), "but never stands still"
    assert rate(0.03, pace) == pytest.approx(1 / clock.INTERVAL_S)


def test_thirty_pages_with_one_queue_keep_it_short() -> None:
    """Each frame of every page takes 10 ms of a server; with no pace 60 frames would wait."""
    pages, service, waiting, now = [Pace() for _ in range(30)], 0.01, [], 0.0
    due, flying, served, delays = [0.0] * 30, [0] * 30, 0, []
    while now < 30:
        for k, pace in enumerate(pages):
            if now >= due[k] and flying[k] < clock.WINDOW:
                served += 1
                pace.send(served, now)
                waiting.append((k, served, now))
                flying[k], due[k] = flying[k] + 1, now + pace.interval
        if waiting:
            k, frame, sent = waiting.pop(0)
            pages[k].draw(frame, now + service)
            flying[k] -= 1
            delays.append(now + service - sent)
        now += service
    late = delays[len(delays) // 2 :]
    assert sum(late) / len(late) < 0.4, "0.6 s without a pace"
    assert len(delays) > 0.9 * 30 / service / 2, "and half of the server's time is used at least"


# --- a class ------------------------------------------------------------------------------------
def test_who_goes_on_at_once_waits_for_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "FIRST_ASSESS_S", math.inf)
    session = session_in_training()
    made: list[int] = []
    assess = play_stage.assess
    monkeypatch.setattr(
        play_stage,
        "assess",
        lambda s: (made.append(s.frame.training.state.t), assess(s)),
    )

    async def run() -> None:
        player = Player(session)
        for _ in range(3):
            session.running = True
            await asyncio.sleep(0.05)
            play_stage.pause(session)
            while session.frame.training.state is None or session.running:
                await asyncio.sleep(0)
            await asyncio.sleep(clock.REST_S / 10)
        assert not made
        while not made:  # now nobody goes on
            session.drawn = session.shown
            await asyncio.sleep(0.01)
        assert made == [session.frame.training.state.t]
        player.close()

    asyncio.run(run())
    assert session.frame.training.certified is session.frame.training.state


def test_a_page_rests_the_more_the_longer_it_waits_for_its_turn() -> None:
    def rest(crowd: float) -> float:
        share = Rest()
        return [share.rest(0.01 * crowd, 0.01) for _ in range(50)][-1]

    assert rest(1.0) == 0.0, "alone it takes what it can get"
    assert 0 < rest(1.5) < rest(2.0) < rest(3.0) <= clock.LONGEST_REST_S
    assert rest(100.0) == clock.LONGEST_REST_S, "but never stands still"


def test_thirty_that_rest_leave_the_cores_free_for_a_click() -> None:
    """Each has work for four cores, again and again, and all are served alike."""
    draw = random.Random(0)
    shares, until, now, tick, queue = [Rest() for _ in range(30)], [0.0] * 30, 0.0, 0.001, []
    own = [draw.uniform(0.005, 0.03) for _ in shares]
    left, began = [*own], [0.0] * 30
    while now < 10:
        working = [k for k in range(30) if until[k] <= now]
        for k in working:
            left[k] -= tick * min(1.0, 4 / len(working))
            if left[k] <= 0:
                until[k] = began[k] = now + tick + shares[k].rest(now + tick - began[k], own[k])
                left[k] = own[k] = draw.uniform(0.005, 0.03)
        queue.append(len(working) / 4)
        now += tick
    late = queue[len(queue) // 2 :]
    assert sum(late) / len(late) < 4.0
    assert sum(min(1.0, q) for q in late) / len(late) > 0.6, "and the cores are used"


def attacked(monkeypatch: pytest.MonkeyPatch, step: Callable[..., object]) -> Session:
    """A session in the attack stage, whose heavy attack takes such steps."""
    session = Session(preset("alternating-circle", n=6), steps_per_second=math.inf)
    train.jump_to_exact(session)
    attack.choose(session, "hinge")
    monkeypatch.setitem(ROSTER, "hinge", replace(ROSTER["hinge"], step=step))
    play_stage.go(session, "attack")
    return session


@pytest.mark.parametrize("by", ["play", "step"])
def test_the_page_answers_while_a_heavy_step_is_taken(monkeypatch, by: str) -> None:
    begun, answered = threading.Event(), threading.Event()
    real = ROSTER["hinge"].step

    def step(*args: object) -> object:
        begun.set()
        assert answered.wait(30), "the loop was blocked by the step"
        return real(*args)

    session = attacked(monkeypatch, step)

    async def run() -> None:
        player = Player(session)
        if by == "play":
            session.running = True
        else:
            play_stage.step(session, 2)
        while not begun.is_set():
            await asyncio.sleep(0.001)
        answered.set()  # by the loop, in the middle of a step
        while session.running and session.frame.attack.state.t < 2:
            session.drawn = session.shown
            await asyncio.sleep(0.001)
        session.running = False
        await asyncio.sleep(0.05)
        player.close()

    asyncio.run(run())
    assert session.frame.attack.state.t == 2 or by == "play"
    assert session.frame.attack.state.t >= 2 and session.timeline.last_t >= 2


def test_a_heavy_step_that_was_paused_is_dropped(monkeypatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    real = ROSTER["hinge"].step

    def step(*args: object) -> object:
        begun.set()
        assert go_on.wait(30)
        return real(*args)

    session = attacked(monkeypatch, step)
    before = session.frame.attack.state

    async def run() -> None:
        player = Player(session)
        session.running = True
        while not begun.is_set():
            await asyncio.sleep(0.001)
        play_stage.pause(session)
        go_on.set()
        for _ in range(100):
            await asyncio.sleep(0.001)
        player.close()

    asyncio.run(run())
    assert session.frame.attack.state is before and not session.running


def test_a_heavy_attack_in_a_script_takes_its_steps_at_once() -> None:
    session = Session(preset("alternating-circle", n=6))
    train.jump_to_exact(session)
    attack.choose(session, "hinge")
    play_stage.go(session, "attack")
    play_stage.step(session, 3)
    assert session.frame.attack.state.t == 3


def test_an_attack_begun_while_training_plays_begins_as_slowly_as_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session(preset("alternating-line"), steps_per_second=SLOW_START)
    play_stage.go(session, "train")
    play_stage.step(session, 3000)  # a run that stands here takes thousands of steps a second
    asked: list[tuple[str, float, float]] = []

    def due(t: int, seconds: float, speed: float) -> float:
        asked.append((session.frame.stage, t, seconds))
        return steps_due(t, seconds, speed)

    monkeypatch.setattr(clock, "steps_due", due)

    async def run() -> None:
        player = Player(session)
        play_stage.play(session)
        while not asked or asked[-1][2] < 0.2:
            session.drawn = session.shown
            await asyncio.sleep(0.001)
        play_stage.begin_attack(session)  # one click ends a run and begins another
        while asked[-1][0] != "attack":
            session.drawn = session.shown
            await asyncio.sleep(0.001)
        player.close()

    asyncio.run(run())
    first = next(one for one in asked if one[0] == "attack")
    assert first[1] == 0, "it begins at step 0"
    assert first[2] < 0.2, "and not with the seconds that training had played"


def test_a_step_at_which_a_run_was_to_pause_is_forgotten_with_it() -> None:
    session = session_in_training()

    async def run() -> None:
        player = Player(session)
        session.stop_at, session.running = 10**6, True
        await asyncio.sleep(0.01)
        play_stage.begin_attack(session)
        assert session.stop_at == -1 and session.running
        player.close()

    play_stage.step(session, 400)
    asyncio.run(run())


def test_an_attack_that_ends_is_told_by_its_headline_alone() -> None:
    session = session_in_training()
    play_stage.step(session, 400)
    play_stage.go(session, "attack")
    play_stage.configure(session, steps=20)
    play(session, lambda: False)
    assert session.frame.status.over and session.frame.attack.state.t == 20
    assert not session.message
    play(session, lambda: False)
    assert session.message.startswith("Finished"), "who plays it once more is told why not"
