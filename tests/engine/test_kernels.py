"""Kernels x networks x laws: every program of the stationarity loss against its definition.

The definition is `kernels.reference`, and it is held against torch's own derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy.special import expit
from torch import Tensor

from explorer.engine.attacks import kkt
from explorer.engine.attacks.descent import EPS, steepness
from explorer.engine.attacks.kkt import KKTConfig, KKTState, Start, loops
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.gradients import residual
from explorer.engine.kernels import batched
from explorer.engine.kernels.batched import Alpha, LossPass, Prepared, reused_pass, through
from explorer.engine.kernels.compiled_terms import sigmoid as sigmoid_of
from explorer.engine.kernels.jit import FAST
from explorer.engine.kernels.reference import (
    covector_signals,
    input_gradient,
    normal_equations,
    signals_at,
    stationarity,
    values_at,
)
from explorer.engine.network import Network, init_network
from explorer.engine.optim import BETA_SQUARE
from tests.engine.draws import ModifiedRelu, draw, published_phi, rng, uniform

ALPHA = 9.0
Made = Callable[[Prepared, Tensor, Alpha], LossPass]  # a pass at x (..., m, d)
Values = dict[str, Tensor]


@dataclass(frozen=True)
class Case:
    """A network and how many candidates."""

    d: int
    widths: tuple[int, ...]
    m: int
    bias: str = "first"
    dtype: torch.dtype = torch.float64

    @property
    def net(self) -> Network:
        """First layer with a bias, none, or all."""
        net = init_network(
            self.d, self.widths, generator=rng(0), first_scale=0.7, bias=self.bias != "none"
        )
        if self.bias == "all":
            net = Network(net.weights, tuple(draw(len(w)) for w in net.weights))
        return net.to(dtype=self.dtype)

    @property
    def x(self) -> Tensor:
        """Candidates (m, d)."""
        return draw(self.m, self.d, seed=2).to(self.dtype)

    @property
    def c(self) -> Tensor:
        """Multiplier times label, of both signs (m,)."""
        return (self.y * uniform(self.m, seed=3)).to(self.dtype)

    @property
    def y(self) -> Tensor:
        """Labels (m,)."""
        return torch.where(torch.arange(self.m) < (self.m + 1) // 2, 1.0, -1.0).to(self.dtype)


# The Gram form of a deeper layer's residual is taken where it is cheaper: "wide" takes it, "three
# layers" does not, "four layers" takes both.
CASES = {
    "one neuron": Case(2, (1,), 1),
    "two layers": Case(2, (30,), 7),
    "line": Case(1, (12,), 5),
    "many inputs": Case(65, (20,), 5),
    "wide": Case(3, (40, 50), 6),
    "three layers": Case(3, (4, 5), 11),
    "four layers": Case(5, (20, 30, 40), 4),
    "without bias": Case(2, (30,), 7, "none"),
    "deep without bias": Case(3, (40, 50), 6, "none"),
    "all biases": Case(2, (30,), 7, "all"),
    "deep with all biases": Case(3, (40, 50), 6, "all"),
    "single precision": Case(2, (30,), 7, dtype=torch.float32),
    "deep in single precision": Case(3, (8, 9), 6, dtype=torch.float32),
}


KERNELS: dict[str, Made] = {"fresh arrays": through, "arrays kept": reused_pass}


@pytest.fixture(autouse=True)
def small_strips(monkeypatch):
    """Gram matrices of these few candidates are made in strips too, as those of many are."""
    monkeypatch.setattr(batched, "STRIP", 2)
    monkeypatch.setattr(batched, "TALL", 3)


def table(bias: str = "") -> pytest.MarkDecorator:
    """Every kernel with every network; those of one kind of bias alone."""
    return pytest.mark.parametrize(("made", "case"), [
        pytest.param(made, case, id=f"{kernel}: {name}")
        for kernel, made in KERNELS.items() for name, case in CASES.items()
        if bias in ("", case.bias)
    ])  # fmt: skip


each = table()


def by_kernel(made: Made, net: Network, x: Tensor, c: Tensor, alpha: Alpha = ALPHA) -> Values:
    """All that a pass gives."""
    run = made(Prepared.of(net), x, alpha)
    (gram, inner), phi, slope = run.normal(), run.phi.clone(), run.slope()
    fit = made(Prepared.of(net), x, alpha).fit(c)
    return {"gram": gram, "inner": inner, "phi": phi, "slope": slope, "loss": fit.loss,
            "grad_x": fit.grad_x, "grad_c": fit.grad_c}  # fmt: skip


def by_reference(net: Network, x: Tensor, c: Tensor, alpha: float = ALPHA) -> Values:
    """The same by the definition."""
    at = signals_at(net, x, alpha)
    gram, inner = normal_equations(at)
    fit = stationarity(net, at, torch.ones_like(c), c, alpha)
    return {"gram": gram, "inner": inner, "phi": at.phi, "slope": input_gradient(net, at),
            "loss": fit.loss, "grad_x": fit.grad_x, "grad_c": fit.grad_lam}  # fmt: skip


def check(mine: Values, theirs: Values, dtype: torch.dtype) -> None:
    """Equal to rounding of the largest number there; a sum leaves more of it than its terms."""
    eps = 2e-5 if dtype == torch.float32 else 1e-12
    for name, wanted in theirs.items():
        assert mine[name].dtype == dtype, name
        atol = eps * max(1.0, float(wanted.abs().max()))
        torch.testing.assert_close(
            mine[name], wanted, rtol=eps, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.dtype == torch.float64])
def test_the_definition_is_the_double_backward(case):
    net, alpha = case.net, ALPHA
    ps = [p.detach().clone().requires_grad_() for p in net.parameters]
    x, c = case.x.requires_grad_(), case.c.requires_grad_()
    values = published_phi(net.with_parameters(ps), x, alpha)
    grads = torch.autograd.grad((c * values).sum(), ps, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True))
    grad_x, grad_c = torch.autograd.grad(loss, (x, c))
    (slope,) = torch.autograd.grad(published_phi(net, x, alpha).sum(), x)
    theirs = {"loss": loss.detach(), "grad_x": grad_x, "grad_c": grad_c, "slope": slope,
              "phi": values.detach()}  # fmt: skip
    check(by_reference(net, case.x, case.c), theirs, case.dtype)


@pytest.mark.parametrize("widths", [(7,), (6, 4)])
def test_the_definition_is_the_double_backward_with_several_outputs(widths):
    first = init_network(2, widths, generator=rng(0), first_scale=0.7)
    net = Network((*first.weights[:-1], draw(3, widths[-1])), first.biases)
    x, c, cover = draw(5, 2, seed=2), draw(5, seed=3), draw(5, 3, seed=4)
    at = covector_signals(net, values_at(net, x, ALPHA), cover)
    mine = stationarity(net, at, torch.ones_like(c), c, ALPHA)
    ps = [p.detach().clone().requires_grad_() for p in net.parameters]
    x, c, cover = x.requires_grad_(), c.requires_grad_(), cover.requires_grad_()
    outs = _outputs(net.with_parameters(ps), x)
    grads = torch.autograd.grad((c[:, None] * cover * outs).sum(), ps, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True))
    theirs = torch.autograd.grad(loss, (x, c, cover))
    torch.testing.assert_close(mine.loss, loss.detach(), rtol=1e-12, atol=0)
    for ours, wanted in zip((mine.grad_x, mine.grad_lam, mine.grad_cover), theirs, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="one output; got 3"):
        Prepared.of(net)


def _outputs(net: Network, x: Tensor) -> Tensor:
    """All outputs with the modified ReLU, by torch's own derivatives. x (m, d) -> (m, C)."""
    a = x
    for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        z = a @ w.T if b is None else a @ w.T + b
        a = ModifiedRelu.apply(z, ALPHA) if layer < len(net.weights) - 1 else z
    return a


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_residual_of_the_weights_has_the_loss_as_its_square(case):
    left = residual(case.net, case.x, case.c, lambda z: torch.sigmoid(ALPHA * z))
    loss = by_reference(case.net, case.x, case.c)["loss"]
    torch.testing.assert_close(left.square().sum(), loss, rtol=1e-5, atol=0)


