"""Many starts descend at once as each does alone, by the program that runs on a device."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, KKTState, Start, blocks
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.network import init_network
from explorer.engine.scoring import score
from tests.engine.draws import rng

SHAPES = {"two layers": (2, (30,)), "many inputs": (70, (20,)), "three layers": (3, (12, 9))}
STARTS = 5


def begun(
    d: int, widths: tuple[int, ...], multipliers: str, **more: object
) -> tuple[Target, KKTConfig, KKTState]:
    """A target, settings, and the first state of some starts."""
    config = KKTConfig(m=8, steps=60, multipliers=multipliers, **{"lr_x": 0.01, **more})
    target = Target(init_network(d, widths, generator=rng(3), first_scale=d**-0.5))
    return target, config, kkt.init(target, config, [rng(seed) for seed in range(STARTS)])


def alone(target: Target, config: KKTConfig, steps: int) -> list[KKTState]:
    """The same starts one after another, step by step."""
    ends = []
    for seed in range(STARTS):
        state = kkt.init(target, config, rng(seed))
        for _ in range(steps):
            state = kkt.step(target, state, config)
        ends.append(state)
    return ends


def same(many: KKTState, single: list[KKTState], share: float = 1e-6) -> None:
    for name in ("x", "lam", "loss", "grad_x"):
        wanted = torch.stack([getattr(state, name) for state in single])
        size = max(float(wanted.abs().max()), 1e-3)
        torch.testing.assert_close(getattr(many, name), wanted, rtol=0, atol=share * size)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("more", [{}, {"lam_min": 0.2, "optimizer": "sgd", "lr_x": 1e-3}],
                         ids=["adam", "sgd and a floor"])  # fmt: skip
def test_starts_at_once_are_those_one_by_one(shape, multipliers, more):
    target, config, first = begun(*shape, multipliers, **more)
    run = Replay(target, first, config, block=7, portable=True)
    run.advance(20)  # two blocks and a part of one
    same(run.state(), alone(target, config, 20))


def test_a_single_start_needs_no_axis():
    target, config, _ = begun(3, (12, 9), "projected")
    run = Replay(target, kkt.init(target, config, rng(2)), config, portable=True)
    run.advance(20)
    after = run.state()
    assert after.x.shape == (8, 3)
    torch.testing.assert_close(after.x, alone(target, config, 20)[2].x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("single", [True, False])
def test_starts_for_which_the_rounds_were_too_few_go_again(single, monkeypatch):
    target, config, first = begun(2, (30,), "projected", lr_x=0.05)
    if single:
        first = kkt.init(target, config, rng(0))
    wanted = Replay(target, first, config, portable=True)
    wanted.advance(20)
    taken = []
    solve = blocks.pivoted
    monkeypatch.setattr(blocks, "ROUNDS", 1)
    monkeypatch.setattr(
        blocks,
        "pivoted",
        lambda g, h, known, rounds: taken.append((rounds, len(h))) or solve(g, h, known, rounds),
    )
    run = Replay(target, first, config, block=5, portable=True)
    run.advance(20)
    assert {1, 2, 4} <= {rounds for rounds, _ in taken}
    if not single:
        assert min(starts for _, starts in taken) < STARTS  # not all of them go again
    torch.testing.assert_close(run.state().x, wanted.state().x, rtol=0, atol=1e-6)


def test_several_generators_draw_what_each_draws_alone():
    target, config, many = begun(2, (30,), "joint")
    for one, seed in zip(kkt.single_states(many), range(STARTS), strict=True):
        by_itself = kkt.init(target, config, rng(seed))
        assert torch.equal(one.x, by_itself.x) and torch.equal(one.lam, by_itself.lam)
        assert torch.equal(one.y, by_itself.y)
    x = torch.stack([many.x[1], many.x[0]])
    given = kkt.init(target, config, [rng(1), rng(0)], Start(x, many.y))
    assert given.x.shape == (2, 8, 2) and given.lam.shape == (2, 8)
    with pytest.raises(ValueError, match="one generator"):
        kkt.init(target, config, [rng(0)], Start(x, many.y))


@pytest.mark.parametrize(("multipliers", "steps"), [("joint", 600), ("projected", 250)])
def test_single_precision_finds_as_much(multipliers, steps):
    data = preset("alternating-circle", 8)
    exact = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    config = KKTConfig(m=16, steps=steps, multipliers=multipliers)
    found: list[int] = []
    for dtype, portable in ((torch.float64, False), (torch.float32, True)):
        target = Target(exact.net.to(dtype=dtype))
        run = Replay(
            target, kkt.init(target, config, [rng(s) for s in range(6)]),
            config, portable=portable,
        )  # fmt: skip
        run.advance(config.steps)
        claims = [kkt.report(target, one, config) for one in kkt.single_states(run.state())]
        made = [score(data, c.x.double(), c.y.double(), (0.03,)) for c in claims]
        found.append(sum(int(one.found[0]) for one in made))
    assert abs(found[0] - found[1]) <= 4 and min(found) >= 16, found  # of 48


class Drawn:
    """Stands for a graph: what was captured runs again, on the buffers that it was captured on."""

    def __init__(self, warm, program):
        warm()
        program()
        self.replay, self.warm = program, warm


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("starts", ["many", "one"])
def test_blocks_of_a_graph_are_those_call_by_call(multipliers, starts):
    target, config, first = begun(70, (20,), multipliers)
    if starts == "one":
        first = kkt.init(target, config, rng(0))
    wanted = Replay(target, first, config, block=6, portable=True)
    wanted.advance(20)
    made = []
    run = Replay(target, first, config, block=6, portable=True)
    run.captures = True
    run.capture = lambda *programs: made.append(Drawn(*programs)) or made[-1]
    run.advance(20)  # three graphs and a rest
    assert len(made) == 1
    for name in ("x", "lam", "loss"):
        ours, theirs = getattr(run.state(), name), getattr(wanted.state(), name)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_a_capture_that_fails_is_said_once_and_the_steps_are_taken(multipliers):
    target, config, first = begun(70, (20,), multipliers)
    wanted = Replay(target, first, config, block=6, portable=True)
    wanted.advance(18)
    tried = []

    def capture(warm, program):
        tried.append(True)
        warm()
        raise RuntimeError("operation not permitted when stream is capturing\nat line 9")

    run = Replay(target, first, config, block=6, portable=True)
    run.captures, run.capture = True, capture
    with pytest.warns(UserWarning, match="stream is capturing") as seen:
        run.advance(18)
    assert len(tried) == len(seen) == 1 and run.graph is None
    torch.testing.assert_close(run.state().x, wanted.state().x, rtol=1e-10, atol=1e-10)

    def full(warm, program):
        raise torch.OutOfMemoryError("CUDA out of memory")

    run = Replay(target, first, config, block=6, portable=True)
    run.captures, run.capture = True, full
    with pytest.raises(torch.OutOfMemoryError):
        run.advance(6)
