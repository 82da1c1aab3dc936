"""What the attacker knows, on the page: runs return to it, and what cannot be known is refused."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.data import heldout
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.landscape import commands as landscape
from explorer.research.runs import PUBLIC, granted_target
from tests.page.pages import choose, opened


def ran(knows: str, stage: str = "attack") -> App:
    made = opened(stage, "alternating-circle", n=8)
    play.configure(made.session, knows=knows, steps=100, m=16)
    play.advance(made.session, steps=100)
    play.assess(made.session)
    return made


def test_candidates_of_a_run_end_on_the_circle_and_those_of_the_landscape_too() -> None:
    made = ran("curve")
    session = made.session
    radius = session.frame.attack.state.x.norm(dim=1)
    assert session.frame.t == 100 and torch.allclose(radius, torch.ones(16).double(), atol=1e-4)
    play.go(session, "landscape")
    problem = session.frame.starts.problem
    *_, last = problem.states(0.5, 0.5)
    assert torch.allclose(last.x.norm(dim=1), torch.ones(16).double(), atol=1e-4)
    counted = landscape.census_problem(session)
    assert counted.target.known.kind == "curve"
    made.close()


def test_given_points_are_no_claims() -> None:
    made = ran("others")
    session, attack = made.session, made.session.frame.attack
    truth = session.frame.truth
    held = granted_target(session.frame.target, truth, session.attack_config, attack.seed)
    assert len(held.known.x) == truth.n - 1
    assert int((torch.cdist(held.known.x, attack.state.x) < 1e-12).any(1).sum()) == truth.n - 1
    near = torch.cdist(attack.claims.x, held.known.x)
    assert not len(near) or float(near.min()) > 0.03
    assert attack.scores[0].found[1] <= 1  # of the one point that is not given
    made.close()


def test_public_points_are_no_control() -> None:
    made = ran("public")
    session = made.session
    held = granted_target(session.frame.target, session.frame.truth, session.attack_config, 0)
    assert torch.equal(held.known.x, heldout(session.frame.truth, PUBLIC).x)
    for control in session.frame.aim.controls.sets:
        assert float(torch.cdist(control.x, held.known.x).min()) > 1e-9
    made.close()


def test_a_prior_that_the_points_do_not_have_changes_nothing() -> None:
    made = opened("attack", "moons", n=8)
    session = made.session
    before = session.attack_config, session.frame.attack.state
    with pytest.raises(ValueError, match="circle"):
        play.configure(session, knows="curve")
    assert (session.attack_config, session.frame.attack.state) == before


def test_the_landscape_has_the_dial_and_refuses_what_the_points_lack() -> None:
    made = opened("landscape", "moons", n=8)
    session, panel = made.session, made.panels["StartsPanel"]
    choose(panel.runs.settings, "knows", "range")
    assert session.attack_config.knows == "range"
    assert session.frame.starts.problem.target.known.kind == "range"
    choose(panel.runs.settings, "knows", "curve")
    assert "circle" in session.message and session.attack_config.knows == "range"
    assert panel.runs.settings.value("knows") == "range"
    play.choose_attack(session, "bilevel")
    assert panel.runs.settings.items["knows"].hidden