@each
def test_a_kernel_is_the_definition(made, case):
    mine = by_kernel(made, case.net, case.x, case.c)
    check(mine, by_reference(case.net, case.x, case.c), case.dtype)


@each
def test_the_fit_is_scaled_by_its_share(made, case):
    fit = made(Prepared.of(case.net), case.x, ALPHA).fit(case.c, 0.25)
    theirs = by_reference(case.net, case.x, case.c)
    names = ("loss", "grad_x", "grad_c")
    check({k: 4 * getattr(fit, k) for k in names}, {k: theirs[k] for k in names}, case.dtype)


@each
def test_alpha_may_be_a_tensor(made, case):
    """As a program needs it that reads no number back from its device."""
    alpha = torch.tensor(ALPHA, dtype=case.dtype)
    mine = by_kernel(made, case.net, case.x, case.c, alpha)
    check(mine, by_reference(case.net, case.x, case.c), case.dtype)


@each
def test_slopes_of_merged_neurons_are_factors_on_alpha(made, case):
    """Held against plain autograd with an alpha for every neuron."""
    net, c = case.net, case.c.requires_grad_()
    own = tuple(0.5 + torch.rand(k, generator=rng(5)).to(case.dtype) for k in case.widths)
    ps, x = [p.detach().clone().requires_grad_() for p in net.parameters], case.x.requires_grad_()
    a, made_of = x, net.with_parameters(ps)
    for layer, (w, b) in enumerate(zip(made_of.weights, made_of.biases, strict=True)):
        z = a @ w.T if b is None else a @ w.T + b
        a = ModifiedRelu.apply(z, ALPHA * own[layer]) if layer < len(own) else z
    grads = torch.autograd.grad((c * a.squeeze(-1)).sum(), ps, create_graph=True)
    loss = sum((p.detach() - g).square().sum() for p, g in zip(ps, grads, strict=True))
    grad_x, grad_c = torch.autograd.grad(loss, (x, c))
    mine = made(Prepared.of(net, own), case.x, ALPHA).fit(case.c)
    check({k: getattr(mine, k) for k in ("loss", "grad_x", "grad_c")},
          {"loss": loss.detach(), "grad_x": grad_x, "grad_c": grad_c}, case.dtype)  # fmt: skip


