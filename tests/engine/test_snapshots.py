"""Two snapshots: the sum over steps, one step exactly, and points found after a few."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from explorer.engine import training
from explorer.engine.attacks import kkt, snapshots
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.snapshots import Change, SnapshotsConfig, kept_margins
from explorer.engine.attacks.target import Target
from explorer.engine.data import heldout, preset
from explorer.engine.network import Network, init_network, phi
from explorer.engine.roster import ROSTER
from explorer.engine.scoring import score
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from tests.engine.draws import attacked, draw, make, rng

CIRCLE = preset("alternating-circle", n=6)
WIDE = TrainConfig(widths=(300,), steps=5)


def states_of(data, config):
    first = training.init(data, config, rng(0))
    return [first, *training.iterate(data, first, config)]


def seen(states):
    """The target of the last weights with the first ones before."""
    before = training.earlier_weights(states[0], states[-1])
    return Target.of(states[-1].net, states[-1].q_min, before=before)


def pulls(net, data):
    """y grad Phi of each point, by autograd (n, P)."""
    rows = []
    for x, y in zip(data.x, data.y, strict=True):
        theta = net.theta.clone().requires_grad_()
        (row,) = torch.autograd.grad(y * phi(net.with_theta(theta), x[None])[0], theta)
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_change_is_a_sum_over_steps_with_coefficients_of_one_sign(momentum) -> None:
    config = TrainConfig(widths=(9,), steps=6, momentum=momentum)
    states = states_of(CIRCLE, config)
    moved, total = torch.zeros_like(states[0].net.theta), torch.zeros_like(states[0].net.theta)
    for t, (now, after) in enumerate(pairwise(states)):
        push = after.net.theta - now.net.theta - momentum * moved
        rows = pulls(now.net, CIRCLE)
        coef, left = nnls(rows.numpy().T, push.numpy())
        assert left <= 1e-12 * float(push.norm())
        later = sum(momentum**s for s in range(config.steps - t))  # of all steps that carry it on
        total += later * (torch.from_numpy(np.asarray(coef)) @ rows)
        moved = after.net.theta - now.net.theta
    change = states[-1].net.theta - states[0].net.theta
    assert torch.allclose(total, change, rtol=0, atol=1e-12 * float(change.norm()))


@pytest.mark.parametrize("widths", [(40,), (30, 25)])
@pytest.mark.parametrize("biases", ["first layer", "none", "everywhere"])
def test_after_one_step_the_points_leave_nothing(widths, biases) -> None:
    config = TrainConfig(
        widths=widths, steps=1, bias=biases != "none", all_biases=biases == "everywhere",
    )  # fmt: skip
    change = Change.of(seen(states_of(CIRCLE, config)), 3)
    h, _ = change.hidden_layer(CIRCLE.x)
    coef, kappa, left = change.fit(h, CIRCLE.y, ridge=0)
    assert float(left.norm()) <= 1e-12 * float((change.new - change.old).norm())
    assert kappa == pytest.approx(1, rel=1e-9)
    assert bool((coef >= 0).all())
    moved = CIRCLE.x + 0.05 * draw(*CIRCLE.x.shape, seed=3)
    assert float(change.fit(change.hidden_layer(moved)[0], CIRCLE.y)[2].norm()) > 1e-6 * float(
        (change.new - change.old).norm()
    )


@pytest.mark.parametrize("widths", [(7,), (6, 5, 4)])
def test_slopes_are_those_of_autograd(widths) -> None:
    net = make(widths, seed=2)
    change = Change((net,), net.blocks[-1][0], net.blocks[-1][0])
    x = draw(3, 2, seed=4)
    h, slope = change.hidden_layer(x)

    def layer_at(one):
        return change.hidden_layer(one[None])[0][0, 0]

    for i, one in enumerate(x):
        wanted = torch.autograd.functional.jacobian(layer_at, one)
        assert torch.allclose(slope[0, i], wanted, rtol=1e-12, atol=1e-14)
    assert torch.allclose(h[0] @ net.weights[-1][0], phi(net, x), rtol=1e-12, atol=1e-14)


def test_points_are_found_after_five_steps_and_unseen_ones_are_not() -> None:
    states = states_of(CIRCLE, WIDE)
    assert states[-1].q_min < 0  # far from any margin
    target, config = seen(states), SnapshotsConfig(steps=12, tried=600)
    assert not target.separated
    run = [snapshots.init(target, config, rng(1))]
    run += snapshots.ATTACK.iterate(target, run[0], config)
    left = [state.residual for state in run]
    assert all(b <= a * (1 + 1e-6) for a, b in pairwise(left)) and left[-1] < 0.05
    claims = snapshots.report(target, run[-1], config)
    assert int(score(CIRCLE, claims.x, claims.y).found[1]) >= 5
    assert int(score(heldout(CIRCLE, 1), claims.x, claims.y).found[1]) <= 1


def test_points_that_neurons_saw_alone_are_read_before_any_step_and_stay() -> None:
    states = states_of(CIRCLE, TrainConfig(widths=(600,), steps=20))
    target, config = seen(states), SnapshotsConfig(steps=4, tried=200)
    first = snapshots.init(target, config, rng(1))
    assert first.read >= 2 and first.t == 0
    away = torch.cdist(first.x, CIRCLE.x)
    assert away.min(1).values.max() < 1e-9
    assert torch.equal(first.y, CIRCLE.y[away.argmin(1)])
    last, claims = attacked(snapshots.ATTACK, target, config)
    assert torch.equal(last.x[: first.read], first.x) and len(last.x) > first.read
    assert torch.cdist(first.x, claims.x).min(1).values.max() == 0
    assert claims.lam.diff().max() <= 0
    told = last.numbers()
    assert (told["read"], told["rank"]) == (first.read, first.rank)


def test_a_change_whose_points_are_all_read_needs_no_step() -> None:
    """A fine-tuning on three points of four numbers, far from each other."""
    first = init_network(4, (400,), generator=rng(5), first_scale=1.0)
    x = 2 * torch.eye(4, dtype=torch.float64)[:3] - 0.3
    points = replace(CIRCLE, x=x, y=torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    config = TrainConfig(widths=(400,), steps=30)
    begun = training.init(points, config, rng(1), first)
    last = training.advance(points, begun, config, 30)
    target = Target.of(last.net, last.q_min, before=training.earlier_weights(begun, last))
    state = snapshots.init(target, SnapshotsConfig(), rng(0))
    assert state.read == state.rank == 3 and state.whole
    assert snapshots.terminate(state, SnapshotsConfig()) is Status.COMPLETE
    assert torch.cdist(x, state.x).min(1).values.max() < 1e-8


def test_a_scale_of_both_snapshots_changes_nothing() -> None:
    states = states_of(CIRCLE, WIDE)
    first, last = states[0].net, states[-1].net
    config = SnapshotsConfig(steps=3, tried=60)
    one, _ = attacked(snapshots.ATTACK, Target.of(last, 1.0, before=first), config)
    two, _ = attacked(snapshots.ATTACK, Target.of(last, 4.0, before=first), config)
    assert torch.allclose(one.x, two.x, rtol=1e-6) and torch.equal(one.y, two.y)
    assert one.residual == pytest.approx(two.residual, rel=1e-6)


def test_weights_are_brought_to_one_scale() -> None:
    """Training keeps its norm by powers of two, which no step has made."""
    states = states_of(CIRCLE, TrainConfig(widths=(300,), steps=300))
    late = next(state for state in states if state.log_scale)
    before = training.earlier_weights(states[0], late)
    assert before is not None
    ratio = float(before.rho / states[0].net.rho)
    assert ratio == pytest.approx(math.exp(-late.log_scale), rel=1e-12) and ratio < 0.9
    assert training.earlier_weights(states[0], states[0]) is None
    assert training.earlier_weights(None, late) is None


def test_other_attacks_need_a_margin_and_this_one_a_snapshot() -> None:
    target = seen(states_of(CIRCLE, WIDE))
    for key, entry in ROSTER.items():
        if entry.own is None:
            assert ("not separated" in entry.refusal(target)) is (key != "snapshots")
    alone = Target(target.net)
    with pytest.raises(ValueError, match="the weights from before"):
        snapshots.ATTACK.init(alone, SnapshotsConfig(), rng(0))
    with pytest.raises(ValueError, match="must be positive"):
        Target.of(target.net, -1.0)
    with pytest.raises(ValueError, match="of the same network"):
        replace(alone, before=make((9,)))
    assert kkt.init(Target.of(target.net, 1.0), KKTConfig(m=4), rng(0)).t == 0


def test_a_change_that_is_a_scale_alone_needs_no_point() -> None:
    net = make((20,))
    target = Target.of(net.with_theta(2 * net.theta), 1.0, before=net)
    last, claims = attacked(snapshots.ATTACK, target, SnapshotsConfig(steps=2, tried=20))
    assert snapshots.terminate(last, SnapshotsConfig()) is Status.COMPLETE
    assert last.kappa == pytest.approx(2, rel=1e-6) or last.residual < 1e-6
    assert not len(claims.x) or float(claims.lam.max()) < 1e-6


def test_the_margin_of_the_point_that_went_falls() -> None:
    data, config = preset("alternating-circle", n=8), TrainConfig(widths=(60,), steps=2000)
    first = training.init(data, config, rng(0))
    state = training.advance(data, first, config, config.steps)
    keep = torch.arange(8) != 5
    rest = replace(data, x=data.x[keep], y=data.y[keep])
    begun = training.init(rest, config, rng(1), state.net)
    after = training.advance(rest, begun, replace(config, steps=400), 400)
    share = kept_margins(state.net, after.net, data.x, data.y)
    assert int(share.argmin()) == 5 and float(share[5]) < 0.9 * float(share[keep].min())


def test_networks_without_a_hidden_layer_are_refused() -> None:
    flat = Network((torch.ones(1, 2).double(),), (None,))
    target = Target(flat, before=flat.with_theta(2 * flat.theta))
    assert "hidden layer" in snapshots.ATTACK.refusal(target)
