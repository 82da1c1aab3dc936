"""The band shows the weights of the frame and one number: the share that glows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine.arrays import as_array
from explorer.engine.data import preset
from explorer.engine.network import Network, init_network
from explorer.engine.roster import ROSTER
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.lessons import course
from explorer.page.lessons.file import packaged_lessons
from explorer.page.plane.band import BandPanel
from explorer.page.plane.weights import can_show, shown_of
from explorer.page.plane.words import left_words, points_leave
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.train import commands as train
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import breakpoints, neuron_lines
from explorer.research.pictures.needles import BINS, MOST, needles
from explorer.widgets import Needles
from tests.page.pages import reached, send


def trained(name: str = "alternating-circle", steps: int = 1500, **given) -> Session:
    session = reached("train", preset(name, **given), steps)
    session.band = True
    return session


def random(d: int, k: int, seed: int = 0) -> Network:
    return init_network(d, (k,), generator=torch.Generator().manual_seed(seed), first_scale=1.0)


def band(session: Session) -> dict:
    panel = BandPanel(session)
    assert panel.on_screen
    return panel.view.frame


def number(session: Session) -> float:
    """The norm of what the band leaves over, as a share of that of the weights."""
    made = shown_of(session.frame, session.attack_config).made
    return float(made.rest.norm() / made.net.rho)


def test_the_number_shown_is_the_norm_of_what_glows_in_each_stage() -> None:
    session = trained()
    residual = session.frame.training.certificate.residual
    for stage in ("train", "attack", "explain", "landscape", "arena"):
        play.go(session, stage)
        if stage == "attack":
            assert band(session)["left"] == "", "candidates at their start explain nothing yet"
            play.step(session, 1)
        by = {"train": "", "attack": "candidates"}.get(stage, "the training points")
        left = number(session) if stage == "attack" else residual
        assert band(session)["left"] == left_words(left, by=by), stage
        if stage not in ("attack", "explain"):
            assert number(session) == pytest.approx(residual, abs=1e-12)


def test_a_number_of_an_earlier_step_says_which() -> None:
    session = trained(steps=900)
    play.advance(session, steps=30)
    residual = session.frame.training.certificate.residual
    assert band(session)["left"] == left_words(residual, 900) != left_words(residual)
    assert session.frame.t == 930


def test_where_an_attack_stands_on_kinks_its_candidates_leave_as_little_as_the_points() -> None:
    session = Session(preset("alternating-line"), band=True)
    train.jump_to_exact(session)
    play.go(session, "attack")
    attack.choose(session, "univariate")
    play.step(session, 100)
    assert number(session) < 1e-9
    assert band(session)["left"] == left_words(number(session), by="candidates")


def test_candidates_that_explain_more_than_the_points_are_shown_beside_these() -> None:
    session = trained(steps=300)
    residual = session.frame.training.certificate.residual
    play.go(session, "attack")
    for m, less in ((400, True), (2, False)):
        play.configure(session, m=m)
        play.step(session, 1)
        assert (number(session) < residual) == less
        left = left_words(number(session), by="candidates")
        assert band(session)["left"] == left + points_leave(residual) * less


@pytest.mark.parametrize("merge_angle", [0.0, 0.02])
def test_in_the_attack_the_candidates_drain_what_is_left_over(merge_angle: float) -> None:
    session = trained(steps=3000)
    play.go(session, "attack")
    play.configure(session, merge_angle=merge_angle, steps=500, m=40)
    before = number(session)
    play.step(session, 500)
    state, after = session.frame.attack.state, number(session)
    assert state.t == 500 and 0.5 < before <= 1
    assert after < 0.6 * before
    assert after**2 <= float(state.l_stationary) * (1 + 1e-4)  # its own multipliers leave no less
    assert band(session)["pulls"].shape == (40, len(band(session)["needles"]))


def test_glows_squared_add_up_to_the_remainder_and_needles_less_ends_are_in_it() -> None:
    session = trained()
    shown = band(session)
    made = shown_of(session.frame, session.attack_config).made
    assert float((shown["glow"] ** 2).sum()) == pytest.approx(
        float(made.rest.square().sum()), rel=1e-5
    )
    gaps = np.linalg.norm(shown["needles"] - shown["ends"], axis=1)
    assert (gaps <= shown["glow"] + 1e-6).all()


def test_pulls_add_up_to_the_length_of_an_exact_networks_needles() -> None:
    session = Session(preset("alternating-circle"), band=True)
    train.jump_to_exact(session)
    shown = band(session)
    made = shown_of(session.frame, session.attack_config).made
    lengths = np.linalg.norm(as_array(made.net.blocks[0]), axis=1)[shown["neurons"]]
    assert shown["pulls"].sum(0) == pytest.approx(lengths, rel=1e-5)
    assert shown["glow"].max() < 1e-6 * lengths.max()
    sure = session.frame.training.certificate.lam > 1e-9
    assert not shown["pulls"][~sure.numpy()].any()


def test_a_point_that_is_dragged_out_of_its_cell_tears_the_sum_open() -> None:
    session = Session(preset("blobs"), band=True)
    train.jump_to_exact(session)
    play.go(session, "explain")
    before = number(session)
    explain.choose(session, 0)
    start = session.frame.explain.present.now.x[0]
    for share_of_way in (0.05, 3.0):
        explain.pull(session, start + share_of_way * torch.tensor([1.0, -0.4]).double(), True)
        change = session.frame.explain.present.change
        assert number(session) == pytest.approx(change, rel=1e-6, abs=max(1e-12, 2 * before))
    assert number(session) > max(1e3 * before, 1e-3)
    assert band(session)["left"] == left_words(number(session), by="this set")


def test_neurons_of_one_direction_stand_together_and_those_that_sleep_are_told() -> None:
    w = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    net = Network(
        (w, torch.tensor([[1.0, -2.0, 3.0, 1.0, 1.0]])), (torch.tensor([0.0, 0, 0, -9, 0]), None)
    )
    made = needles(net, Axes(), np.array([[1.0, 1.0], [0.5, -1.0]]))
    order = made["neurons"].tolist()
    same = made["group"][order.index(0)] == made["group"][order.index(2)]
    assert same and abs(order.index(0) - order.index(2)) == 1
    assert sorted(order[i] for i in np.flatnonzero(made["dead"])) == [3, 4]
    assert made["ink"][order.index(1)] == -1 and made["out"][order.index(1)] == 2
    assert len(set(made["group"])) == 4
    angle = np.arctan2(*made["needles"].T[::-1])
    assert (np.diff(angle) >= 0).all()


@pytest.mark.parametrize(("d", "lines"), [(2, neuron_lines), (1, breakpoints)])
def test_lines_of_needles_are_those_of_the_plane(d: int, lines) -> None:
    net = random(d, 7, seed=3)
    axes, made = Axes((0.5, 2.0), (0.1, 3.0)), needles(net, Axes((0.5, 2.0), (0.1, 3.0)))
    drawn = lines(net, axes)
    places = (
        drawn[:, :4].reshape(-1, 2) if d == 2 else np.column_stack([drawn[:, 0], 0 * drawn[:, 0]])
    )
    ends = np.column_stack([places, np.ones(len(places))]) @ made["lines"].T
    steep = np.linalg.norm(made["lines"][:, :2], axis=1)
    assert (np.abs(ends / steep).min(1) < 0.02).all() and len(places)


def test_many_neurons_are_a_density_whose_sums_are_theirs() -> None:
    net = random(2, 1000)
    made, axes = needles(net, Axes()), Axes()
    assert len(made["needles"]) <= 2 * BINS and made["count"].sum() == 1000 > MOST
    assert made["needles"].sum(0) == pytest.approx(as_array(net.weights[0]).sum(0), abs=1e-9)
    assert made["out"].sum() == pytest.approx(float(net.weights[1].abs().sum()))
    few = needles(random(2, MOST), axes)
    assert "count" not in few and len(few["needles"]) == MOST


@pytest.mark.parametrize(
    "name", [key for key in ROSTER if not (ROSTER[key].heavy or ROSTER[key].own)]
)
def test_the_candidates_of_every_attack_add_up_to_something(name: str) -> None:
    session = Session(preset("alternating-line"), band=True)
    train.jump_to_exact(session)
    play.go(session, "attack")
    attack.choose(session, name)
    play.step(session, 2)
    made = shown_of(session.frame, session.attack_config).made
    into, _ = made.rests()
    assert torch.allclose(made.pull.T @ made.points + into, made.net.blocks[0], atol=1e-12)
    assert 0 <= number(session) <= 1 + 1e-9


@pytest.mark.parametrize("name", ["three-blobs", "moons"])
def test_where_nothing_adds_up_one_sentence_says_why(name: str) -> None:
    several = name != "moons"
    session = trained(name, steps=60) if several else None
    if session is None:
        session = Session(preset(name), band=True)
        play.go(session, "train")
        play.configure(session, all_biases=True)
    shown = band(session)
    assert shown["why"] and shown["left"] == "" and "pulls" not in shown and len(shown["needles"])


def test_hidden_points_are_not_told_by_the_band() -> None:
    session = trained()
    play.go(session, "arena")
    panel = BandPanel(session)
    assert "pulls" in panel.view.frame
    play.set_truth_shown(session, False)
    assert "pulls" not in panel.view.frame and panel.view.frame["left"] == ""
    assert not panel.view.frame["dead"].any()
    play.go(session, "attack")  # its candidates are in sight
    play.step(session, 1)
    assert "pulls" in panel.view.frame
    assert panel.view.frame["left"] == left_words(number(session), by="candidates")


def test_the_band_is_folded_until_its_chip_is_pressed_and_costs_nothing_before() -> None:
    page = App(preset("two-points"))
    session = page.session
    play.go(session, "train")
    panel = page.panels["BandPanel"]
    assert panel.widget is None
    send(page.panels["Tools"].view, kind="layer", value="band")
    assert panel.on_screen and panel.view.number == 1
    send(page.panels["Tools"].view, kind="layer", value="band")
    play.step(session, 3)
    assert not panel.on_screen and panel.view.number == 1


@pytest.mark.parametrize(("number", "at"), [(2, 0), (4, 0), (7, 1)])
def test_lessons_that_point_at_the_band_open_it_and_close_it_again(number: int, at: int) -> None:
    given = packaged_lessons()[number]
    steps = [k for k, step in enumerate(given.steps) if step.state and step.state.weights]
    assert steps == [at] and "needle" in given.steps[at].caption
    session = Session(preset("two-points"))
    course.begin(session, given)
    course.turn(session, at)
    for _ in course.putting(session):
        pass
    assert session.band and can_show(session.frame) is not None
    assert course.state_of(session).weights
    course.leave(session)
    assert not session.band


def test_needles_stand_alone_and_follow_a_state_and_a_certificate() -> None:
    session = trained(steps=300)
    data, part = session.frame.dataset, session.frame.training
    alone = Needles(data)
    assert not alone.view.number
    alone.state = part.state
    assert alone.network is part.state.net and "pulls" not in alone.view.frame
    alone.certificate = part.certificate
    shown = shown_of(session.frame, session.attack_config)
    assert alone.view.frame["left"] == shown.left
    assert alone.view.frame["share"] == pytest.approx(shown.made.left if shown.left else -1)
    assert np.allclose(alone.view.frame["pulls"], band(session)["pulls"])
    alone.dataset = preset("two-points")  # of another dimension: what was shown stays
    assert alone.view.frame["pulls"].shape[0] == data.n
    alone.close()