@each
def test_the_order_of_candidates_is_the_order_of_gradients(made, case):
    order = torch.randperm(case.m, generator=rng(4))
    mine = by_kernel(made, case.net, case.x[order], case.c[order])
    plain = by_kernel(made, case.net, case.x, case.c)
    rows = {k: v[order] for k, v in plain.items() if k in ("phi", "slope", "grad_x", "grad_c")}
    check(mine, {**rows, "loss": plain["loss"]}, case.dtype)


@each
def test_the_loss_is_a_parabola_in_the_multipliers(made, case):
    """l(t c) = |theta|^2 - 2 t <c, inner> + t^2 c' K c: one pass fits the other."""
    parts = by_kernel(made, case.net, case.x, case.c)
    linear, square = case.c @ parts["inner"], case.c @ parts["gram"] @ case.c
    for t in (0.0, 0.5, -2.0):
        wanted = Prepared.of(case.net).square - 2 * t * linear + t * t * square
        mine = by_kernel(made, case.net, case.x, t * case.c)
        check(mine, {"loss": wanted.to(case.dtype)}, case.dtype)


@table("none")
def test_points_twice_as_far_take_half_the_multipliers(made, case):
    """Without biases grad Phi(2 x) at alpha / 2 is 2 grad Phi(x) at alpha."""
    mine = by_kernel(made, case.net, 2 * case.x, case.c / 2, ALPHA / 2)
    plain = by_kernel(made, case.net, case.x, case.c)
    check(mine, {"loss": plain["loss"], "grad_x": plain["grad_x"] / 2,
                 "grad_c": 2 * plain["grad_c"], "phi": 2 * plain["phi"]}, case.dtype)  # fmt: skip


