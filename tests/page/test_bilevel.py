"""The bilevel attack on a page: its own victim, its verdict, its boundaries, its files and code."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine import store
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.roster import by_key
from explorer.page import play
from explorer.page.plane.panel import PlanePanel
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.attack import commands as attack
from explorer.research.code import python_of
from tests.page.pages import reached


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
