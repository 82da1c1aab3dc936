"""Every headline is true of the frame it stands beside, in every stage and after any commands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from explorer.engine.certificate import Light, certify, in_reach
from explorer.engine.data import Dataset, empty, preset
from explorer.engine.network import phi
from explorer.engine.number_words import share
from explorer.engine.roster import by_key
from explorer.engine.scoring import Kind, Unknowable, kind_of, score
from explorer.engine.statement import Statement
from explorer.engine.training import TrainConfig
from explorer.page import branches, play
from explorer.page.opening import opening_scenario
from explorer.page.play import ACTIONS, act
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.page.words.screen import exact_action
from explorer.page.words.statement import is_off_margin, what_is_left
from explorer.research.runs import RADIUS
from tests.page.pages import reached

COUNTED = re.compile(r"(\d+) of (\d+) points|(?:All (\d+)|Both) points")
STEP = re.compile(r"[Aa]t step ([\d,]+)")
SHARE = re.compile(r"(?:leave|left) ([\d.]+)% of the weights")


def two_blobs(n: int, seed: int) -> Dataset:
    """What is drawn by hand most often: a cluster of each class."""
    g = torch.Generator().manual_seed(seed)
    x = 0.25 * torch.randn(2 * n, 2, generator=g, dtype=torch.float64)
    x += torch.tensor([[-0.8, -0.3]] * n + [[0.7, 0.5]] * n)
    return Dataset(x, torch.tensor([1.0] * n + [-1.0] * n, dtype=torch.float64))


def margins(session: Session) -> torch.Tensor:
    """The margins of the drawn points under the network on screen, computed anew."""
    data, state = session.frame.dataset, session.frame.training.state
    if state.net.outputs == 1:
        return data.y * phi(state.net, data.x)
    return state.q


def found(session: Session) -> tuple[int, int]:
    """Points of the truth that the judged claims meet, computed anew: all, and in reach alone."""
    aim, part, config = session.frame.aim, session.frame.attack, session.attack_config
    entry = by_key(part.name)
    claims = entry.report(aim.target, part.judged, config)
    met = int(score(aim.truth, claims.x, claims.y, (RADIUS,)).found)
    held = reach(session)
    if held is None:
        return met, met
    within = Dataset(aim.truth.x[held], aim.truth.y[held])
    return met, int(score(within, claims.x, claims.y, (RADIUS,)).found)


def chance(session: Session) -> float:
    """Points that the judged claims meet on unseen sets, on average, computed anew."""
    aim, part = session.frame.aim, session.frame.attack
    claims = session.entry.report(aim.target, part.judged, session.attack_config)
    way = next(w for w in aim.controls.ways if w.origin is part.verdict.origin)
    met = [score(d, claims.x, claims.y, (RADIUS,)).found for d in way.sets]
    return sum(map(int, met)) / len(met)


def reach(session: Session) -> torch.Tensor | None:
    """Which points of the truth leave a trace in the attacked weights, computed anew."""
    aim = session.frame.aim
    if by_key(session.frame.attack.name).own is not None or not aim.net.homogeneous:
        return None
    return in_reach(certify(aim.net, aim.truth.x, aim.truth.y), aim.truth.n)


def expected(session: Session, title: str) -> tuple[int, int]:
    """The two counts of a title, from the frame alone."""
    frame = session.frame
    if re.search("holds? the margin", title):
        q = margins(session)
        return int((q <= 1.01 * q.min()).sum()), len(q)
    if "side" in title:
        return int((margins(session) > 0).sum()), frame.dataset.n
    if "leave a trace" in title:
        return found(session)[1], int(reach(session).sum())
    if "recovered" in title:
        return found(session)[0], frame.truth.n
    state = frame.explain.present
    if "become two" in title:
        return int((~state.pinned).sum()), state.now.n
    assert "pinned" in title, title
    return int(state.pinned.sum()), state.now.n


def check(session: Session) -> Statement:
    """Compare the headline, paused and played, with what its frame holds."""
    frame = session.frame
    for running in (True, False):
        made = headline(frame, running)
        counted = COUNTED.search(made.title)
        if counted:
            k, n, every = counted.groups()
            said = (int(k), int(n)) if k else (int(every or 2),) * 2
            assert said == expected(session, made.title), made
        _check_words(session, made)
        assert made.action is None or made.action.key in ACTIONS
    return made


def _check_words(session: Session, made: Statement) -> None:
    frame, told = session.frame, f"{made.title} {made.words}"
    state = frame.training.state
    if "has not begun" in told:
        assert frame.stage == "train" and state.t == 0
    if frame.stage == "attack":
        assert "margin, not" not in told
        step = STEP.search(made.title)
        if step:
            assert int(step[1].replace(",", "")) == frame.attack.judged.t != frame.attack.state.t
        if "not at its end" in told:
            assert not session.entry.terminate(frame.attack.state, session.attack_config).over
        if made.tone == "good":
            assert frame.attack.judged is frame.attack.state
        verdict = frame.attack.verdict
        if made.tone == "good" and verdict is not None:
            assert verdict.found > chance(session) and verdict.doubt is None
    share = SHARE.search(made.words) if frame.stage == "train" else None
    if share:
        assert not session.running and frame.training.certified is state
        held = certify(state.net, frame.dataset.x, frame.dataset.y)
        assert abs(float(share[1]) - 100 * held.residual) <= 0.05 + 1e-6


# --- every stage, played ------------------------------------------------------------------------
def test_each_stage_of_a_run_that_finds_all_points() -> None:
    session = Session()
    assert check(session).action.key == "points"
    act(session, "points")
    assert check(session).action.key == "train"
    act(session, "train")
    session.running = False
    told = []
    for steps in (0, 1, 20, 30, 200, 700, 1, 2000):
        play.advance(session, steps=steps)
        told.append(check(session))
        play.assess(session)
        told.append(check(session))
    assert told[-1].action.key == "attack" and told[0].action.key == "train"
    act(session, "attack")
    session.running = False
    for steps in (0, 100, 200, 1700):
        play.advance(session, steps=steps)
        check(session)
        play.assess(session)
        last = check(session)
    assert last.tone == "good" and expected(session, last.title)[0] >= 15
    for stage in ("explain", "arena", "landscape", "train", "draw"):
        play.go(session, stage)
        check(session)


@pytest.mark.parametrize("seed", [0, 3])
def test_two_clusters_end_in_what_they_show(seed: int) -> None:
    session = reached("train", two_blobs(6 + seed, seed), 1500)
    check(session)
    play.go(session, "attack")
    play.step(session, 3000)
    made = check(session)
    assert "trace" in made.words and made.action is not None
    act(session, made.action.key)
    check(session)


def test_weights_far_from_a_kkt_point_are_trained_on() -> None:
    session = reached("attack", preset("moons", 20, 0.06), 100)
    play.step(session, 3000)
    made = check(session)
    assert made.action.key == "train"
    t = session.frame.training.state.t
    act(session, "train")
    assert session.frame.stage == "train" and session.running
    session.running = False
    play.step(session, 10)
    assert session.frame.training.state.t == t + 10


@pytest.mark.parametrize(("residual", "slackness"), [(0.3, 0.01), (0.01, 0.3)])
def test_what_is_blamed_for_a_failure_is_the_larger_miss(residual: float, slackness: float) -> None:
    session = reached("attack", preset("moons", 20, 0.06), 200)
    play.configure(session, steps=20)
    play.step(session, 20)
    aim = session.frame.aim
    made = replace(aim.certificate, residual=residual, slackness=slackness, light=Light.APPROACHING)
    session.put(aim=replace(aim, certificate=made))
    words = headline(session.frame).words
    larger, less = share(max(residual, slackness)), share(min(residual, slackness))
    assert larger in words and less not in words


def test_a_failure_offers_more_candidates_and_takes_them() -> None:
    session = reached("attack", preset("alternating-circle", 12, 0.0))
    play.configure(session, m=4, steps=50)
    play.step(session, 50)
    made = check(session)
    assert made.action.key == "candidates" and "8" in made.action.label
    act(session, "candidates")
    session.running = False
    assert len(session.frame.attack.state.x) == 8


@pytest.mark.parametrize("why", [None, *(w for w in Unknowable if w is not Unknowable.NO_CLAIMS)])
@pytest.mark.parametrize("p", [0.001, 0.2])
@pytest.mark.parametrize("met", [0.0, 0.4, 1.0, 3.0])
def test_only_what_chance_does_not_meet_is_good(
    met: float, p: float, why: Unknowable | None
) -> None:
    session = reached("attack", preset("alternating-circle", 12, 0.0))
    play.configure(session, m=24, steps=10)
    play.step(session, 10)
    part = session.frame.attack
    for hits in (1, 6, 12):
        made = replace(part.verdict, found=hits, reached=hits, chance=met * hits, p_value=p,
                       why_not=why, controls=99, claims=12, in_reach=12)  # fmt: skip
        kind = kind_of(hits, 12, (hits, 12), 12, p, 99) if why is None else Kind.CANNOT_KNOW
        session.put(attack=replace(part, verdict=replace(made, kind=kind)))
        told = [headline(session.frame, running) for running in (True, False)]
        for one in told:
            assert one.tone != "good" or (why is None and p < 0.05 and met < 1), one
        if why is None and (met >= 1 or p > 0.05):
            assert "chance" in told[1].title and told[1].tone == "warn"
        assert told[1].action is not None


@pytest.mark.parametrize("changes", [{"all_biases": True}, {"weight_decay": 0.01}])
def test_where_no_theorem_holds_it_is_said(changes: dict[str, object]) -> None:
    session = Session(preset("alternating-circle", 8, 0.0), train_config=TrainConfig(**changes))
    play.go(session, "train")
    play.step(session, 2000)
    made = check(session)
    assert made.tone == "warn"
    assert "weight_decay" in changes or "no theorem" in made.words.lower()
    play.go(session, "attack")
    assert session.frame.aim is not None
    assert (session.frame.aim.target.decay is not None) == ("weight_decay" in changes)
    play.step(session, 20)
    check(session)


def test_several_classes() -> None:
    session = reached("train", preset("three-blobs", 9), 1000)
    check(session)
    play.go(session, "attack")
    play.step(session, 100)
    check(session)
    play.go(session, "landscape")
    assert session.frame.starts is not None and not check(session).tone


# --- what was false -----------------------------------------------------------------------------
def test_a_click_on_a_point_while_training_is_no_new_beginning() -> None:
    session = reached("train", preset("alternating-line"), 50)
    draw.add(session, [((0.1,), 1.0)])
    assert "begun" not in check(session).words


def test_an_example_that_loads_is_told_as_far_as_it_is() -> None:
    session = Session()
    slices = opening_scenario(session, "alternating line", seconds=0.02)
    for _ in slices:
        q = session.frame.training.state.q
        made = check(session)
        assert ("side" in made.title) == bool((q <= 0).any())


def test_no_point_is_called_wrong_beside_positive_margins() -> None:
    session = reached("train", preset("alternating-circle", 20, 0.0), 10)
    while float(session.frame.training.state.q.min()) <= 0:
        play.advance(session, steps=1)
    assert "side" not in check(session).title


def test_the_landscape_keeps_no_verdict_of_the_attack() -> None:
    session = reached("attack", preset("alternating-circle", 8, 0.0))
    play.step(session, 200)
    of_attack = check(session)
    play.go(session, "landscape")
    assert "recovered" not in check(session).title != of_attack.title


def test_points_that_leave_much_of_the_weights_are_not_said_to_explain_them() -> None:
    session = reached("explain", preset("xor"), 300, widths=(16, 16), method="ascent")
    state = session.frame.explain.present
    made = headline(session.frame)
    assert state.base > 0.05 and made.tone != "good"
    assert f"{state.base:.1%}" in dict(made.fold)["unexplained by the points"]
    assert made.action is not None and made.action.key == "places"


def test_points_off_the_margin_are_told_and_the_way_on_is_to_the_exact_network() -> None:
    session = reached("attack", preset("moons", 20, 0.06), 12_000)
    made = session.frame.aim.certificate
    assert made.slackness > made.residual and made.light is Light.APPROACHING
    play.go(session, "train")
    said = headline(session.frame).words
    assert is_off_margin(made) and what_is_left(made) in said
    assert share(made.residual) not in said, "a small share would contradict it"
    play.go(session, "attack")
    play.step(session, session.attack_config.steps)
    said = headline(session.frame)
    assert said.action is not None and said.action.key == "exact"
    act(session, "exact")
    assert session.frame.stage == "train"
    assert session.frame.training.certificate.light is Light.EXACT
    assert headline(session.frame).action.key == "attack"


@pytest.mark.parametrize("changed", [{"widths": (8, 8)}, {"weight_decay": 0.01}])
def test_only_of_two_layers_without_decay_a_way_leads_to_the_exact_network(changed: dict) -> None:
    session = reached("train", preset("moons", 8), 30)
    assert exact_action(session.frame) is not None
    assert exact_action(reached("train", preset("moons", 8), 30, **changed).frame) is None


def test_a_refusal_of_explain_ends_with_the_next_answer() -> None:
    session = reached("explain", preset("alternating-circle", 8, 0.0))
    explain.choose(session, 0)
    session.attempt(explain.pull, session, torch.tensor([0.0, 0.0]), False)
    assert session.message
    explain.take_forced(session, torch.ones(8))
    assert session.message == ""


def test_an_attack_is_judged_by_the_weights_that_it_attacks() -> None:
    session = reached("attack", preset("moons", 12, 0.06), 2000)
    play.go(session, "train")
    play.configure(session, lr=50.0)
    play.step(session, 3)
    frame = session.frame
    session.put(stage="attack")
    attack.judge(session)
    held = in_reach(certify(frame.aim.net, frame.truth.x, frame.truth.y), frame.truth.n)
    said = session.frame.attack.verdict.in_reach
    assert said == (None if held is None else int(held.sum()))


# --- random walks of commands -------------------------------------------------------------------
def commands(session: Session, luck: random.Random) -> dict[str, Callable[[], object]]:
    """What a visitor could do next."""
    place = [luck.uniform(-1.5, 1.5) for _ in range(2)]
    frame = session.frame

    def drop_one() -> None:
        if frame.dataset.n:
            draw.edit(session, frame.dataset.without([luck.randrange(frame.dataset.n)]))

    def offered() -> None:
        action = headline(session.frame).action
        if action is not None:
            act(session, action.key)

    return {
        "stage": lambda: play.go(session, luck.choice(
            ("draw", "train", "attack", "explain", "arena", "landscape"))),
        "steps": lambda: play.advance(session, steps=luck.choice((1, 10, 300))),
        "step": lambda: play.step(session, luck.choice((1, 50))),
        "add": lambda: draw.add(session, [(place, luck.choice((1.0, -1.0)))]),
        "drop": drop_one, "clear": lambda: draw.clear(session),
        "undo": lambda: play.undo(session), "redo": lambda: play.redo(session),
        "preset": lambda: draw.load(session, preset(luck.choice(("moons", "xor", "blobs")), 8)),
        "blobs": lambda: draw.load(session, two_blobs(4, luck.randrange(9))),
        "exact": lambda: train.jump_to_exact(session),
        "reset": lambda: play.reset(session), "reseed": lambda: play.reseed(session),
        "seek": lambda: branches.seek(session, luck.randrange(50)),
        "branch": lambda: branches.branch(session),
        "select": lambda: branches.select(session, luck.randrange(3)),
        "assess": lambda: play.assess(session),
        "mix": lambda: attack.remix(session, luck.random(), luck.random()),
        "again": lambda: attack.begin(session),
        "move": lambda: landscape.move_point(session, 0, torch.tensor(place).double()),
        "choose": lambda: explain.choose(session, luck.randrange(4)),
        "pull": lambda: explain.pull(session, torch.tensor(place).double(), luck.random() < 0.5),
        "offered": offered,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_every_headline_of_a_random_walk_is_true(seed: int) -> None:
    luck, session = random.Random(seed), Session(preset("alternating-circle", 6, 0.0))
    session.attack_config = replace(session.attack_config, m=20, steps=400)
    for _ in range(60):
        every = commands(session, luck)
        name = luck.choice(["steps", "stage", "offered", *every])
        session.attempt(every[name])
        session.running = False
        check(session)


def test_a_title_that_counts_wrong_is_seen() -> None:
    session = reached("train", preset("alternating-line"), 50)
    state = session.frame.training.state
    false = replace(state, q=-state.q.abs())
    session.put(training=replace(session.frame.training, state=false))
    with pytest.raises(AssertionError):
        check(session)


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(ValueError, match="no action"):
        act(Session(empty(2)), "x")


def ended(session: Session) -> Statement:
    """The headline at the end of the attack."""
    while play.advance(session, steps=200) and not session.frame.status.over:
        pass
    play.assess(session)
    return check(session)


def test_where_decay_ends_training_short_nothing_says_train_on() -> None:
    config = TrainConfig(weight_decay=0.01)
    session = Session(preset("alternating-circle", 8, 0.0), train_config=config)
    play.go(session, "train")
    play.step(session, 2000)
    play.go(session, "attack")
    play.configure(session, m=16, steps=40)
    made = ended(session)
    assert made.action is None or made.action.key != "train"
    assert "decay" in made.words


def test_certified_places_are_counted_as_places() -> None:
    session = reached("attack", preset("alternating-line", 6))
    attack.choose(session, "certified_places")
    made = ended(session)
    places = session.frame.attack.state.x
    assert len(places) and made.title.startswith(f"{len(places)} place")
    assert made.action is None or made.action.key != "restart", "a search ends where it ended"


def test_weights_that_agree_are_no_reason_to_attack_again() -> None:
    session = reached("attack", preset("blobs", 8), 500)
    attack.choose(session, "bilevel")
    assert session.entry.in_short not in check(session).words, "its card says what it does"
    play.configure(session, steps=400, lr_x=0.03)
    made = ended(session)
    assert session.frame.attack.state.numbers()["l_upper"] < 1e-6
    assert made.action.key == "compare" and "digits" in made.words
