"""A canvas view without a browser: what a message holds, and what is asked back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.page.view.base import CanvasView
from explorer.page.view.canvases import PlaneView
from tests.page.pages import send


class Sent:
    """A view whose messages are kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, view: CanvasView) -> None:
        self.view = view
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        keep = lambda content, buffers=(): self.messages.append((content, list(buffers)))  # noqa: E731
        monkeypatch.setattr(view, "send", keep)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    return Sent(monkeypatch, PlaneView())


def test_a_frame_is_one_message_of_values_and_bytes(sent: Sent) -> None:
    rows = np.array([[0.5, -1.0], [2.0, np.nan]])
    number = sent.view.show({"points": rows, "shades": np.arange(3, dtype=np.uint8)}, flat=True)
    ((content, buffers),) = sent.messages
    assert (content["kind"], content["frame"], content["values"]) == (
        "frame",
        number,
        {"flat": True},
    )
    assert content["arrays"] == [["points", "f", [2, 2]], ["shades", "u", [3]]]
    np.testing.assert_array_equal(np.frombuffer(buffers[0], "<f4").reshape(2, 2), rows)
    np.testing.assert_array_equal(sent.view.frame["points"], rows)


def test_an_array_of_the_frame_before_is_sent_once_and_whole_to_a_browser_that_opens(
    sent: Sent,
) -> None:
    field = np.ones((60, 60))
    for x in (0.1, 0.2):
        sent.view.show({"map": field, "points": np.array([[x, 0.0]])})
    content, buffers = sent.messages[-1]
    assert [row[:2] for row in content["arrays"]] == [["map", "="], ["points", "f"]]
    assert len(buffers) == 1 and np.frombuffer(buffers[0], "<f4")[0] == np.float32(0.2)
    sent.view.show({"map": field.copy()})
    assert len(sent.messages[-1][1]) == 1, "another array with the same numbers is another array"
    send(sent.view, kind="ready")
    content, buffers = sent.messages[-1]
    assert content["frame"] == sent.view.number and len(buffers) == 1
    assert [row[1] for row in content["arrays"]] == ["f"]


def test_the_kernel_hears_which_frame_was_drawn_and_never_one_that_was_not_sent(sent: Sent) -> None:
    heard: list[int] = []
    sent.view.on("drawn", heard.append)
    number = sent.view.show({})
    for answer in (number, number + 5, "no number"):
        send(sent.view, kind="drawn", frame=answer)
    assert heard == [number, number] and sent.view.drawn == number
