"""One answer on every screen: offers that do, one remainder, one count of certified points."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import numpy as np
import pytest

from explorer.engine.data import preset
from explorer.engine.energy.questions import Answers, MapConfig, MapQuestion
from explorer.engine.number_words import share
from explorer.page import play, sight
from explorer.page.apps.explorer import App
from explorer.page.session import Session
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.runs import certified_points
from tests.page.pages import on_plane, press

SETS = ("moons", "alternating-circle", "random-circle", "xor", "alternating-line", "blobs")
UNEXPLAINED = re.compile(r"([\d.]+%)[^.%]*? unexplained|unexplained[^.%]{0,20}? ([\d.]+%)")


@pytest.mark.parametrize("steps", [0, 2000])
@pytest.mark.parametrize("name", SETS)
def test_a_point_that_is_offered_becomes_two_and_no_other_does(name: str, steps: int) -> None:
    session = Session(preset(name, n=8))
    if steps:
        play.go(session, "train")
        play.advance(session, steps=steps)
    else:
        train.jump_to_exact(session)
    play.go(session, "explain")
    state = explain.explanation(session)
    for i in range(state.truth.n):
        explain.reset(session)
        explain.choose(session, i)
        session.message = ""
        session.attempt(explain.split_widest, session)
        now = explain.explanation(session)
        if state.pinned[i]:
            assert now.now.n == state.truth.n and "split" in session.message
        else:
            assert now.now.n == state.truth.n + 1 and not session.message
            assert now.change < 1e-6 and float((now.now.x[i] - now.now.x[-1]).norm()) > 1e-4


@pytest.mark.parametrize(
    ("name", "steps", "widths"),
    [("moons", 0, ()), ("moons", 500, (20,)), ("random-circle", 2000, (100,)),
     ("alternating-circle", 2000, (10, 10)), ("xor", 500, (20,)), ("alternating-line", 500, (20,))],
)  # fmt: skip
def test_the_landscape_splits_the_points_that_explain_splits(
    name: str, steps: int, widths: tuple[int, ...]
) -> None:
    session = Session(preset(name, n=8, seed=1))
    if steps:
        session.train_config = replace(session.train_config, widths=widths, steps=steps)
        play.go(session, "train")
        play.advance(session, steps=steps)
    else:
        train.jump_to_exact(session)
    play.go(session, "explain")
    state, frame = explain.explanation(session), session.frame
    for i, pinned in zip(state.truth.origin.tolist(), state.pinned.tolist(), strict=True):
        q = MapQuestion(
            "split", frame.target.net, frame.truth, None, frame.truth.x, i, MapConfig(extent=1.0)
        )
        made = Answers().answer(q, 2).about
        assert made.carries and made.pinned == pinned, i


@pytest.fixture(scope="module")
def app():
    """Trained by too few steps, attacked to the end: three definitions would be three numbers."""
    made = App(preset("alternating-circle", n=6))
    made.session.train_config = made.session.train_config.__class__(widths=(20,), steps=4000)
    play.go(made.session, "train")
    play.advance(made.session, steps=3000)
    play.assess(made.session)
    yield made
    made.close()


def foot(app: App) -> str:
    return str(app.panels["Scoreboard"].view.dots.shown.label)


def told(app: App) -> str:
    made = headline(app.session.frame)
    return f"{made.title}. {made.words} " + ". ".join(f"{a} {b}" for a, b in made.fold)


def test_every_stage_leaves_the_same_share_unexplained_and_certifies_the_same_points(
    app: App,
) -> None:
    session = app.session
    said = {"train": told(app)}
    chart = app.panels["ResidualCurves"].chart(session.frame)
    made = session.frame.training.certificate
    assert [s.value for s in chart.series] == [share(made.residual)]
    play.go(session, "attack")
    play.configure(session, steps=400)
    play.step(session, 400)
    target, truth = session.frame.target, session.frame.truth
    known = certified_points(target, truth)
    said["attack"] = told(app)
    count = int(known.certain.sum())
    assert 0 < count < truth.n
    play.go(session, "explain")
    state = explain.explanation(session)
    said["explain"] = told(app)

    async def ask() -> None:
        panel = app.panels["ExplainPanel"]
        press(panel.forced.row, "ask")
        await panel.forced.wait()
        said["certified"] = told(app)
        press(panel.farthest.row, "ask")
        await panel.farthest.wait()

    asyncio.run(ask())
    assert said["certified"].startswith(f"{count} of 6 ")
    assert state.base == made.residual
    play.go(session, "attack")
    assert not (on_plane(app)["claims"][:, 2] == 2).any() and "✓" not in foot(app)
    numbers = {k: {a or b for a, b in UNEXPLAINED.findall(v)} for k, v in said.items()}
    assert numbers["train"] == numbers["explain"] == {share(made.residual)}, said
    assert set.union(*numbers.values()) == {share(made.residual)}, (numbers, said)


def test_certified_is_beyond_what_the_points_leave_where_they_stand(app: App) -> None:
    frame = app.session.frame
    made = certified_points(frame.target, frame.truth)
    assert made.proven and made.truth >= frame.aim.certificate.residual - 1e-12
    np.testing.assert_array_equal(made.certain, made.radius > made.truth)
    again = certified_points(frame.target, frame.truth)
    assert again is made  # one of a network, whoever asks


def test_to_the_truth_takes_every_answer_away_and_a_set_beyond_the_frame_gets_a_fit() -> None:
    made = App(preset("moons", n=8))
    session, panel = made.session, made.panels["ExplainPanel"]
    train.jump_to_exact(session)
    play.go(session, "explain")

    async def ask() -> None:
        for question in (panel.forced, panel.farthest):
            press(question.row, "ask")
            await question.wait()

    asyncio.run(ask())
    state = explain.explanation(session)
    x = state.now.x / state.now.x.abs().max() * session.extent  # on the frame
    wide = replace(state, now=replace(state.now, x=x))
    session.show(explain=session.frame.explain.amend(wide))
    assert any(chip["key"] == "fit" for chip in made.panels["Tools"].view.state["chips"])
    sight.refit(session)
    assert float(np.abs(session.axes.shares(x.numpy())).max()) < 1
    explain.reset(session)
    assert session.frame.question == "split"
    play.undo(session)
    assert explain.explanation(session).now is wide.now
