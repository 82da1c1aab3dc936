"""Factors of Gram matrices that rounding spoils, and attacks in float32 beside float64."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.attacks import decoreco, kkt
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.nonnegative import (
    RIDGE,
    cholesky_factor,
    cone_coefficients,
    rounding_ridge,
)
from explorer.engine.scoring import score
from explorer.engine.training import TrainConfig
from tests.engine.draws import aimed, attacked, draw, trained

CIRCLE = preset("alternating-circle", n=20)


def close_rows(count=30, seed=0):
    """Rows of which pairs are all but equal, as candidates that meet."""
    rows = draw(count // 2, 12, seed=seed)
    return torch.cat([rows, rows * (1 + 1e-9)])


def ended(engine, net, config, dtype, seed=0):
    """The last state and the claims of an attack from noise."""
    return attacked(engine, Target.of(net.to(dtype=dtype), 1.0), config, seed)


def test_a_factor_is_that_of_the_gram_and_its_ridge():
    gram = close_rows() @ close_rows().T
    factor = cholesky_factor(gram, 1e-10 * gram.trace())
    assert torch.equal(factor, factor.tril())
    ridge = 1e-10 * gram.trace() * torch.eye(30, dtype=gram.dtype)
    torch.testing.assert_close(factor @ factor.T, gram + ridge, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_ridge_covers_what_float32_rounds_off(seed):
    """Also where one candidate is far out, and its row a thousand times as long."""
    rows = close_rows(seed=seed).float()
    rows[0] *= 1000
    gram = (rows @ rows.T).double()
    assert int(torch.linalg.cholesky_ex(gram + RIDGE * gram.diagonal().min() * torch.eye(30))[1])
    assert not rounding_ridge(gram.diagonal(), torch.float64).any()
    ridge = rounding_ridge(gram.diagonal(), torch.float32)
    assert not int(torch.linalg.cholesky_ex(gram + torch.diag(ridge))[1])
    assert bool((ridge <= 1e-5 * gram.diagonal()).all())  # and changes no candidate by more


def test_what_is_not_definite_takes_a_larger_ridge_or_none():
    short = torch.diag(torch.tensor([1.0, 1.0, -1e-7]).double())
    factor = cholesky_factor(short, torch.tensor(1e-10).double())
    assert bool(torch.isfinite(factor).all()) and float(factor[2, 2]) > 0
    assert bool(torch.isnan(cholesky_factor(-torch.eye(3), torch.tensor(1e-10))).all())
    nothing = cone_coefficients(-torch.eye(3).double(), torch.ones(3).double(), 0.0)
    assert bool(torch.isnan(nothing).all())  # and the attack says that it diverged


@pytest.mark.parametrize("seed", [0, 1])
def test_float32_explains_what_float64_explains(seed):
    net = maximum_margin(CIRCLE.x, CIRCLE.y).net
    config = kkt.KKTConfig(m=60, steps=300)
    for dtype in (torch.float64, torch.float32):
        state, claims = ended(kkt, net, config, dtype, seed)
        assert float(state.l_stationary) < 1e-2, dtype  # without the ridge 0.9997
        assert len(claims.x) >= 20 and state.x.dtype == dtype


def test_float32_explains_by_decoreco_too():
    net = maximum_margin(CIRCLE.x, CIRCLE.y).net
    config = decoreco.DecoRecoConfig(m=40, steps=400, multipliers="projected")
    for seed in (1, 2):
        for dtype in (torch.float64, torch.float32):
            assert float(ended(decoreco, net, config, dtype, seed)[0].l_stationary) < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(100,), (1000,)])
def test_float32_finds_what_float64_finds(widths):
    config = TrainConfig(widths=widths, steps=5000)
    net = aimed(trained(CIRCLE, config)).net
    found = {
        dtype: [
            int(score(CIRCLE, claims.x, claims.y, (0.03,)).found)
            for claims in (ended(kkt, net, kkt.KKTConfig(), dtype, seed)[1] for seed in range(3))
        ]
        for dtype in (torch.float64, torch.float32)
    }
    assert sum(found[torch.float64]) > 50  # of 60
    assert abs(sum(found[torch.float32]) - sum(found[torch.float64])) <= 6, found
