"""One message a frame, whatever the panels have to say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import comm
import numpy as np
import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.landscape import commands as landscape
from explorer.page.view.base import CanvasView
from explorer.page.view.canvases import PlaneView
from tests.page.pages import opened, page_in, send

Message = tuple[str, dict[str, Any]]  # id of the widget, what was sent to it


page = pytest.fixture(lambda: page_in("train", preset("blobs", n=6), 0))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """Messages to widgets that are there already, in order."""
    found: list[Message] = []

    def keep(self: comm.DummyComm, kind: str, data: Any = None, **named: object) -> None:
        if kind == "comm_msg":
            found.append((self.comm_id, data))

    monkeypatch.setattr(comm.DummyComm, "publish_msg", keep)
    return found


def parts(message: Message) -> list[list[Any]]:
    made: list[list[Any]] = message[1]["content"]["parts"]
    return made


def test_a_frame_is_one_message_to_a_browser_that_can_open_it(
    page: App, sent: list[Message]
) -> None:
    plane, title = page.panels["PlanePanel"].view, page.panels["HeadlinePanel"].view
    send(page.bundle, kind="ready")
    play.step(page.session, 1)  # the headline and the time line change with it
    sent.clear()
    play.advance(page.session, steps=1)
    page.session.show()
    assert [to for to, _ in sent] == [page.bundle.model_id]
    inside = {to: message for to, message, _ in parts(sent[0])}
    assert inside[plane.model_id]["content"]["frame"] == plane.number
    assert inside[title.model_id]["state"]["state"] == title.state


def test_before_that_every_message_goes_alone(page: App, sent: list[Message]) -> None:
    play.step(page.session, 1)
    assert page.bundle.model_id not in [to for to, _ in sent]
    assert page.panels["PlanePanel"].view.model_id in [to for to, _ in sent]


def test_a_browser_that_opens_later_is_told_all_that_was_carried(
    page: App, sent: list[Message]
) -> None:
    plane, title = page.panels["PlanePanel"].view, page.panels["HeadlinePanel"].view
    send(page.bundle, kind="ready")
    play.step(page.session, 1)
    sent.clear()
    send(page.bundle, kind="ready")
    told = [data for to, data in sent if to == title.model_id]
    assert [data["state"]["state"] for data in told if data["method"] == "update"] == [title.state]
    frames = [
        data["content"] for to, data in sent if to == plane.model_id and data["method"] == "custom"
    ]
    assert [f["frame"] for f in frames] == [plane.number]
    assert "=" not in [kind for _, kind, _ in frames[0]["arrays"]]


def test_a_command_outside_a_frame_is_told_at_once(page: App, sent: list[Message]) -> None:
    send(page.bundle, kind="ready")
    sent.clear()
    page.panels["PlanePanel"].view.send({"kind": "hello"})
    assert [to for to, _ in sent] == [page.panels["PlanePanel"].view.model_id]


def test_a_job_that_a_frame_begins_is_heard_of_later(page: App, sent: list[Message]) -> None:
    send(page.bundle, kind="ready")
    plane = page.panels["PlanePanel"].view

    async def job() -> None:
        plane.send({"kind": "hello"})

    async def go() -> None:
        with page.bundle.together():
            begun = asyncio.get_running_loop().create_task(job())
        sent.clear()
        await begun
        assert [to for to, _ in sent] == [plane.model_id]

    asyncio.run(go())


def test_a_move_of_the_handle_is_answered_by_one_message(sent: list[Message]) -> None:
    app = opened("landscape", "moons", n=6)
    send(app.bundle, kind="ready")
    panel = app.panels["StartsPanel"]
    sent.clear()
    send(panel.view, kind="handle", weights=[0.5, 0.25, 0.25], number=7)
    assert panel.view.taken == 7
    assert [to for to, _ in sent] == [app.bundle.model_id]
    moved = {to for to, *_ in parts(sent[0])}
    plane = app.panels["PlanePanel"].view
    assert {plane.model_id, panel.view.model_id, panel.strip.model_id} <= moved


# --- a canvas view without a browser: what a message holds, and what is asked back


class Sent:
    """A view whose messages are kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, view: CanvasView) -> None:
        self.view = view
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        keep = lambda content, buffers=(): self.messages.append((content, list(buffers)))  # noqa: E731
        monkeypatch.setattr(view, "send", keep)


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> Sent:
    return Sent(monkeypatch, PlaneView())


