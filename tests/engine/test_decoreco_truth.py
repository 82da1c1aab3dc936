"""DecoReco from the truth of networks trained with weight decay: it stays, held-out points move."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import decoreco
from explorer.engine.attacks import decoreco as decoreco_fit
from explorer.engine.attacks.decoreco import DecoRecoConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers, rivals
from explorer.engine.data import heldout, preset
from explorer.engine.kernels.reference import covector_signals, normal_equations, values_at
from explorer.engine.network import phi_all
from explorer.engine.nonnegative import cone_coefficients, signed_coefficients
from explorer.engine.weight_decay import DecayConfig, settle
from tests.engine.draws import draw, rng
from tests.engine.test_classes import make

torch.set_num_threads(1)

# The cross-entropy's identity has non-negative multipliers of all rivals, at no margin.
STAY = DecoRecoConfig(
    steps=50, relu_alpha=1e4, relu_alpha_start=None, weight_margin=0.0, prior=None
)


def settled(name, width):
    truth = preset(name, seed=0)
    return truth, settle(truth.x, truth.y, DecayConfig(widths=(width,)), rng(0), truth.outputs)


def moved(net, data, config):
    """How far each candidate with weight moves, and the loss at the start."""
    first = decoreco.init(Target(net), config, rng(0), Start(data.x, data.y))
    last = deque(decoreco.iterate(Target(net), first, config), maxlen=1).pop()
    carries = last.lam > 0.1 * last.lam.mean()
    return (last.x - data.x).norm(dim=1)[carries], float(first.l_stationary)


@pytest.mark.parametrize(("name", "width"), [("three-blobs", 3), ("pie", 3)])
def test_the_truth_stays_and_other_points_do_not(name, width):
    truth, done = settled(name, width)
    far, loss = moved(done.net, truth, STAY)
    assert loss < 1e-25 and len(far) > truth.n // 2
    assert float(far.max()) < 1e-3
    far, loss = moved(done.net, heldout(truth), STAY)
    assert loss > 1e-5 and float(far.max()) > 0.1


def test_multipliers_of_outputs_stay_as_well():
    truth, done = settled("three-blobs", 3)
    far, loss = moved(done.net, truth, replace(STAY, contribution="outputs", steps=60))
    assert loss < 1e-25 and float(far.max()) < 1e-3


def test_the_published_optimiser_stays_at_the_default_slope():
    truth, done = settled("three-blobs", 3)
    far, _ = moved(done.net, truth, replace(STAY, optimizer="sgd", relu_alpha=200.0))
    assert float(far.max()) < 1e-3
    far, _ = moved(done.net, heldout(truth), replace(STAY, optimizer="sgd", relu_alpha=200.0))
    assert float(far.max()) > 0.1


def test_cross_entropy_gives_each_rival_its_probability():
    truth, done = settled("three-blobs", 3)
    share = torch.softmax(phi_all(done.net, truth.x), 1)
    index = class_numbers(truth.y) - 1
    own = torch.nn.functional.one_hot(index, 3).bool()
    assert torch.allclose(done.lam[~own], -share[~own] / (truth.n * 0.003), rtol=1e-9)
    assert torch.allclose(done.lam.sum(1), torch.zeros(truth.n).double(), atol=1e-9)


@pytest.mark.parametrize("signed", [True, False])
def test_multipliers_are_those_of_the_normal_equations_where_much_is_left(signed):
    net, x = make((6, 5), 3), draw(4, 2)
    at = values_at(net, x, 50.0)
    y = torch.tensor([1.0, -1, 3, 3], dtype=torch.float64)
    basis = rivals(at.values[-1], y, float("inf"))[1].reshape(4, 2, 3)
    rows = covector_signals(net, at, basis.flatten(0, 1), torch.arange(4).repeat_interleave(2))
    equations = normal_equations(rows)
    plain = signed_coefficients(*equations) if signed else cone_coefficients(*equations, 0.0)
    assert torch.equal(
        decoreco_fit.multipliers_at(
            net, at, basis, 0.0, signed, 50.0, float(net.rho) ** 2
        ).flatten(),
        plain,
    )


def test_a_loss_of_rounding_moves_nothing_and_the_run_goes_on():
    truth, done = settled("three-blobs", 3)
    first = decoreco.init(Target(done.net), STAY, rng(0), Start(truth.x, truth.y))
    assert float(first.loss) < 1e-24 and bool(first.grad_x.any())
    last = deque(decoreco.iterate(Target(done.net), first, STAY), maxlen=1).pop()
    assert torch.equal(last.x, truth.x) and last.t == STAY.steps
