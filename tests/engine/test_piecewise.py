"""The graph of a network of one input: against Phi itself, by hand, and where it degenerates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine.network import Network, init_network, phi
from explorer.engine.piecewise import describe, refusal
from tests.engine.draws import rng


def rows(*neurons):
    """A network from rows (w, b, v)."""
    table = torch.tensor(neurons, dtype=torch.float64)
    return Network((table[:, :1], table[:, 2:].T), (table[:, 1], None))


def drawn(k, seed):
    g = rng(seed)
    return init_network(1, (k,), generator=g, first_scale=1.0)


@pytest.mark.parametrize(("k", "seed"), [(1, 0), (5, 1), (40, 2)])
def test_it_is_phi(k, seed):
    net = drawn(k, seed)
    line = describe(net)
    x = torch.linspace(-9, 9, 701, dtype=torch.float64)[:, None]
    seen = np.array([line.value(float(t)) for t in x])
    assert np.abs(seen - phi(net, x).numpy()).max() < 1e-12
    assert len(line) == len(line.breaks) + 1 == k + 1
    assert (np.diff(line.breaks) > 0).all()
    assert line.ends(0)[0] == -np.inf
    assert line.ends(k)[1] == np.inf


def test_neurons_in_any_order_and_in_parts_are_the_same_graph():
    net = drawn(7, 3)
    w, b, v = net.weights[0], net.biases[0], net.weights[1][0]
    share = torch.tensor([0.3, 0.7], dtype=torch.float64).sqrt()
    parts = [torch.cat([t * share[0], t * share[1]]) for t in (w[:, 0], b, v)]
    order = torch.randperm(14, generator=rng())
    split = Network((parts[0][order, None], parts[2][None, order]), (parts[1][order], None))
    one, other = describe(net), describe(split)
    for name in ("breaks", "slope", "intercept"):
        assert np.allclose(getattr(one, name), getattr(other, name), atol=1e-12)
    assert (one.right == other.right).all()
    assert (one.left == other.left).all()


def test_the_orientation_is_told():
    line = describe(rows((1, -2, 1), (-1, 1, 1), (1, 0, 1), (-2, 0, 1)))
    assert line.breaks.tolist() == [0.0, 1.0, 2.0]
    assert line.right.tolist() == [True, False, True]
    assert line.left.tolist() == [True, True, False]


def test_breakpoints_that_are_nearly_one_are_one_at_their_mean():
    net = rows((1, -1, 3), (1, -1.0005, 1))
    assert len(describe(net, same=1e-7).breaks) == 2
    (one,) = describe(net, same=1e-3).breaks
    assert one == pytest.approx(1 + 0.0005 / 4)


def test_cancelling_slopes_are_no_breakpoint():
    line = describe(rows((1, -1, 1), (-1, 1, -1), (1, 2, 1)))  # relu(z) - relu(-z) = z
    assert line.breaks.tolist() == [-2.0]
    assert line.slope.tolist() == pytest.approx([1, 2])


def test_without_breakpoints_there_is_one_interval():
    line = describe(rows((0, 1, 2), (0, -3, 5)))
    assert len(line) == 1
    assert line.ends(0) == (-np.inf, np.inf)
    assert line.value(17.0) == 2.0
    assert line.on_margin(0, 2.0, 1e-6)
    assert line.crossings(0, 2.0, 1e-6) == []


def test_crossings_are_clipped_at_the_ends_within_reach():
    line = describe(rows((1, 0, 0.999), (1, -1, -1.998)))  # a peak of 0.999 at 1
    assert line.crossings(1, 1.0, 1e-6) == []
    assert line.crossings(1, 1.0, 0.01) == [(1.0, 1.0)]
    assert line.crossings(2, 1.0, 0.01) == [(1.0, 1.0), (pytest.approx(2 + 1 / 0.999), -1.0)]


def test_what_does_not_fit_is_refused_with_a_remedy():
    flat = init_network(2, (3,), generator=torch.Generator(), first_scale=1.0)
    deep = init_network(1, (3, 4), generator=torch.Generator(), first_scale=1.0)
    bare = init_network(1, (3,), generator=torch.Generator(), first_scale=1.0, bias=False)
    assert "2-3-1" in refusal(flat)
    assert "1-3-4-1" in refusal(deep)
    assert "bias=True" in refusal(bare)
    assert refusal(drawn(3, 0)) == ""
    with pytest.raises(ValueError, match="one input"):
        describe(flat)
