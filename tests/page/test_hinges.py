"""The panel of needed places: what it says before, in and after the questions."""

from __future__ import annotations

import torch

from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.data import preset
from explorer.engine.roster import by_key
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.plane.shapes import shapes_of
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.attack.own import OwnCurve
from explorer.page.stages.train import commands as train


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
