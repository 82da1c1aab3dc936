"""The prior dial: the curve that is drawn for an attacker, its way through links and code."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from explorer.engine.data import preset
from explorer.page import play, prior
from explorer.page.session import Session
from explorer.page.sharing import run as sharing
from explorer.page.stages.landscape import commands as landscape
from explorer.page.words.headline import headline
from explorer.research.code import python_of
from explorer.research.repeat import repeat
from explorer.research.state import link_of, read_link
from tests.page.pages import choose, on_plane, opened, reached, send

ARC = [(math.cos(k / 20), math.sin(k / 20)) for k in range(64)]  # half a circle


@pytest.fixture
def session() -> Session:
    made = reached("attack", preset("moons", n=6))
    play.configure(made, m=8, steps=30)
    return made


def draw(session: Session, places: list[tuple[float, float]]) -> None:
    """Draw a curve through these places, as a hand does."""
    prior.begin(session)
    for place in places:
        prior.add(session, place, shown=False)
    prior.finish(session)


def gaps(x: torch.Tensor, corners: np.ndarray) -> float:
    """How far places (m, 2) lie off a path, at most: dense places of it stand for it."""
    share = np.linspace(0, 1, 400)[:, None]
    ends = pairwise(corners)
    dense = torch.from_numpy(np.concatenate([a + share * (b - a) for a, b in ends]))
    return float(torch.cdist(x.double(), dense).amin(1).max())


def test_an_attack_stays_on_the_curve_that_was_drawn(session: Session) -> None:
    assert "curve" not in headline(session.frame).words
    draw(session, ARC)
    assert "curve" in headline(session.frame).words and session.frame.t == 0
    config = session.attack_config
    corners = np.array(config.curve).reshape(-1, 2)
    assert config.knows == "drawn" and 4 < len(corners) < len(ARC) / 2
    assert gaps(torch.tensor(ARC), corners) < 0.02  # no place of the stroke is far off
    play.advance(session, steps=30)
    assert gaps(session.frame.attack.state.x, corners) < 0.01
    play.go(session, "landscape")
    problem = landscape.census_problem(session)
    assert problem.target.known.x.shape == corners.shape


def test_a_curve_is_taken_back_and_drawn_again(session: Session) -> None:
    draw(session, ARC)
    first = session.attack_config.curve
    draw(session, [(-1, 0), (1, 0)])
    second = session.attack_config.curve
    assert second == (-1, 0, 1, 0) != first
    prior.undo(session)
    assert session.attack_config.curve == first
    prior.redo(session)
    assert session.attack_config.curve == second
    prior.undo(session)
    prior.undo(session)
    assert session.attack_config.knows == "nothing" and not session.attack_config.curve
    with pytest.raises(ValueError, match="before"):
        prior.undo(session)
    prior.redo(session)
    assert session.attack_config.curve == first


def test_the_dial_stands_at_the_curve_while_it_is_drawn_and_goes_back(session: Session) -> None:
    prior.choose(session, "range")
    prior.choose(session, "drawn")
    assert prior.present(session) == "drawn" and session.attack_config.knows == "range"
    prior.cancel(session)
    assert prior.present(session) == "range"
    draw(session, ARC)
    prior.choose(session, "nothing")
    prior.choose(session, "drawn")  # the curve that was drawn is still there
    assert session.frame.sketch is None and len(session.attack_config.curve) > 8
    prior.begin(session)
    prior.choose(session, "nothing")
    assert session.frame.sketch is None and prior.present(session) == "nothing"


@pytest.mark.parametrize("places", [[(0.1, 0.1)], [(0.1, 0.1)] * 3, [(0, 0), (0.01, 0)]])
def test_a_curve_that_is_too_short_is_refused_and_the_hand_draws_on(
    session: Session, places: list[tuple[float, float]]
) -> None:
    before = session.attack_config
    with pytest.raises(ValueError, match="short"):
        draw(session, places)
    assert session.frame.sketch == () and session.attack_config is before


def test_ends_that_meet_are_joined(session: Session) -> None:
    draw(session, [(math.cos(k / 20), math.sin(k / 20)) for k in range(125)])
    curve = session.attack_config.curve
    assert curve[:2] == curve[-2:]


def test_no_curve_is_drawn_on_a_line() -> None:
    made = reached("attack", preset("alternating-line", n=6))
    assert "drawn" not in dict.fromkeys(value for _, value in prior.offers(made.frame))
    with pytest.raises(ValueError, match="segment"):
        prior.begin(made)
    plane = reached("attack", preset("moons", n=6)).frame
    offers = [value for _, value in prior.offers(plane)]
    assert "drawn" in offers and "components" not in offers


def test_a_curve_travels_in_a_link_and_in_printed_code(session: Session) -> None:
    draw(session, ARC)
    play.advance(session, steps=30)
    run = sharing.run_of_page(session)
    link = link_of(run)
    assert read_link(link).attack_config == session.attack_config
    again = repeat(read_link(link)).attacked
    assert torch.allclose(again.states[-1].x, session.frame.attack.state.x, atol=1e-6)
    code = python_of(run)
    assert "granted_target" in code and str(session.attack_config.curve[-1]) in code


def test_a_hand_draws_it_by_strokes_and_by_keys() -> None:
    app = opened("attack", "moons", n=6)
    session, pad = app.session, app.plane.view
    prior.choose(session, "drawn")
    assert pad.path and pad.active and pad.hint
    events = [{"kind": k, "x": x, "y": 0.5, "gesture": 1}
              for k, x in (("down", 0.25), ("move", 0.5), ("up", 0.75))]  # fmt: skip
    send(pad, kind="events", events=events)
    assert not pad.path and len(on_plane(app)["curve"]) == 2
    assert any(row[0] == "curve" for row in on_plane(app)["legend"])
    first = session.attack_config.curve
    prior.begin(session)
    keys = [("act", 0.25), ("act", 0.5), ("act", 0.9), ("erase", 0.9)]
    send(pad, kind="events", events=[{"kind": k, "x": x, "y": 0.25} for k, x in keys])
    assert len(on_plane(app)["curve"]) == 2 and pad.path
    send(pad, kind="events", events=[{"kind": "end", "x": 0.9, "y": 0.25}])
    assert session.attack_config.curve != first and not pad.path
    prior.begin(session)
    send(pad, kind="events", events=[{"kind": "cancel", "x": 0.9, "y": 0.25}])
    assert session.frame.sketch is None
    app.close()


def test_the_landscape_has_the_dial_too() -> None:
    app = opened("landscape", "moons", n=6)
    session = app.session
    row = app.panels["StartsPanel"].runs.settings
    choose(row, "knows", "drawn")
    assert session.frame.sketch == () and row.value("knows") == "drawn"
    bar = app.panels["CurveBar"]
    assert bar.on_screen and not bar.row.items["cancel"].hidden
    prior.cancel(session)
    assert row.value("knows") == "nothing" and not bar.on_screen
    app.close()


def test_simplified_paths_keep_ends_and_stay_near() -> None:
    path = np.array(ARC)
    made = prior.simple_path(path, 0.01)
    assert (made[0] == path[0]).all() and (made[-1] == path[-1]).all()
    assert 3 < len(made) < len(path) and gaps(torch.from_numpy(path), made) < 0.0101
    assert len(prior.simple_path(path[:2], 0.01)) == 2
