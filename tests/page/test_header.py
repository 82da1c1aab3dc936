"""Opening an example from the list: in slices, and given up when the hand goes on otherwise."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from explorer.engine.data import preset
from explorer.engine.explanations.others import OtherSet
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.frame import Shown
from explorer.page.history import History
from explorer.page.opening import opening_scenario
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.attack.words import MEANT
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.words.headline import headline
from explorer.research.grid.landscape import Arrivals
from tests.page.pages import opened, page_in, reached, send

NAME = "two points"


def open_scenario(session: Session, name: str) -> None:
    for _ in opening_scenario(session, name):
        pass


def test_slices_come_to_the_same_weights_as_one_go() -> None:
    first, second = Session(), Session()
    second.mix = (1.0, 1.0)
    open_scenario(first, NAME)
    assert len(list(opening_scenario(second, NAME, seconds=0.02))) > 1
    assert first.frame.training.state.net.theta.equal(second.frame.training.state.net.theta)
    assert first.frame.stage == second.frame.stage and second.mix == (0.0, 0.0)
    assert not second.message, "the headline says what it is"


def test_the_lesson_of_a_proof_opens_on_an_exact_network() -> None:
    session = Session()
    open_scenario(session, "proof on the line")
    assert session.frame.stage == "attack"
    assert session.frame.training.certificate.light.name == "EXACT"
    play.step(session, 50)
    state = session.frame.attack.state
    assert state.doubt is None and int(state.proven.sum()) == session.frame.dataset.n


def test_an_example_that_is_meant_to_fail_waits_with_it_for_its_verdict() -> None:
    session = Session()
    open_scenario(session, "moons, too early")
    assert session.frame.stage == "attack" and not session.message
    assert session.frame.training.state.t == 100


@pytest.mark.parametrize(("name", "t"), [("inversion", None), ("moons, too early", 200)])
def test_the_verdict_of_an_example_that_is_meant_to_fail_says_so_once(name: str, t: int) -> None:
    session = Session()
    open_scenario(session, name)
    if t:
        session.attack_config = replace(session.attack_config, steps=t)
        attack.restart(session)
    assert MEANT not in headline(session.frame).words
    session.attempt(play.step, session, session.attack_config.steps)
    made = headline(session.frame)
    assert made.words.count(MEANT) == 1 and not session.message
    attack.choose(session, "kkt" if name == "inversion" else "inversion")
    attack.restart(session)
    play.step(session, 20)
    assert MEANT not in headline(session.frame).words


@pytest.mark.parametrize("left_for", ["another stage", "an example"])
def test_words_of_points_that_are_gone_are_not_spoken(left_for: str) -> None:
    app = opened("explain", "moons", n=6)
    send(app.plane.view, kind="events", events=[{"kind": "next", "x": 0.5, "y": 0.5}])
    assert "point" in app.plane.view.say
    if left_for == "an example":
        app.panels["Header"].open("two points", beside=False)
    else:
        play.go(app.session, "attack")
    assert app.plane.view.say == ""


def test_other_points_end_the_opening() -> None:
    session = Session()
    slices = opening_scenario(session, NAME, seconds=0.02)
    next(slices)
    draw.load(session, preset("moons"))
    assert list(slices) == []
    assert "left before" in session.message


def test_the_list_opens_beside_the_page_and_says_how_far() -> None:
    app = App()
    header, seen = app.panels["Header"], []
    app.session.observe(lambda change: seen.append(change["new"]), names=["message"])

    async def run() -> None:
        send(header.view, kind="example", value="inversion")
        await header.job.wait()

    asyncio.run(run())
    assert any("%" in message for message in seen)
    assert app.session.frame.stage == "attack"


def test_landscape_asks_for_starts_rather_than_for_play() -> None:
    app = page_in("attack", preset("moons", n=6))
    play.go(app.session, "landscape")
    words = app.panels["HeadlinePanel"].text
    assert "starts" in words.lower() and "Play" not in words


def test_an_attack_that_began_at_the_truth_says_so_and_is_no_find() -> None:
    app = page_in("attack", preset("circles", n=12, seed=1))
    panel = app.panels["HeadlinePanel"]
    assert "attacker" not in panel.text
    attack.remix(app.session, 0.5, 1.0)
    assert "50%" in panel.text
    attack.remix(app.session, 1.0, 1.0)
    assert app.session.frame.attack.verdict.kind.name == "FOUND"
    assert "100%" in panel.text
    assert panel.view.state["tone"] == "warn"
    attack.remix(app.session, 0.0, 0.0)
    assert "attacker" not in panel.text


def test_a_farthest_set_that_explains_less_well_is_not_blamed_on_a_drag() -> None:
    session = Session()
    open_scenario(session, "other explanations")
    state = explain.explanation(session)
    other = OtherSet(state.now, 1.0, 1.0, 1.0, 0.0, 2.0)
    far = replace(state, far=other, left=1.0, slide=None)
    session.put(explain=History(far))
    made = headline(session.frame)
    assert made.tone == "warn" and "training points" in made.words
    assert "neuron switches" not in made.words
    session.put(explain=History(replace(far, far=None, change=1.0)))
    assert "neuron switches" in headline(session.frame).words


@pytest.mark.parametrize("software", ["", "voila/0.5.8"])
def test_a_lesson_trains_before_the_eyes_of_a_visitor(monkeypatch, software) -> None:
    """In a notebook the next cell may rely on it; under Voila the page comes first."""
    monkeypatch.setenv("SERVER_SOFTWARE", software)

    async def visit() -> None:
        app = App(scenario="two points")
        at_once = app.session.frame.stage, app.session.frame.training.state
        assert (at_once[1] is not None and at_once[1].t == 4000) is not bool(software)
        while not at_once[1] and (app.session.message or not app.session.frame.training.state):
            await asyncio.sleep(0.01)
        assert app.session.frame.training.state.t == 4000
        app.close()
        with pytest.raises(ValueError, match="no scenario 'x'"):
            App(scenario="x")

    asyncio.run(visit())


def done_stages(app: App) -> list[str]:
    return [one["key"] for one in app.panels["Header"].view.state["stages"]
            if one["state"] == "done"]  # fmt: skip


def test_a_stage_is_ticked_once_it_has_answered_and_other_weights_begin_anew() -> None:
    app = page_in("explain", preset("moons", n=6), 300)
    session = app.session
    explain.show_split(session)
    assert done_stages(app) == ["draw", "train"], "nobody has asked yet"
    i = int((~explain.explanation(session).pinned).nonzero()[0])
    explain.choose(session, i)
    explain.split_widest(session)
    explain.reset(session)
    assert done_stages(app) == ["draw", "train", "explain"], "also when points are as they were"
    play.go(session, "landscape")
    ended = Arrivals(21, 21, 21, 0, 0, 0.0, 6)
    session.show(starts=replace(session.frame.starts, arrivals=replace(ended, ended=20)))
    assert "landscape" not in done_stages(app)
    session.show(starts=replace(session.frame.starts, arrivals=ended))
    play.go(session, "arena")
    assert done_stages(app) == ["draw", "train", "explain", "landscape"]
    attack.show_claims(session, Shown(session.frame.target, "", runs=({},)))
    assert done_stages(app)[2:] == ["explain", "landscape", "arena"]
    play.go(session, "train")
    play.step(session, 10)
    assert done_stages(app) == ["draw", "train"]


def test_nothing_is_asked_to_be_dragged_where_all_is_pinned() -> None:
    session = reached("explain", preset("alternating-line"))
    assert bool(explain.explanation(session).pinned.all())
    made = headline(session.frame)
    assert "No point" in made.title and "its line" not in made.words