@each
def test_equal_candidates_are_one_with_the_sum_of_their_multipliers(made, case):
    x = torch.cat([case.x, case.x[:1]])
    c = torch.cat([0.25 * case.c[:1], case.c[1:], 0.75 * case.c[:1]])
    mine, plain = (by_kernel(made, case.net, *v) for v in ((x, c), (case.x, case.c)))
    torch.testing.assert_close(mine["grad_c"][0], mine["grad_c"][-1], rtol=1e-4, atol=1e-4)
    one = mine["grad_x"][:1] + mine["grad_x"][-1:]
    merged = {**mine, "grad_x": torch.cat([one, mine["grad_x"][1:-1]]),
              "grad_c": mine["grad_c"][:-1]}  # fmt: skip
    check(merged, {k: plain[k] for k in ("loss", "grad_x", "grad_c")}, case.dtype)


@each
def test_a_candidate_without_multiplier_explains_nothing_and_is_not_pulled(made, case):
    x, c = torch.cat([case.x, 3 * case.x[:1]]), torch.cat([case.c, torch.zeros(1).to(case.c)])
    mine, plain = (by_kernel(made, case.net, *v) for v in ((x, c), (case.x, case.c)))
    assert not mine["grad_x"][-1].any()
    check(mine, {"loss": plain["loss"]}, case.dtype)


@each
@pytest.mark.parametrize("alpha", [ALPHA, 1e4])
def test_ties_at_kinks_are_those_of_the_definition(made, case, alpha):
    """A neuron whose row is e_1 and whose bias is 0 is exactly at its kink where x_1 is 0.

    So no rounding decides there: the slope is sigmoid(0), 1/2, with whatever alpha.
    """
    w, b = (case.net.weights[0].clone(), case.net.biases[0])
    w[0] = 0.0
    w[0, 0] = 1.0
    b = None if b is None else b.clone().index_fill_(0, torch.tensor([0]), 0.0)
    net = Network((w, *case.net.weights[1:]), (b, *case.net.biases[1:]))
    x = case.x.clone()
    x[:, 0] = 0.0
    first = values_at(net, x, alpha)
    assert not first.values[0][:, 0].any() and bool((first.slopes[0][:, 0] == 0.5).all())
    mine, theirs = by_kernel(made, net, x, case.c, alpha), by_reference(net, x, case.c, alpha)
    check(mine, theirs, case.dtype)


@each
def test_many_starts_at_once_are_each_start_alone(made, case):
    x = torch.stack([case.x, 0.5 * case.x.flip(0), case.x + 1.0])
    c = torch.stack([case.c, 2 * case.c, case.c.flip(0)])
    mine = by_kernel(made, case.net, x, c)
    for i in range(3):
        check({k: v[i] for k, v in mine.items()}, by_reference(case.net, x[i], c[i]), case.dtype)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_arrays_that_are_kept_do_not_remember(case):
    """Other candidates and another alpha before change nothing of a pass."""
    net, theirs = Prepared.of(case.net), by_reference(case.net, case.x, case.c)
    for alpha, x in ((3.0, 2 * case.x), (ALPHA, case.x + 1), (ALPHA, case.x)):
        run = reused_pass(net, x, alpha)
        run.normal()
        run.slope()
        fit = run.fit(case.c)
    mine = {"loss": fit.loss, "grad_x": fit.grad_x, "grad_c": fit.grad_c}
    check(mine, {k: theirs[k] for k in mine}, case.dtype)


# --- Steps: what takes many at once takes those of the definition ------------------------------


