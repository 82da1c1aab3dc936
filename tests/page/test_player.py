"""The clock: frames wait for the browser, and a run nobody looks at stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

import pytest

from explorer.engine.data import preset
from explorer.page import clock
from explorer.page import play as play_stage
from explorer.page.clock import Player
from explorer.page.session import Session
from explorer.page.stages import draw as draw_stage


def session_in_training() -> Session:
    session = Session(preset("alternating-line"))
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
