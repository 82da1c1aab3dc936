"""Certainty of claims and maps of radii: no certified place is false, and maps agree with radii."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.engine.attacks.certified import ATTACK
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import assumed_cone, cone_of, obstacle, threshold
from explorer.engine.explanations.certainty import certainty, radius_map, truth_residual
from explorer.engine.explanations.cone import Assumptions, Cone
from explorer.engine.margin import normalise, q_of
from explorer.engine.progress import Stopped
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research.runs import train
from tests.engine.draws import draw, make, rng, uniform


def points(seed, n=5):
    x = 4 * uniform(n, 1, seed=seed) - 2
    y = torch.where(torch.rand(n, generator=rng(seed + 1)) < 0.5, 1.0, -1.0).double()
    y[0], y[1] = 1.0, -1.0
    return Dataset(x, y)


def exact(data):
    return normalise(maximum_margin(data.x, data.y).net, data.x, data.y)[0]


def changed(net, seed):
    """The network as it is, moved, and stored in few bits."""
    step = draw(len(net.theta), seed=seed)
    yield net
    for share in (1e-6, 1e-4, 1e-3):
        yield net.with_theta(net.theta + share * step)
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        yield net.with_parameters([p.to(kind).double() for p in net.parameters])


def near(data, at, half, label):
    """Whether a point of this label lies within `half` of the place (d,)."""
    apart = (data.x - torch.as_tensor(at)).abs().amax(1)
    return bool(((apart <= half + 1e-9) & (data.y == label)).any())


def networks():
    """Exact networks and trained ones on the line, each changed in six ways."""
    for seed in range(3):
        data = points(200 + seed)
        yield data, maximum_margin(data.x, data.y).net
    data = points(1, 4)
    config = TrainConfig(method="ascent", steps=2000, widths=(20,))
    yield data, train(Run(data, config)).net


def test_no_certified_claim_is_false_on_exact_trained_moved_and_stored_networks():
    """Claims at true points and at others: a radius above the truth's residual needs a point."""
    certified = of_points = 0
    for seed, (data, first) in enumerate(networks()):
        for other in changed(first, seed):
            if not float(q_of(other, data.x, data.y).min()) > 0:
                continue
            cone = assumed_cone(normalise(other, data.x, data.y)[0])
            free = 4 * uniform(25, 1, seed=seed) - 2
            x = torch.cat([data.x, data.x + 0.05, free])
            y = torch.cat([data.y, data.y, free[:, 0].sign()])
            made = certainty(cone, x, y, 0.03, data)
            assert made.limit == made.truth == truth_residual(cone, data)
            certain = made.certain.tolist()
            for at, label, sure in zip(x, y.tolist(), certain, strict=True):
                assert not sure or near(data, at, 0.03 + made.reach, label)
            certified += sum(certain)
            of_points += sum(certain[: data.n])
    assert certified > of_points > 25


def test_without_the_truth_the_threshold_decides():
    data = points(202)
    cone = assumed_cone(exact(data))
    known, blind = (certainty(cone, data.x, data.y, 0.03, known) for known in (data, None))
    assert blind.truth is None and blind.limit == blind.threshold == threshold(cone)
    assert known.limit < blind.limit
    assert (known.proven, known.word) == (True, "certified")  # a theorem
    assert (blind.proven, blind.word) == (False, "likely")  # a judgement
    assert bool((blind.certain <= known.certain).all()) and blind.certain.any()
    empty = certainty(cone, data.x[:0], data.y[:0], 0.03)
    assert len(empty.radius) == len(empty.certain) == 0


@pytest.mark.parametrize(
    ("x", "y", "half"),
    [(torch.zeros(2, 2), torch.ones(2), 0.1), (torch.zeros(2, 1), torch.ones(3), 0.1),
     (torch.zeros(2, 1), torch.ones(2), 0.0), (torch.zeros(2, 1), torch.ones(2), float("nan"))],
)  # fmt: skip
def test_claims_that_do_not_fit_are_refused(x, y, half):
    with pytest.raises(ValueError, match=r"expected places|half is a positive"):
        certainty(assumed_cone(exact(points(202))), x, y, half)


def needy(d):
    """Weights that need some of their points: exact on the line, trained in the plane."""
    if d == 1:
        return assumed_cone(exact(points(202)))
    data = preset("alternating-circle", n=8)
    net = train(Run(data, TrainConfig(steps=3000, widths=(30,)))).net
    return Cone.of(normalise(net, data.x, data.y)[0], Assumptions(band=0.05, tau=0.0, box=2.0))


@pytest.mark.parametrize(("d", "side"), [(1, 25), (2, 7)])
def test_map_is_the_radius_around_each_pixel(d, side):
    cone = needy(d)
    low, high, half = [-2.0] * d, [1.5] * d, 0.25
    pictures = list(radius_map(cone, low, high, side, half))
    last = pictures[-1]
    assert last.values.shape == (2, *(side,) * d) and np.isfinite(last.values).all()
    assert all(np.isnan(early.values).any() for early in pictures[:-1])
    at = -2.0 + 3.5 * (np.arange(side) + 0.5) / side
    some = np.random.default_rng(0).integers(0, side, size=(12, d))
    for where in some:
        place = at[where]
        row = where if d == 1 else (side - 1 - where[1], where[0])  # the first row is on top
        for k, label in enumerate((1.0, -1.0)):
            alone = cone.radius(place - half, place + half, label)
            shown = last.values[(k, *row)]
            assert shown <= alone.high * (1 + 1e-9) + 1e-9
            assert shown >= alone.low - 0.06 * alone.high - 0.005
    assert last.values.max() > 1.2 * last.least


def test_map_of_the_line_is_bright_at_the_points_and_nowhere_else():
    data = points(202)
    cone = assumed_cone(exact(data))
    *_, last = radius_map(cone, -2.5, 2.5, 100, 0.05)
    at = -2.5 + 5 * (np.arange(100) + 0.5) / 100
    for k, label in enumerate((1.0, -1.0)):
        needed = at[last.values[k] > last.limit]
        assert len(needed)
        for place in needed:
            assert near(data, place, 0.05 + last.reach, label)


def test_map_and_claims_end_when_nobody_wants_them():
    cone, data = assumed_cone(exact(points(202))), points(202)

    def end(_):
        raise Stopped

    with pytest.raises(Stopped):
        next(radius_map(cone, -1.0, 1.0, 50, 0.1, end))
    with pytest.raises(Stopped):
        certainty(cone, data.x, data.y, 0.03, progress=end)
    with pytest.raises(ValueError, match="a map needs"):
        next(radius_map(cone, 1.0, -1.0, 50, 0.1))


def test_cone_is_kept_and_weights_that_are_refused_say_why():
    target = Target(exact(points(202)))
    assert cone_of(target) is cone_of(target)
    for widths in ((160, 160), (220,)):
        other = Target(make(widths))
        with pytest.raises(ValueError, match=r"at most 25000 weights|at most 200"):
            cone_of(other)
        assert obstacle(other) and ATTACK.refusal(other)
    asked = Target(make((70,)))
    assert obstacle(asked) and not ATTACK.refusal(asked)
