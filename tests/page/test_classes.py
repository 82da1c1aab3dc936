"""Three and four classes on a page: drawing, training, attack, map; other attacks refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine import training
from explorer.engine.attacks import decoreco
from explorer.engine.attacks.target import Target
from explorer.engine.data import empty, preset, read_csv, write_csv
from explorer.engine.explanations.others import farthest_set
from explorer.engine.network import init_network
from explorer.engine.roster import DEFAULT, ROSTER
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.plane.hands import DrawHand
from explorer.page.plane.shapes import shapes_of
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.explain import words
from explorer.page.stages.proof import commands as proof
from explorer.research.explained import misfit, rivals_of
from explorer.research.pictures.fields import leads
from explorer.style import CLASSES
from tests.page.pages import of_class, on_plane, page_in, reached


def trained(name: str = "three-blobs") -> Session:
    session = reached("train", preset(name), 600)
    return session


def test_keys_choose_the_class_and_points_take_it() -> None:
    session = Session(empty(2))
    hand = DrawHand(session)
    for key, label in (("positive", 1), ("negative", -1), ("third", 3), ("fourth", 4)):
        hand.handle({"events": [{"kind": key, "x": 0.5, "y": 0.5}]})
        hand.handle({"events": [{"kind": "act", "x": 0.2 * abs(label), "y": 0.5, "gesture": 1}]})
        assert session.label == label
    assert session.frame.dataset.y.tolist() == [1, -1, 3, 4]
    assert CLASSES[4].words in hand.say
    play.undo(session)


def test_a_line_has_two_classes() -> None:
    session = Session(preset("alternating-line"))
    hand = DrawHand(session)
    hand.handle({"events": [{"kind": "third", "x": 0.5, "y": 0.5}]})
    assert session.label == 0 and "two classes" in hand.say
    with pytest.raises(ValueError, match="a line 2; got 3 classes"):
        draw.load(session, read_csv("x1,class\n0,1\n1,2\n2,3\n"))


def test_a_new_class_needs_new_outputs() -> None:
    session = trained("blobs")
    assert (
        session.frame.training.state is not None and session.frame.training.state.net.outputs == 1
    )
    draw.add(session, [((0.0, 1.5), 3.0)])
    assert session.frame.training.state is None and session.frame.stage == "draw"
    assert session.message == draw.CLASSES_CHANGED
    play.go(session, "train")
    assert (
        session.frame.training.state is not None and session.frame.training.state.net.outputs == 3
    )


def test_the_road_with_three_classes() -> None:
    session = trained()
    made = session.frame.training.certificate
    assert made is not None and made.q_min > 0 and made.residual < made.residual_strict + 1e-12
    play.go(session, "attack")
    assert session.frame.attack.name == "decoreco" and "takes over" in session.message
    play.step(session, 20)
    now = session.frame
    assert now.attack.state is not None and set(now.attack.state.y.tolist()) == {1, -1, 3}
    assert now.attack.scores is not None and now.attack.verdict is not None
    with pytest.raises(ValueError, match="one per class"):
        attack.choose(session, "kkt")


def test_after_an_attack_on_many_classes_two_meet_the_usual_one() -> None:
    session = trained()
    attack.begin(session)
    session.gave_way = ""  # as an example chooses it, without a word of another
    assert session.frame.attack.name == "decoreco"
    draw.load(session, preset("moons", n=8))
    play.step(session, 400)
    attack.begin(session)
    assert session.frame.attack.name == DEFAULT


def test_three_classes_split_and_have_another_set() -> None:
    session = trained("spiral-arms")
    play.step(session, 2400)
    play.go(session, "explain")
    state = explain.explanation(session)
    assert len(set(words.points(state))) == state.now.n >= len(state.truth.origin.unique())
    i = int((~state.pinned).nonzero()[0])
    explain.choose(session, i)
    assert len(shapes_of(session.frame, session.axes).strong)
    explain.split_widest(session)
    made = explain.explanation(session)
    assert made.now.n == state.now.n + 1 and made.change < 1e-10
    assert made.margin_error == pytest.approx(state.margin_error, abs=1e-9)
    assert not misfit(made)
    explain.take_farthest(session, farthest_set(rivals_of(made, session.extent)))
    far = explain.explanation(session)
    assert not misfit(far) and set(far.now.y.tolist()) == {1, -1, 3}


def test_three_classes_are_asked_where_a_point_must_be() -> None:
    app = App(preset("three-blobs"))
    session = app.session
    session.train_config = TrainConfig(widths=(40,))
    play.go(session, "train")
    play.step(session, 3000)
    play.go(session, "explain")
    proof.begin(session)
    held, data = session.frame.proof, session.frame.truth
    assert held is not None and held.needed is not None and held.done
    assert held.needed.holds(data.x.numpy(), data.y.numpy()).all()
    assert len(on_plane(app)["places"]) == len(held.needed.rows) > 0


@pytest.mark.parametrize("name", ["three-blobs", "spiral-arms", "four-blobs", "pie"])
def test_no_frame_takes_a_single_step(name, monkeypatch) -> None:
    """Compiled loops make each, whatever the stride."""

    def refused(*_: object) -> None:
        raise AssertionError("a single step")

    monkeypatch.setattr(training, "step", refused)
    monkeypatch.setattr(decoreco, "step", refused)
    session = Session(preset(name))
    play.go(session, "train")
    for steps in (1, 2, 30):
        play.step(session, steps)
    state = session.frame.training.state
    assert (
        state is not None and state.t == 33 and state.net.outputs == session.frame.dataset.outputs
    )


def test_other_attacks_refuse_several_outputs() -> None:
    net = init_network(2, (5,), generator=torch.Generator(), first_scale=1.0, outputs=3)
    for key, row in ROSTER.items():
        assert bool(row.refusal(Target(net))) != (key in ("decoreco", "certified_places"))


def test_a_page_shows_every_class() -> None:
    app = page_in("train", preset("pie"), 50)
    shown = on_plane(app)
    assert all(len(of_class(shown["points"], label)) == 6 for label in CLASSES)
    assert shown["map"].shape[0] == 4 and shown["margins"]
    words = [row["name"] for row in app.panels["Tools"].view.state["classes"]]
    assert words == ["● 1", "▲ 2", "■ 3", "◆ 4"]
    assert "6 ◆" in _drawn(app)


def _drawn(app: App) -> str:
    play.go(app.session, "draw")
    return str(app.panels["HeadlinePanel"].text)


def test_files_keep_the_class() -> None:
    data = preset("pie")
    assert torch.equal(read_csv(write_csv(data)).y, data.y)


def test_the_map_shows_the_winner_and_its_lead() -> None:
    values = np.zeros((3, 8, 8))
    values[0, :, :4], values[2, :, 4:] = 3.0, 1.0
    lead = leads(values)
    assert lead[0, 0, 0] == 3 and lead[2, 0, 7] == 1 and lead[1].max() == -1


def test_every_class_has_its_look() -> None:
    assert tuple(CLASSES) == (1, -1, 3, 4)
    for column in zip(*CLASSES.values(), strict=True):
        assert len(set(column)) == 4
