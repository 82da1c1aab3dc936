"""A round of the hall on its page: step by step, and nothing of the points before their turn."""

from __future__ import annotations

import hashlib
import json

import pytest

from explorer.engine.data import Dataset, preset
from explorer.page import play
from explorer.page.session import Session
from explorer.page.sharing import hall_panel, words
from explorer.page.sharing.hall_panel import HallPanel
from explorer.page.stages.attack import commands as attack
from explorer.research.hall import point_rows
from explorer.serve.hall import checked_round


@pytest.fixture
def panel(monkeypatch: pytest.MonkeyPatch) -> HallPanel:
    """Of a trained network; the machine claims half of the points, and no proof is asked."""
    session = Session(preset("alternating-circle", n=8), seed=2)
    play.go(session, "train")
    play.configure(session, widths=(40,))
    play.step(session, 1000)
    half = Dataset(session.frame.dataset.x[:4], session.frame.dataset.y[:4])
    monkeypatch.setattr(hall_panel, "computer_guess", lambda _: half)
    monkeypatch.setattr(hall_panel, "obstacle", lambda _: "none")
    return HallPanel(session)


def press(panel: HallPanel, kind: str, value: object = None) -> None:
    panel.view.commands[kind](value)


def test_a_round_goes_step_by_step_and_the_seal_fits(panel: HallPanel) -> None:
    session = panel.session
    truth = point_rows(session.frame.dataset, session.axes)
    press(panel, "begin")
    state = panel.view.state
    assert not session.truth_shown and state["ready"] == {"claims": True, "places": True}
    assert set(state["round"]) == {"seal", "size", "map", "lines", "needles", "question"}
    press(panel, "claims")
    assert panel.view.state["round"]["claims"] == truth[:4]
    press(panel, "places")
    assert panel.view.state["round"]["places"] == []
    assert panel.view.state["said"] == words.hall_places(None)
    assert "truth" not in json.dumps(panel.view.state["round"])
    press(panel, "truth", {"1": [row[:2] for row in truth], "2": []})
    state = panel.view.state
    shown = state["round"]
    assert session.truth_shown and shown["truth"] == truth
    assert hashlib.sha256(shown["sealed"].encode()).hexdigest() == shown["seal"]
    assert shown["scores"] == {"1": [8, 8, 8], "2": [0, 0, 8]}
    assert shown["answer"] == words.hall_answer(1000, 4, 4)
    assert [row[1][:6] for row in state["rows"][1:]] == ["4 of 8", "4 of 8"], "as many places each"
    assert checked_round(json.loads(json.dumps(shown))) == shown, "the server takes it"
    press(panel, "end")
    assert panel.view.state["round"] is None


@pytest.mark.parametrize("given", ["nothing", "points", "a start"])
def test_claims_of_an_attack_that_knew_points_are_not_the_machines(
    panel: HallPanel, given: str
) -> None:
    session = panel.session
    play.go(session, "attack")
    if given == "points":
        play.configure(session, knows="others")
    if given == "a start":
        attack.remix(session, 1.0, 0.5)
    play.step(session, 20)
    play.assess(session)
    assert (hall_panel.new_round(session).claims is not None) == (given == "nothing")


def test_without_weights_no_round_begins(panel: HallPanel) -> None:
    empty = HallPanel(Session())
    press(empty, "begin")
    assert empty.view.state["round"] is None and words.NO_WEIGHTS in empty.session.message
    press(panel, "truth", {})
    assert panel.view.state["round"] is None


def test_without_the_server_one_sentence_says_how(panel: HallPanel) -> None:
    assert not panel.view.state["served"] and panel.view.state["words"] == words.NOT_SERVED
