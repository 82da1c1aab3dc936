"""What every widget that stands alone has: the page's colours around its views, checked traits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as w
import torch
from torch import Tensor
from traitlets import HasTraits, TraitError, TraitType, observe

from explorer.engine.attacks.claims import Report
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset, empty
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.network import Network
from explorer.engine.training import TrainState
from explorer.page.panels.base import Panel
from explorer.page.stages.draw.commands import check_shown
from explorer.page.widgets.mirror import Mirror
from explorer.style import CSS


class Alone(w.Box):
    """A box around views of the page, with the page's colours and letters, light and dark.

    Attributes:
        panels: those of the page that it is made of, which end with it.
    """

    panels: tuple[Panel, ...] = ()

    def __init__(
        self,
        children: Sequence[w.Widget],
        look: str,
        dataset: Any = None,  # noqa: ANN401 - see as_points
        **traits: Any,  # noqa: ANN401
    ) -> None:
        """Show the views one below the other; `look` is a style class, `dataset` its points."""
        if dataset is not None:
            traits["dataset"] = dataset
        style = w.HTML(CSS, layout=w.Layout(display="none"))
        names = ("mx-app", "mx-alone", look)
        super().__init__([style, *children], _dom_classes=names, **traits)

    def _display_(self) -> Mirror:
        """Return what marimo shows, which asks for it by this name: it knows no boxes."""
        return Mirror(self)

    def close(self) -> None:
        """Close the widget and all that stands in it, and end its work."""
        for part in (*self.panels, *self.children):
            part.close()
        super().close()


class Checked(TraitType[Any, Any]):
    """A trait whose value a function checks, and may convert; what it refuses is one sentence."""

    allow_none = True

    def __init__(self, check: Callable[[Any], Any], default: Any = None, help: str = "") -> None:  # noqa: ANN401
        """`check` returns the value to keep, or raises ValueError."""
        super().__init__(default_value=default, allow_none=default is None, help=help)
        self._check = check

    def validate(self, obj: HasTraits, value: Any) -> Any:  # noqa: ANN401 - of any trait
        """Return the value to keep. TraitError for one that is refused: the old one then stays."""
        try:
            return self._check(value)
        except ValueError as error:
            raise TraitError(f"{self.name}: {error}") from error


def as_points(given: Any) -> Dataset:  # noqa: ANN401 - whatever a reader has
    """Return points that the plane can show: of a set, or of a pair x (n, d) and classes y (n,).

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(given, Dataset):
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise ValueError(
                f"expected a Dataset or a pair (x, y); got {type(given).__name__}. "
                "Dataset.of(x, y) makes one of arrays."
            )
        given = Dataset.of(*given)
    check_shown(given)
    return given


def as_claims(given: Any) -> Any:  # noqa: ANN401 - a Report, or the state of any attack
    """Return candidates or claims: what has places x (m, d), labels y and multipliers lam (m,).

    Raises:
        ValueError: for anything else.
    """
    if given is None or all(isinstance(getattr(given, name, None), Tensor) for name in PARTS):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        points = Dataset.of(*given)
        return Report(points.x, points.y, torch.ones_like(points.y))
    raise ValueError(
        f"expected a Report, a state of an attack or a pair (x, y); got {type(given).__name__}"
    )


PARTS = ("x", "y", "lam")


def instance_of(kind: type, advice: str) -> Callable[[Any], Any]:
    """Return a check that takes None and what is of a class; `advice` says where to get one."""

    def check(given: Any) -> Any:  # noqa: ANN401 - of any trait
        if given is None or isinstance(given, kind):
            return given
        raise ValueError(f"expected a {kind.__name__}; got {type(given).__name__}. {advice}")

    return check


class OfPoints(Alone):
    """A widget of points."""

    dataset = Checked(as_points, empty(2), help="the points, in units of the data")


class OfNetwork(OfPoints):
    """A widget of points and a network, which may come with a state of its training."""

    network = Checked(
        instance_of(Network, "A state of training has one: state.net."), help="the network"
    )
    state = Checked(lambda given: given, help="of training or of an attack")

    @observe("state")
    def _take_network(self, change: dict[str, Any]) -> None:
        if isinstance(change["new"], TrainState):
            self.network = change["new"].net


def certified_trait() -> Checked:
    """Return a trait that says how certain the points are."""
    check = instance_of(Certainty, "research.runs.certified_points returns one.")
    return Checked(check, help="how certain the points are")


def certificate_trait() -> Checked:
    """Return a trait that says what the points explain of the network."""
    check = instance_of(Certificate, "certify returns one.")
    return Checked(check, help="of the network on the points")
