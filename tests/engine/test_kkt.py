"""The KKT reconstruction against the published loss, closed-form KKT points and its own laws."""

from __future__ import annotations

import math
import sys
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.claims import MERGE_RADIUS, claims, merge_candidates
from explorer.engine.attacks.descent import steepness
from explorer.engine.attacks.kkt import KKTConfig, KKTState, Start
from explorer.engine.attacks.kkt.loss import evaluate
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.kernels.reference import signals_at, stationarity
from explorer.engine.network import Network, init_network, phi, preactivations, scaled_network
from explorer.engine.scoring import score
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from tests.engine import draws
from tests.engine.closed_forms import chains, one_neuron_per_point, tensor, three_at_120
from tests.engine.draws import draw, published_phi, rng, uniform

PLAIN = KKTConfig(
    m=6, steps=40, multipliers="joint", relu_alpha=9.0, relu_alpha_start=None, weight_margin=0.0,
    merge_angle=0.0, deep_alpha=0.0,
)  # fmt: skip
WIDTHS = [(7,), (6, 4), (5, 3, 4)]
OBTUSE = {
    "two layers": three_at_120([1.0, 1.0, -1.0]),
    "two layers, 3-D": one_neuron_per_point(
        [[2.0, 0.0, 0.1], [-1.5, 1.8, 0.0], [-1.5, -1.9, 0.3]], [-1.0, 1.0, 1.0]
    ),
    # more points would leave neurons of the second layer at 0, where sigmoid says 1/2, not 0
    "four layers": chains([[2.0, 0.5]], [-1.0], 4),
}


def make(widths, seed=0, bias=True):
    return draws.make(widths, seed, bias, scale=0.8)


def begin(target, config, x, y, lam=None, seed=3):
    state = kkt.init(target, config, rng(seed), Start(x, y))
    if lam is None:
        return state
    return evaluate(target, config, 0, x, y, lam, state.moments)


def last(target, state, config):
    for following in kkt.iterate(target, state, config):
        state = following
    return state


