"""The whole road: points, training, target, attack from noise, claims, verdict."""

from __future__ import annotations

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.scoring import Kind, judge
from explorer.engine.training import TrainConfig
from tests.engine.draws import aimed, attacked, trained


def test_a_trained_network_gives_its_points_away():
    truth = preset("alternating-circle", n=12, seed=0)
    config = TrainConfig(widths=(300,), steps=4000)
    target = aimed(trained(truth, config))
    _, report = attacked(kkt, target, KKTConfig(m=48, steps=500))
    verdict = judge(truth, control_sets(truth), report.x, report.y, 0.03)
    assert verdict.kind is Kind.FOUND, verdict
    assert len(report.x) <= 20


def test_a_vanishing_loss_is_not_a_reconstruction():
    """The exact network of largest margin has six neurons here: other points explain it as well."""
    truth = preset("alternating-circle", n=8, seed=0)
    target = Target.of(maximum_margin(truth.x, truth.y).net, 1.0)
    state, report = attacked(kkt, target, KKTConfig(m=40, steps=400))
    verdict = judge(truth, control_sets(truth), report.x, report.y, 0.03)
    assert float(state.l_stationary) < 1e-6
    assert verdict.kind is Kind.AMBIGUOUS, verdict
