"""DecoReco against autograd, closed KKT points, and the identity of weight decay."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import relu

from benchmarks.simplex import simplex
from explorer.engine.attacks import decoreco, kkt
from explorer.engine.attacks import decoreco as decoreco_fit
from explorer.engine.attacks.decoreco import DecoRecoConfig, Start
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Light, certify
from explorer.engine.classes import class_numbers, margins, rivals
from explorer.engine.data import heldout, preset
from explorer.engine.kernels.reference import covector_signals, normal_equations, values_at
from explorer.engine.network import Network, phi_all
from explorer.engine.nonnegative import cone_coefficients, signed_coefficients
from explorer.engine.status import Status
from explorer.engine.weight_decay import DecayConfig, settle
from tests.engine.draws import draw, published_phi, rng
from tests.engine.test_classes import make

Y = torch.tensor([1.0, -1, 3, 3, 1], dtype=torch.float64)
PLAIN = DecoRecoConfig(
    m=6, steps=40, multipliers="joint", relu_alpha=9.0, relu_alpha_start=None, weight_margin=0.0,
    merge_angle=0.0, deep_alpha=0.0,
)  # fmt: skip


def biased(widths, outputs, seed=2):
    """A network with a bias in every layer."""
    net = make(widths, outputs, seed)
    biases = tuple(draw(len(w), seed=seed + i) for i, w in enumerate(net.weights))
    return Network(net.weights, biases)


def outputs_of(net, x, alpha):
    """All outputs under the modified ReLU, (m, C)."""
    return published_phi(net, x, alpha).reshape(len(x), -1)


def double_backward(net, x, y, coef, config):
    """The loss of the docstring by plain autograd, with its gradients on x and coef."""
    ps = [p.detach().clone().requires_grad_() for p in net.parameters]
    x, coef = x.clone().requires_grad_(), coef.clone().requires_grad_()
    values = outputs_of(net.with_parameters(ps), x, config.relu_alpha)
    index = class_numbers(y) - 1
    if config.contribution == "outputs":
        total = (coef * values).sum()
    elif net.outputs == 1:
        total = (coef * y[:, None] * values).sum()
    elif config.rivals == "all":
        apart = values.gather(1, index[:, None]) - values
        keep = torch.ones_like(values, dtype=torch.bool).scatter(1, index[:, None], False)
        total = (coef * apart[keep].reshape(len(x), -1)).sum()
    else:
        others = values.scatter(1, index[:, None], -math.inf)
        apart = values.gather(1, index[:, None]).squeeze(1) - others.max(1).values
        total = (coef[:, 0] * apart).sum()
    grads = torch.autograd.grad(total, ps, create_graph=True)
    rho2 = net.theta.square().sum()
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True)) / rho2
    loss = loss + config.weight_prior * relu(x.abs() - config.prior).square().sum()
    if config.contribution == "margin":
        unit = float(rho2) / len(net.weights) / coef.numel()
        loss = loss + config.weight_dual * relu(config.lam_min - coef / unit).square().sum()
    return loss.detach(), *torch.autograd.grad(loss, (x, coef))


@pytest.mark.parametrize("outputs", [1, 3, 4])
@pytest.mark.parametrize("widths", [(7,), (6, 5)])
@pytest.mark.parametrize(
    ("contribution", "rivals"), [("margin", "runner-up"), ("margin", "all"), ("outputs", "all")]
)
def test_gradients_are_those_of_autograd(outputs, widths, contribution, rivals):
    net = biased(widths, outputs) if contribution == "outputs" else make(widths, outputs)
    config = replace(PLAIN, contribution=contribution, rivals=rivals, prior=0.8, lam_min=0.5)
    x, y = 1.3 * draw(5, 2), torch.where(Y > outputs, -1.0, Y)
    state = decoreco.init(Target(net), config, rng(3), Start(x, y))
    loss, grad_x, grad_coef = double_backward(net, x, y, state.coef, config)
    torch.testing.assert_close(state.loss, loss, rtol=1e-10, atol=0)
    torch.testing.assert_close(state.grad_x, grad_x, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(state.grad_coef, grad_coef, rtol=1e-10, atol=1e-11)


def test_the_margin_term_has_its_gradient():
    target, x = Target(make((6, 5), 3)), draw(5, 2)
    config = replace(PLAIN, weight_margin=0.7)
    state = decoreco.init(target, config, rng(3), Start(x, Y))
    still = replace(state, t=39, loss=state.loss * 0)  # a loss of 0 moves nothing
    with_it, without = (
        decoreco.step(target, still, c) for c in (config, replace(config, weight_margin=0.0))
    )
    assert with_it.t == 40 and torch.equal(with_it.x, x)  # the weight rises until here
    z = x.clone().requires_grad_()
    values = outputs_of(target.net, z, config.relu_alpha)
    expected = torch.autograd.grad((margins(values, Y) - 1).square().sum(), z)[0]
    torch.testing.assert_close(with_it.grad_x - without.grad_x, 0.7 * expected)


def unit(target, state):
    return target.mass / state.coef.numel()


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_with_one_output_it_is_the_kkt_reconstruction(multipliers):
    target, x = Target(make((7,), 1)), draw(6, 2)
    y = torch.tensor([1.0, -1, -1, 1, 1, -1], dtype=torch.float64)
    config = replace(PLAIN, multipliers=multipliers, weight_margin=0.3, lam_min=0.1)
    twin = KKTConfig(
        m=6, steps=40, multipliers=multipliers, relu_alpha=9.0, relu_alpha_start=None,
        weight_margin=0.3, merge_angle=0.0, lam_min=0.1, deep_alpha=0.0,
    )  # fmt: skip
    a = decoreco.init(target, config, rng(3), Start(x, y))
    b = kkt.init(target, twin, rng(3), Start(x, y))
    for _ in range(5):
        a, b = decoreco.step(target, a, config), kkt.step(target, b, twin)
    torch.testing.assert_close(a.x, b.x, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(a.lam, b.lam, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(a.loss, b.loss)


def test_projected_multipliers_leave_no_descent_direction():
    target = Target(make((6, 5), 4))
    for contribution in ("margin", "outputs"):
        config = replace(PLAIN, multipliers="projected", contribution=contribution)
        state = decoreco.init(target, config, rng(3), Start(draw(5, 2), Y))
        slope = state.grad_coef * unit(target, state)
        free = state.coef > 0 if contribution == "margin" else torch.ones_like(slope).bool()
        assert float(slope[free].abs().max()) < 1e-6
        assert bool((slope[~free] > -1e-6).all())


def test_labels_are_shared_fairly_and_states_repeat():
    target, config = Target(make((7,), 3)), DecoRecoConfig(m=7, steps=3)
    one, two = (decoreco.init(target, config, rng(5)) for _ in range(2))
    assert torch.equal(one.x, two.x) and torch.equal(one.coef, two.coef)
    assert one.y.tolist() == [1, 1, 1, -1, -1, 3, 3]
    last = list(decoreco.iterate(target, one, config))[-1]
    assert last.t == 3 and decoreco.terminate(last, config) is Status.FINISHED
    assert set(last.numbers()) == {"l_stationary", "l_margin", "l_dual", "l_prior", "loss"}


def test_labels_of_outputs_follow_the_pull():
    target = Target(biased((7,), 3))
    state = decoreco.init(target, DecoRecoConfig(m=6, contribution="outputs"), rng(1))
    assert torch.equal(class_numbers(state.y) - 1, state.pull.argmax(1))


def test_published_settings_in_our_units():
    target = Target(make((7,), 3))
    rho2, mass = float(target.net.rho) ** 2, target.mass
    config = DecoRecoConfig.from_paper(target, "multiclass", m=9)
    assert (config.m, config.contribution, config.rivals) == (9, "margin", "runner-up")
    assert math.isclose(config.lr_lam, 0.479 * rho2 / mass**2)
    assert math.isclose(config.lam_min, 0.203 / mass) and config.relu_alpha == 39.5
    assert DecoRecoConfig.from_paper(target, "regression").contribution == "outputs"
    with pytest.raises(ValueError, match="no published run 'x'"):
        DecoRecoConfig.from_paper(target, "x")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"m": 1}, "at least 2"), ({"rivals": "none"}, "rivals must be one of"),
     ({"lr_x": 0.0}, "lr_x must be positive"), ({"lam_min": -1.0}, "lam_min must not be neg"),
     ({"momentum": 1.0}, "momentum must be from 0 to below 1")],
)  # fmt: skip
def test_settings_that_cannot_run_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(DecoRecoConfig(), **changes)


def test_start_errors():
    target = Target(make((7,), 3))
    with pytest.raises(ValueError, match="labels must be among"):
        decoreco.init(target, PLAIN, rng(), Start(draw(2, 2), torch.tensor([1.0, 4.0])))
    with pytest.raises(ValueError, match=r"x \(m, 2\)"):
        decoreco.init(target, PLAIN, rng(), Start(draw(2, 3), Y[:2]))


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_an_exact_network_keeps_its_truth_with_all_rivals(classes):
    known = simplex(classes, rng(1))
    torch.testing.assert_close(
        margins(phi_all(known.net, known.x), known.y), torch.ones(classes + 1, dtype=torch.float64)
    )
    config = DecoRecoConfig(steps=60, relu_alpha_start=None)
    start = decoreco.init(Target(known.net), config, rng(3), Start(known.x, known.y))
    assert float(start.l_stationary) < 1e-15
    last = list(decoreco.iterate(Target(known.net), start, config))[-1]
    assert float((last.x - known.x).norm(dim=1).max()) < 0.01
    assert math.isclose(float(start.lam.sum()), Target(known.net).mass, rel_tol=1e-6)


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_the_runner_up_alone_leaves_a_known_share(classes):
    known = simplex(classes, rng(2))
    config = DecoRecoConfig(relu_alpha_start=None, rivals="runner-up")
    state = decoreco.init(Target(known.net), config, rng(3), Start(known.x, known.y))
    share = (classes - 2) / (3 * classes - 2)
    assert math.isclose(float(state.l_stationary), share, rel_tol=1e-6)


def test_the_certificate_of_an_exact_network_frees_tied_rivals():
    known = simplex(4, rng(0))
    made = certify(known.net, known.x, known.y, tau=1e-6)
    assert made.residual < 1e-8 and made.light is Light.EXACT
    assert made.residual_strict > 0.4


# --- decoReco from the truth of networks trained with weight decay: it stays, held-out points move

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
