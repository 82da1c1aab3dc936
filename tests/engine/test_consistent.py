"""All explanations at once: masses, forced points and farthest sets on exact networks."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.alternatives import determination
from explorer.engine.explanations.programs import farthest, forced_mass, sample_of
from explorer.engine.explanations.sampling import margin_points
from explorer.engine.explanations.splitting import (
    explanation_of,
    margin_error,
    pinned_points,
    residual,
)
from explorer.engine.network import init_network, phi, scaled_network
from tests.engine.closed_forms import TABLE, tensor
from tests.engine.draws import draw, make

O3 = tensor([[-2.0], [-1.0], [0.5], [1.5], [3.0]]), tensor([1.0, -1.0, -1.0, 1.0, -1.0])
BOX = 6.0


def exact(seed, n=6, d=2):
    x = 1.2 * draw(n, d, seed=seed)
    y = torch.where(draw(n, seed=seed + 100) > 0, 1.0, -1.0).double()
    return maximum_margin(x, y).net, x, y


@pytest.mark.parametrize("widths", [(5,), (6, 4)])
@pytest.mark.parametrize("d", [1, 2])
def test_sampled_points_are_on_the_margin_and_in_the_box(widths, d: int) -> None:
    generator = torch.Generator().manual_seed(d)
    net = init_network(d, widths, generator=generator, first_scale=2.0)
    grid = torch.linspace(-2, 2, 9, dtype=torch.float64)
    values = phi(net, grid[:, None].expand(-1, d)).abs()
    net = scaled_network(net, float(values.median()) ** (-1 / net.order))  # so that |Phi| crosses 1
    found = margin_points(net, 3.0, grid=20)
    assert len(found)
    assert float((phi(net, found).abs() - 1).abs().max()) < 1e-6
    assert float(found.abs().max()) <= 3.0 + 1e-9


def test_networks_that_cannot_be_sampled_are_refused() -> None:
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match="line or the plane"):
        margin_points(init_network(3, (4,), generator=generator, first_scale=1.0), 2.0)
    with pytest.raises(ValueError, match="extent must be positive"):
        margin_points(make((4,)), 0.0)
    net, x, y = exact(0)
    with pytest.raises(ValueError, match="radius must be positive"):
        sample_of(net, x, y, BOX, radius=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_every_explanation_has_the_same_mass(seed: int) -> None:
    net, x, y = exact(seed)
    sample = sample_of(net, x, y, BOX, grid=30)
    found = farthest(sample)
    assert found.explanation.mass == pytest.approx(float(net.rho) ** 2 / 2, rel=1e-5)
    assert residual(net, found.explanation) < 1e-4
    assert margin_error(net, found.explanation) < 1e-6
    assert bool((found.explanation.y * phi(net, found.explanation.x) > 0).all())
    assert found.distance >= 0 and found.other == (found.distance >= sample.radius)


def test_the_five_points_of_o3_are_forced_with_their_multipliers() -> None:
    x, y = O3
    lam = tensor([1.2126781252, 1.4552137502, 2.4091147003, 3.8535007505, 1.2018504252])
    net = maximum_margin(x, y).net
    mass = forced_mass(sample_of(net, x, y, BOX))
    assert torch.allclose(mass, lam, atol=1e-3)
    found = determination(net, x, y)
    assert bool(found.forced.all())
    assert found.scope.exact and found.scope.tolerance < 1e-5


def test_a_point_that_can_be_split_is_not_forced_and_a_single_one_neither() -> None:
    known = TABLE["obtuse, three points"]
    mass = forced_mass(sample_of(known.net, known.x, known.y, BOX, grid=0))
    assert not bool(pinned_points(known.net, explanation_of(known.net, known.x, known.y)).any())
    assert float(mass.max()) < 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_the_ends_of_segments_decide_what_is_forced(seed: int) -> None:
    """A grid adds columns, so it can only lower the mass; it lowers none."""
    net, x, y = exact(seed, n=7)
    coarse, fine = (forced_mass(sample_of(net, x, y, BOX, grid=g)) for g in (0, 30))
    assert torch.allclose(coarse, fine, atol=2e-3 * float(net.rho) ** 2)


def test_a_known_forced_point_of_the_plane() -> None:
    net, x, y = exact(2, n=6)
    sample = sample_of(net, x, y, BOX, grid=0)
    mass = forced_mass(sample)
    truth = explanation_of(net, x, y)
    assert bool((mass <= truth.lam * (1 + 1e-3) + 1e-3).all())


def test_points_without_a_multiplier_are_not_determined() -> None:
    x = tensor([[-3.0], [-2.0], [2.0], [3.0]])
    y = tensor([-1.0, -1.0, 1.0, 1.0])
    made = maximum_margin(x, y)
    found = determination(made.net, x, y, made.lam)
    assert found.forced.tolist() == [False, True, True, False]


def test_a_deeper_network_says_that_it_is_up_to_sampling() -> None:
    from tests.engine.closed_forms import chains

    known = chains([[2.0, 0.0], [-1.0, 1.5], [-1.5, -2.0]], [1.0, 1.0, -1.0], 3)
    found = determination(known.net, known.x, known.y, extent=BOX, grid=30)
    assert not found.scope.exact and found.scope.extent == BOX
    assert float(found.mass.max()) <= float(known.lam.max()) * (1 + 1e-3)
