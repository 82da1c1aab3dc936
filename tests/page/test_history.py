"""Laws of the bounded memory and of undo."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import empty, preset
from explorer.page import history, play
from explorer.page.history import History, Timeline, size_of
from explorer.page.opening import open_recorded
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from tests.page.pages import reached


@dataclass(frozen=True, eq=False)
class State:
    """A step and a tensor."""

    t: int
    x: Tensor


def run(steps: int, numbers: int = 3) -> Timeline[State]:
    line: Timeline[State] = Timeline()
    for t in range(steps):
        line.append(
            State(t, torch.zeros(numbers, dtype=torch.float64)), lambda s: {"t2": 2.0 * s.t}
        )
    return line


def test_keeps_everything_while_it_fits() -> None:
    line = run(history.MOST_STATES)
    assert [s.t for s in line.states] == list(range(history.MOST_STATES))


def test_long_run_is_thinned_evenly_and_keeps_its_start() -> None:
    line = run(10 * history.MOST_STATES + 7)
    times = [s.t for s in line.states]
    assert len(times) <= history.MOST_STATES
    assert times[0] == 0
    assert max(b - a for a, b in pairwise(times)) <= line.stride
    assert [r["t2"] for r in line.rows] == [2.0 * t for t in times]


def test_a_long_run_keeps_even_log_steps_until_its_bytes_run_out() -> None:
    line = run(10 * history.MOST_STATES + 7)
    due = {t for t in history.LOG_STEPS if t < 10 * history.MOST_STATES}
    assert due <= {s.t for s in line.states} and len(due) > 50


def test_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 8 * 1000
    monkeypatch.setattr(history, "MOST_BYTES", 10 * size)
    line = run(500, numbers=1000)
    assert line.bytes <= 10 * size
    assert line.bytes == sum(size_of(s) for s in line.states)
    assert line.states[0].t == 0


def test_a_run_set_back_overwrites_its_future() -> None:
    line = run(10)
    line.append(State(4, torch.ones(1)), lambda s: {})
    assert [s.t for s in line.states] == [0, 1, 2, 3, 4]
    assert line.states[-1].x.sum() == 1


def test_cut_is_independent_and_shares_states() -> None:
    line = run(10)
    part = line.up_to(4)
    part.append(State(5, torch.ones(1)), lambda s: {})
    assert len(part.states) == 6 and len(line.states) == 10
    assert part.states[2] is line.states[2]


def test_a_note_stands_at_its_step() -> None:
    line = run(5)
    line.note(3, {"residual": 0.5})
    assert line.column("residual") == ([3.0], [0.5])


def test_nearest_is_at_or_before() -> None:
    line = run(3 * history.MOST_STATES)
    t = 3 * history.MOST_STATES // 2 + 1
    found = line.states[line.nearest(t)].t
    assert t - line.stride < found <= t


@given(st.lists(st.sampled_from(["push", "amend", "undo", "redo"]), max_size=40))
def test_undo_and_redo_go_along_one_line(moves: list[str]) -> None:
    edits, line, at = History(0), [0], 0
    for count, move in enumerate(moves, 1):
        if move == "push":
            line, at = [*line[: at + 1], count], at + 1
            edits = edits.push(count)
        elif move == "amend":
            line[at] = count
            edits = edits.amend(count)
        elif move == "undo":
            at = max(0, at - 1)
            edits = edits.undo()
        else:
            at = min(len(line) - 1, at + 1)
            edits = edits.redo()
        assert (edits.present, len(edits.past), len(edits.future)) == (
            line[at], at, len(line) - 1 - at
        )  # fmt: skip


def test_one_gesture_is_one_undo() -> None:
    edits = History(0)
    for value in (1, 2, 3):
        edits = edits.push(value, gesture=7)
    edits = edits.push(4, gesture=8)
    assert edits.undo().present == 3
    assert edits.undo().undo().present == 0
    assert edits.undo().push(9, gesture=8).past == (0, 3), "a gesture ends with an undo"


def test_a_history_that_is_full_forgets_its_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_UNDO", 3)
    edits = History(0)
    for value in range(1, 6):
        edits = edits.push(value)
    assert (edits.past, edits.present) == ((2, 3, 4), 5)


def test_a_history_does_not_change_where_another_goes_on() -> None:
    edits = History("a").push("b")
    edits.undo().push("c")
    assert (edits.past, edits.present, edits.future) == (("a",), "b", ())


def test_notes_of_states_that_are_not_kept_stay_in_the_curve() -> None:
    line = run(10 * history.MOST_STATES + 7)
    kept = {s.t for s in line.states}
    t = next(t for t in range(900, 1000) if t not in kept)
    line.note(t, {"more": 5.0})
    line.note(1000, {"more": 6.0})
    for later in range(10 * history.MOST_STATES + 7, 60 * history.MOST_STATES):
        line.append(State(later, torch.zeros(3)), lambda s: {})
    assert line.column("more") == ([float(t), 1000.0], [5.0, 6.0])
    assert line.up_to(line.nearest(t)).column("more")[0] == []
    line.append(State(t, torch.zeros(3)), lambda s: {})  # the run was set back
    assert line.column("more")[0] == []


# --- undo and redo bring back the run with the points: network, attack, verdict, lines of time ----

EDITS: dict[str, Callable[[Session], object]] = {
    "a click": lambda s: draw.add(s, [((0.3, 0.4), 1.0)]),
    "a click on the wrong side": lambda s: draw.add(s, [((0.0, 1.0), -1.0)]),
    "a drag": lambda s: [
        draw.edit(s, s.frame.dataset.with_point_at(0, (0.1 * k, 0.5)), 7) for k in range(3)
    ],
    "an erased point": lambda s: draw.edit(s, s.frame.dataset.without([2])),
    "a third class": lambda s: draw.add(s, [((0.3, 0.4), 3.0)]),
    "clear": draw.clear,
    "a preset": lambda s: draw.load(s, preset("moons", 8)),
    "a preset on the line": lambda s: draw.load(s, preset("alternating-line", n=6)),
    "points far out": lambda s: draw.load(s, empty(2).with_point([5.0, 0.0], 1)),
}


def shown(session: Session) -> tuple[object, ...]:
    """All that a visitor sees of points, network and attack: the very objects."""
    frame, branch = session.frame, session.branch
    parts = [getattr(frame, f.name) for f in fields(frame) if f.name != "drawing"]
    lines = [
        (tuple(map(id, line.states)), tuple(line.rows), tuple(line.noted))
        for line in (branch.train, branch.attack)
    ]
    return (frame.dataset, *parts, *lines, session.train_config, session.attack_config,
            session.mix, session.axes)  # fmt: skip


def attacked() -> Session:
    session = reached("train", preset("alternating-circle", 8), 700)
    session.attack_config = KKTConfig(m=16, steps=40)
    play.go(session, "attack")
    play.step(session, 40)
    return session


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_and_its_undo_leave_the_run_as_it_was(edit: Callable[[Session], object]) -> None:
    session = attacked()
    play.go(session, "draw")
    before = shown(session)
    edit(session)
    assert session.frame.dataset is not before[0]
    play.undo(session)
    assert shown(session) == before
    play.go(session, "attack")
    assert session.frame.attack.state.t == 40 and session.frame.attack.verdict is not None


def test_a_stray_click_on_the_ready_run_and_its_undo() -> None:
    session = Session()
    open_recorded(session)
    play.go(session, "draw")
    before = shown(session)
    for k in range(20):
        draw.add(session, [((0.1 * k - 1, 0.4), 1.0)])
    for _ in range(20):
        play.undo(session)
    assert shown(session) == before


def test_undo_from_the_attack_on_the_new_points_shows_the_old_attack_and_redo_the_new() -> None:
    session = attacked()
    first = shown(session)
    draw.edit(session, session.frame.dataset.without([0]))
    play.step(session, 30)
    play.go(session, "attack")
    play.step(session, 5)
    second = shown(session)
    play.undo(session)
    assert shown(session) == first and session.frame.stage == "attack"
    play.redo(session)
    assert shown(session) == second


def test_steps_after_an_undo_do_not_change_what_redo_brings() -> None:
    session = attacked()
    play.go(session, "train")
    draw.add(session, [((0.3, 0.4), 1.0)])
    play.step(session, 9)
    second = shown(session)
    play.undo(session)
    play.step(session, 11)
    old = shown(session)
    play.redo(session)
    assert shown(session) == second
    play.undo(session)
    assert shown(session) == old and session.frame.training.state.t == 711


def test_settings_of_another_network_do_not_stay_on_the_one_that_comes_back() -> None:
    session = attacked()
    play.go(session, "draw")
    draw.add(session, [((0.3, 0.4), 1.0)])
    play.configure(session, widths=(20,))
    play.undo(session)
    assert session.train_config.widths == session.frame.training.state.net.widths == (100,)


def test_runs_that_edits_left_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    session = attacked()
    monkeypatch.setattr(draw, "MOST_BYTES", 3 * session.branch.train.bytes)
    play.go(session, "train")
    for _ in range(12):
        draw.edit(session, session.frame.dataset.without([0]))
        draw.add(session, [((random.random(), 0.4), 1.0)])
        play.step(session, 1)
        assert 1 <= len(session.branch.left) <= 3
    before = shown(session)
    draw.clear(session)
    play.undo(session)
    assert shown(session) == before
    assert history.MOST_BYTES < 2**28


def test_an_edit_of_a_running_training_goes_on_and_undo_goes_back_to_where_it_was() -> None:
    session = attacked()
    play.go(session, "train")
    session.running = True
    play.advance(session, steps=10)
    draw.add(session, [((0.3, 0.4), 1.0)])
    play.advance(session, steps=10)
    assert session.running
    play.undo(session)
    assert session.running and session.frame.training.state.t == 710
    play.advance(session, steps=5)
    assert session.frame.training.state.t == 715


def test_an_attack_that_was_left_is_not_mixed_up_with_a_later_one() -> None:
    session = attacked()
    before = shown(session)
    draw.edit(session, session.frame.dataset.without([0]))
    play.go(session, "attack")
    attack.remix(session, 1.0, 0.0)
    play.undo(session)
    assert shown(session) == before and session.mix == (0.0, 0.0)
