"""Widgets that stand alone: traits that are checked, linked and drawn, and events as traits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ipywidgets import Widget, dlink, link
from traitlets import TraitError

from explorer.engine.data import Dataset, empty, preset
from explorer.engine.exact import maximum_margin
from explorer.page.plane.marks import FOUND, WRONG
from explorer.widgets import DrawingPad, Plane
from tests.page.pages import send

CIRCLE = preset("alternating-circle", n=6)


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
