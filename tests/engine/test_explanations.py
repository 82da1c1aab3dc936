"""Laws of the cells, splits and merges: what explains the same weights, and where it ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.classes import class_labels, contrast
from explorer.engine.data import preset
from explorer.engine.explanations.cells import (
    cell_corners,
    cell_extent,
    cell_of,
    level_directions,
    null_space,
    segment,
    slopes_at,
)
from explorer.engine.explanations.safe_split import (
    SafeSplitConfig,
    free_directions,
    in_space,
    safe_splits,
)
from explorer.engine.explanations.splitting import (
    Explanation,
    explanation_of,
    extent_at,
    flat_directions,
    gradients,
    kinks_at,
    margin_error,
    margins,
    merge,
    pinned_points,
    predicted_jump,
    residual,
    slackness,
    split,
    with_point_at,
)
from explorer.engine.gradients import gradient
from explorer.engine.margin import q_of
from explorer.engine.network import phi, phi_all, scaled_network
from explorer.engine.training import TrainConfig
from tests.engine.closed_forms import TABLE, tensor
from tests.engine.draws import aimed, draw, exact_set, make, rng, trained

REACH = 5.0


def widest_split(net, e, i: int, u, reach: float, share: float = 1.0) -> Explanation:
    """Point i split to `share` of its extent along u, at most `reach` each way."""
    extent = extent_at(net, e, i, u)
    a, b = (min(v, reach) * share for v in (extent.plus, extent.minus))
    return split(net, e, i, u, a, b)


def exact(seed, n=8, d=2):
    net, x, y = exact_set(d, n, seed, 100)
    return net, explanation_of(net, x, y)


def movable(net, e):
    """(i, direction, extent) of every point that can be split along its level line."""
    for i in range(e.n):
        basis = level_directions(net, e.x[i], e.at(i), cover=e.cover[i])
        for u in basis.T:
            extent = extent_at(net, e, i, u)
            if min(extent.plus, extent.minus) > 1e-6:
                yield i, u, extent


# --- an explanation ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", TABLE)
def test_closed_forms_are_explained_by_their_points(name: str) -> None:
    known = TABLE[name]
    e = explanation_of(known.net, known.x, known.y)
    assert residual(known.net, e) < 1e-9
    assert margin_error(known.net, e) < 1e-12
    assert abs(slackness(known.net, e)) < 1e-12
    assert e.mass == pytest.approx(float(known.net.rho) ** 2 / 2, rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_points_off_the_margin_are_left_out_where_others_explain_the_weights(seed: int) -> None:
    net, e = exact(seed)
    assert residual(net, e) < 1e-9
    assert margin_error(net, e) < 1e-7


def test_what_does_not_fit_is_refused() -> None:
    net, e = exact(0)
    with pytest.raises(ValueError, match="not negative"):
        replace(e, lam=-e.lam)
    with pytest.raises(ValueError, match=r"expected x \(n, d\)"):
        replace(e, y=e.y[1:])
    with pytest.raises(ValueError, match="no point 99"):
        e.at(99)
    with pytest.raises(ValueError, match="no multiplier is positive"):
        explanation_of(net, e.x[:0], e.y[:0])


def test_margin_and_slackness_count_what_has_a_multiplier() -> None:
    net, x = make((3,), seed=2), draw(3, 2, seed=8)
    y = torch.where(phi(net, x) < 0, -1.0, 1.0).double()
    q = (y * phi(net, x)).tolist()
    lam, slopes = tensor([2.0, 0.0, 1.0]), slopes_at(net, x)
    e = Explanation(x, y, lam, slopes, torch.arange(3), y[:, None])
    assert slackness(net, e) == pytest.approx((2 * (q[0] - 1) + (q[2] - 1)) / 3)
    far = e.take(torch.tensor([0, 2]))
    assert margin_error(net, e) == margin_error(net, far) == max(abs(q[0] - 1), abs(q[2] - 1))
    assert margin_error(net, e) < abs(q[1] - 1)


# --- cells ------------------------------------------------------------------------------------
@pytest.mark.parametrize("widths", [(5,), (6, 4), (5, 4, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_affine_up_to_the_wall_and_no_further(widths, seed: int) -> None:
    net, x, u = make(widths, seed=seed), draw(2, seed=seed + 20), draw(2, seed=seed + 40)
    extent = cell_extent(net, x, u)
    a, b = min(extent.plus, REACH), min(extent.minus, REACH)
    ends = torch.stack([x - 0.999 * b * u, x + 0.999 * a * u])
    middle = ends.mean(dim=0, keepdim=True)
    found = gradient(net, torch.cat([ends, middle]))
    assert torch.allclose(found[:2].mean(dim=0), found[2], atol=1e-12)
    sides = (1, extent.plus, extent.walls_plus), (-1, extent.minus, extent.walls_minus)
    for sign, length, walls in sides:
        if not walls:
            assert math.isinf(length)
            far = slopes_at(net, (x + sign * 1e4 * u)[None])
            assert all(torch.equal(s, t) for s, t in zip(far, slopes_at(net, x[None]), strict=True))
            continue
        past = slopes_at(net, (x + sign * length * (1 + 1e-9) * u)[None])
        layer, j = walls[0]
        assert past[layer][0, j] != slopes_at(net, x[None])[layer][0, j]


def test_a_point_on_a_neuron_goes_along_it_and_nowhere_else() -> None:
    known = TABLE["pair at 0.5"]  # a neuron stands on each point
    extent = cell_extent(known.net, known.x[0], tensor([1.0]))
    assert (extent.plus, extent.minus, extent.kinks) == (0.0, 0.0, 1)
    net = make((1,), seed=1)
    w, b = net.weights[0][0], net.biases[0][0]
    on = -b * w / w.square().sum()
    along = cell_extent(net, on, tensor([-float(w[1]), float(w[0])]))
    assert math.isinf(along.plus) and math.isinf(along.minus) and along.kinks == 0
    assert cell_extent(net, on, w).plus == 0


def test_a_one_sided_wall_lets_go_on_one_side() -> None:
    net = make((1,), seed=1)
    w, b = net.weights[0][0], net.biases[0][0]
    on = -b * w / w.square().sum()
    active = cell_extent(net, on, w, [torch.ones(1, dtype=torch.float64)])
    assert math.isinf(active.plus) and active.minus == 0


def test_the_box_cuts_the_extent_and_leaves_nothing_at_its_edge() -> None:
    net = make((1,), seed=1)
    x, u = tensor([0.2, 0.7]), tensor([1.0, 0.0])
    extent = cell_extent(net, x, u)
    boxed = extent.within_box(x, u, 0.0, 1.0)
    assert boxed.plus == min(extent.plus, 0.8) and boxed.minus == min(extent.minus, 0.2)
    assert extent.within_box(tensor([0.0, 0.5]), u, 0.0, 1.0).minus == 0
    for v in (u, -u):
        whole = cell_extent(net, x, v)
        near, far = whole.within_box(x, v, -9.0, 9.0), whole.within_box(x, v, 0.1, 0.8)
        assert (near.walls_plus, near.walls_minus) == (whole.walls_plus, whole.walls_minus)
        assert whole.walls_plus + whole.walls_minus == ((0, 0),)
        assert (far.walls_plus, far.walls_minus) == ((), ())  # the box ends it, no neuron
    outside = extent.within_box(tensor([0.5, 1.5]), u, 0.0, 1.0)
    assert (outside.plus, outside.minus) == (0, 0)
    with pytest.raises(ValueError, match="low < high"):
        extent.within_box(x, u, 1.0, 0.0)


@pytest.mark.parametrize(
    ("x", "u", "match"),
    [
        (tensor([0.0, 0.0]), tensor([0.0, 0.0]), "not zero"),
        (tensor([0.0, 0.0]), tensor([1.0]), "expected a direction"),
        (tensor([0.0]), tensor([1.0]), "a point of this network"),
    ],
)
def test_directions_and_points_that_do_not_fit_are_refused(x, u, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        cell_extent(make((3,)), x, u)


@pytest.mark.parametrize("seed", range(4))
def test_the_polygon_is_the_cell(seed: int) -> None:
    net, x = make((7,), seed=seed), 0.5 * draw(2, seed=seed + 3)
    corners = torch.from_numpy(cell_corners(cell_of(net, x), x, 2.0))
    inside = x + 0.999 * (corners - x)
    pattern = slopes_at(net, x[None])[0]
    assert bool((slopes_at(net, inside)[0] == pattern).all())
    assert bool((corners.abs() <= 2 + 1e-9).all())
    beyond = x + 1.001 * (corners - x)
    changed = (slopes_at(net, beyond)[0] != pattern).any(dim=1) | (beyond.abs() > 2).any(dim=1)
    assert bool(changed.all())
    ends = segment(x, tensor([1.0, 0.0]), math.inf, 0.5, 2.0)
    assert ends.shape == (2, 2) and ends[1, 0] == pytest.approx(float(x[0]) + 0.5)


def test_the_interval_is_the_cell_and_a_kink_is_a_point() -> None:
    known = TABLE["pair at 1.6"]  # breakpoints at -1 / 1.6 and 1 / 1.6
    cell = cell_of(known.net, tensor([0.0]))
    assert cell_corners(cell, tensor([0.0]), 2.0)[:, 0] == pytest.approx([-0.625, 0.625])
    half = cell_of(known.net, tensor([0.625]), [tensor([1.0, 0.5])])
    assert cell_corners(half, tensor([0.625]), 2.0)[:, 0] == pytest.approx([0.625, 0.625])


# --- splits and merges --------------------------------------------------------------------------
def within_reach(net, e, i, u):
    """How far both halves of point i may go along u, at most REACH."""
    extent = extent_at(net, e, i, u)
    return min(extent.plus, REACH), min(extent.minus, REACH)


@pytest.mark.parametrize("seed", range(6))
def test_a_split_in_the_cell_keeps_stationarity_and_the_weighted_margins(seed: int) -> None:
    net, e = exact(seed)
    generator = rng(seed)
    for i in range(e.n):
        for _ in range(3):
            u = torch.randn(2, generator=generator, dtype=torch.float64)
            a, b = within_reach(net, e, i, u)
            if min(a, b) < 1e-9:
                continue
            s = split(net, e, i, u, a, b)
            assert abs(residual(net, s) - residual(net, e)) < 1e-12
            assert s.mass == pytest.approx(e.mass, rel=1e-12)
            assert float(s.lam @ margins(net, s)) == pytest.approx(
                float(e.lam @ margins(net, e)), rel=1e-12
            )
            error = abs(float(cell_of(net, e.x[i], e.at(i)).gradient @ u))
            assert margin_error(net, s) == pytest.approx(max(a, b) * error, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_along_the_level_line_the_margin_stays_too(seed: int) -> None:
    net, e = exact(seed)
    for i, u, _ in movable(net, e):
        s = widest_split(net, e, i, u, REACH)
        assert residual(net, s) < 1e-9
        assert margin_error(net, s) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_without_the_margin_only_kinks_take_directions_away(seed: int) -> None:
    net, e = exact(seed)
    for i in range(e.n):
        free = level_directions(net, e.x[i], e.at(i), margin=False)
        assert free.shape == (2, max(2 - kinks_at(net, e, i), 0))
        for u in free.T:
            extent = extent_at(net, e, i, u)
            if min(extent.plus, extent.minus) > 1e-6:
                s = widest_split(net, e, i, u, REACH)
                assert abs(residual(net, s) - residual(net, e)) < 1e-12


def test_a_merge_takes_a_split_back() -> None:
    net, e = exact(3)
    i, u, _ = next(movable(net, e))
    back = merge(net, widest_split(net, e, i, u, REACH), i, e.n)
    assert not back.signed
    assert torch.allclose(back.explanation.x, e.x, atol=1e-12)
    assert torch.allclose(back.explanation.lam, e.lam, atol=1e-12)


def test_splits_of_splits_explain_the_same_weights() -> None:
    net, e = exact(3)
    for _ in range(4):
        i, u, _ = max(movable(net, e), key=lambda m: min(m[2].plus, m[2].minus, REACH))
        e = widest_split(net, e, i, u, REACH, share=0.4)
    assert residual(net, e) < 1e-9 and margin_error(net, e) < 1e-9


def test_an_infinite_cell_slides_a_thousand_units() -> None:
    net, e = exact(4)
    i, u, extent = next(m for m in movable(net, e) if math.isinf(m[2].plus))
    s = split(net, e, i, u, 1e3, min(extent.minus, 1.0))
    assert residual(net, s) < 1e-9 and margin_error(net, s) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_at_the_wall_the_residual_jumps_as_predicted(seed: int) -> None:
    net, e = exact(seed)
    for i, u, extent in movable(net, e):
        if not extent.walls_plus or extent.plus > REACH:
            continue
        inner, outer = (
            split(net, e, i, u, extent.plus * f, min(extent.minus, REACH)) for f in (1, 1 + 1e-6)
        )
        jump = predicted_jump(net, outer.x[i], float(outer.lam[i]), extent.walls_plus)
        assert residual(net, inner) < 1e-9
        assert residual(net, outer) == pytest.approx(jump, rel=0.05)


def test_the_jump_of_a_deeper_network_is_the_change_of_its_gradient() -> None:
    net, x = make((5, 4), seed=2), draw(2, seed=5)
    extent = cell_extent(net, x, tensor([1.0, 0.3]))
    place = x + extent.plus * tensor([1.0, 0.3])
    steps = [place + s * 1e-9 * tensor([1.0, 0.3]) for s in (-1, 1)]
    change = gradient(net, torch.stack(steps)).diff(dim=0).norm() / net.rho
    slopes = [s[0] for s in slopes_at(net, steps[0][None])]
    found = predicted_jump(net, place, 1.0, extent.walls_plus, slopes)
    assert found == pytest.approx(float(change), rel=1e-5)
    assert predicted_jump(net, place, 1.0, []) == 0


@pytest.mark.parametrize("lam", [(2.0, 0.5), (0.5, 2.0)])
def test_a_signed_merge_keeps_the_sum_and_breaks_slackness(lam) -> None:
    net = make((6,), seed=4)
    x = torch.stack([tensor([0.1, 0.2]), tensor([0.1001, 0.2])])
    slopes = tuple(s[:1].expand(2, -1) for s in slopes_at(net, x))
    y = tensor([1.0, -1.0])
    e = Explanation(x, y, tensor(lam), slopes, torch.arange(2), y[:, None])
    before = gradients(net, e).T @ e.lam
    made = merge(net, e, 0, 1)
    after = gradients(net, made.explanation).T @ made.explanation.lam
    assert made.signed and made.q != pytest.approx(1)
    assert torch.allclose(before, after, atol=1e-12)
    assert float(made.explanation.lam[0]) == 1.5


def test_merges_and_splits_that_do_not_fit_are_refused() -> None:
    net, e = exact(3)
    i, u, _ = next(movable(net, e))
    with pytest.raises(ValueError, match="two different"):
        merge(net, e, 0, 0)
    far = next(j for j in range(e.n) if any((s[j] != s[i]).any() for s in e.slopes))
    with pytest.raises(ValueError, match="share a cell"):
        merge(net, e, i, far)
    for a, b in ((0.0, 1.0), (1.0, -1.0), (math.inf, 1.0)):
        with pytest.raises(ValueError, match="two positive, finite lengths"):
            split(net, e, i, u, a, b)
    with pytest.raises(ValueError, match="expected a direction"):
        split(net, e, i, u[:1], 1.0, 1.0)


def test_a_point_with_two_kinks_is_pinned_and_moves_only_by_breaking_the_sum() -> None:
    seeds = [(net, e) for net, e in map(exact, range(6))]
    found = 0
    for net, e in seeds:
        for i in range(e.n):
            if kinks_at(net, e, i) < 2:
                continue
            found += 1
            assert bool(pinned_points(net, e)[i])
            extent = extent_at(net, e, i, tensor([1.0, 0.3]))
            assert min(extent.plus, extent.minus) <= 0
            assert residual(net, with_point_at(net, e, i, e.x[i] + 1e-3)) > 1e-3
    assert found


def test_on_a_line_every_point_on_a_slope_is_pinned() -> None:
    net, e = exact(1, n=6, d=1)
    assert bool(pinned_points(net, e).all())
    flat = TABLE["like pair at 1.2"]  # a constant network: everything may move
    free = explanation_of(flat.net, flat.x, flat.y)
    assert not bool(pinned_points(flat.net, free).any())


# --- directions in higher dimension ---------------------------------------------------------------
def test_directions_off_the_span_are_free_to_infinity() -> None:
    x, y = TABLE["obtuse, three points"].x, TABLE["obtuse, three points"].y
    flat = TABLE["obtuse, three points"].net
    wide = flat.with_parameters([
        torch.cat([flat.weights[0], torch.zeros(3, 1, dtype=torch.float64)], dim=1),
        flat.biases[0], flat.weights[1],
    ])  # fmt: skip
    points = torch.cat([x, torch.zeros(3, 1, dtype=torch.float64)], dim=1)
    e = explanation_of(wide, points, y)
    nu = null_space(points)[:, 0]
    assert torch.allclose(nu.abs(), tensor([0.0, 0.0, 1.0]))
    extent = extent_at(wide, e, 0, nu)
    assert math.isinf(extent.plus) and math.isinf(extent.minus)
    s = split(wide, e, 0, nu, 1e6, 1e6)
    assert residual(wide, s) < 1e-9 and margin_error(wide, s) < 1e-9


def test_gradient_descent_freezes_what_no_point_spans() -> None:
    """W(t) nu = W(0) nu for nu orthogonal to the data: the frozen law."""
    from explorer.engine import training
    from explorer.engine.data import Dataset
    from explorer.engine.training import TrainConfig

    x = draw(4, 7, seed=3)
    data = Dataset(x, tensor([1.0, -1.0, 1.0, -1.0]))
    config = TrainConfig(widths=(12,), steps=300, revive=False)
    state = training.init(data, config, rng(0))
    first = state.net.weights[0] * math.exp(state.log_scale)
    for _ in range(300):
        state = training.step(data, state, config)
    last = state.net.weights[0] * math.exp(state.log_scale)
    nu = null_space(x)
    assert torch.allclose(last @ nu, first @ nu, atol=1e-9 * float(last.norm()))
    assert not torch.allclose(last, first, atol=1e-3)


def test_a_trained_network_is_explained_up_to_what_training_left() -> None:
    data = preset("alternating-circle", n=6)
    config = TrainConfig(widths=(30,), method="ascent", steps=3000, ascent_steps=3000)
    target = aimed(trained(data, config))
    e = explanation_of(target.merged(0.02), data.x, data.y, TAU_TRAINED)
    assert residual(target.merged(0.02), e) < 0.1


def test_directions_in_which_points_move_are_those_that_keep_the_sum() -> None:
    """By the derivative of the sum, and of the values at kinks, in places and multipliers."""
    counts = []
    for net, e in map(exact, range(5)):
        s = e.slopes[0]
        kinked = ((s > 0) & (s < 1) & (net.weights[1][0] != 0)).nonzero().tolist()

        def kept(x, lam, net=net, e=e, kinked=kinked):
            total = (lam * e.y) @ gradient(net, x, e.slopes)
            values = x @ net.weights[0].T + net.biases[0]
            return torch.cat([total, *(values[i, j][None] for i, j in kinked)])

        by_x, by_lam = torch.autograd.functional.jacobian(kept, (e.x, e.lam))
        rows = torch.cat([by_x.flatten(1), by_lam], 1)
        free = null_space(rows)[: e.x.numel()]
        counts.append(int(torch.linalg.matrix_rank(free, atol=1e-9)) if free.shape[1] else 0)
        assert flat_directions(net, e) == counts[-1]
    assert 0 in counts and max(counts) > 1


# --- splits that stay in their cell --------------------------------------------------------------


def test_what_is_frozen_becomes_small_and_the_box_bounds_the_split() -> None:
    config = SafeSplitConfig(width=10, steps=200, low=-2.0, high=2.0)
    rows = list(safe_splits(in_space(preset("moons", n=6)), config))
    assert rows[0].t == 0 and rows[-1].t == 200
    assert rows[-1].frozen < 0.2 * rows[0].frozen
    separated = [row for row in rows if row.q_min == row.q_min]
    assert separated and all(row.boxed <= min(row.safe, 2.0) + 1e-12 for row in separated)


def test_points_that_span_everything_and_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="no direction is free"):
        free_directions(preset("moons").x)
    for wrong in ({"width": 0}, {"init_scale": 0.0}, {"low": 1.0}, {"share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong)) if "low" not in wrong else "box"):
            SafeSplitConfig(**wrong)


# --- several classes --------------------------------------------------------------------------
def pulls(net, x, cover):
    """The gradient (P,) of <cover, Phi(x)> by torch's own derivatives."""
    parameters = [p.clone().requires_grad_() for p in net.parameters]
    made = phi_all(net.with_parameters(parameters), x[None])[0] @ cover
    return torch.cat([g.flatten() for g in torch.autograd.grad(made, parameters)])


