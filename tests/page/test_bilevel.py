"""The bilevel attack on a page: its own victim, its verdict, its boundaries, its files and code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine import store
from explorer.engine.attacks.target import Target
from explorer.engine.data import heldout, preset
from explorer.engine.roster import by_key
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.plane.panel import PlanePanel
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.landscape import commands as landscape
from explorer.research.code import python_of
from explorer.research.runs import PUBLIC, granted_target
from tests.page.pages import choose, opened, reached


@pytest.fixture
def session() -> Session:
    made = reached("attack", preset("moons", n=10))
    attack.choose(made, "bilevel")
    return made


def test_it_starts_at_as_many_candidates_as_points_and_stays_at_the_truth(session: Session) -> None:
    assert len(session.frame.attack.state.x) == 10
    play.step(session, 3)
    assert session.frame.attack.state.t == 3
    attack.remix(session, 1.0, 1.0)
    assert float(session.frame.attack.state.l_upper) == 0
    play.step(session, 3)
    assert session.frame.attack.state.t == 0 and session.frame.status.over
    assert int(session.frame.attack.scores[0].found[0]) == 10


def test_its_settings_train_another_victim(session: Session) -> None:
    before = session.frame.attack.state.victim
    play.configure(session, model="hidden", width=3, mu=0.1)
    after = session.frame.attack.state.victim
    assert (before.theta.shape, after.theta.shape) == ((3,), (13,))
    play.step(session, 2)
    assert session.frame.attack.state.lower_gradient < 1e-8


def test_every_point_counts_as_in_reach(session: Session) -> None:
    # Weight decay gives every point a multiplier; those off the page's margin are no excuse.
    assert session.frame.attack.verdict.in_reach is None


def test_both_boundaries_are_drawn(session: Session) -> None:
    play.step(session, 2)
    state, panel = session.frame.attack.state, PlanePanel(session)
    for name, theta in (("strong", state.victim.theta), ("lines", state.theta)):
        path = 2 * panel.view.frame[name].astype(float)  # the plane goes from -2 to 2
        whole = path[np.isfinite(path).all(1)]
        z = whole @ theta[:2].numpy() + float(theta[2])
        assert len(whole) > 2 and np.abs(z).max() < 1e-6 * theta.norm()


def test_a_saved_run_comes_back_and_goes_on(session: Session) -> None:
    play.step(session, 2)
    other = Session()
    files.open_file(other, store.dump(files.as_run(session)))
    assert other.frame.attack.name == "bilevel" and other.frame.attack.state.t == 2
    assert other.frame.attack.state.victim.lower == session.frame.attack.state.victim.lower
    play.step(session, 2)
    play.step(other, 2)
    np.testing.assert_array_equal(other.frame.attack.state.x, session.frame.attack.state.x)


def test_the_code_repeats_its_victim_and_its_labels(session: Session) -> None:
    play.step(session, 2)
    scope: dict[str, object] = {}
    exec(python_of(run_of_page(session)), scope)
    np.testing.assert_allclose(scope["found"].x, session.frame.attack.state.x, rtol=1e-6)


def test_weights_of_another_training_are_refused(session: Session) -> None:
    entry, config = by_key("bilevel"), by_key("bilevel").config()
    assert isinstance(session.frame.target, Target)
    with pytest.raises(ValueError, match="were trained so"):
        entry.init(session.frame.target, config, None)


# --- priors --------------------------------------------------------------------------------------


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
