"""The panel and the overlay of the provable attack, and its verb: what they show at each step."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from explorer import cli
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.univariate.config import UnivariateConfig
from explorer.engine.charts import Series
from explorer.engine.data import preset
from explorer.engine.roster import by_key
from explorer.engine.settings import setting_of
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.controls.settings import item_of
from explorer.page.plane.shapes import shapes_of
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.attack.own import OwnCurve, OwnPanel
from explorer.page.stages.train import commands as train
from explorer.page.view.chart import ChartView
from tests.page.pages import on_plane, press


@pytest.fixture
def app():
    made = App(preset("alternating-line", n=5))
    session = made.session
    train.jump_to_exact(session)
    attack.choose(session, "univariate")
    play.go(session, "attack")
    return made


def panel(app: App) -> OwnPanel:
    found = app.panels["OwnPanel"]
    assert isinstance(found, OwnPanel)
    return found


def drawn(view: ChartView, name: str) -> Series:
    (found,) = [s for s in view.shown.series if s.name == name]
    return found


def test_the_walk_is_told_and_drawn(app):
    session = app.session
    assert "intervals" in panel(app).words.value
    play.step(session)
    state = session.frame.attack.state
    seen = shapes_of(session.frame, session.axes)
    assert (
        by_key("univariate").words(state, session.attack_config).split("(")[0]
        in panel(app).words.value
    )
    assert len(seen.spans) == len(state.groups) == 1
    assert "likely" not in seen.texts[0][2]
    assert len(seen.strong) == 3, "the ends of two pieces of the graph"
    assert len(seen.rings) == 0
    assert "Strictly 1" in panel(app).rules.value
    play.step(session, 50)
    state = session.frame.attack.state
    assert state.phase == "done"
    assert len(shapes_of(session.frame, session.axes).rings) == int(state.proven.sum()) == 5
    assert "5 of 5" in panel(app).note.value
    assert len(drawn(panel(app).chart, "one explanation").x) == 5
    assert session.frame.attack.verdict.kind.name == "FOUND"


def test_every_claim_can_be_chosen():
    claims = item_of(setting_of(UnivariateConfig, "mode"))
    names = ("algorithm 1", "all crossings", "needed places")
    assert tuple(label for label, *_ in claims.options) == names


def test_likely_points_are_drawn_and_told_otherwise(app):
    session = app.session
    play.go(session, "train")
    play.configure(session, widths=(30,))
    train.begin(session)
    play.step(session, 3000)
    play.go(session, "attack")
    play.step(session, 200)
    state, here = session.frame.attack.state, panel(app)
    assert state.phase == "done" and state.likely.any()
    seen = shapes_of(session.frame, session.axes)
    assert len(seen.rings) == 0
    assert len(seen.likely) == int(state.likely.sum())
    shown = on_plane(app)
    assert "rings" not in shown and len(shown["likely"]) == len(seen.likely)
    assert "not proven" in here.note.value and "◌" in here.note.value
    assert "exact KKT" in here.note.value
    assert "nothing is" in here.rules.value and "must be" not in here.rules.value
    likely, proven = (drawn(here.chart, name) for name in ("likely", "proven"))
    assert np.nanmax(likely.y) > 0 and not len(proven.y)
    assert likely.look["width"] < proven.look["width"]
    rows = state.likely.numpy()
    assert likely.x == pytest.approx(state.x[rows, 0].numpy())
    assert (np.asarray(likely.z) <= state.least[rows].numpy()).all()


def test_assumptions_stay_on_screen(app):
    for _ in range(3):
        words = panel(app).rules.value
        assert "(a)" in words
        assert "(b)" in words
        assert "margin known" in words
        play.step(app.session)


def test_it_is_there_for_its_attack_only(app):
    assert panel(app).box.children
    attack.choose(app.session, "kkt")
    assert not panel(app).box.children


def test_the_margin_is_swept(app):
    here = panel(app)

    async def swept() -> None:
        press(here.question.row, "ask")
        await asyncio.sleep(0)
        assert not any(here.question.row.json(name)["hidden"] for name in ("share", "cancel"))
        await here.question.wait()
        assert here.question.row.json("share")["hidden"]

    assert here.answer.children == ()
    asyncio.run(swept())
    miss, sizes = here.answer.children
    assert len(drawn(miss, "least miss").x) == 41
    assert (np.diff(drawn(sizes, "candidates").x) > 0).all()
    assert "to 1.00" in here.question.text


def test_the_verb_prints_groups_and_proofs_and_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, ["univariate", "--n", "6", "--json"])
    assert result.exit_code == 0, result.stdout + result.stderr
    out = json.loads(result.stdout)["attack"]
    assert out["tolerances"] == "exact"
    assert all(1 <= len(g["x"]) <= 4 for g in out["groups"])
    assert sum(c["proven"] for c in out["candidates"]) >= 4
    assert out["doubt"] == "" and out["defect"] < 1e-10
    assert Path("univariate.png").read_bytes().startswith(b"\x89PNG")
    table = CliRunner().invoke(cli.app, ["univariate", "--n", "4", "--set", "strict=True"])
    assert "group 1 (3.2)" in table.stdout
    assert "KKT point," in table.stdout
    assert re.search(r"proven\W+-?\d", table.stdout) and re.search(r"likely\W+none", table.stdout)
    args = ["univariate", "--n", "4", "--method", "gradient", "--steps", "3000", "--widths", "30"]
    trained = json.loads(CliRunner().invoke(cli.app, [*args, "--json"]).stdout)["attack"]
    assert "exact KKT" in trained["doubt"]
    assert not any(c["proven"] for c in trained["candidates"])
    assert any(c["likely"] for c in trained["candidates"])
    wrong = CliRunner().invoke(cli.app, ["univariate", "--preset", "moons"])
    assert wrong.exit_code == 2
    assert "on a" in wrong.stderr


# --- hinges --------------------------------------------------------------------------------------


def test_marks_lie_on_the_side_of_the_bound_that_the_claims_say() -> None:
    session = Session(preset("alternating-circle", n=6))
    session.train_config = TrainConfig(widths=(40,), steps=1500, init_scale=1e-3)
    panel = OwnCurve(session)
    train.begin(session)
    play.advance(session, steps=1500)
    play.assess(session)
    attack.choose(session, "hinge")
    session.attack_config = HingeConfig(grid=20)
    play.go(session, "attack")
    assert panel.view.shown.foot and not panel.view.shown.series
    play.step(session, 3)
    assert len(shapes_of(session.frame, session.axes).lines) > 0
    play.step(session, 500)
    state = session.frame.attack.state
    dots = {s.name: s for s in panel.view.shown.series}
    needed = dots["needed"]
    assert len(needed.x) == int(state.needed.sum()) > 0
    assert (needed.y >= 1).all() and panel.view.shown.rules[0].at == 1
    total = sum(len(s.x) for s in dots.values())
    assert total == int((~torch.isnan(state.without)).sum())
    assert len(shapes_of(session.frame, session.axes).rings) == len(needed.x)
    assert panel.view.shown.foot == by_key("hinge").words(state, session.attack_config)
    panel.close()
