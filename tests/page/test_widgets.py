"""Widgets that stand alone: traits that are checked, linked and drawn, and events as traits."""

from __future__ import annotations

import asyncio
import doctest
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from anywidget import AnyWidget
from ipywidgets import Widget, dlink, link
from traitlets import TraitError

from explorer import widgets
from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset, empty, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.training import TrainConfig
from explorer.page.plane.marks import FOUND, WRONG
from explorer.widgets import DrawingPad, Landscape, Margins, Plane, Play, Recall
from tests.page.pages import press, send

CIRCLE = preset("alternating-circle", n=6)
ASKED_BY_MARIMO = "_display_"


def touch(view: Widget, x: float, y: float, kind: str = "down", gesture: int = 1) -> None:
    """A hand at a place, shares of the surface."""
    send(view, kind="events", events=[{"kind": kind, "x": x, "y": y, "gesture": gesture}])


@pytest.fixture
def pad() -> Any:
    made = DrawingPad()
    yield made
    made.close()


def plane_of(pad: DrawingPad) -> Widget:
    return pad.panels[0].view


def test_what_a_hand_draws_on_a_pad_is_a_dataset_and_a_table(pad: DrawingPad) -> None:
    seen: list[int] = []
    pad.observe(lambda change: seen.append(change["new"].n), "dataset")
    touch(plane_of(pad), 0.5, 0.5)
    touch(plane_of(pad), 0.75, 0.5, "act", 2)
    assert seen == [1, 2] and pad.selected == 1
    assert pad.data.to_numpy().tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    pad.tool = "erase"
    touch(plane_of(pad), 0.5, 0.5, gesture=3)
    assert pad.dataset.x.tolist() == [[1.0, 0.0]] and pad.selected == -1
    touch(plane_of(pad), 0.5, 0.5, "undo")
    assert pad.dataset.n == 2


def test_a_pad_offers_as_many_classes_as_it_is_told(pad: DrawingPad) -> None:
    tools = pad.panels[1].view
    assert [row["value"] for row in tools.state["classes"]] == [1, -1, 3, 4]
    pad.classes = 2
    assert [row["value"] for row in tools.state["classes"]] == [1, -1]
    touch(plane_of(pad), 0.5, 0.5, "third")
    touch(plane_of(pad), 0.5, 0.5)
    assert pad.dataset.y.tolist() == [1.0]


@pytest.mark.parametrize(
    "name, value",
    [("dataset", 3), ("dataset", (1, 2, 3)), ("dataset", Dataset.of(np.eye(3), [1, -1, 1])),
     ("tool", "spray"), ("classes", 5)],
)  # fmt: skip
def test_a_wrong_value_of_a_pad_is_one_sentence_and_leaves_the_old_one(
    pad: DrawingPad, name: str, value: Any
) -> None:
    before = getattr(pad, name)
    with pytest.raises(TraitError) as refused:
        setattr(pad, name, value)
    assert len(str(refused.value).splitlines()) == 1 and name in str(refused.value)
    assert getattr(pad, name) is before


def test_pads_and_planes_are_linked_by_their_points(pad: DrawingPad) -> None:
    other, plane = DrawingPad(), Plane()
    link((pad, "dataset"), (other, "dataset"))
    dlink((pad, "dataset"), (plane, "dataset"))
    touch(plane_of(pad), 0.25, 0.25)
    touch(plane_of(other), 0.75, 0.75)
    assert pad.dataset is other.dataset is plane.dataset
    assert plane.view.frame["points"][:, :2].tolist() == [[-0.5, -0.5], [0.5, 0.5]]
    touch(plane_of(other), 0, 0, "undo")
    assert pad.dataset.n == plane.dataset.n == 1


