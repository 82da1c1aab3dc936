"""The hand on the plane: every event becomes the edit it means."""

from __future__ import annotations

import pytest

from explorer.engine.data import empty, preset
from explorer.page import play
from explorer.page.plane.hands import DrawHand
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw


def at(kind: str, x: float, y: float, gesture: int = 1) -> dict[str, object]:
    """An event at plane coordinates; the pad sends shares of its surface."""
    return {"kind": kind, "x": (x / 2 + 1) / 2, "y": (y / 2 + 1) / 2, "gesture": gesture}


def hand(*events: dict[str, object], session: Session) -> DrawHand:
    gestures = DrawHand(session)
    gestures.handle({"events": list(events)})
    return gestures


def points(session: Session) -> list[tuple[list[float], float]]:
    data = session.frame.dataset
    return [
        ([round(v, 6) for v in x], y) for x, y in zip(data.x.tolist(), data.y.tolist(), strict=True)
    ]


def test_click_places_a_point_of_the_chosen_class_where_the_hand_was() -> None:
    session = Session()
    hand(at("down", 0.8, -1.2), at("up", 0.8, -1.2), session=session)
    session.label = -1
    hand(at("down", -0.4, 0.2), session=session)
    assert points(session) == [([0.8, -1.2], 1.0), ([-0.4, 0.2], -1.0)]


def test_drag_sprays_and_is_one_undo() -> None:
    session = Session()
    stroke = [at("down", 0, 0, 5), *(at("move", 0.1 * i, 0, 5) for i in range(1, 6))]
    hand(*stroke, at("up", 0.5, 0, 5), session=session)
    assert session.frame.dataset.n == 6
    play.undo(session)
    assert session.frame.dataset.n == 0
    play.redo(session)
    assert session.frame.dataset.n == 6


def test_move_carries_the_nearest_point_and_is_one_undo() -> None:
    session = Session(preset("two-points"))
    draw.load(session, empty(2).with_point([0.5, 0.5], 1).with_point([-1, -1], -1))
    session.tool = "move"
    hand(at("down", 0.52, 0.5), at("move", 1, 1), at("move", 1.5, 1), at("up", 1.5, 1.1),
         session=session)  # fmt: skip
    assert points(session) == [([1.5, 1.1], 1.0), ([-1.0, -1.0], -1.0)]
    play.undo(session)
    assert points(session)[0] == ([0.5, 0.5], 1.0)


def test_move_far_from_any_point_moves_nothing() -> None:
    session = Session(empty(2).with_point([0.5, 0.5], 1))
    session.tool = "move"
    hand(at("down", -1, -1), at("move", 0, 0), at("up", 0, 0), session=session)
    assert points(session) == [([0.5, 0.5], 1.0)]


def test_erase_takes_the_point_under_the_hand_only() -> None:
    session = Session(empty(2).with_point([0.5, 0.5], 1).with_point([-1, -1], -1))
    session.tool = "erase"
    hand(at("down", -1.02, -1), session=session)
    hand(at("down", 1.5, -1.5), session=session)
    assert points(session) == [([0.5, 0.5], 1.0)]


def test_on_a_line_the_height_gives_the_label_unless_a_class_is_chosen() -> None:
    session = Session(empty(1))
    assert session.label == 0
    hand(at("down", 0.5, 0.7), session=session)
    hand(at("down", -0.5, -0.1), session=session)
    session.label = 1
    hand(at("down", 1.0, -1.9), session=session)
    assert points(session) == [([0.5], 1.0), ([-0.5], -1.0), ([1.0], 1.0)]


def test_keyboard_alone_draws_moves_and_erases() -> None:
    session = Session()
    hand(at("act", 0.2, 0.2, 1), session=session)
    hand(at("negative", 0, 0), at("act", -0.6, 0.2, 2), session=session)
    gestures = hand(at("move-tool", 0, 0), at("act", 0.2, 0.2, 3), session=session)
    assert "holding point 1" in gestures.say
    gestures.handle({"events": [at("cursor", 0.4, 0.2, 4), at("act", 0.4, 0.2, 5)]})
    assert points(session) == [([0.4, 0.2], 1.0), ([-0.6, 0.2], -1.0)]
    gestures.handle({"events": [at("erase", -0.6, 0.2, 6)]})
    assert points(session) == [([0.4, 0.2], 1.0)]
    gestures.handle({"events": [at("undo", 0, 0, 7)]})
    assert session.frame.dataset.n == 2


def test_cursor_is_spoken_with_the_point_under_it() -> None:
    session = Session(empty(2).with_point([0.5, 0.5], 1))
    assert hand(at("cursor", 0.5, 0.5), session=session).say.startswith("0.50, 0.50, on point 1")
    assert hand(at("cursor", -1, 0), session=session).say == "-1.00, 0.00"


def test_the_201st_point_is_refused_with_the_remedy_and_the_rest_stays() -> None:
    session = Session(preset("blobs", n=200))
    hand(at("down", 0, 0), session=session)
    assert session.frame.dataset.n == 200
    assert "200" in session.message


@pytest.mark.parametrize(
    "content",
    [
        None, 3, {}, {"events": 3}, {"events": [None, 3, {}]},
        {"events": [{"kind": "down", "x": float("nan"), "y": 0}]},
        {"events": [{"kind": "down", "x": "0", "y": 0}]},
        {"events": [{"kind": "handle", "x": 0, "y": 0}]},
        {"events": [{"kind": "__class__", "x": 0, "y": 0}]},
        {"events": [{"kind": "down"}]},
    ],
)  # fmt: skip
def test_a_foreign_message_changes_nothing(content: object) -> None:
    session = Session()
    DrawHand(session).handle(content)
    assert session.frame.dataset.n == 0


def test_places_outside_the_surface_are_clamped_to_the_plane() -> None:
    session = Session()
    hand({"kind": "down", "x": 7.0, "y": -3.0, "gesture": 1}, session=session)
    assert points(session) == [([2.0, -2.0], 1.0)]


def test_beyond_draw_a_press_edits_once_the_pencil_is_taken() -> None:
    session = Session(preset("two-points"))
    play.go(session, "train")
    play.step(session, 5)
    state = session.frame.training.state
    hand(at("down", 1, 1), at("up", 1, 1), at("erase", 1, 1), session=session)
    assert session.frame.dataset.n == 2 and session.frame.training.state is state
    session.editing = True
    hand(at("down", 1, 1), at("up", 1, 1), session=session)
    assert session.frame.dataset.n == 3
    play.go(session, "draw")
    play.go(session, "train")
    assert not session.editing
    hand(at("down", 1.5, 1), session=session)
    hand(at("undo", 0, 0), session=session)  # needs no pencil
    assert session.frame.dataset.n == 2