@pytest.mark.parametrize("name", ["three-blobs", "spiral-arms", "four-blobs", "pie"])
def test_of_several_classes_a_split_keeps_the_sum_and_every_margin(name: str) -> None:
    data = preset(name)
    net = aimed(trained(data, TrainConfig(widths=(40,), steps=2000))).net
    e = explanation_of(net, data.x, data.y)
    assert residual(net, e) < 0.4 and len(e.cover[0]) == data.outputs
    assert torch.equal(e.y, data.y[e.origin]) and torch.equal(e.x, data.x[e.origin])
    before, kept, moved = q_of(net, e.x, e.y), 0, 0
    for i in range(e.n):
        level = level_directions(net, e.x[i], e.at(i), cover=e.cover[i]).T
        for k, u in enumerate([*level, *draw(3, 2, seed=i)]):
            a, b = within_reach(net, e, i, u)
            if min(a, b) < 1e-9:
                continue
            s = split(net, e, i, u, a, b)
            assert abs(residual(net, s) - residual(net, e)) < 1e-10
            halves = torch.tensor([i, e.n])
            own, q = margins(net, s)[halves], q_of(net, s.x, s.y)[halves]
            slope = float(cell_of(net, e.x[i], e.at(i), e.cover[i]).gradient @ u)
            error = float((own - margins(net, e)[i]).abs().max())
            assert error == pytest.approx(max(a, b) * abs(slope), abs=1e-9)
            if k < len(level):
                assert error < 1e-9 and float(q.min()) > min(float(before[i]), 1) - 1e-9
                kept += 1
            else:  # the third class stays away, its own rival does not
                assert float((q - torch.minimum(own, tensor(1.0))).min()) > -1e-9
                moved += 1
    assert kept and moved


