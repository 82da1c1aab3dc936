"""The arena's panel without a browser: run, cancel, claims on the plane, other weights."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch

from explorer.engine.confidence import share
from explorer.engine.data import preset
from explorer.engine.explanations.splitting import explanation_of, margin_error, residual
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import score
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.plane.marks import FOUND
from explorer.page.stages.attack.arena import AGAIN, CANCEL, REST, ROWS
from explorer.page.stages.attack.other import OPEN, SURE, OtherPanel
from explorer.research.runs import FINE, RADIUS
from explorer.research.sweep.arena import refusals
from explorer.research.sweep.experiment import other_set
from tests.page.pages import choose, label, on_plane, opened, page_in, press, send, trained

app = pytest.fixture(lambda: trained("arena"))


def only(app: App, *keys: str) -> None:
    """Tick these attacks and no others."""
    for r in app.panels["Arena"].table.rows:
        if r.get("ticked", False) != (r["key"] in keys):
            send(app.panels["Arena"].table, kind="tick", key=r["key"], ticked=r["key"] in keys)
    assert {r["key"] for r in app.panels["Arena"].table.rows if r.get("ticked")} == {*keys}


def run(app: App) -> None:
    """Press Run, and wait."""
    panel = app.panels["Arena"]

    async def pressed() -> None:
        press(panel.row, "go")
        assert panel.job.busy and label(panel.row, "go") == CANCEL
        await panel.job.wait()

    asyncio.run(pressed())
    assert panel.failure.layout.display == "none", panel.failure.value


def row(app: App, key: str) -> dict:
    (found,) = [r for r in app.panels["Arena"].table.rows if r["key"] == key]
    return found


def test_it_opens_with_several_attacks_ticked_and_says_which_cannot_run(app: App) -> None:
    table = app.panels["Arena"].table
    assert not any(r.get("off") for r in table.rows)  # they stand behind the last row
    send(table, kind="choose", key=REST)
    assert table.rows[-1]["off"]
    rows = [r for r in table.rows if r["key"] != REST]
    assert [r["key"] for r in rows] == sorted(ROSTER, key=lambda key: row(app, key)["off"])
    assert sum(r["ticked"] for r in rows) >= 3
    for r in rows:
        known = r["words"] == ROSTER[r["key"]].in_short  # what it does, before any has run
        assert r["off"] != known and r["words"] and not (r["off"] and r["ticked"])
    assert len(table.head) == 1  # no column without a number
    assert "one input" in row(app, "univariate")["words"] and row(app, "bilevel")["off"]


def test_few_rows_stand_before_the_fold_and_ticked_ones_come_out_of_it(app: App) -> None:
    table = app.panels["Arena"].table
    runnable = [key for key, why in refusals(app.session.frame.target).items() if not why]
    assert [r["key"] for r in table.rows] == [*runnable[:ROWS], REST]
    assert len(runnable) > ROWS
    send(table, kind="choose", key=REST)
    send(table, kind="tick", key=runnable[-1], ticked=True)
    send(table, kind="choose", key=REST)
    assert [r["key"] for r in table.rows] == [*runnable[:ROWS], runnable[-1], REST]


def test_runs_fill_the_rows_with_the_numbers_of_the_scoreboard(app: App) -> None:
    panel = app.panels["Arena"]
    only(app, "kkt", "inversion")
    run(app)
    for line in panel.lines():
        assert line.runs == 3 and line.radius == RADIUS
        shown = row(app, line.key)
        assert shown["share"] == [line.recall[line.at].value, line.recall[line.at].low,
                                  line.recall[line.at].high]  # fmt: skip
        known = share(line.chance, [line.n] * len(line.chance))
        assert shown["chance"] == [known.value, known.low, known.high]
        right, chance, seconds = shown["cells"]
        assert len(panel.table.head) == 1 + len(shown["cells"])
        mean, n = shown["count"].split(" of ")
        assert float(mean) == pytest.approx(line.hits / 3, rel=0.05) and 3 * int(n) == line.n
        assert right.split(" of ")[0] == mean
        assert float(right.split(" of ")[1]) == pytest.approx(line.claims / 3, rel=0.05)
        assert float(chance) == pytest.approx(line.control[line.at] * int(n), rel=0.1)
        assert float(seconds) == pytest.approx(line.cpu, rel=0.1) and line.cpu > 0
    assert label(panel.row, "go") == AGAIN and panel.row.json("share")["hidden"]
    send(panel.table, kind="choose", key="inversion")
    claims = app.session.frame.claims
    assert claims is not None and panel.table.chosen == "inversion"
    (grey,) = [m for m in panel.curves.figure.marks if m.labels[0].endswith("by chance")]
    (of,) = [line for line in panel.lines() if line.key == "inversion"]
    assert grey.y.tolist() == list(of.control)
    drawn, right = on_plane(app), next(r for r in panel.lines() if r.key == "inversion")
    assert len(drawn["candidates"]) == len(drawn["claims"]) == len(claims.x)
    _, middle, _ = sorted(r["result"]["found"][right.at] for r in panel.rows
                          if r["trial"]["attack"] == "inversion")  # fmt: skip
    assert (drawn["claims"][:, 2] == FOUND).sum() == middle == len(drawn.get("links", ()))
    shown = app.session.frame.arena
    assert f" {middle or 'no'} " in shown.title and "Model inversion" in shown.title
    assert app.panels["HeadlinePanel"].view.state["key"] == "own"  # the blue way is at its end
    assert app.panels["HeadlinePanel"].text == f"{shown.title} {shown.sentence}" and shown.title
    assert (
        app.panels["HeadlinePanel"].view.state["fold"] == [list(pair) for pair in shown.fold] != []
    )
    send(panel.table, kind="choose", key="other")  # another set that explains the weights
    assert app.session.frame.other_set is panel.other.other and app.session.frame.claims is None
    assert {"candidates", "claims"}.isdisjoint(on_plane(app)) and "other" in on_plane(app)
    assert "other points" in app.session.frame.arena.sentence
    send(panel.table, kind="choose", key="hinge")  # it did not run: nothing to draw
    assert panel.table.chosen == "other"
    play.go(app.session, "attack")
    assert app.session.frame.claims is None


def test_runs_are_the_same_after_a_run_from_another_start(app: App) -> None:
    only(app, "kkt")
    found, session = [], app.session
    for share_ in (0.0, 1.0):  # an attack from the landscape leaves settings that suit its start
        session.attack_config = session.entry.suit(session.attack_config, share_)
        run(app)
        found.append([r["trial"] for r in app.panels["Arena"].rows])
    assert found[0] == found[1] and session.attack_config.near


def test_a_line_in_the_curves_restates_the_table(app: App) -> None:
    panel = app.panels["Arena"]
    only(app, "kkt")
    assert panel.curves.figure is None  # bqplot is loaded when there is a chart
    run(app)
    (curve,) = [m for m in panel.curves.figure.marks if m.labels == [ROSTER["kkt"].title]]
    (usual,) = panel.lines()
    assert curve.x.tolist() == list(FINE)
    assert curve.y.tolist() == [one.value for one in usual.recall]
    truth = app.session.frame.truth
    for at, radius in ((1.0, FINE[-1]), (0.00301, FINE[0]), (None, RADIUS)):
        panel.curves.figure.interaction.selected = None if at is None else np.array([at])
        (line,) = panel.lines(radius)
        met = sum(
            int(score(truth, torch.tensor(r["result"]["x"]), torch.tensor(r["result"]["y"]),
                      (radius,)).found)
            for r in panel.rows
        )  # fmt: skip
        assert line.hits == met
        mean = float(row(app, "kkt")["cells"][0].split(" of ")[0])
        assert mean == pytest.approx(met / line.runs, rel=0.05)
        assert panel.table.title.endswith(f"within {radius:.2g}")
        assert panel.row.value("within") == float(f"{radius:.2g}")
    choose(panel.row, "within", 0.1)  # by keys
    assert panel.table.title.endswith("within 0.1")


def test_other_weights_clear_the_board(app: App) -> None:
    panel = app.panels["Arena"]
    only(app, "inversion")
    run(app)
    assert panel.rows and panel.table.chosen
    play.go(app.session, "train")
    play.step(app.session, 50)
    play.go(app.session, "arena")
    assert panel.rows == [] and panel.table.chosen == "" and app.session.frame.claims is None
    assert not any("share" in r for r in panel.table.rows)


def test_nothing_chosen_is_said(app: App) -> None:
    panel = app.panels["Arena"]
    only(app)
    press(panel.row, "go")
    assert "tick" in app.session.message


# --- another set in the attack stage: drawn and told, cancelled, refused, forgotten ---------------


def panel(app: App) -> OtherPanel:
    made = app.panel("OtherPanel")
    assert isinstance(made, OtherPanel) and made.box.children
    return made


def drawn(app: App) -> int:
    return len(on_plane(app).get("other", ()))


def test_the_set_that_is_drawn_explains_the_weights_and_is_another_one() -> None:
    app = opened("attack", "moons", n=10)
    other, session = panel(app), app.session
    assert other.row.text in (OPEN, SURE) and not drawn(app)
    press(other.row, "shown")
    now = session.frame
    found = now.other_set
    assert found is not None and drawn(app) == len(found.x)
    net = now.target.net.to(dtype=torch.float64)
    made = explanation_of(net, found.x, found.y)  # an independent fit of the multipliers
    assert residual(net, made) < 1e-7 and margin_error(net, made) < 1e-6
    gaps = torch.cdist(found.x, now.truth.x.double()).amin(1)
    assert float((gaps * found.lam).sum() / found.lam.sum()) > 0.03
    assert "sets apart" in other.row.text
    assert f"{len(found.x)} other points" in other.row.text
    play.step(session, 2)  # the attack goes on, the set stays
    assert drawn(app) == len(found.x)
    session.choose(truth_shown=False)
    assert not drawn(app)
    session.choose(truth_shown=True)
    assert drawn(app) == len(found.x)
    press(other.row, "shown")
    assert not drawn(app) and session.frame.attack.other is None
    press(other.row, "shown")
    app.unfold("")  # the button that takes it away is there
    assert not drawn(app) and not other.row.value("shown")


def test_other_weights_have_other_sets() -> None:
    app = opened("attack", "moons", n=10)
    other = panel(app)
    press(other.row, "shown")
    play.go(app.session, "train")
    play.step(app.session, 1)
    play.go(app.session, "attack")
    assert not other.row.value("shown") and other.found is None and not drawn(app)


def test_points_that_the_weights_tell_have_no_other_set() -> None:
    app = opened("attack", "pairs-line", n=8)
    other = panel(app)
    press(other.row, "shown")
    assert other.found is not None and not other.found.other
    assert "No training" in other.row.text and not drawn(app)


def test_of_three_classes_another_set_is_offered() -> None:
    app = page_in("attack", preset("three-blobs", n=9), 1000)
    assert not panel(app).row.items["shown"].disabled
    target, truth = app.session.frame.target, app.session.frame.truth
    found = other_set(target, truth, app.session.frame.training.certificate)
    assert found.other and found.as_well
    assert set(found.explanation.y.tolist()) == {1, -1, 3}


def test_biases_everywhere_are_refused_in_a_sentence() -> None:
    app = App(preset("moons", n=6))
    play.configure(app.session, all_biases=True)
    play.go(app.session, "train")
    while not float(app.session.frame.training.state.q.min()) > 0:
        play.step(app.session, 200)
    play.go(app.session, "attack")
    assert panel(app).row.items["shown"].disabled and "homogeneous" in panel(app).row.text
