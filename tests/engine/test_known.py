"""What an attacker is granted: candidates return to it, whatever takes the steps."""

from __future__ import annotations

import math
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.attacks import decoreco, kkt
from explorer.engine.attacks.decoreco import DecoRecoConfig
from explorer.engine.attacks.descent import PUT_BACK
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.known import Known, circle_through, known_of, span_of
from explorer.engine.network import init_network
from tests.engine.draws import rng

X = torch.tensor([[0.5, 0.2], [-0.4, 0.6], [0.1, -0.7], [-0.3, -0.2]]).double()
Y = torch.tensor([1.0, 1.0, -1.0, -1.0]).double()
PUBLIC = X + 0.3
CIRCLE = torch.tensor([0.3, -0.2]) + 1.5 * torch.stack(
    [torch.tensor([math.cos(a), math.sin(a)]) for a in (0.1, 1.0, 2.5, 4.0, 5.5)]
)
ATTACKS = pytest.mark.parametrize(
    ("module", "config"),
    [(kkt, KKTConfig), (decoreco, DecoRecoConfig)], ids=["kkt", "decoreco"],
)  # fmt: skip


def off(known: Known, x: Tensor, y: Tensor) -> float:
    """How far candidates are from what is known."""
    return float((known.put_back(x, y) - x).abs().max())


def made(kind: str) -> Known:
    points = CIRCLE.double() if kind == "curve" else X
    return known_of(kind, points, Y, PUBLIC, 2, (-1.0, 0.0, 0.5, 0.25, 1.0, 1.0), 1)


@ATTACKS
@pytest.mark.parametrize("kind", ["range", "curve", "drawn", "public", "others", "components"])
@pytest.mark.parametrize("multipliers", ["projected", "joint"])
def test_candidates_return_to_what_is_known(
    module: ModuleType, config: Any, kind: str, multipliers: str
) -> None:
    net = init_network(2, (20,), generator=rng(3), first_scale=0.7)
    known = made(kind)
    target = replace(Target(net.to(dtype=torch.float64)), known=known)
    settings = config(m=8, steps=2 * PUT_BACK + 5, knows=kind, multipliers=multipliers)
    first = module.init(target, settings, rng(5))
    states = [first, *module.iterate(target, first, settings)]
    for state in states:
        if state.t % PUT_BACK == 0 or state.t == settings.steps:
            assert off(known, state.x, state.y) < 1e-12, state.t
    assert max(off(known, state.x, state.y) for state in states) > 1e-6  # they leave in between
    free = module.init(target, replace(settings, knows="nothing"), rng(5))
    assert off(known, free.x, free.y) > 0.01
    leap = module.advance(target, first, settings, settings.steps)
    assert torch.allclose(leap.x, states[-1].x, atol=1e-9)


def test_places_return_to_the_nearest_ones() -> None:
    x = torch.tensor([[2.0, 0.0], [0.1, 0.1]]).double()
    y = torch.tensor([1.0, -1.0]).double()
    bent = Known("curve", torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]).double())
    assert torch.allclose(bent.put_back(x, y), torch.tensor([[1.0, 0.0], [0.1, 0.0]]).double())
    box = known_of("range", X, Y)
    assert torch.allclose(box.put_back(x, y), torch.tensor([[0.5, 0.0], [0.1, 0.1]]).double())
    near = Known("public", torch.zeros(1, 2).double(), reach=0.5)
    assert torch.allclose(near.put_back(x, y), torch.tensor([[0.5, 0.0], [0.1, 0.1]]).double())
    corners = circle_through(CIRCLE.double())
    centre = torch.tensor([0.3, -0.2]).double()
    assert torch.allclose((corners - centre).norm(dim=1), torch.full((len(corners),), 1.5).double())


def test_all_but_one_are_given_and_are_no_claims() -> None:
    known = made("others")
    assert len(known.x) == 3 and not bool((known.x == X[2]).all(1).any())
    y = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0]).double()
    put = known.put_back(torch.zeros(5, 2).double(), y)
    for point, label in zip(known.x, known.y, strict=True):
        assert bool(((put == point).all(1) & (y == label)).any())
    assert int((put == 0).all(1).sum()) == 2  # the others are free
    assert known.is_given(X, 0.01).tolist() == [True, True, False, True]
    with pytest.raises(ValueError, match="more candidates"):
        known.put_back(torch.zeros(2, 2).double(), torch.tensor([1.0, -1.0]).double())


def test_what_is_not_granted_says_so() -> None:
    with pytest.raises(ValueError, match="circle"):
        known_of("curve", X, Y)
    with pytest.raises(ValueError, match="public"):
        known_of("public", X, Y)
    target = Target(init_network(2, (9,), generator=rng(1), first_scale=0.7))
    with pytest.raises(ValueError, match="knows"):
        kkt.init(target, KKTConfig(m=4, knows="range"), rng(0))
    with pytest.raises(ValueError, match="drawn"):
        known_of("drawn", X, Y, curve=(0.5, 0.5))
    with pytest.raises(ValueError, match="different corners"):
        known_of("drawn", X, Y, curve=(0.5, 0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match="each corner"):
        known_of("drawn", X, Y, curve=(0.5, 0.5, 1.0))
    with pytest.raises(ValueError, match="at most"):
        known_of("drawn", X, Y, curve=tuple(range(1600)))
    with pytest.raises(ValueError, match="segment"):
        known_of("drawn", X[:, :1], Y, curve=(0.5, 0.5, 1.0, 1.0))
    for public, k in ((None, 1), (PUBLIC, 0), (PUBLIC, 3)):
        with pytest.raises(ValueError, match="components"):
            known_of("components", X, Y, public, components=k)
    line = known_of("curve", X[:, :1], Y)  # on the line the curve is a segment
    assert line.kind == "range" and line.x.flatten().tolist() == pytest.approx([-0.4, 0.5])


def test_components_hold_what_varies_most_and_give_back_the_nearest_places() -> None:
    generator = rng(4)
    basis = torch.linalg.qr(torch.randn(9, 9, generator=generator).double()).Q
    wide = torch.tensor([5.0, 4, 3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]).double()
    public = 2.0 + (torch.randn(60, 9, generator=generator).double() * wide) @ basis
    known = span_of(public, 3)
    centre, along = known.x[0], known.x[1:]
    assert torch.allclose(along @ along.T, torch.eye(3).double(), atol=1e-12)
    mean = public.mean(0)
    # Singular vectors of the public points, by another way.
    other = torch.linalg.svd(public - mean, full_matrices=False).Vh[:3]
    assert torch.allclose((along @ other.T).abs(), torch.eye(3).double(), atol=1e-9)
    x = 3 * torch.randn(2, 7, 9, generator=generator).double()
    put = known.put_back(x, torch.ones(7))
    away = put - centre
    off = (away - away @ along.T @ along).norm(dim=-1)
    assert bool((off <= known.reach * (1 + 1e-9)).all()) and known.reach > 0
    assert torch.allclose(known.put_back(put, torch.ones(7)), put, atol=1e-12)
    assert torch.allclose((put - x) @ along.T, torch.zeros(3).double(), atol=1e-12)
    kept = known.put_back(public, torch.ones(60))  # half of them lie within the reach
    assert int(((kept - public).abs().amax(1) < 1e-12).sum()) == 30
