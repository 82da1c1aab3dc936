"""What pages make anew of the same few points, and tests of pages only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
from torch import Tensor

from explorer.engine import controls
from explorer.engine.certificate import Certificate
from explorer.engine.controls import COUNT, Controls
from explorer.engine.data import Dataset
from explorer.engine.exact import Exact
from explorer.engine.network import Network
from explorer.page import aim, frame
from explorer.page.apps.explorer import App
from explorer.page.apps.page import SidePage
from explorer.page.stages.landscape import start_energies
from explorer.page.stages.train import commands
from explorer.research import game


@pytest.fixture(scope="session")
def kept() -> Callable[..., Controls]:
    """Control sets of equal points are made once: a sixth of the time of these tests."""
    made: dict[tuple[object, ...], Controls] = {}
    make = controls.control_sets

    @wraps(make)  # the reference says where it stands
    def kept(truth: Dataset, count: int = COUNT) -> Controls:
        points = (tuple(truth.x.shape), truth.x.numpy().tobytes(), truth.y.numpy().tobytes())
        key = (repr(truth.source), truth.x.dtype, *points, count)
        if key not in made:
            made[key] = make(truth, count)
        return made[key]

    return kept


@pytest.fixture(autouse=True)
def kept_controls(kept: Callable[..., Controls], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages, their games and the finer look at a claim take the kept ones."""
    for user in (aim, game, controls):
        monkeypatch.setattr(user, "control_sets", kept)


def seen(*tensors: Tensor) -> tuple[object, ...]:
    """What two calls have alike that are about equal tensors."""
    return tuple((v.dtype, tuple(v.shape), v.detach().numpy().tobytes()) for v in tensors)


@pytest.fixture(scope="session")
def solved() -> dict[tuple[object, ...], Any]:
    """The exact networks and certificates of these tests."""
    return {}


@pytest.fixture(autouse=True)
def kept_solutions(solved: dict[tuple[object, ...], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exact network, and each certificate of a page's own network, is computed once."""
    solve, certify = commands.maximum_margin, frame.certify

    @wraps(solve)
    def exact(x: Tensor, y: Tensor) -> Exact:
        key = seen(x, y)
        if key not in solved:
            solved[key] = solve(x, y)
        return solved[key]

    @wraps(certify)
    def certificate(net: Network, x: Tensor, y: Tensor) -> Certificate:
        bare = tuple(b is None for b in net.biases)
        key = (net.unit, bare, *seen(*net.parameters, x, y))
        if key not in solved:
            solved[key] = certify(net, x, y)
        return solved[key]

    monkeypatch.setattr(commands, "maximum_margin", exact)
    monkeypatch.setattr(frame, "certify", certificate)


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Energies of ten starts alone, not of 28, where no page waits for those of finer maps."""
    monkeypatch.setattr(start_energies, "AT_ONCE", 1)


@pytest.fixture(autouse=True)
def closed_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every page that a test opened."""
    made: list[App | SidePage] = []

    def noted(begin: Callable[..., None]) -> Callable[..., None]:
        @wraps(begin)
        def note(page: App | SidePage, *given: object, **named: object) -> None:
            begin(page, *given, **named)
            made.append(page)

        return note

    for kind in (App, SidePage):
        monkeypatch.setattr(kind, "__init__", noted(kind.__init__))
    yield
    for page in made:
        page.close()
