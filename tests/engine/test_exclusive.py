"""Points that neurons saw alone, and the span of a change: against trainings of plain PyTorch."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from explorer.engine.attacks.exclusive import distance_to_span, exclusive_points
from explorer.engine.network import Network

D, K = 12, 4


def drawn(n: int, seed: int) -> Tensor:
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def snapshots(
    x: Tensor, steps: int, outputs: int, *widths: int, decay: float = 0.0
) -> list[Network]:
    """The weights before and after a training on these points alone, in plain PyTorch."""
    torch.manual_seed(0)
    sizes = [D, *widths, outputs]
    layers = [nn.Linear(a, b).double() for a, b in pairwise(sizes)]
    model = nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1])
    y = torch.arange(len(x)) % max(outputs, 2)

    def loss() -> Tensor:
        out = model(x)
        if outputs > 1:
            return nn.functional.cross_entropy(out, y)
        return nn.functional.softplus((1 - 2 * y) * out[:, 0]).mean()

    def now() -> Network:
        given = [(m.weight.detach().clone(), m.bias.detach().clone()) for m in layers]
        return Network(tuple(w for w, _ in given), tuple(b for _, b in given))

    before = now()
    descent = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=decay)
    for _ in range(steps):
        descent.zero_grad()
        loss().backward()
        descent.step()
    return [before, now()]


@pytest.mark.parametrize("steps, outputs, widths", [
    (2, 1, (300,)), (30, 1, (300,)), (30, 3, (300,)), (30, 1, (300, 20)), (30, 4, (300, 20, 20)),
])  # fmt: skip
def test_each_point_of_a_short_training_is_read_and_no_other(
    steps: int, outputs: int, widths: tuple[int, ...]
) -> None:
    x = drawn(K, 1)
    before, after = snapshots(x, steps, outputs, *widths)
    found = exclusive_points(before, after)
    assert found.rank == K
    away = torch.cdist(x, found.x)
    assert away.min(1).values.max() < 1e-8
    if steps > 1 or len(widths) == 1:
        assert away.min(0).values.max() < 1e-8
    assert found.neurons.min() >= 2 and found.neurons.diff().max() <= 0


def test_more_points_than_neurons_can_tell_apart_are_not_read() -> None:
    before, after = snapshots(drawn(D + 8, 2), 30, 1, 20)
    found = exclusive_points(before, after)
    assert found.rank == D + 1 and not len(found.x)


def test_the_change_spans_the_points_of_the_training_and_no_others() -> None:
    x = drawn(K, 3)
    first, last = map(with_biases, snapshots(x, 30, 3, 40))
    assert distance_to_span(first, last, x).max() < 1e-8
    assert distance_to_span(first, last, drawn(50, 4)).min() > 0.1
    first, last = map(with_biases, snapshots(x, 30, 3, 40, decay=0.01))
    assert distance_to_span(first, last, drawn(50, 4)).max() < 1e-8  # all of space


def with_biases(net: Network) -> Tensor:
    assert net.biases[0] is not None
    return torch.cat([net.weights[0], net.biases[0][:, None]], 1)


@pytest.mark.parametrize("rank", [1, K - 1, K, 2 * K])
def test_a_low_rank_update_tells_the_points_if_its_rank_is_their_number(rank: int) -> None:
    x, generator = drawn(K, 5), torch.Generator().manual_seed(6)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    fixed, out, y = (
        normal(60, D) / D**0.5,
        normal(60) / 60**0.5,
        torch.tensor([1.0, -1.0, 1.0, -1.0]),
    )
    first = normal(rank, D)
    low = [first.clone().requires_grad_(), torch.zeros(60, rank).double().requires_grad_()]
    descent = torch.optim.SGD(low, lr=0.1)
    for _ in range(40):
        descent.zero_grad()
        made = torch.relu(x @ (fixed + low[1] @ low[0]).T) @ out
        nn.functional.softplus(-y * made).mean().backward()
        descent.step()
    away = distance_to_span(first, low[0].detach(), x)
    assert bool((away < 1e-6).all()) == (rank >= K)
    assert rank >= K or away.max() > 0.1


def test_what_cannot_be_read_is_refused() -> None:
    net = snapshots(drawn(2, 0), 1, 1, 5)[0]
    wider = snapshots(drawn(2, 0), 1, 1, 6)[0]
    with pytest.raises(ValueError, match="two snapshots of one network"):
        exclusive_points(net, wider)
    bare = Network(net.weights, (None, net.biases[1]))
    with pytest.raises(ValueError, match="bias in the first layer"):
        exclusive_points(bare, bare)
    with pytest.raises(ValueError, match="12 columns"):
        distance_to_span(torch.zeros(3, 5), torch.zeros(3, 5), drawn(2, 0))
    assert not len(exclusive_points(net, net).x) and exclusive_points(net, net).rank == 0
