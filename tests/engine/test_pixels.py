"""Prior "pixels": candidates stay in the range of each coordinate, whatever takes the steps."""

from __future__ import annotations

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
from explorer.engine.network import init_network
from explorer.engine.settings import setting_of, value_of
from tests.engine.draws import draw, rng

PIXELS = {"prior": "pixels", "m": 8, "steps": 30}
CASES: dict[str, tuple[ModuleType, tuple[int, ...], Any]] = {
    f"{module.__name__.rpartition('.')[2]}, {len(widths) + 1} layers of {d} inputs, {name}": (
        module, (d, *widths), config(**PIXELS, **more),
    )
    for module, config in ((kkt, KKTConfig), (decoreco, DecoRecoConfig))
    for d, widths in ((2, (30,)), (3, (30,)), (3, (12, 9)))
    for name, more in {
        "projected": {}, "joint": {"multipliers": "joint"},
        "sgd": {"multipliers": "joint", "optimizer": "sgd", "lr_x": 1e-3, "lr_lam": 1e-3},
    }.items()
}  # fmt: skip
NARROW = Target(init_network(2, (9,), generator=rng(1), first_scale=0.7))
each = pytest.mark.parametrize(("module", "sizes", "config"), CASES.values(), ids=CASES)


def aimed(sizes: tuple[int, ...], width: float, dtype: torch.dtype = torch.float64) -> Target:
    """A target that grants ranges of this width, another one for each coordinate."""
    low = -width * (0.3 + 0.1 * torch.arange(sizes[0]))
    net = init_network(sizes[0], sizes[1:], generator=rng(3), first_scale=0.7)
    return replace(Target(net.to(dtype=dtype)), pixels=(low.double(), low.double() + width))


def inside(x: Tensor, target: Target) -> bool:
    low, high = target.pixel_range(x)
    return bool(((x >= low) & (x <= high)).all())


@each
def test_candidates_always_lie_in_the_ranges(module, sizes, config) -> None:
    target = aimed(sizes, 0.4)
    first = module.init(target, config, rng(5))
    states = [first, *module.iterate(target, first, config)]
    assert len(states) == config.steps + 1
    assert all(inside(s.x, target) for s in states if s.t in (0, PUT_BACK, config.steps))
    low, high = target.pixel_range(first.x)
    assert any(bool(((s.x == low) | (s.x == high)).any()) for s in states[1:])  # they are needed
    assert not any(float(s.l_prior) for s in states)


@each
def test_many_steps_at_once_are_single_steps(module, sizes, config) -> None:
    target = aimed(sizes, 1.2)  # candidates in one corner would share a multiplier anyhow
    first = state = module.init(target, config, rng(5))
    for _ in range(28):
        state = module.step(target, state, config)
    whole = module.advance(target, first, config, 28)
    torch.testing.assert_close(whole.x, state.x, rtol=0, atol=1e-7)
    torch.testing.assert_close(whole.loss, state.loss, rtol=1e-6, atol=0)


@each
def test_wide_ranges_change_nothing(module, sizes, config) -> None:
    target, free = aimed(sizes, 1e3), replace(config, prior=None)
    first = module.init(target, config, rng(5))
    mine = module.advance(target, first, config, 12)
    theirs = module.advance(target, first, free, 12)
    assert torch.equal(mine.x, theirs.x) and torch.equal(mine.loss, theirs.loss)


@each
def test_a_coordinate_that_is_known_to_be_zero_is_left_out(module, sizes, config) -> None:
    wide = aimed((sizes[0] + 1, *sizes[1:]), 0.4)
    assert wide.pixels is not None
    low, high = (end.index_fill(0, torch.tensor(1), 0.0) for end in wide.pixels)
    target, free = replace(wide, pixels=(low, high)), [0, *range(2, wide.net.d)]
    x, y = draw(8, wide.net.d, seed=4), torch.tensor([1.0, -1.0]).double().repeat(4)
    first = module.init(target, config, rng(5), module.Start(x, y))
    small = module.init(target.narrow, config, rng(5), module.Start(x[:, free], y))
    pairs = [(first, small)]
    pairs.append((module.step(target, first, config), module.step(target.narrow, small, config)))
    pairs.append(tuple(
        module.advance(*at, config, config.steps)
        for at in ((target, first), (target.narrow, small))
    ))  # fmt: skip
    for mine, theirs in pairs:
        assert torch.equal(mine.x[:, free], theirs.x) and torch.equal(mine.loss, theirs.loss)
        assert mine.x.shape == x.shape and not mine.x[:, 1].any()


def test_ranges_are_in_units_of_the_data() -> None:
    target = replace(aimed((2, 9), 0.4), unit=2.0)
    x = target.put_back(10 * draw(6, 2))
    assert target.pixels is not None
    assert bool((2 * x <= target.pixels[1]).all() & (2 * x >= target.pixels[0]).all())


@pytest.mark.parametrize("module", [kkt, decoreco])
def test_without_ranges_there_is_no_such_prior(module: Any) -> None:
    config = module.ATTACK.config(**PIXELS)
    with pytest.raises(ValueError, match="needs the range of each coordinate"):
        module.init(
            Target(init_network(2, (9,), generator=rng(1), first_scale=0.7)), config, rng(2)
        )


@pytest.mark.parametrize("ends", [(draw(3), draw(3) + 9), (draw(2) + 9, draw(2))])
def test_ranges_fit_the_inputs_of_the_network(ends: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(ValueError, match="two tensors"):
        replace(NARROW, pixels=ends)


def test_the_setting_is_a_number_or_the_word() -> None:
    row = setting_of(KKTConfig, "prior")
    assert [value_of(row, text) for text in ("0.5", "pixels", "none")] == [0.5, "pixels", None]
    with pytest.raises(ValueError, match="prior must be a finite number, 'pixels' or None; got 'x"):
        KKTConfig(prior="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prior must be positive, or None; got 0"):
        KKTConfig(prior=0.0)