def published(net, x, y, lam_code, alpha, lam_min_code):
    """Their code: grad_outputs 1 / m, squared hinges, weight 5, double backward."""
    ps = [p.detach().clone().requires_grad_() for p in net.parameters]
    x, lam_code = x.clone().requires_grad_(), lam_code.clone().requires_grad_()
    values = published_phi(net.with_parameters(ps), x, alpha) * y * lam_code
    ones = torch.full_like(values, 1 / len(x))
    grads = torch.autograd.grad(values, ps, grad_outputs=ones, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True))
    loss = loss + (x - 1).relu().square().sum() + (-1 - x).relu().square().sum()
    loss = loss + 5 * (lam_min_code - lam_code).relu().square().sum()
    return loss.detach(), *torch.autograd.grad(loss, (x, lam_code))


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_published_loss_and_its_double_backward(widths, bias):
    target, m, lam_min = Target(make(widths, bias=bias)), 6, 0.4
    rho2, mass = float(target.net.rho) ** 2, target.mass
    config = replace(
        PLAIN, prior=1.0, weight_prior=1 / rho2, weight_dual=5 * mass**2 / rho2,
        lam_min=lam_min / mass,
    )  # fmt: skip
    x, y = 1.3 * draw(m, 2), torch.tensor([1.0, -1, -1, 1, 1, -1], dtype=torch.float64)
    lam_code = uniform(m, seed=5)
    loss, grad_x, grad_lam = published(target.net, x, y, lam_code, 9.0, lam_min)
    state = begin(target, config, x, y, lam_code / m)
    assert (x.abs() > 1).any() and (lam_code < lam_min).any()  # every term has its say
    torch.testing.assert_close(state.loss * rho2, loss, rtol=1e-10, atol=0)
    torch.testing.assert_close(state.grad_x * rho2, grad_x, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(state.grad_lam * rho2 / m, grad_lam, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", OBTUSE)
def test_the_truth_has_no_loss(name):
    known = OBTUSE[name]
    target = Target.of(known.net, 1.0)
    sharp = replace(PLAIN, relu_alpha=1e4, weight_margin=1.0)
    state = begin(target, sharp, known.x, known.y, known.lam)
    assert float(state.l_stationary) < 1e-20
    assert float(state.l_margin) < 1e-20
    assert float(state.grad_x.abs().max()) < 1e-9
    assert math.isclose(target.mass, float(known.lam.sum()), rel_tol=1e-12)


@pytest.mark.parametrize("name", OBTUSE)
def test_projection_finds_the_multipliers_of_the_truth(name):
    known = OBTUSE[name]
    sharp = replace(PLAIN, relu_alpha=1e4, multipliers="projected")
    state = begin(Target(known.net), sharp, known.x, known.y)
    torch.testing.assert_close(state.lam, known.lam, rtol=1e-6, atol=1e-8)


def test_a_candidate_near_the_truth_walks_back():
    known = OBTUSE["two layers"]
    target, config = Target(known.net), replace(PLAIN, multipliers="projected", steps=300)
    config = replace(config, relu_alpha=100.0, weight_margin=0.4)
    x = known.x + 0.1 * draw(3, 2)
    final = last(target, begin(target, config, x, known.y), config)
    assert float(final.l_stationary) < 1e-4
    assert float((phi(known.net, final.x) * known.y - 1).abs().max()) < 0.01


@given(seed=st.integers(0, 50), widths=st.sampled_from(WIDTHS))
def test_the_order_of_candidates_does_not_matter(seed, widths):
    target, x, y = Target(make(widths)), draw(6, 2, seed=seed), tensor([1.0, -1, 1, -1, -1, 1])
    lam, order = draw(6, seed=seed + 1).abs(), torch.randperm(6, generator=rng(seed))
    one = begin(target, PLAIN, x, y, lam)
    other = begin(target, PLAIN, x[order], y[order], lam[order])
    torch.testing.assert_close(one.loss, other.loss)
    torch.testing.assert_close(one.grad_x[order], other.grad_x)


@given(seed=st.integers(0, 50))
def test_the_order_of_neurons_does_not_matter(seed):
    net, order = make((6, 4)), torch.randperm(6, generator=rng(seed))
    w, b = net.weights, net.biases
    same = Network((w[0][order], w[1][:, order], w[2]), (b[0][order], None, None))
    x, y, lam = draw(5, 2, seed=seed), tensor([1.0, -1, 1, -1, 1]), draw(5, seed=seed).abs()
    one, other = (begin(Target(n), PLAIN, x, y, lam) for n in (net, same))
    torch.testing.assert_close(one.loss, other.loss)
    torch.testing.assert_close(one.grad_x, other.grad_x)


def split(net, share):
    """Every neuron twice: sqrt(p) and sqrt(1 - p) of itself. Two layers."""
    parts = [math.sqrt(share), math.sqrt(1 - share)]
    w, b, v = net.weights[0], net.biases[0], net.weights[1]
    return Network(
        (torch.cat([p * w for p in parts]), torch.cat([p * v for p in parts], 1)),
        (torch.cat([p * b for p in parts]), None),
    )


@given(share=st.floats(0.05, 0.95), seed=st.integers(0, 20))
def test_split_neurons_are_attacked_as_one(share, seed):
    known = OBTUSE["two layers"]
    config = replace(PLAIN, merge_angle=0.02)
    x, y, lam = draw(5, 2, seed=seed), tensor([1.0, -1, 1, -1, 1]), draw(5, seed=seed).abs()
    one, other = (begin(Target(n), config, x, y, lam) for n in (known.net, split(known.net, share)))
    torch.testing.assert_close(one.loss, other.loss, rtol=1e-9, atol=0)
    torch.testing.assert_close(one.grad_x, other.grad_x, rtol=1e-8, atol=1e-11)


@given(scale=st.floats(0.01, 100), widths=st.sampled_from(WIDTHS))
def test_scale_is_divided_out(scale, widths):
    net = make(widths)
    one = Target.of(net, 0.7)
    other = Target.of(scaled_network(net, scale), 0.7 * scale**net.order)
    torch.testing.assert_close(one.net.theta, other.net.theta, rtol=1e-9, atol=0)
    x, y = draw(6, 2), tensor([1.0, -1, 1, -1, 1, -1])
    a, b = (begin(t, KKTConfig(m=6), x, y) for t in (one, other))
    torch.testing.assert_close(a.lam, b.lam, rtol=1e-5, atol=1e-7)


@given(seed=st.integers(0, 50), widths=st.sampled_from(WIDTHS), floor=st.sampled_from([0.0, 0.3]))
def test_projected_multipliers_are_the_best(seed, widths, floor):
    target, x = Target(make(widths)), draw(6, 2, seed=seed)
    y = tensor([1.0, 1, 1, -1, -1, -1])
    config = replace(PLAIN, lam_min=floor)
    best = begin(target, replace(config, multipliers="projected"), x, y)
    lowest = floor * target.mass / 6
    assert float(best.lam.min()) >= lowest - 1e-12
    for k in range(5):
        other = lowest + draw(6, seed=seed + k).abs() * target.mass / 6
        assert best.l_stationary <= begin(target, config, x, y, other).l_stationary + 1e-9


def test_the_margin_term_and_its_growth():
    target, config = Target(make((6, 4))), replace(PLAIN, steps=2, weight_margin=3.0)
    state = kkt.init(target, config, rng(2))
    y = state.y
    assert torch.equal(
        state.loss, kkt.init(target, replace(config, weight_margin=0.0), rng(2)).loss
    )
    one = kkt.step(target, state, config)
    z = one.x.clone().requires_grad_()
    term = (y * published_phi(target.net, z, 9.0) - 1).square().sum()
    (along,) = torch.autograd.grad(term, z)
    fit = stationarity(target.net, signals_at(target.net, one.x, 9.0), y, one.lam, 9.0)
    rho2 = float(target.net.rho) ** 2
    torch.testing.assert_close(one.l_margin, term.detach())
    torch.testing.assert_close(one.grad_x, fit.grad_x / rho2 + 1.5 * along)


def test_the_start():
    target, config = Target(make((7,))), KKTConfig(m=8, sigma_x=0.5, multipliers="joint")
    state = kkt.init(target, config, rng(4))
    noise = draw(8, 2, seed=4)
    assert torch.equal(state.x, 0.5 * noise)
    assert state.y.tolist() == [1, 1, 1, 1, -1, -1, -1, -1]
    assert float(state.lam.min()) >= 0 and float(state.lam.max()) <= 2 * target.mass / 8
    given_start = kkt.init(target, config, rng(4), Start(noise[:3], state.y[3:6]))
    assert torch.equal(given_start.x, noise[:3]) and given_start.y.tolist() == [1, -1, -1]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_a_run_lowers_the_loss_and_repeats_and_keeps_its_past(optimizer, multipliers):
    target = Target(OBTUSE["two layers"].net)
    config = replace(PLAIN, optimizer=optimizer, multipliers=multipliers, lr_x=0.05, lr_lam=0.05)
    first = kkt.init(target, config, rng(0))
    kept = [first.x.clone(), first.lam.clone()]
    states = list(kkt.iterate(target, first, config))
    assert [s.t for s in states] == list(range(1, 41))
    assert states[-1].loss < 0.9 * first.loss
    assert all(torch.equal(s.y, first.y) for s in states)
    assert torch.equal(first.x, kept[0]) and torch.equal(first.lam, kept[1])
    again = last(target, kkt.init(target, config, rng(0)), config)
    assert torch.equal(again.x, states[-1].x) and torch.equal(again.loss, states[-1].loss)
    assert kkt.terminate(states[-1], config) is Status.FINISHED
    assert kkt.terminate(first, config) is Status.RUNNING


@pytest.mark.parametrize("least", [1e-320, 5e-324])
def test_the_slope_is_defined_for_all_settings_that_are_taken(least):
    """Quotients of numbers near the least double are zero, and nothing divides by them."""
    for name in ("relu_alpha", "relu_alpha_start"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1e-06"):
            KKTConfig(**{name: least})
    config = KKTConfig(relu_alpha=1e-6, relu_alpha_start=1e-6, deep_alpha=least)
    net = init_network(2, (5, 5), generator=rng(0), first_scale=1.0)
    steep = steepness(Target.of(net, 1.0), config)
    for start in (1e-6, None):
        made = replace(config, relu_alpha_start=start)
        assert all(made.alpha(t, steep) > 0 for t in (0, 1, made.steps))


def test_alpha_rises_and_the_rate_falls():
    config = KKTConfig(steps=10, relu_alpha=200, relu_alpha_start=2, decay=0.1)
    assert [config.alpha(t) for t in (0, 5, 10, 11)] == pytest.approx([2, 20, 200, 200])
    assert [config.rate(t) for t in (0, 5, 10, 11)] == pytest.approx([1, 0.55, 0.1, 0.1])
    assert KKTConfig(relu_alpha=7, relu_alpha_start=None).alpha(0) == pytest.approx(7)


def numbers(state):
    for field in fields(KKTState):
        value = getattr(state, field.name)
        yield from (value,) if isinstance(value, torch.Tensor) else ()


def test_divergence_keeps_the_last_finite_state():
    target = Target(make((7,)))
    config = replace(PLAIN, optimizer="sgd", lr_x=1e200, steps=50)
    state = last(target, kkt.init(target, config, rng(0)), config)
    assert kkt.terminate(state, config) is Status.DIVERGED and state.t < 50
    assert all(bool(torch.isfinite(v).all()) for v in numbers(state))


def test_nothing_left_to_do_is_converged():
    """One neuron switched off everywhere: neither x nor lam has a gradient."""
    net = Network((tensor([[1.0], [-1.0]]), tensor([[1.0, 1.0]])), (tensor([0.0, 0.0]), None))
    target = Target(net)
    state = kkt.init(target, replace(PLAIN, m=2), rng(0))
    still = replace(state, grad_x=0 * state.grad_x, grad_lam=0 * state.grad_lam)
    assert kkt.terminate(still, PLAIN) is Status.CONVERGED
    assert kkt.terminate(state, PLAIN) is Status.RUNNING


def test_coincident_candidates_are_one_claim():
    known = OBTUSE["two layers"]
    near = torch.tensor([[0.5 * MERGE_RADIUS, 0.0]], dtype=torch.float64)
    x, y = torch.cat([known.x, known.x[:1] + near]), torch.cat([known.y, known.y[:1]])
    merged = merge_candidates(x, y, tensor([3.0, 2.0, 1.5, 1.0]), MERGE_RADIUS)
    assert merged.lam.tolist() == [4.0, 2.0, 1.5]
    torch.testing.assert_close(merged.x[0], known.x[0] + near[0] / 4)
    flipped = merge_candidates(x, torch.cat([known.y, -known.y[:1]]), 1 + 0 * y, MERGE_RADIUS)
    assert len(flipped.x) == 4


def test_claims_are_on_the_margin_and_weigh_something():
    known = OBTUSE["two layers"]
    target = Target(known.net)
    x = torch.cat([known.x, tensor([[0.3, 0.2], [5.0, 0.0]])])
    y = torch.cat([known.y, tensor([1.0, 1.0])])
    report = claims(target, x, y, tensor([1.0, 1.0, 1e-4, 1.0, 1.0]))
    torch.testing.assert_close(report.x, known.x[:2])
    assert report.y.tolist() == known.y[:2].tolist()
    assert len(claims(target, x, y, 0 * y).x) == 0
    assert claims(target, x[:0], y[:0], y[:0]).x.shape == (0, 2)


def test_report_speaks_of_the_state():
    known, config = OBTUSE["two layers"], replace(PLAIN, relu_alpha=1e4)
    state = begin(Target(known.net), config, known.x, known.y, known.lam)
    report = kkt.report(Target(known.net), state, config)
    torch.testing.assert_close(report.lam, known.lam)
    assert len(report.x) == 3


def test_denormals_are_as_before():
    tiny, target = sys.float_info.min, Target(make((7,)))
    kkt.init(target, PLAIN, rng(0))
    assert tiny * 0.5 > 0


def test_float32_stays_float32():
    target = Target(make((6, 4)).to(dtype=torch.float32))
    config = KKTConfig(m=6, steps=5)
    state = last(target, kkt.init(target, config, rng(0)), config)
    assert state.x.dtype == state.lam.dtype == state.loss.dtype == torch.float32
    assert bool(torch.isfinite(state.loss))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"m": 7}, r"m must be even .*; got 7\. Try 8"),
        ({"m": 0}, "Try 2"),
        ({"multipliers": "free"}, "'free'"),
        ({"optimizer": "lbfgs"}, "'lbfgs'"),
        ({"relu_alpha": 0.0}, "relu_alpha must be at least 1e-06; got 0.0"),
        ({"prior": -1.0}, "prior must be positive, or None; got -1.0"),
        ({"steps": 0}, "steps must be positive"),
        ({"lr_x": math.nan}, "lr_x must be a finite number; got nan"),
        ({"lam_min": -0.1}, "lam_min must not be negative"),
        ({"momentum": 1.0}, "momentum must be from 0 to below 1; got 1.0"),
    ],
)
def test_config_errors(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(KKTConfig(), **changes)


def test_target_errors():
    net = make((7,))
    for margin in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="margin must be positive"):
            Target.of(net, margin)
    with pytest.raises(ValueError, match="margin 1"):
        Target(net, 2.0)
    with pytest.raises(ValueError, match="level must be positive"):
        Target(net, 0.0)
    with pytest.raises(ValueError, match="not all zero"):
        Target(scaled_network(net, 0.0))


