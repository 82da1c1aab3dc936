"""What the plane is made of against what it must show, at any scale of the data."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from explorer.engine.network import Network, init_network, phi, phi_all
from explorer.research.pictures import fields
from explorer.research.pictures.axes import Axes

PLANES = (Axes(), Axes((1000.0, 2.0), (-30.0, 0.5)), Axes((0.0, 1e-3), (2e-4, 1e-3)))


def line_net(w: list[list[float]], b: list[float], v: list[float]) -> Network:
    to = lambda a: torch.tensor(a, dtype=torch.float64)  # noqa: E731
    return Network((to(w), to([v])), (to(b), None))


def random_net(outputs: int = 1) -> Network:
    made = torch.Generator().manual_seed(3)
    return init_network(2, [9], generator=made, first_scale=1.0, outputs=outputs)


def test_a_page_does_not_grow_with_every_zoom() -> None:
    first = weakref.ref(fields.samples(4, Axes((0.0, 1.0))))
    for k in range(100):
        fields.samples(4, Axes((0.0, 2.0 + k)))
    gc.collect()
    assert first() is None


def of_data(axes: Axes, shares: np.ndarray) -> np.ndarray:
    return axes.centre + shares * axes.half


@pytest.mark.parametrize("axes", PLANES)
def test_field_is_phi_from_edge_to_edge_with_the_first_row_on_top(axes: Axes) -> None:
    net = random_net()
    values = fields.field(net, axes, size=5)
    for row, column, share in ((0, 0, (-1, 1)), (0, 4, (1, 1)), (2, 2, (0, 0)), (4, 0, (-1, -1))):
        place = torch.from_numpy(of_data(axes, np.array(share, dtype=float)))[None]
        exact = float(phi(net, place))
        assert values[row, column] == pytest.approx(exact, abs=1e-5 * (1 + abs(exact)))


def test_fields_of_all_classes_are_the_outputs() -> None:
    net = random_net(outputs=3)
    values = fields.class_field(net, Axes(), size=7)
    assert values.shape == (3, 7, 7)
    middle = phi_all_at(net, (0.0, 0.0))
    np.testing.assert_allclose(values[:, 3, 3], middle, atol=1e-5)
    lead = fields.leads(values)
    best = values.argmax(0)
    assert (lead.argmax(0) == best).all() and ((lead > 0).sum(0) == 1).all()


def phi_all_at(net: Network, place: tuple[float, float]) -> np.ndarray:
    return phi_all(net, torch.tensor([place], dtype=torch.float64))[0].numpy()


@pytest.mark.parametrize("axes", PLANES)
def test_neuron_lines_lie_on_their_neurons_and_inside_the_view(axes: Axes) -> None:
    net = random_net()
    w, b = net.weights[0].numpy(), net.biases[0].numpy()  # type: ignore[union-attr]
    b = b * axes.half.min() / 20 - w @ axes.centre  # the lines cross this part
    net = Network(net.weights, (torch.from_numpy(b), *net.biases[1:]))
    lines = fields.neuron_lines(net, axes)
    assert len(lines) > 4 and (np.abs(lines[:, :4]) <= 1 + 1e-9).all()
    for end in (lines[:, 0:2], lines[:, 2:4]):
        off = of_data(axes, end) @ w.T + b
        assert np.abs(off).min(1).max() < 1e-9 * (1 + np.abs(axes.centre).max())
    assert (np.diff(lines[:, 4]) >= 0).all() and lines[-1, 4] == 1, "strongest on top"


def test_bundled_weak_neurons_draw_one_strong_line() -> None:
    # ten weak copies of one line, of either orientation, against one neuron of medium weight
    w = [[0.3, 0.0]] * 5 + [[-0.3, 0.0]] * 5 + [[0.0, 1.0]]
    b = [-0.15] * 5 + [0.15] * 5 + [0.5]
    lines = fields.neuron_lines(line_net(w, b, [1.0] * 11), Axes())
    assert len(lines) == 2
    upright = lines[np.abs(lines[:, 0] - lines[:, 2]) < 1e-9]
    assert upright[0, 4] == 1 and upright[0, 0] == pytest.approx(0.25), "strong together, at 0.5"


def test_neuron_outside_the_view_is_not_drawn() -> None:
    net = line_net([[1.0, 0.0]], [5.0], [1.0])
    assert not len(fields.neuron_lines(net, Axes()))
    assert len(fields.neuron_lines(net, Axes((-5.0, 1.0), (0.0, 1.0)))) == 1


def test_breakpoints_and_graph_of_a_univariate_net() -> None:
    net = Network(
        (torch.tensor([[2.0], [1.0], [1.0]]).double(), torch.tensor([[1.0, 1.0, 1.0]]).double()),
        (torch.tensor([-1.0, 9.0, 0.0]).double(), None),
    )
    found = fields.breakpoints(net, Axes())
    assert sorted(2 * found[:, 0]) == [0.0, 0.5], "the one at -9 is out of view"
    assert (found[:, 1] > 0).all() and (found[:, 1] <= 1).all()
    x, heights = fields.graph(net, Axes(), unit=3.0).T
    x = 2 * x
    exact = (np.maximum(2 * x - 1, 0) + x + 9 + np.maximum(x, 0)) / 3
    np.testing.assert_allclose(2 * heights, exact)
    assert heights.max() > 1, "beyond the frame, not clamped to it"