def _stepped(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    for _ in range(steps):
        state = kkt.step(target, state, config)
    return state


def _in_block(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    run = Replay(target, state, config)
    run.advance(steps)
    return run.state()


STEPS = {
    "one after another": _stepped,
    "calls": _stepped,
    "in one go": kkt.advance,
    "blocks": _in_block,
}


def by_hand(
    target: Target, first: KKTState, config: KKTConfig, steps: int
) -> tuple[Tensor, Tensor]:
    """x and lam after so many steps on the gradients of the definition: heavy ball, or Adam."""
    net, y, mean = target.net, first.y, target.mass / first.x.shape[0]
    square = float(sum(p.square().sum() for p in net.parameters))
    x, share = first.x.clone(), first.lam / mean
    velocity, second = ([torch.zeros_like(x), torch.zeros_like(share)] for _ in range(2))
    for t in range(steps):
        alpha = config.alpha(t, steepness(target, config))
        fit = stationarity(net, signals_at(net, x, alpha), y, share * mean, alpha)
        low = (config.lam_min - share).clamp_min(0)
        grads = (fit.grad_x / square, fit.grad_lam * mean / square - 2 * config.weight_dual * low)
        moved, beta = [], config.momentum
        for k, (p, grad) in enumerate(zip((x, share), grads, strict=True)):
            rate = (config.lr_x, config.lr_lam)[k] * config.rate(t)
            if config.optimizer == "sgd":
                velocity[k] = beta * velocity[k] - rate * grad
                moved.append(p + velocity[k])
                continue
            velocity[k] = beta * velocity[k] + (1 - beta) * grad
            second[k] = BETA_SQUARE * second[k] + (1 - BETA_SQUARE) * grad.square()
            mean_of = velocity[k] / (1 - beta ** (t + 1))
            root = (second[k] / (1 - BETA_SQUARE ** (t + 1))).sqrt()
            moved.append(p - rate * mean_of / (root + EPS))
        x, share = moved
    return x, share * mean


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_definition(name, how, optimizer, steps, monkeypatch):
    case = CASES[name]
    if how == "calls":
        monkeypatch.setattr(loops, "compiled_module", lambda _: None)
    rate = 0.02 if optimizer == "adam" else 1e-4  # plain descent leaves 65 inputs at once
    config = KKTConfig(
        m=2 * case.m, steps=20, multipliers="joint", optimizer=optimizer, weight_margin=0.0,
        merge_angle=0.0, lam_min=0.4, lr_x=rate, lr_lam=2 * rate, relu_alpha=20.0,
    )  # fmt: skip
    target = Target(case.net) if case.bias != "all" else Target.of(case.net, 1.0)
    first = kkt.init(target, config, rng(1), Start(case.x, case.y))
    x, lam = by_hand(target, first, config, steps)
    after = STEPS[how](target, first, config, steps)
    assert after.t == steps and not torch.equal(after.x, first.x)
    eps = 1e-4 if case.dtype == torch.float32 else 1e-9
    torch.testing.assert_close(after.x, x, rtol=eps, atol=eps)
    torch.testing.assert_close(after.lam, lam, rtol=eps, atol=eps * target.mass)


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("name", ["two layers", "wide", "many inputs"])
def test_steps_keep_the_order_of_candidates(name, how):
    case = CASES[name]
    order = torch.randperm(case.m, generator=rng(4))
    config = KKTConfig(m=4, steps=20, multipliers="joint", lam_start=0.0, lam_min=0.3)
    ends = []
    for chosen in (torch.arange(case.m), order):
        target = Target(case.net)
        first = kkt.init(target, config, rng(1), Start(case.x[chosen], case.y[chosen]))
        ends.append(STEPS[how](target, first, config, 5))
    torch.testing.assert_close(ends[1].x, ends[0].x[order], rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(ends[1].lam, ends[0].lam[order], rtol=1e-8, atol=1e-9)


# --- The sigmoid of compiled loops ---------------------------------------------------------------


@njit(**FAST)
def _all(z, out):
    for i in range(len(z)):
        out[i] = sigmoid_of(z[i])


def sigmoid(z):
    z, out = np.asarray(z, dtype=np.float64), np.empty(len(z))
    _all(z, out)
    return out


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=40))
def test_the_sigmoid_is_that_of_scipy(z):
    z = np.array(z)
    made, true = sigmoid(z), expit(np.clip(z, -708, 708))
    assert (abs(made - true) <= np.where(abs(z) < 40, 3e-15, 3e-14) * true).all()


def test_the_sigmoid_at_the_ends_and_of_what_is_no_number():
    assert sigmoid([np.inf, 40.0, 0.0]).tolist() == [1.0, 1.0, 0.5]
    assert 0 <= sigmoid([-np.inf])[0] < 1e-307
    assert np.isnan(sigmoid([np.nan])).all()