def test_a_plane_draws_what_it_is_given() -> None:
    plane = Plane(CIRCLE)
    assert set(plane.view.frame) & {"map", "neurons", "claims", "candidates"} == set()
    plane.network = maximum_margin(CIRCLE.x, CIRCLE.y).net
    drawn = plane.view.frame
    assert drawn["map"].shape[0] == drawn["map"].shape[1] and len(drawn["neurons"])
    places = CIRCLE.x.clone()
    places[0] += 0.5
    plane.claims = (places, CIRCLE.y)
    assert plane.view.frame["claims"][:, 2].tolist() == [WRONG] + [FOUND] * 5
    plane.candidates = (places, CIRCLE.y)
    assert plane.view.frame["candidates"].shape == (6, 5)
    before = plane.view.originals["map"]
    plane.selected = 2
    assert plane.view.originals["map"] is before  # not computed, nor sent, again
    assert plane.view.frame["hands"].shape == (1, 2)


def test_a_press_on_a_plane_chooses_the_point_there() -> None:
    plane = Plane(CIRCLE)
    x, y = CIRCLE.x[0].tolist()
    touch(plane.view, (x / 2 + 1) / 2, (y / 2 + 1) / 2)
    assert plane.selected == 0 and plane.clicked == pytest.approx((x, y))
    touch(plane.view, 0.99, 0.01)
    assert plane.selected == -1 and plane.clicked == pytest.approx((1.96, -1.96))


def test_a_plane_of_a_line_has_the_graph_and_leaves_what_does_not_fit() -> None:
    line = preset("alternating-line", n=4)
    plane = Plane(line, network=maximum_margin(line.x, line.y).net)
    assert plane.view.frame["flat"] is True and "graph" in plane.view.frame
    plane.dataset = CIRCLE  # the network is still that of the line
    assert "graph" not in plane.view.frame and len(plane.view.frame["points"]) == 6
    plane.dataset = empty(2)
    plane.claims = ([[0.5, 0.5]], [1])
    assert "claims" in plane.view.frame
    with pytest.raises(TraitError, match="expected a Network; got str"):
        plane.network = "weights"
    assert plane.network.d == 1


def trained_states(steps: int = 40) -> tuple[Dataset, Any]:
    config = TrainConfig(widths=(8,), steps=steps)
    first = training.init(CIRCLE, config, torch.Generator().manual_seed(0))
    return CIRCLE, training.iterate(CIRCLE, first, config)


def test_what_plays_drives_every_view_that_observes_it() -> None:
    data, states = trained_states()
    play, plane, margins = Play(states), Plane(data), Margins(data)
    for view in (plane, margins):
        dlink((play, "state"), (view, "state"))
    play.step(9)
    assert play.t == play.state.t == 10 and not play.over
    assert plane.network is margins.network is play.state.net
    assert plane.view.frame["map"].size and margins.view.shown.tips
    send(play.view, kind="seek", value=0.5)
    assert play.t == 5 and plane.network is play.state.net
    send(play.view, kind="steps", value=7)
    assert play.t == 12  # the kept ones, then new ones
    play.play()  # no loop runs here: to the end
    assert play.t == 40 and play.over and not play.playing
    assert play.view.state["where"] == "step 40 of 40"
    send(play.view, kind="reset", value=None)
    assert play.t == 1


def test_any_states_are_played_each_at_its_place_and_a_wrong_speed_is_refused() -> None:
    play = Play(iter("abc"))
    assert (play.state, play.t) == ("a", 0)
    play.step()
    assert (play.state, play.t) == ("b", 1)
    with pytest.raises(TraitError, match="speed"):
        play.speed = -1.0
    send(play.view, kind="speed", value=2)
    assert play.speed == 10.0
    play.step(5)
    assert (play.state, play.t, play.over) == ("c", 2, True)


def test_states_that_fail_stop_the_play_and_say_why() -> None:
    def states() -> Iterator[int]:
        yield 0
        raise ValueError("exhausted")

    async def watch() -> Play:
        play = Play(states())
        play.play()
        await asyncio.sleep(0.2)
        return play

    play = asyncio.run(watch())
    assert not play.playing and play.state == 0
    assert "exhausted" in play.view.state["where"]
    with pytest.raises(ValueError, match="exhausted"):
        Play(states()).step()


def test_in_a_loop_play_goes_on_by_itself_until_it_is_paused() -> None:
    async def watch() -> tuple[int, int, bool]:
        play = Play(iter(range(10**9)), speed=float("inf"))
        play.play()
        while play.t < 50:
            await asyncio.sleep(0.01)
        play.pause()
        await asyncio.sleep(0.1)
        then = play.t
        await asyncio.sleep(0.1)
        return then, play.t, play.playing

    then, now, playing = asyncio.run(watch())
    assert then == now >= 50 and not playing


