"""The bilevel attack: closed forms, finite differences, the majoriser, and the run from truth."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import hessian, jacobian

from explorer.engine.attacks import bilevel
from explorer.engine.attacks.bilevel import BilevelConfig, BilevelTarget, victim
from explorer.engine.attacks.bilevel.lower import (
    Lower,
    conjugate_gradients,
    exact,
    quasi_newton,
    ridge,
    solve,
)
from explorer.engine.attacks.bilevel.models import Shape
from explorer.engine.attacks.kkt import Start
from explorer.engine.network import phi, with_one
from explorer.engine.optim import Moments
from explorer.engine.status import Status
from tests.engine.draws import rng

MODELS = ("affine", "hidden", "deep")
LOSSES = ("ridge", "logistic")
SOLVERS = ("exact", "cg", "quasi-newton")


def drawn(seed: int = 0, n: int = 7, d: int = 3) -> tuple[torch.Generator, Tensor, Tensor]:
    generator = rng(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    y = torch.where(torch.arange(n) % 3 == 0, 1.0, -1.0).double()
    return generator, x, y


def settings(model: str, loss: str, **more) -> BilevelConfig:
    mu = 0.002 if model == "deep" else 0.05  # more lets all weights of three layers go to zero
    return BilevelConfig(model=model, loss=loss, mu=mu, width=4, beta=6.0, **more)


def energy(lower: Lower, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """E from its definition, without the package's models."""
    shape = lower.shape
    one = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)
    if shape.model == "affine":
        z = one @ theta
    else:
        k, inner = shape.width, shape.width * (shape.d + 1)
        s = torch.log1p(torch.exp(shape.beta * one @ theta[:inner].view(k, -1).T)) / shape.beta
        if shape.model == "deep":
            w = theta[inner : inner + k * (k + 1)].view(k, k + 1)
            a, inner = s @ w[:, :-1].T + w[:, -1], inner + k * (k + 1)
            s = torch.log1p(torch.exp(shape.beta * a)) / shape.beta
        z = s @ theta[inner:-1] + theta[-1]
    loss = (z - y) ** 2 / 2 if lower.loss == "ridge" else torch.log1p(torch.exp(-y * z))
    return loss.mean() + lower.mu / 2 * (theta**2).sum()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_derivative_is_that_of_the_definition(model: str, loss: str) -> None:
    generator, x, y = drawn()
    lower = settings(model, loss).lower(3)
    theta = lower.shape.draw(generator)
    p = torch.randn(lower.shape.size, generator=generator, dtype=torch.float64)
    point = lower.point(theta, x, y)
    dense = hessian(lambda at: energy(lower, at, x, y), theta)

    def slope(at: Tensor, where: Tensor) -> Tensor:
        return jacobian(lambda v: energy(lower, v, where, y), at, create_graph=True)

    torch.testing.assert_close(point.energy, energy(lower, theta, x, y))
    torch.testing.assert_close(point.gradient, slope(theta, x).detach())
    torch.testing.assert_close(point.hessian, dense)
    torch.testing.assert_close(point.product(p), dense @ p)
    torch.testing.assert_close(
        point.mixed_derivative(p), jacobian(lambda at: slope(theta, at) @ p, x)
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_the_affine_minimum_is_where_the_gradient_vanishes(loss: str) -> None:
    generator, x, y = drawn(1)
    lower = settings("affine", loss).lower(3)
    found = solve(lower, x, y, lower.shape.draw(generator))
    assert found.gradient < 1e-10
    again = solve(lower, x, y, found.theta)
    assert again.theta is found.theta  # what is a minimum already is not touched
    if loss == "ridge":
        torch.testing.assert_close(found.theta, ridge(with_one(x), y, lower.mu))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", ["hidden", "deep"])
def test_the_hidden_minimum_is_a_minimum(model: str, loss: str) -> None:
    generator, x, y = drawn(2)
    lower = settings(model, loss).lower(3)
    found = solve(lower, x, y, lower.shape.draw(generator))
    assert found.gradient < 1e-10
    values = torch.linalg.eigvalsh(lower.point(found.theta, x, y).hessian)
    assert float(values[0]) > 0


@pytest.mark.parametrize(
    ("model", "loss", "solver"),
    [
        *product(MODELS, LOSSES, ("exact",)),
        *product(("hidden",), LOSSES, ("cg", "quasi-newton")),
    ],
)
def test_the_implicit_gradient_is_that_of_finite_differences(
    model: str, loss: str, solver: str
) -> None:
    generator, truth, y = drawn(3)
    config = settings(model, loss, solver=solver, solver_tol=1e-12)
    target = victim(truth, y, config, generator)
    x = truth + 0.1 * torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    state = bilevel.init(target, config, generator, Start(x, y))
    assert float(state.l_upper) > 1e-4

    def value(at: Tensor) -> float:
        theta = solve(target.lower, at, y, state.theta, tol=1e-13).theta
        return float((theta - target.theta).square().sum() / 2)

    h = 2e-4
    for i, j in ((2, 1), (6, 2)):  # central differences of fourth order
        e = torch.zeros_like(x)
        e[i, j] = h
        near, far = value(x + e) - value(x - e), value(x + 2 * e) - value(x - 2 * e)
        estimate = (8 * near - far) / (12 * h)
        scale = float(state.grad_x.abs().max())
        assert abs(estimate - float(state.grad_x[i, j])) < 1e-6 * scale


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_from_the_truth_nothing_moves(model: str, loss: str, optimizer: str) -> None:
    generator, truth, y = drawn(4)
    config = settings(model, loss, optimizer=optimizer)
    target = victim(truth, y, config, generator)
    state = bilevel.init(target, config, generator, Start(truth, y))
    assert float(state.l_upper) == 0 and not bool(state.grad_x.any())
    assert bilevel.terminate(state, config) is Status.CONVERGED
    after = bilevel.step(target, state, config)
    assert torch.equal(after.x, truth) and after.t == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_the_surrogate_bounds_the_upper_loss(loss: str) -> None:
    generator, truth, y = drawn(5, n=9, d=4)
    config = settings("affine", loss)
    target = victim(truth, y, config, generator)
    for scale in (0.01, 0.3, 3.0):
        x = truth + scale * torch.randn(truth.shape, generator=generator, dtype=torch.float64)
        state = bilevel.init(target, config, generator, Start(x, y))
        assert 0 < float(state.l_upper) <= float(state.surrogate) / (2 * config.mu**2)


def test_a_run_explains_the_weights_and_yet_is_elsewhere() -> None:
    # m d = 21 unknowns against P = 4 equations: the zero set of l is a continuum.
    generator, truth, y = drawn(6)
    config = BilevelConfig(loss="ridge", mu=0.05, steps=800, lr_x=0.1)
    target = victim(truth, y, config, generator)
    x = torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    first = bilevel.init(target, config, generator, Start(x, y))
    *_, last = bilevel.ATTACK.iterate(target, first, config)
    assert float(last.l_upper) < 1e-10 * float(first.l_upper)
    assert float((last.x - truth).square().mean().sqrt()) > 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_step_goes_down_whatever_the_solver(solver: str) -> None:
    generator, truth, y = drawn(7, n=8, d=3)
    config = settings("hidden", "logistic", solver=solver, lr_x=1e-3, optimizer="momentum")
    target = victim(truth, y, config, generator)
    x = truth + 0.05 * torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    first = bilevel.init(target, config, generator, Start(x, y))
    after = bilevel.step(target, first, config)
    assert float(after.l_upper) < float(first.l_upper)
    assert after.lower_gradient < 1e-10 and after.implicit < 1e-9
    moved = config.lr_x * first.grad_x / first.grad_x.norm()
    torch.testing.assert_close(after.x, x - moved)


def test_multipliers_are_those_of_weight_decay() -> None:
    # theta = sum_i lam_i y_i grad z(theta; x_i) at any stationary point of E.
    generator, truth, y = drawn(8, n=10, d=2)
    config = settings("hidden", "logistic")
    target = victim(truth, y, config, generator)
    state = bilevel.init(target, config, generator, Start(truth, y))
    pulled = target.lower.shape.at(state.theta, truth).pull(state.lam * y)
    torch.testing.assert_close(pulled, target.theta, rtol=0, atol=1e-8)
    assert bool((state.lam > 0).all())


def test_a_training_that_ends_at_zero_weights_is_refused() -> None:
    generator, _, _ = drawn()
    angle = torch.arange(8, dtype=torch.float64) * torch.pi / 4
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    y = torch.tensor([1.0, -1.0] * 4, dtype=torch.float64)  # no line tells these classes apart
    with pytest.raises(ValueError, match="weight decay"):
        victim(circle, y, BilevelConfig(), generator)


def test_a_hessian_of_too_many_weights_is_refused_by_the_exact_solver_alone() -> None:
    generator, x, y = drawn()
    with pytest.raises(ValueError, match="conjugate gradients"):
        victim(x, y, BilevelConfig(model="deep", width=80), generator)
    assert victim(x, y, settings("deep", "ridge"), generator).theta.shape == (4 * 10 + 1,)


def test_the_network_is_the_limit_of_a_sharp_softplus() -> None:
    generator, x, _ = drawn(9, n=5, d=2)
    for shape in (Shape("affine", 2), Shape("hidden", 2, 3, 1e6), Shape("deep", 2, 3, 1e6)):
        theta = shape.draw(generator)
        target = BilevelTarget(theta, Lower(shape, "ridge", 0.1))
        torch.testing.assert_close(phi(target.net, x), shape.at(theta, x).z, atol=1e-5, rtol=0)


def test_solvers_agree_and_tell_their_residual() -> None:
    generator = rng(10)
    root = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    dense = root @ root.T + 0.1 * torch.eye(12, dtype=torch.float64)
    g = torch.randn(12, generator=generator, dtype=torch.float64)
    reference = torch.linalg.solve(dense, g)
    torch.testing.assert_close(exact(dense, g).p, reference)
    for solved in (
        conjugate_gradients(lambda p: dense @ p, g, 1e-12, 200),
        quasi_newton(lambda p: dense @ p, g, 1e-12, 200, 20),
    ):
        torch.testing.assert_close(solved.p, reference)
        assert solved.residual <= 1e-12 * float(g.norm()) and solved.products < 200
    short = conjugate_gradients(lambda p: dense @ p, g, 1e-12, 3)
    assert short.products == 3
    left = float((dense @ short.p - g).norm())
    assert left == pytest.approx(short.residual)


def test_a_direction_of_no_curvature_ends_the_search() -> None:
    dense = torch.diag(torch.tensor([1.0, -2.0], dtype=torch.float64))
    g = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert conjugate_gradients(lambda p: dense @ p, g, 1e-9, 10).products == 1
    torch.testing.assert_close(exact(dense, g).p, torch.linalg.solve(dense, g))


def test_what_does_not_fit_is_refused() -> None:
    generator, x, y = drawn(11)
    config = settings("affine", "ridge")
    target = victim(x, y, config, generator)
    with pytest.raises(ValueError, match="trained as"):
        bilevel.init(target, replace(config, mu=0.2), generator)
    with pytest.raises(ValueError, match="start needs"):
        bilevel.init(target, config, generator, Start(x[:, :2], y))
    with pytest.raises(ValueError, match="theta must be"):
        BilevelTarget(target.theta[1:], target.lower)
    drawn_state = bilevel.init(target, config, generator)
    assert drawn_state.x.shape == (config.m, 3) and float(drawn_state.y.sum()) == 0
    far = replace(drawn_state, moments=Moments(1, (torch.full_like(drawn_state.x, torch.inf),),
                                               (drawn_state.x,)))  # fmt: skip
    assert bilevel.step(target, far, config).diverged


def test_claims_take_equal_candidates_as_one() -> None:
    generator, x, y = drawn(12)
    config = settings("affine", "logistic")
    target = victim(x, y, config, generator)
    twice = Start(torch.cat([x, x + 1e-3]), torch.cat([y, y]))
    state = bilevel.init(target, config, generator, twice)
    assert len(bilevel.report(target, state, config).x) == len(x)
