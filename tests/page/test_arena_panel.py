"""The arena's panel without a browser: run, cancel, claims on the plane, other weights."""

from __future__ import annotations

import asyncio

import ipywidgets as w
import pytest

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.panels.arena import CANCEL, EMPTY, RUN
from tests.page.pages import on_plane


@pytest.fixture
def app():
    made = App(preset("alternating-circle", n=6))
    session = made.session
    play.configure(session, widths=(20,))
    play.go(session, "train")
    play.step(session, 600)
    session.attack_config = KKTConfig(m=12, steps=60)
    play.go(session, "arena")
    yield made
    made.close()


def run(app: App, cancelled: bool = False) -> None:
    """Press Run, and where `cancelled` Cancel in the first attack."""
    panel = app.panels["Arena"]

    async def pressed() -> None:
        panel.go.click()
        assert panel.job.busy
        if cancelled:
            while not panel.job.share:
                await asyncio.sleep(0.01)
            assert panel.go.description == CANCEL
            panel.go.click()
        await panel.job.done()

    asyncio.run(pressed())
    assert panel.failure.layout.display == "none", panel.failure.value


def test_runs_draws_bars_and_shows_the_best_claims(app: App) -> None:
    panel = app.panels["Arena"]
    assert panel.said.value == EMPTY and panel.plot.children == ()
    panel.boxes["univariate"].value = True
    run(app)
    kkt, univariate = panel.lines()
    assert kkt.runs == 3 and univariate.runs == 0 and "one input" in univariate.message
    assert panel.go.description == RUN and panel.progress.value == 1
    assert panel.chart in panel.plot.children
    assert panel.bars[0].x[-1] == kkt.recall[1].value
    show = [x for row in panel.table.children for x in row.children if isinstance(x, w.Button)]
    assert [b.disabled for b in show] == [False, True, False]
    show[0].click()
    claims = app.session.frame.claims
    assert claims is not None
    assert len(on_plane(app)["candidates"]) == len(claims.x)
    assert app.session.frame.arena.sentence in app.panels["Header"].sentence.value
    show[2].click()  # another set that explains the weights
    assert app.session.frame.claims is panel.other.other
    assert "as well" in app.session.frame.arena.sentence
    play.go(app.session, "attack")
    assert app.session.frame.claims is None


def test_cancel_keeps_what_is_done_and_the_page_goes_on(app: App) -> None:
    panel = app.panels["Arena"]
    app.session.attack_config = KKTConfig(m=100, steps=100_000)
    run(app, cancelled=True)
    assert "0 of 3" in panel.said.value
    assert panel.go.description == RUN


def test_other_weights_clear_the_board(app: App) -> None:
    panel = app.panels["Arena"]
    run(app)
    assert panel.rows
    play.go(app.session, "train")
    play.step(app.session, 50)
    play.go(app.session, "arena")
    assert panel.rows == [] and panel.said.value == EMPTY and app.session.frame.claims is None


def test_nothing_chosen_is_said(app: App) -> None:
    panel = app.panels["Arena"]
    panel.boxes["kkt"].value = False
    panel.go.click()
    assert "tick" in app.session.message
