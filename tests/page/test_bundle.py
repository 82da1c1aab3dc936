"""One message a frame, whatever the panels have to say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import comm
import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from tests.page.pages import opened, send

Message = tuple[str, dict[str, Any]]  # id of the widget, what was sent to it


@pytest.fixture
def page() -> Iterator[App]:
    app = App(preset("blobs", n=6))
    play.go(app.session, "train")
    yield app
    app.close()


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
    app.close()