def test_a_frame_is_one_message_of_values_and_bytes(frames: Sent) -> None:
    rows = np.array([[0.5, -1.0], [2.0, np.nan]])
    number = frames.view.show({"points": rows, "shades": np.arange(3, dtype=np.uint8)}, flat=True)
    ((content, buffers),) = frames.messages
    assert (content["kind"], content["frame"], content["values"]) == (
        "frame",
        number,
        {"flat": True},
    )
    assert content["arrays"] == [["points", "f", [2, 2]], ["shades", "u", [3]]]
    np.testing.assert_array_equal(np.frombuffer(buffers[0], "<f4").reshape(2, 2), rows)
    np.testing.assert_array_equal(frames.view.frame["points"], rows)


def test_an_array_of_the_frame_before_is_sent_once_and_whole_to_a_browser_that_opens(
    frames: Sent,
) -> None:
    field = np.ones((60, 60))
    for x in (0.1, 0.2):
        frames.view.show({"map": field, "points": np.array([[x, 0.0]])})
    content, buffers = frames.messages[-1]
    assert [row[:2] for row in content["arrays"]] == [["map", "="], ["points", "f"]]
    assert len(buffers) == 1 and np.frombuffer(buffers[0], "<f4")[0] == np.float32(0.2)
    frames.view.show({"map": field.copy()})
    assert len(frames.messages[-1][1]) == 1, "another array with the same numbers is another array"
    send(frames.view, kind="ready")
    content, buffers = frames.messages[-1]
    assert content["frame"] == frames.view.number and len(buffers) == 1
    assert [row[1] for row in content["arrays"]] == ["f"]


def test_the_kernel_hears_which_frame_was_drawn_and_never_one_that_was_not_sent(
    frames: Sent,
) -> None:
    heard: list[int] = []
    frames.view.on("drawn", heard.append)
    number = frames.view.show({})
    for answer in (number, number + 5, "no number"):
        send(frames.view, kind="drawn", frame=answer)
    assert heard == [number, number] and frames.view.drawn == number


# --- what the page costs at its opening and at the first look into a stage: widgets and messages

STAGES = ("train", "attack", "explain", "landscape", "arena")
MOST_WIDGETS, MOST_MESSAGES, MOST_AT_A_LOOK = 100, 150, 60


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Messages that would go to a browser, by their kind."""
    kinds: dict[str, int] = {}

    def count(self: comm.DummyComm, kind: str, *given: object, **named: object) -> None:
        kinds[kind] = kinds.get(kind, 0) + 1

    with monkeypatch.context() as patched:
        patched.setattr(comm.DummyComm, "publish_msg", count)
        yield kinds


def test_the_page_opens_with_few_widgets_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as kinds:
        app = App()
    app.close()
    assert 10 < kinds["comm_open"] < MOST_WIDGETS
    assert sum(kinds.values()) < MOST_MESSAGES, kinds


def test_the_first_look_into_a_stage_costs_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_in("draw", preset("alternating-circle"))
    send(app.bundle, kind="ready")
    found = {}
    for stage in STAGES:
        with counted(monkeypatch) as kinds:
            play.go(app.session, stage)
        found[stage] = sum(kinds.values())
    play.go(app.session, "landscape")
    for kind in ("point", "split"):
        with counted(monkeypatch) as kinds:
            landscape.show_map(app.session, kind)
        found[kind] = sum(kinds.values())
    app.close()
    assert {stage: n for stage, n in found.items() if n >= MOST_AT_A_LOOK} == {}