def test_recall_counts_what_claims_meet_within_the_radius_that_is_dragged() -> None:
    recall = Recall(CIRCLE)
    assert recall.found == 0
    recall.claims = (CIRCLE.x + 0.05, CIRCLE.y)
    assert recall.found == 0
    send(recall.view.curve, kind="handle", at=0.2)
    assert recall.radius == pytest.approx(0.2) and recall.found == 6
    few = "6 of 6; unseen points on average "
    assert recall.view.curve.shown.note.startswith(f"{few}0")  # of the sets that it makes
    recall.unseen = preset("alternating-circle", n=6, seed=3)
    assert recall.view.curve.shown.note == f"{few}6"
    send(recall.view.dots, kind="hover", id=4)
    assert recall.selected == 4
    for name, value in (("radius", 9.0), ("unseen", 3), ("claims", "all")):
        before = getattr(recall, name)
        with pytest.raises(TraitError, match=name):
            setattr(recall, name, value)
        assert getattr(recall, name) is before


def test_the_handle_of_a_landscape_is_a_trait_and_an_attack_ends_somewhere() -> None:
    triangle = Landscape(Target.of(maximum_margin(CIRCLE.x, CIRCLE.y).net, 1.0), CIRCLE)
    panel = triangle.panels[0]
    noise = triangle.energy
    triangle.start = (1, 0, 0)
    assert triangle.energy < 1e-6 < noise and panel.view.handle == (1.0, 0.0, 0.0)
    send(panel.view, kind="handle", weights=[0.5, 0.5, 0.0], number=1)
    assert triangle.start == (0.5, 0.5, 0.0)
    for given in ((0.5, 0.5, 0.5), (1.5, -0.5, 0.0), (1.0, 0.0)):
        with pytest.raises(TraitError, match="start"):
            triangle.start = given
        assert triangle.start == (0.5, 0.5, 0.0) == panel.view.handle
    assert triangle.energies.shape[0] > 2 and triangle.end is None
    triangle.session.attack_config = replace(triangle.session.attack_config, steps=20)
    triangle.start = (0.9, 0.1, 0.0)
    press(panel.here, "go")
    assert triangle.end.x.shape == (12, 2) and triangle.session.frame.t >= 20
    triangle.close()


def test_a_landscape_needs_points_and_weights_with_energies() -> None:
    target = Target.of(maximum_margin(CIRCLE.x, CIRCLE.y).net, 1.0)
    with pytest.raises(ValueError, match="expected a Dataset"):
        Landscape(target, 3)


@pytest.mark.parametrize("name", widgets.__all__)
def test_every_widget_shows_an_example_that_holds(name: str) -> None:
    made = getattr(widgets, name)
    examples = doctest.DocTestFinder(recurse=False).find(made, name, globs={})
    runner = doctest.DocTestRunner(verbose=False)
    assert examples and examples[0].examples
    assert runner.run(examples[0]).failed == 0


def test_a_mirror_holds_what_the_boxes_of_a_widget_hold() -> None:
    landscape = Landscape(Target.of(maximum_margin(CIRCLE.x, CIRCLE.y).net, 1.0), CIRCLE)
    mirror = getattr(landscape, ASKED_BY_MARIMO)()

    def models(part: Any) -> list[str]:
        _, _, held = part
        if isinstance(held, list):
            return [name for one in held for name in models(one)]
        return [held["model"]] if isinstance(held, dict) else []

    def views(box: Any) -> list[str]:
        held = getattr(box, "children", None)
        if held is None:
            return [f"anywidget:{box.model_id}"] if isinstance(box, AnyWidget) else []
        return [name for one in held for name in views(one)]

    before = models(mirror.parts)
    assert before == views(landscape) and len(before) > 7
    assert {"widget-box", "mx-app", "mx-alone"} <= set(mirror.parts[0])
    send(landscape.panels[0].further, kind="set", value=["more", True])
    assert models(mirror.parts) == views(landscape) != before
    landscape.close()
