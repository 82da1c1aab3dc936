"""Pictures against what they must show."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image

from explorer.engine.network import Network, init_network, phi
from explorer.page.parts import drawing


def line_net(w: list[list[float]], b: list[float], v: list[float]) -> Network:
    to = lambda a: torch.tensor(a, dtype=torch.float64)  # noqa: E731
    return Network((to(w), to([v])), (to(b), None))


def test_field_is_phi_with_the_first_row_on_top() -> None:
    net = init_network(2, [7], generator=torch.Generator().manual_seed(3), first_scale=1.0)
    values = drawing.field(net, 2.0, size=5)
    corner = torch.tensor([[-1.6, 1.6]], dtype=torch.float64)  # centre of the top left pixel
    assert abs(values[0, 0] - float(phi(net, corner))) < 1e-6


def test_map_is_clear_at_zero_and_coloured_by_sign() -> None:
    png = drawing.map_png(np.array([[-3.0, 0.0, 0.5, 3.0]]))
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[0]
    assert pixels[1, 3] == 0
    assert pixels[0, 0] > pixels[0, 2], "negative is vermilion"
    assert pixels[3, 2] > pixels[3, 0], "positive is blue"
    assert 0 < pixels[2, 3] < pixels[3, 3]


def test_level_line_of_a_linear_function() -> None:
    # relu(x) - relu(-x) = x: the level 0.5 is the upright line x = 0.5
    net = line_net([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0], [1.0, -1.0])
    ((x, y),) = drawing.level_lines(drawing.field(net, 2.0), 2.0, (0.5,))
    seen = np.isfinite(x)
    assert seen.sum() >= 2
    assert np.abs(x[seen] - 0.5).max() < 1e-6
    assert np.ptp(y[seen]) > 3.5


def test_neuron_lines_lie_on_their_neurons_and_inside_the_view() -> None:
    net = init_network(2, [9], generator=torch.Generator().manual_seed(0), first_scale=1.0)
    w, b = net.weights[0].numpy(), net.biases[0].numpy()  # type: ignore[union-attr]
    for x, y in drawing.neuron_lines(net, 2.0):
        for px, py in zip(x[np.isfinite(x)], y[np.isfinite(x)], strict=True):
            assert np.abs(w @ [px, py] + b).min() < 1e-9
            assert max(abs(px), abs(py)) < 2 + 1e-9


def test_bundled_weak_neurons_draw_one_strong_line() -> None:
    # ten weak copies of one line, of either orientation, against one neuron of medium weight
    w = [[0.3, 0.0]] * 5 + [[-0.3, 0.0]] * 5 + [[0.0, 1.0]]
    b = [-0.15] * 5 + [0.15] * 5 + [0.5]
    weak, medium, strong = drawing.neuron_lines(line_net(w, b, [1.0] * 11), 2.0)
    assert np.isfinite(strong[0]).sum() == 4, "both lines are strong together"
    assert not np.ptp(weak[0]) and not np.ptp(medium[0])


def test_neuron_outside_the_view_is_not_drawn() -> None:
    lines = drawing.neuron_lines(line_net([[1.0, 0.0]], [5.0], [1.0]), 2.0)
    assert not any(np.ptp(x) for x, _ in lines)


def test_breakpoints_and_graph_of_a_univariate_net() -> None:
    net = Network(
        (torch.tensor([[2.0], [1.0], [1.0]]).double(), torch.tensor([[1.0, 1.0, 1.0]]).double()),
        (torch.tensor([-1.0, 9.0, 0.0]).double(), None),
    )
    found = np.concatenate(drawing.breakpoints(net, 2.0))
    assert sorted(found) == [0.0, 0.5], "the one at -9 is out of view"
    x, values = drawing.graph(net, 2.0)
    assert np.allclose(values, np.maximum(2 * x - 1, 0) + x + 9 + np.maximum(x, 0))