@pytest.mark.parametrize("widths", [(9,), (6, 5)])
def test_of_several_outputs_both_halves_pull_as_one_up_to_a_neuron_or_a_third_class(widths) -> None:
    stops = set()
    for seed in range(8):
        net, x = make(widths, seed=seed, outputs=3), draw(2, seed=seed)
        y = class_labels([int(phi_all(net, x[None])[0].argmax())], 3)[0]
        net = scaled_network(net, float(q_of(net, x[None], y)) ** (-1 / net.order))
        cover, u = contrast(phi_all(net, x[None]), y)[0], draw(2, seed=seed + 50)
        extent = cell_extent(net, x, u, cover=cover)
        a, b = (min(v, REACH) * (1 - 1e-9) for v in (extent.plus, extent.minus))
        ends = pulls(net, x + a * u, cover) * b + pulls(net, x - b * u, cover) * a
        assert torch.allclose(ends, (a + b) * pulls(net, x, cover), atol=1e-10)
        third = torch.tensor([1.0, 1, 1]).double() - cover.abs()
        for end, sign, walls in ((extent.plus, 1, extent.walls_plus),
                                 (extent.minus, -1, extent.walls_minus)):  # fmt: skip
            if end == math.inf:
                continue
            values = phi_all(net, (x + sign * end * u)[None])[0]
            clear = float(values[cover > 0] - values[third > 0])
            assert clear > 1 - 1e-9
            assert walls or clear == pytest.approx(1, abs=1e-9)
            stops.add(bool(walls))
    assert stops == {True, False}