def test_start_errors():
    target, y = Target(make((7,))), tensor([1.0, -1.0])
    with pytest.raises(ValueError, match=r"x \(m, 2\)"):
        kkt.init(target, PLAIN, rng(), Start(draw(2, 3), y))
    with pytest.raises(ValueError, match="labels must be -1 or 1"):
        kkt.init(target, PLAIN, rng(), Start(draw(2, 2), 2 * y))
    with pytest.raises(ValueError, match="not finite at the start"):
        kkt.init(target, PLAIN, rng(), Start(math.inf * torch.ones_like(draw(2, 2)), y))


@pytest.mark.parametrize("widths", WIDTHS)
def test_from_three_layers_on_alpha_ends_where_it_ends_for_copies_of_every_neuron(widths) -> None:
    """Each neuron as c equal ones: (w, b) over sqrt(c), and over c where c copies send to it."""
    net, copies = scaled_network(make(widths), 2.0), 4

    def copied(w, first, last):
        w = w if first else w.repeat_interleave(copies, 1) / math.sqrt(copies)
        return w if last else w.repeat_interleave(copies, 0) / math.sqrt(copies)

    depth = len(net.weights)
    weights = tuple(copied(w, i == 0, i == depth - 1) for i, w in enumerate(net.weights))
    biases = tuple(
        None if b is None else b.repeat_interleave(copies) / math.sqrt(copies) for b in net.biases
    )
    wide, x = Network(weights, biases), draw(5, 2)
    torch.testing.assert_close(phi(wide, x), phi(net, x))
    config = KKTConfig(steps=10)
    one, more = (config.alpha(10, steepness(Target(n), config)) for n in (net, wide))
    for narrow, broad in zip(
        preactivations(net, x)[:-1], preactivations(wide, x)[:-1], strict=True
    ):
        if depth == 2:
            assert one == more == config.relu_alpha
        else:
            torch.testing.assert_close(more * broad[:, ::copies], one * narrow)
    plain = replace(config, deep_alpha=0.0)
    assert plain.alpha(10, steepness(Target(wide), plain)) == plain.relu_alpha


def test_three_layers_give_their_points_away() -> None:
    """With alpha ending at 200 for every network, the attack found 12 of these 20."""
    truth, config = preset("alternating-circle", seed=1), TrainConfig(widths=(100, 100))
    state = training.advance(truth, training.init(truth, config, rng(1)), config, 10_000)
    target, attack = Target.of(state.net, state.q_min), KKTConfig()
    end = kkt.advance(target, kkt.init(target, attack, rng(1)), attack, attack.steps)
    claims = kkt.report(target, end, attack)
    assert int(score(truth, claims.x, claims.y, (0.03,)).found) >= 17
