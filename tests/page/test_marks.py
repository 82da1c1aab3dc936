"""The marks on the plane: each has one row in the legend, and no two rows share a glyph."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.data import Dataset, preset
from explorer.engine.explanations.certainty import Certainty
from explorer.page import play
from explorer.page.plane import marks
from explorer.page.plane.scene import Look, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.plane.words import ROWS
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.train import commands as train
from explorer.page.view import base

PLANE = Path(base.__file__).with_name("plane.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def session() -> Session:
    """At the end of an attack, with everything that a plane can show of it."""
    made = Session(preset("alternating-circle", n=6))
    train.jump_to_exact(made)
    play.go(made, "attack")
    play.configure(made, steps=200)
    while not made.frame.status.over:
        play.go_on(made, 200)
    return made


def shown(session: Session) -> dict:
    shapes = shapes_of(session.frame, session.axes)
    arrays, values = scene(session.frame, session.axes, Look(), shapes, {})
    return {**values, **arrays}


def glyphs(seen: dict) -> set[str]:
    """The glyphs that these arrays draw, as `plane.js` reads them."""
    found = set()
    if "points" in seen:
        traceless = seen["points"][:, 4] > 0
        found |= {"traceless"} if traceless.any() else set()
        found |= set() if traceless.all() else {"truth" if seen["hollow"] else "point"}
    if "candidates" in seen:
        found |= {"candidate" if used else "unused" for used in seen["candidates"][:, 4] > 0}
    for name in ("claims", "marks"):
        found |= {marks.MARKS[int(kind)] for kind in seen.get(name, np.zeros((0, 3)))[:, 2]}
    return found | {key for name, key in marks.PLACED.items() if name in seen}


def check(seen: dict) -> set[str]:
    rows = [key for key, *_ in seen["legend"]]
    assert len(rows) == len(set(rows)) and set(rows) == glyphs(seen)
    for key, name, sentence in seen["legend"]:
        assert ROWS[key] == (name, sentence)
    return set(rows)


def test_each_glyph_has_one_row_and_every_row_a_glyph_of_its_own() -> None:
    drawn = re.findall(r"^  (\w+): \(c, x, y", PLANE, flags=re.M)
    assert sorted(drawn) == sorted(ROWS) and len({words for words, _ in ROWS.values()}) >= 15
    numbered = re.search(r"const MARKS = \[(.*?)\]", PLANE)
    assert tuple(re.findall(r'"(\w+)"', numbered[1])) == marks.MARKS
    bodies = dict(
        re.findall(r"^  (\w+): (\(c, x, y.*?)(?=^  \w+: \(c, x, y|^\};)", PLANE, flags=re.M | re.S)
    )
    assert len(set(bodies.values())) == len(bodies) == len(ROWS)
    assert len({sentence for _, sentence in ROWS.values()}) == len(ROWS)


def test_the_legend_of_every_stage_has_the_glyphs_that_are_on_the_plane(session: Session) -> None:
    assert {"truth", "candidate"} <= check(shown(session))
    for stage in ("draw", "train", "landscape", "explain", "arena"):
        play.go(session, stage)
        check(shown(session))
    play.go(session, "explain")
    explain.choose(session, 0)
    assert "hand" in check(shown(session))
    play.go(session, "attack")


def claimed(session: Session, x: list, y: list, **changes) -> dict:
    """What is shown where an attack claims these places."""
    frame, claims = session.frame, Report(torch.tensor(x), torch.tensor(y), torch.ones(len(y)))
    claims = replace(claims, x=claims.x.double(), y=claims.y.double())
    state = frame.attack.state
    made = (
        attack.judgement(claims, frame.truth, frame.aim.controls, None) if frame.truth.n else None
    )
    part = replace(frame.attack, claims=claims, judged=state)
    if made is not None:
        part = replace(part, scores=made.scores, verdict=made.verdict)
    return shown_of(session, replace(frame, attack=part, **changes))


def shown_of(session: Session, frame) -> dict:
    arrays, values = scene(frame, session.axes, Look(), shapes_of(frame, session.axes), {})
    return {**values, **arrays}


def test_a_cross_is_a_wrong_claim_and_nothing_else(session: Session) -> None:
    play.go(session, "attack")
    truth = session.frame.truth
    at, label = truth.x[0].tolist(), float(truth.y[0])
    seen = claimed(session, [at, [at[0] + 0.045, at[1]], [1.9, 1.9]], [label] * 3)
    kinds = [marks.MARKS[int(k)] for k in seen["claims"][:, 2]]
    assert kinds == ["found", "beside", "wrong"]
    check(seen)
    nobody = replace(session.frame.aim, truth=Dataset(truth.x[:0], truth.y[:0]))
    frame = replace(session.frame, aim=nobody)
    blind = replace(frame.attack, judged=frame.attack.state, verdict=None, scores=None)
    seen = shown_of(session, replace(frame, attack=blind))
    assert {marks.MARKS[int(k)] for k in seen["claims"][:, 2]} == {"unknown"}
    n = len(blind.claims.x)
    judged = Certainty(torch.linspace(0, 1, n), 0.03, 0.0, 0.01, None, 0.5, 2.0, 1.01)
    seen = shown_of(session, replace(frame, attack=replace(blind, certainty=judged)))
    assert {marks.MARKS[int(k)] for k in seen["claims"][:, 2]} == {"unknown", "likely"}
    check(seen)
