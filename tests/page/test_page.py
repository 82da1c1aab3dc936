"""What all pages share: every message of theirs arrives."""

from __future__ import annotations

import contextlib
from queue import Empty

import numpy as np
import pytest

from explorer.page.apps import page
from explorer.page.apps.explorer import App
from explorer.page.apps.page import lose_nothing, show

manager = pytest.importorskip("jupyter_client.manager")

# Twice what ZeroMQ holds back by itself on both sides together, and more bytes than TCP does.
# The reply comes when all are handed to ZeroMQ: a client that reads sooner could keep up with it.
SAID = 4_000
BURST = f"""
from IPython.display import publish_display_data
for k in range({SAID}):
    publish_display_data({{"text/plain": 40000 * "x"}})  # more than the buffers of a line hold
get_ipython().kernel.iopub_thread.flush({60.0})
"""
PATIENCE_S = 60.0
QUIET_S = 2.0  # after this long without a message none is left


def test_a_kernel_holds_back_what_its_page_says_at_once() -> None:
    kernel, client = manager.start_new_kernel()

    def heard(quiet: float) -> int:
        """Return how many messages of a burst arrive, until none has come for so long."""
        client.execute(BURST, reply=True, timeout=PATIENCE_S)
        count = 0
        with contextlib.suppress(Empty):
            while count < SAID:
                count += client.get_iopub_msg(timeout=quiet)["msg_type"] == "display_data"
        return count

    try:
        # Where nobody asked, messages have to be lost, or this test would say nothing.
        assert heard(QUIET_S) < SAID
        client.execute(
            "from explorer.page.apps.page import lose_nothing\nlose_nothing()", reply=True
        )
        assert heard(PATIENCE_S) == SAID
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def test_a_page_opens_on_arrays() -> None:
    made = App((np.array([[0.0, 1.0], [1.0, 0.0]]), ["no", "yes"]))
    try:
        data = made.session.frame.dataset
        assert data.x.tolist() == [[0, 1], [1, 0]] and data.y.tolist() == [-1, 1]
    finally:
        made.close()


def test_without_a_kernel_there_is_nothing_to_hold_back() -> None:
    lose_nothing()


def test_a_page_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Made:
        def __init__(self, name: str) -> None:
            self.widget = name
            told.append(f"build {name}")

        def close(self) -> None:
            told.append(f"close {self.widget}")

    monkeypatch.setattr(page, "lose_nothing", lambda: told.append("lose nothing"))
    monkeypatch.setattr(page, "display", lambda widget: told.append(f"show {widget}"))
    show(Made, lambda: Made("a"))
    assert told == ["lose nothing", "build a", "show a"]
    show(Made, lambda: Made("b"))
    assert told[3:] == ["close a", "lose nothing", "build b", "show b"]
