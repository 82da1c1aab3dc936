"""What the page costs at its opening and at the first look into a stage: widgets and messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import comm
import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train
from tests.page.pages import send

STAGES = ("train", "attack", "landscape", "explain", "arena")
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
    app = App(preset("alternating-circle"))
    train.jump_to_exact(app.session)
    play.go(app.session, "draw")
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
