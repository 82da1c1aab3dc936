"""The exact maximum-margin network: closed forms, the proof of optimality, invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.engine.certificate import TAU_EXACT, certify
from explorer.engine.exact import MAX_POINTS_EXACT, maximum_margin
from explorer.engine.exact.faces import arrange, evaluate, peaks
from explorer.engine.network import phi
from tests.engine.draws import rng
from tests.engine.rational import at_margin_one, highest

ROOT3 = math.sqrt(3)


def line(*xs):
    return torch.tensor(xs, dtype=torch.float64)[:, None]


def labels(*ys):
    return torch.tensor(ys, dtype=torch.float64)


def random_set(n, d, seed):
    """Uniform points on [-2, 2]^d with labels of a coin."""
    generator = rng(seed)
    x = 4 * torch.rand(n, d, generator=generator, dtype=torch.float64) - 2
    y = torch.randint(0, 2, (n,), generator=generator) * 2.0 - 1
    return x, y.double()


def circle(*degrees, radius=2.0):
    angle = torch.deg2rad(labels(*degrees))
    return radius * torch.stack([angle.cos(), angle.sin()], 1)


CLOSED_FORMS = {
    # name: x, y, 1/2 |theta|^2, multipliers where they are unique
    "one point": (line(0.7), labels(1), 0.8192319205190405, [0.8192319205190405]),
    "one point in the plane": (
        torch.tensor([[0.3, 0.4]]).double(), labels(-1), 2 / math.sqrt(5), [2 / math.sqrt(5)]
    ),
    "opposite, close": (
        line(-0.5, 0.5), labels(-1, 1), math.sqrt(1.25) / 0.5, [math.sqrt(1.25)] * 2
    ),
    "opposite, far": (line(-2, 2), labels(-1, 1), 2 / math.sqrt(5), [1 / math.sqrt(5)] * 2),
    "two alike, near: a constant": (line(-1, 1), labels(1, 1), 1.0, [0.5, 0.5]),
    "two alike, far: two neurons": (
        line(-2, 2), labels(1, 1), 2 / math.sqrt(5), [1 / math.sqrt(5)] * 2
    ),
    "two alike, at the switch": (line(-ROOT3, ROOT3), labels(1, 1), 1.0, [0.5, 0.5]),
    "inner pair": (
        line(-2, -1, 1, 2), labels(-1, 1, 1, -1), 3 + 2 * ROOT3,
        [(1 + ROOT3) / 2, 1 + ROOT3 / 2, 1 + ROOT3 / 2, (1 + ROOT3) / 2],
    ),
    "five points": (
        line(-2, -1, 0.5, 1.5, 3), labels(1, -1, -1, 1, -1), 10.1323577514,
        [1.2126781252, 1.4552137502, 2.4091147003, 3.8535007505, 1.2018504252],
    ),
    "invisible points": (
        line(-3, -2, 2, 3), labels(-1, -1, 1, 1), 2 / math.sqrt(5),
        [0, 1 / math.sqrt(5), 1 / math.sqrt(5), 0],
    ),
    "obtuse": (  # x~_i . x~_l <= 0 for all pairs: one neuron per point
        line(-1.5, 2.5), labels(1, 1), 1 / math.sqrt(3.25) + 1 / math.sqrt(7.25),
        [1 / math.sqrt(3.25), 1 / math.sqrt(7.25)],
    ),
    "120 degrees, one apart": (circle(0, 120, 240), labels(1, 1, -1), 1.15432037, None),
    "120 degrees, alike": (circle(0, 120, 240), labels(1, 1, 1), 1.0, [1 / 3] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name):
    x, y, objective, lam = CLOSED_FORMS[name]
    exact = maximum_margin(x, y)
    assert exact.polished
    assert exact.violation <= 1e-9
    assert exact.objective == pytest.approx(objective, abs=1e-8)
    assert exact.dual == pytest.approx(objective, abs=1e-8)
    assert float(exact.net.rho) ** 2 / 2 == pytest.approx(objective, abs=1e-8)
    if lam is not None:
        assert exact.lam.tolist() == pytest.approx(lam, abs=1e-8)


@pytest.mark.parametrize("x0", [0.3, 0.5, 1.0, 1.7])
def test_two_opposite_points_give_the_published_function(x0):
    exact = maximum_margin(line(-x0, x0), labels(-1, 1))
    probe = torch.linspace(-3, 3, 41, dtype=torch.float64)
    if x0 >= 1:
        wanted = ((x0 * probe + 1).relu() - (1 - x0 * probe).relu()) / (1 + x0**2)
    else:
        wanted = ((probe + x0).relu() - (x0 - probe).relu()) / (2 * x0)
    torch.testing.assert_close(phi(exact.net, probe[:, None]), wanted, atol=1e-8, rtol=0)


def test_five_points_break_where_the_theory_says():
    x, y, *_ = CLOSED_FORMS["five points"]
    net = maximum_margin(x, y).net
    bias = net.biases[0]
    assert bias is not None
    breaks = torch.unique((-bias / net.weights[0][:, 0] * 1e8).round() / 1e8)
    assert breaks.tolist() == pytest.approx([-0.25, 1.5], abs=1e-8)
    # between and beyond the breakpoints: slopes -2, 2, -4/3
    probe = line(-2, -1, 0, 1, 2, 3)
    values = phi(net, probe)
    slopes = (values[1::2] - values[::2]).tolist()
    assert slopes == pytest.approx([-2, 2, -4 / 3], abs=1e-8)


def test_a_kkt_point_need_not_be_global():
    """One neuron per point at 120 degrees is KKT with 3/sqrt 5, above the optimum."""
    x = circle(0, 120, 240)
    for y, best in ((labels(1, 1, -1), 1.15432037), (labels(1, 1, 1), 1.0)):
        assert maximum_margin(x, y).objective < best + 1e-8 < 3 / math.sqrt(5)


SIZES = [(4, 1), (9, 1), (15, 1), (5, 2), (8, 2), (12, 2)]


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_random_sets_are_solved_and_proved_and_are_kkt_points(n, d):
    """At least 95% polished; every net feasible; weak duality closed where polished."""
    polished = 0
    for seed in range(20):
        x, y = random_set(n, d, seed)
        exact = maximum_margin(x, y)
        q = y * phi(exact.net, x)
        assert float(q.min()) > 1 - 1e-9
        assert float(exact.lam.min()) >= 0
        # sum lam / max |h| bounds 1/2 |theta|^2 of every feasible network from below
        assert exact.dual / (1 + exact.violation) <= exact.objective * (1 + 1e-9)
        if exact.polished:
            polished += 1
            assert exact.violation <= 1e-9
            assert exact.objective == pytest.approx(exact.dual, rel=1e-9)
            assert float(exact.lam @ (q - 1).abs()) < 1e-7 * exact.dual
            # A KKT point
            certificate = certify(exact.net, x, y, tau=TAU_EXACT)
            assert certificate.residual < 1e-10
            assert certificate.norm_identity < 1e-10
            assert certificate.balance < 1e-10
    assert polished >= 19


def test_training_never_beats_it():
    """No feasible network of any kind is below the dual bound: here random features."""
    x, y = random_set(6, 2, 3)
    exact = maximum_margin(x, y)
    generator = rng()
    for _ in range(20):
        wt = torch.randn(50, 3, generator=generator, dtype=torch.float64)
        features = (torch.cat([x, torch.ones(6, 1)], 1) @ wt.T).relu()
        c = torch.linalg.lstsq(features, y).solution
        if float((features @ c * y).min()) < 1 - 1e-9:
            continue
        assert float((c.abs() * wt.norm(dim=1)).sum()) >= exact.dual


def test_without_newton_the_network_is_still_feasible_and_says_so(monkeypatch):
    monkeypatch.setattr("explorer.engine.exact.polish", lambda *_: iter(()))
    x, y = random_set(9, 2, 1)
    rough = maximum_margin(x, y)
    monkeypatch.undo()
    exact = maximum_margin(x, y)
    assert not rough.polished
    assert float((y * phi(rough.net, x)).min()) >= 1 - 1e-12
    assert exact.objective <= rough.objective <= exact.objective * 1.001


@pytest.mark.parametrize("d", [1, 2])
def test_the_faces_hold_the_maximum(d):
    """No direction of a fine sample exceeds the highest listed peak, and that one is attained."""
    x, y = random_set(7, d, 11)
    weight = (y * torch.rand(7, generator=rng(2))).double().numpy()
    faces = arrange(x.numpy())
    found = peaks(faces, weight, 1e-3)
    u = torch.randn(20_000, d + 1, generator=rng(3)).double()
    sample = abs(evaluate(faces, weight, (u / u.norm(dim=1, keepdim=True)).numpy())).max()
    top = abs(found.h).max()
    assert sample <= top * (1 + 1e-12)
    assert sample > top * 0.98
    torch.testing.assert_close(
        torch.from_numpy(evaluate(faces, weight, found.u)), torch.from_numpy(found.h)
    )


def test_cells_of_points_on_a_common_line():
    """Points on a line meet in one corner: 2n cones around it instead of n^2 - n + 2."""
    t = torch.tensor([-1.0, -0.2, 0.7, 1.1], dtype=torch.float64)
    assert len(arrange(torch.stack([t, 0.5 * t + 0.1], 1).numpy()).cells) == 8
    x, _ = random_set(6, 2, 0)
    assert len(arrange(x.numpy()).cells) == 6 * 5 + 2
    assert len(arrange(x[:, :1].numpy()).cells) == 12


def test_a_line_in_the_plane_is_the_line():
    """The same points drawn on a horizontal line through 0 need the same norm."""
    x, y, objective, _ = CLOSED_FORMS["five points"]
    plane = torch.cat([x, torch.zeros_like(x)], 1)
    assert maximum_margin(plane, y).objective == pytest.approx(objective, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 8), st.floats(0, 6.28))
def test_rotation_flip_and_order_change_nothing(seed, n, angle):
    x, y = random_set(n, 2, seed)
    exact = maximum_margin(x, y)
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    order = torch.randperm(n, generator=rng(seed))
    other = maximum_margin(x[order] @ turn, -y[order])
    assert other.polished == exact.polished
    assert other.objective == pytest.approx(exact.objective, rel=1e-8)
    back = -phi(other.net, x @ turn) * y
    assert float(back.min()) > 1 - 1e-8


def test_twins_share_their_multiplier():
    exact = maximum_margin(line(0.7, -1.2, 0.7), labels(1, -1, 1))
    single = maximum_margin(line(0.7, -1.2), labels(1, -1))
    assert exact.lam[0] == exact.lam[2]
    assert float(exact.lam[0]) == pytest.approx(float(single.lam[0]) / 2)
    assert exact.objective == pytest.approx(single.objective)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(0, 2), torch.zeros(0), "n=0, d=2"),
        (torch.zeros(2, 3), torch.ones(2), "d=3"),
        (torch.rand(MAX_POINTS_EXACT + 1, 2), torch.ones(MAX_POINTS_EXACT + 1), "200 points"),
        (line(1.0, 2.0, 1.0), labels(1, 1, -1), "points 0 and 2 coincide"),
        (line(1.0, 2.0), labels(1, 0.5), "labels"),
        (line(1.0, math.nan), labels(1, 1), "finite"),
        (line(1.0, 2.0), labels(1), r"y \(n,\)"),
    ],
)
def test_bad_input_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        maximum_margin(x, y)


@pytest.mark.parametrize("seed", [5120, 5155])
def test_slow_newton_steps_do_not_pass_for_exact(seed):
    """On these two sets the regularised steps stall at a residual of 1e-7."""
    generator = np.random.default_rng(seed)
    x = torch.from_numpy(generator.uniform(-2, 2, (12, 2)))
    y = torch.from_numpy(generator.choice([-1.0, 1.0], 12))
    exact = maximum_margin(x, y)
    assert exact.polished
    assert certify(exact.net, x, y, tau=TAU_EXACT).residual < 1e-10


def far_set(n, d, seed, offset, scale, pair):
    """Uniform points, by `scale`, `offset` from 0; two of opposite labels 1e-3 scale apart."""
    generator = np.random.default_rng([seed, n, d])
    x, y = generator.uniform(-1, 1, (n, d)), generator.choice([-1.0, 1.0], n)
    if pair:
        way = generator.normal(size=d)
        x[1], y[1] = x[0] + 1e-3 * way / np.linalg.norm(way), -y[0]
    return torch.from_numpy(scale * x + offset), torch.from_numpy(y)


def nothing_false_is_said(x, y):
    """The network, after what it claims was held against rational numbers."""
    exact = maximum_margin(x, y)
    top, reached = highest(x, y, exact.lam), at_margin_one(x, y, exact.net)
    assert exact.violation >= top - 1
    bound = exact.dual / top  # no network of any width is below this, whoever finds it
    assert exact.dual / (1 + exact.violation) <= bound * (1 + 1e-15)
    if exact.polished:
        assert reached <= bound * (1 + 1e-8)
    return exact


@pytest.mark.parametrize("offset", [0, 20, 300])
def test_what_is_polished_is_beaten_by_no_solver(offset):
    polished = [
        nothing_false_is_said(*far_set(5, d, 0, offset, scale, pair)).polished
        for d in (1, 2)
        for scale in (1e-2, 1, 1e2)
        for pair in (False, True)
    ]
    assert len(polished) == 12
    assert sum(polished) >= 8  # or the law above is of nothing


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("offset", [0, 1, 20, 100, 300])
@pytest.mark.parametrize("n", [8, 12])
def test_what_is_polished_is_beaten_by_no_solver_on_more_points(n, offset):
    for seed in range(3):
        for d in (1, 2):
            for scale in (1e-2, 1, 1e2):
                for pair in (False, True):
                    nothing_false_is_said(*far_set(n, d, seed, offset, scale, pair))


@pytest.mark.parametrize("offset", [20, 100, 300])
def test_far_from_the_origin_the_optimum_is_still_found(offset):
    """Without turning the points to their centre, none of these is solved right."""
    for seed in range(3):
        x, y = far_set(10, 2, seed, offset, 1, False)
        exact = maximum_margin(x, y)
        assert exact.polished
        assert exact.shortfall < 1e-8
        assert float((y * phi(exact.net, x)).min()) > 1 - 1e-8


def test_what_is_not_proved_is_said_not_to_be_known(monkeypatch):
    monkeypatch.setattr("explorer.engine.exact.polish", lambda *_: iter(()))
    x, y = random_set(9, 2, 1)
    rough = maximum_margin(x, y)
    assert not rough.polished
    best = at_margin_one(x, y, rough.net)
    monkeypatch.undo()
    exact = maximum_margin(x, y)
    assert rough.objective * (1 - rough.shortfall) <= exact.objective * (1 + 1e-9)
    assert rough.dual / (1 + rough.violation) <= exact.objective * (1 + 1e-9) <= best * (1 + 2e-9)