@pytest.mark.parametrize("widths", [(9,), (6, 5)])
def test_the_jump_of_several_outputs_is_the_change_of_what_a_point_pulls(widths) -> None:
    net, x, u = make(widths, seed=2, outputs=3), draw(2, seed=5), tensor([1.0, 0.3])
    first = int(phi_all(net, x[None])[0].argmax())
    net = scaled_network(net, 1e3)  # no third class is near
    cover = contrast(phi_all(net, x[None]), class_labels([first], 3)[0])[0]
    extent = cell_extent(net, x, u, cover=cover)
    place = x + extent.plus * u
    change = pulls(net, place + 1e-9 * u, cover) - pulls(net, place - 1e-9 * u, cover)
    slopes = [s[0] for s in slopes_at(net, (place - 1e-9 * u)[None])]
    found = predicted_jump(net, place, 1.0, extent.walls_plus, slopes, cover)
    assert found == pytest.approx(float(change.norm() / net.rho), rel=1e-5) and found > 0


def test_only_points_of_one_pair_of_classes_merge() -> None:
    net, x = make((6,), seed=4, outputs=3), draw(2, seed=3).expand(2, -1)
    slopes = tuple(s.expand(2, -1) for s in slopes_at(net, x[:1]))
    y, lam = tensor([1.0, 1.0]), tensor([2.0, 1.0])
    one, other = tensor([1.0, -1.0, 0.0]), tensor([1.0, 0.0, -1.0])
    apart = Explanation(x, y, lam, slopes, torch.arange(2), torch.stack([one, other]))
    with pytest.raises(ValueError, match="different pairs"):
        merge(net, apart, 0, 1)
    with pytest.raises(ValueError, match="different pairs"):
        merge(net, replace(apart, y=tensor([1.0, 3.0]), cover=torch.stack([one, other])), 0, 1)
    for cover, label, mass in ((one, 1.0, 3.0), (-one, -1.0, 1.0)):
        e = replace(apart, y=tensor([1.0, label]), cover=torch.stack([one, cover]))
        made = merge(net, e, 0, 1)
        assert made.explanation.mass == mass and made.signed == (label < 0)
        assert torch.allclose(
            gradients(net, made.explanation).T @ made.explanation.lam, gradients(net, e).T @ e.lam
        )


def test_where_two_classes_tie_no_line_of_the_plane_is_left() -> None:
    net, x = make((9,), seed=3, outputs=3), draw(2, seed=3)
    values = phi_all(net, x[None])[0]
    own, near, far = values.argsort(descending=True).tolist()
    last = net.weights[1].clone()
    last[far] *= values[near] / values[far]
    net = net.with_parameters([*net.parameters[:-1], last])
    cover = torch.eye(3).double()[own] - torch.eye(3).double()[near]
    net = scaled_network(net, float(phi_all(net, x[None])[0] @ cover) ** (-1 / net.order))
    assert level_directions(net, x, cover=cover).shape == (2, 0)
    free = net.with_parameters([*net.parameters[:-1], net.weights[1] * (1 + cover.abs())[:, None]])
    assert level_directions(free, x, cover=cover).shape == (2, 1)
