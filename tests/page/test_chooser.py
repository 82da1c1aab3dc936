"""The choice of the attack: what fits, what is refused, and what the page then says."""

from __future__ import annotations

import pytest

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.attack.chooser import UNFIT
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from tests.page.pages import page_in, send

app = pytest.fixture(lambda: page_in("attack", preset("moons", n=8)))


def test_an_attack_that_does_not_fit_says_so_and_the_present_one_stays(app: App) -> None:
    chooser = app.panels["Chooser"]
    words = {row["key"]: row["name"] for row in chooser.view.state["options"]}
    assert [key for key, title in words.items() if title.endswith(UNFIT)] == [
        "univariate",
        "snapshots",  # the exact network was not trained: it has no weights from before
    ]
    before = app.session.frame.attack.state
    send(chooser.view, kind="choose", value="univariate")
    assert chooser.view.state["value"] == "kkt" and app.session.frame.attack.state is before
    assert "not apply" in app.session.message
    send(chooser.view, kind="choose", value="hinge")
    assert app.session.frame.attack.name == "hinge"
    assert "this project" in chooser.view.state["words"]


def test_the_list_follows_the_weights(app: App) -> None:
    draw.load(app.session, preset("alternating-line"))
    play.go(app.session, "draw")
    train.jump_to_exact(app.session)
    play.go(app.session, "attack")
    rows = app.panels["Chooser"].view.state["options"]
    assert [row["key"] for row in rows if row["name"].endswith(UNFIT)] == ["snapshots"]
