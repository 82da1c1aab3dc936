"""Undo and redo bring back the run with the points: network, attack, verdict, lines of time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields

import pytest

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import empty, preset
from explorer.page import history, play
from explorer.page.opening import open_recorded
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw

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
    session = Session(preset("alternating-circle", 8))
    play.go(session, "train")
    play.step(session, 700)
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
