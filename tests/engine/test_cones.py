"""Many nonnegative least squares problems at once, against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from explorer.engine import nonnegative as solvers
from explorer.engine.nonnegative import (
    MOST,
    cone_coefficients,
    nonnegative,
    nonnegative_all,
    pivoting,
    settled_coefficients,
)
from tests.engine.draws import draw


def problems(count: int, r: int, near: float, seed: int, dtype: torch.dtype = torch.float64):
    """Gram matrices and products of columns of which every second one is `near` another."""
    columns = draw(count, 60, r, seed=seed)
    columns[..., 1::2] = columns[..., ::2] + near * columns[..., 1::2]
    theta = draw(count, 60, 1, seed=seed + 100)
    columns = columns.to(dtype)
    return columns, theta, columns.mT @ columns, (columns.mT @ theta.to(dtype)).squeeze(-1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("near", [1.0, 1e-3])
@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_each_of_a_batch_is_solved_as_alone(seed: int, near: float, floor: float) -> None:
    _, _, gram, inner = problems(7, 24, near, seed)
    made = settled_coefficients(gram, inner, floor, torch.zeros_like(inner, dtype=torch.bool))
    alone = cone_coefficients(gram, inner, floor)
    assert bool((made >= floor).all()) and 0 < int((made > floor).sum()) < made.numel()
    torch.testing.assert_close(made, alone, rtol=0, atol=1e-6 * float(alone.abs().max()))


@pytest.mark.parametrize("looped", [True, False])
def test_problems_that_share_columns_are_solved_as_alone(monkeypatch, looped: bool) -> None:
    columns, theta, _, _ = problems(1, 20, 0.1, 4)
    own = draw(6, 60, 3, seed=9)
    own[2] = columns[0, :, :3]  # columns that repeat shared ones
    shared, aim = columns[0].numpy(), theta[0, :, 0].numpy()
    alone = [np.concatenate([shared, one], axis=1) for one in own.numpy()]
    start = nonnegative(shared.T @ shared, shared.T @ aim)
    assert 0 < (start > 0).sum() < len(start)
    if not looped:
        monkeypatch.setattr(solvers, "compiled_module", lambda _: None)
    h = own.numpy().transpose(0, 2, 1)
    got = nonnegative_all(
        shared.T @ shared, shared.T @ aim, h @ shared, h @ own.numpy(), h @ aim, start
    )
    assert (got >= 0).all()
    for table, c in zip(alone, got, strict=True):
        assert np.linalg.norm(table @ c - aim) <= nnls(table, aim)[1] * (1 + 1e-9)


def test_a_start_from_the_solution_takes_one_round() -> None:
    _, _, gram, inner = problems(5, 20, 0.5, 0)
    known = torch.ones_like(inner, dtype=torch.bool)
    cold = pivoting(gram, inner, known, 1)
    assert bool(cold.unsettled.all())  # the set of all is that of none of them
    made = pivoting(gram, inner, known, MOST)
    assert not bool(made.unsettled.any())
    again = pivoting(gram, inner, made.u > 0, 1)
    assert not bool(again.unsettled.any())
    torch.testing.assert_close(again.u, made.u, rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gradients_of_candidates_settle_though_exchanges_of_all_cycle(seed: int) -> None:
    """Exchanges of all, and of the last where these cycle, left 1 to 3 of 40 after 128 rounds."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    angles = 2 * torch.pi * torch.rand(40, 60, generator=generator, dtype=torch.float64)

    def gradients(angles: torch.Tensor) -> torch.Tensor:
        """Those of a two-layer ReLU network at points of the circle."""
        x = torch.stack([angles.cos(), angles.sin()], -1)
        pre = x @ weights.T
        first = ((pre > 0).double().unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
        return torch.cat([pre.clamp_min(0), first], -1)

    def signs(of: torch.Tensor) -> torch.Tensor:
        return torch.where(of, 1.0, -1.0).double()[:, None]

    even = 2 * torch.pi * torch.arange(20, dtype=torch.float64) / 20
    theta = (gradients(even) * signs(torch.arange(20) % 2 == 0)).sum(0)
    columns = gradients(angles) * signs(torch.arange(60) < 30)
    gram, inner = columns @ columns.mT, columns @ theta
    made = pivoting(gram, inner, torch.ones_like(inner, dtype=torch.bool), 128)
    assert not bool(made.unsettled.any())
    aim = torch.cat([theta, torch.zeros(60, dtype=torch.float64)])
    for a, u in zip(columns, made.u, strict=True):
        ridge = (solvers.RIDGE * a.square().sum()).sqrt() * torch.eye(60, dtype=torch.float64)
        ridged = torch.cat([a.mT, ridge])
        left = float((ridged @ u - aim).norm())
        assert left <= nnls(ridged.numpy(), aim.numpy())[1] * (1 + 1e-9)


def test_single_precision_explains_as_much() -> None:
    columns, theta, gram, inner = problems(6, 30, 1e-2, 1, torch.float32)
    made = settled_coefficients(gram, inner, 0.0, inner > 0).double()
    for a, b, u in zip(columns.double(), theta, made, strict=True):
        left = float((a @ u[:, None] - b).norm())
        assert left <= nnls(a.numpy(), b[:, 0].numpy())[1] * (1 + 1e-4)


def test_equal_columns_and_empty_ones_are_no_obstacle() -> None:
    columns, theta, _, _ = problems(3, 10, 1.0, 2)
    columns[..., 4:7] = columns[..., 3:4]
    columns[..., 9] = 0
    gram, inner = columns.mT @ columns, (columns.mT @ theta).squeeze(-1)
    made = pivoting(gram, inner, inner > 0, MOST)
    assert not bool(made.unsettled.any()) and bool(made.u.isfinite().all())
    for a, b, u in zip(columns, theta, made.u, strict=True):
        left = float((a @ u[:, None] - b).norm())
        assert left <= nnls(a.numpy(), b[:, 0].numpy())[1] * (1 + 1e-8)


def test_what_is_not_finite_asks_for_no_more_rounds() -> None:
    _, _, gram, inner = problems(2, 6, 1.0, 3)
    inner[1, 2] = float("nan")
    made = pivoting(gram, inner, inner > 0, 50)
    assert made.unsettled.tolist() == [False, False]
    assert bool(made.u[1].isnan().all()) and bool(made.u[0].isfinite().all())
