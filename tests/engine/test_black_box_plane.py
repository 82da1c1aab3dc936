"""Lines of neurons from outputs alone: against networks whose lines are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine.arrays import Array
from explorer.engine.attacks.black_box import ATTACK, BlackBoxConfig
from explorer.engine.attacks.black_box.plane import FoundLines, found_lines
from explorer.engine.attacks.target import Target
from explorer.engine.network import Network


def network(seed: int, neurons: int) -> tuple[Array, Array, Array]:
    """First weights, biases and output weights; each line goes through the square."""
    g = np.random.default_rng(seed)
    w, through = g.normal(size=(neurons, 2)), g.uniform(-1, 1, (neurons, 2))
    return w, -(w * through).sum(1), g.normal(size=neurons)


def lines_of(w: Array, b: Array, v: Array) -> Array:
    """Normal, offset and bend of each neuron (k, 4), as they are told."""
    size = np.linalg.norm(w, axis=1)
    turned = size * np.where(w[:, 0] < 0, -1, 1)
    return np.column_stack([w / turned[:, None], -b / turned, v * size])


def table(found: FoundLines) -> Array:
    return np.column_stack([found.normal, found.offset, found.bend])


@pytest.mark.parametrize("neurons", [1, 4, 12])
@pytest.mark.parametrize("seed", range(4))
def test_each_line_is_found_and_no_other(seed: int, neurons: int) -> None:
    w, b, v = network(seed, neurons)
    asked = 0

    def outputs(x: Array) -> Array:
        nonlocal asked
        asked += len(x)
        return np.maximum(x @ w.T + b, 0) @ v + x @ np.array([0.3, -0.7]) + 2.0

    found = found_lines(outputs)
    truth, got = lines_of(w, b, v), table(found)
    away = np.abs(truth[:, None] - got).max(2)
    assert away.shape == (neurons, neurons) and away.min(1).max() < 1e-7
    assert found.queries == asked


def test_neurons_of_one_line_are_one_and_their_bends_add_up() -> None:
    w, b, v = network(7, 3)
    w, b, v = np.vstack([w, -2 * w[:1]]), np.append(b, -2 * b[0]), np.append(v, 0.75)
    found = found_lines(lambda x: np.maximum(x @ w.T + b, 0) @ v)
    truth = lines_of(w[:3], b[:3], v[:3] + np.array([1.5, 0, 0]))
    assert np.abs(truth[:, None] - table(found)).max(2).min(1).max() < 1e-7
    assert len(found.bend) == 3


def test_lines_beyond_the_reach_are_not_found_and_none_is_made_up() -> None:
    assert not len(found_lines(lambda x: x @ np.array([1.0, 2.0])).bend)
    far = found_lines(lambda x: np.maximum(x[:, 0] - 100.0, 0), reach=2.0)
    assert not len(far.bend) and far.normal.shape == (0, 2)
    with pytest.raises(ValueError, match="a probe or more"):
        found_lines(lambda x: x[:, 0], probes=0)
    with pytest.raises(ValueError, match="reach above 0"):
        found_lines(lambda x: x[:, 0], reach=0.0)


def test_the_attack_finds_the_lines_of_a_network_of_the_plane_and_claims_nothing() -> None:
    w, b, v = network(3, 6)
    layers = tuple(torch.from_numpy(part) for part in (w, v[None]))
    target = Target(Network(layers, (torch.from_numpy(b), None)))
    *_, last = ATTACK.states(target, BlackBoxConfig(), torch.Generator())
    away = np.abs(lines_of(w, b, v)[:, None] - last.lines.numpy()).max(2)
    assert away.shape == (6, 6) and away.min(1).max() < 1e-7
    assert last.numbers()["queries"] == len(last.probed) > 0
    assert ATTACK.report(target, last, BlackBoxConfig()).x.shape == (0, 2)
    assert len(ATTACK.shapes(target, last).strong) == 3 * 6 - 1
    *_, short = ATTACK.states(target, BlackBoxConfig(queries=10), torch.Generator())
    assert short.t == 1 and len(short.lines) <= 6
    wide = Target(Network((torch.ones(41, 2).double(), torch.ones(1, 41).double()),
                          (torch.ones(41).double(), None)))  # fmt: skip
    with pytest.raises(ValueError, match="at most 40 neurons"):
        ATTACK.init(wide, BlackBoxConfig(), torch.Generator())
