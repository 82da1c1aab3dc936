"""Many starts descend at once as each does alone, by the program that runs on a device."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, KKTState, Start, blocks, loops, loss
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.network import Network, init_network
from explorer.engine.scoring import score
from explorer.engine.status import Status
from tests.engine.draws import draw, rng, uniform

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
    solve = blocks.pivoting
    monkeypatch.setattr(blocks, "ROUNDS", 1)
    monkeypatch.setattr(
        blocks,
        "pivoting",
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


# --- many starts in one program: each moves as it does alone --------------------------------------


def drawn(d: int, widths: tuple[int, ...]) -> Network:
    return init_network(d, widths, generator=rng(0), first_scale=0.7)


def points(b: int, m: int, d: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = draw(b, m, d, seed=2)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).double()
    return x, y, uniform(b, m, seed=3)


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("width", "m"), [(12, 6), (600, 30)])  # together, and start by start
def test_a_batch_walks_as_its_starts_do_alone(multipliers, optimizer, width, m):
    target = Target(drawn(2, (width,)))
    x, y, _ = points(3, m, 2)
    rate = 0.01 if optimizer == "adam" else 1e-8  # plain descent leaves a random wide net at once
    config = KKTConfig(
        m=m, steps=20, multipliers=multipliers, optimizer=optimizer, lam_start=0.0, prior=1.0,
        lr_x=rate, lr_lam=rate,
    )  # fmt: skip
    together = kkt.init(target, config, rng(0), Start(x, y))
    alone = [kkt.init(target, config, rng(0), Start(x[i], y)) for i in range(3)]
    for _ in range(5):
        together = kkt.step(target, together, config)
        alone = [kkt.step(target, state, config) for state in alone]
    for ours, theirs in zip(kkt.single_states(together), alone, strict=True):
        assert ours.t == theirs.t == 5
        torch.testing.assert_close(ours.x, theirs.x, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(ours.lam, theirs.lam, rtol=1e-6, atol=1e-8)
        assert ours.numbers() == pytest.approx(theirs.numbers(), rel=1e-7, abs=1e-9)
        assert kkt.terminate(ours, config) is Status.RUNNING


def test_one_start_that_fails_leaves_the_others_alone():
    target = Target(drawn(2, (12,)))
    x, y, _ = points(2, 6, 2)
    config = KKTConfig(
        m=6, steps=20, multipliers="joint", optimizer="sgd", lr_x=1.0, decay=1.0, weight_margin=0.0
    )
    state = kkt.init(target, config, rng(0), Start(x, y))
    velocity = state.moments.mean[0].clone()
    velocity[1] = 1e200  # the second start's next step is not finite
    state.moments.mean[0].copy_(velocity)
    after = kkt.step(target, state, config)
    first, second = kkt.single_states(after)
    assert torch.equal(second.x, x[1]) and not torch.equal(first.x, x[0])
    assert torch.isfinite(first.loss) and not first.diverged
    assert second.diverged and not after.diverged


@pytest.mark.parametrize("widths", [(12,), (7, 5)])
def test_a_projected_start_that_fails_leaves_the_others_to_end_as_alone(widths):
    target = Target(drawn(2, widths))
    x, y, _ = points(3, 6, 2)
    config = KKTConfig(m=6, steps=30)
    state = kkt.init(target, config, rng(0), Start(x, y))
    pulled = state.grad_x.clone()
    pulled[0] = 1e308  # the first start's moments overflow, so that no loop goes past it
    together = kkt.advance(target, replace(state, grad_x=pulled), config, 30)
    alone = kkt.advance(target, state, config, 30)
    assert kkt.single_states(together)[0].diverged
    torch.testing.assert_close(together.x[1:], alone.x[1:], rtol=1e-6, atol=1e-8)


def test_a_single_start_is_its_own_split():
    target = Target(drawn(2, (12,)))
    state = kkt.init(target, KKTConfig(m=4, steps=3), rng(0))
    assert kkt.single_states(state) == [state]


@pytest.mark.parametrize("shape", [(0, 2), (4, 3), (2, 2, 4, 2)])
def test_starts_of_another_shape_are_refused(shape):
    target = Target(drawn(2, (12,)))
    with pytest.raises(ValueError, match="start needs x"):
        kkt.init(target, KKTConfig(m=4), rng(0), Start(torch.zeros(shape), torch.ones(shape[-2])))


def test_what_a_step_gives_is_not_lost_at_the_next():
    target = Target(drawn(2, (12,)))
    config = KKTConfig(m=4, steps=9, multipliers="joint")
    state = kkt.init(target, config, rng(0))
    names = ("x", "lam", "loss", "l_margin", "l_dual", "l_stationary", "grad_x", "grad_lam")
    kept = {name: getattr(state, name).clone() for name in names}
    other = kkt.init(target, config, rng(1))  # the same work arrays
    kkt.step(target, other, replace(config, relu_alpha=7.0))
    assert all(torch.equal(getattr(state, name), was) for name, was in kept.items())
    again = kkt.init(target, config, rng(0))
    assert all(torch.equal(getattr(again, name), was) for name, was in kept.items())


def test_threads_have_work_arrays_of_their_own():
    target = Target(drawn(2, (300,)))
    config = KKTConfig(m=40, steps=60, multipliers="joint")
    target.prepared_network(config.merge_angle)

    def run(seed):
        state = kkt.init(target, config, rng(seed))
        for _ in range(60):
            state = kkt.step(target, state, config)
        return state.x

    alone = [run(seed) for seed in range(2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, range(2)))
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


# --- blocks of steps on static buffers descend as single steps do ---------------------------------

CONFIG = KKTConfig(m=6, steps=40, multipliers="joint", lr_x=0.01, lr_lam=0.01, prior=0.8)
PLAIN = replace(CONFIG, optimizer="sgd", lr_x=1e-8, lr_lam=1e-8, weight_margin=0.0, prior=None)
FLOOR = replace(CONFIG, lam_min=0.3, relu_alpha_start=None)


@pytest.mark.parametrize("config", [CONFIG, PLAIN, FLOOR], ids=["adam", "sgd", "floor"])
@pytest.mark.parametrize("widths", [(12,), (9, 7)], ids=["two layers", "three layers"])
@pytest.mark.parametrize("d", [2, 65], ids=["few inputs", "many"])
@pytest.mark.parametrize("room", [2**15, 150, 1], ids=["at once", "two of three", "one by one"])
def test_a_block_of_starts_is_as_many_steps(config, widths, d, room, monkeypatch):
    monkeypatch.setattr(loss, "CACHED", room)
    monkeypatch.setattr(loops, "compiled_module", lambda _: None)  # single steps by calls as well
    target = Target(init_network(d, widths, generator=rng(0), first_scale=0.7))
    y = torch.tensor([1.0, 1, 1, -1, -1, -1]).double()
    slow = first = kkt.init(target, config, rng(2), Start(draw(3, 6, d), y))
    for _ in range(7):
        slow = kkt.step(target, slow, config)
    run = Replay(target, first, config)
    run.advance(7)
    fast = run.state()
    assert fast.t == slow.t == 7 and fast.moments.t == 7
    for name in ("x", "lam", "grad_x", "grad_lam", "loss", "l_margin"):
        torch.testing.assert_close(getattr(fast, name), getattr(slow, name), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(fast.moments.mean, slow.moments.mean, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_states_taken_on_the_way_are_not_moved():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    run = Replay(target, kkt.init(target, CONFIG, rng(2)), CONFIG)
    run.advance(3)
    there = run.state()
    x = there.x.clone()
    run.advance(3)
    assert torch.equal(there.x, x) and run.state().t == 6


@pytest.fixture(params=[True, False], ids=["loops", "calls"])
def way(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(loops, "compiled_module", lambda _: None)


@pytest.mark.usefixtures("way")
def test_steps_that_are_not_finite_are_not_taken():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    wild = replace(PLAIN, lr_x=1e160, decay=1.0)
    first = kkt.init(target, wild, rng(2))
    after = kkt.advance(target, first, wild, 20)
    assert after.diverged and torch.equal(after.x, first.x)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("starts", [(), (2,)], ids=["single", "batch"])
def test_a_stride_leaves_states_out_and_changes_none(multipliers, starts):
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    config = replace(CONFIG, multipliers=multipliers, steps=25)
    x = draw(*starts, 6, 2)
    first = kkt.init(target, config, rng(2), Start(x, torch.tensor([1.0, 1, 1, -1, -1, -1])))
    for _ in range(3):  # a run may be taken up anywhere
        first = kkt.step(target, first, config)
    one_by_one = {state.t: state for state in kkt.iterate(target, first, config)}
    strided = list(kkt.iterate(target, first, config, 10))
    assert [state.t for state in strided] == [10, 20, 25]
    for state in strided:
        for name in ("x", "lam", "loss", "grad_x", "grad_lam"):
            wanted = getattr(one_by_one[state.t], name)
            torch.testing.assert_close(getattr(state, name), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("way")
def test_a_stride_ends_where_the_steps_do():
    target = Target(init_network(2, (12,), generator=rng(0), first_scale=0.7))
    wild = replace(PLAIN, lr_x=10.0, lr_lam=10.0, decay=1.0, steps=400)
    first = kkt.init(target, wild, rng(2))
    slow, fast = (deque(kkt.iterate(target, first, wild, n), 1)[0] for n in (1, 100))
    assert slow.diverged and fast.diverged and slow.t == fast.t < 400
    torch.testing.assert_close(fast.x, slow.x, rtol=1e-6, atol=0)
