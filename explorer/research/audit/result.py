"""The result of an audit as a value; its report and its words are made when they are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.certificate import Certificate
from explorer.engine.controls import Controls
from explorer.engine.data import Dataset
from explorer.engine.network import Network
from explorer.engine.scoring import Verdict
from explorer.research.audit.inputs import Coordinates
from explorer.research.determined import Determination


@dataclass(frozen=True, eq=False)
class AuditAttack:
    """One attack of an audit.

    Attributes:
        key: of the attack in the roster.
        title: its name.
        claims: in units of the data; none where it failed.
        verdict: against the controls, at the radius of the audit; None where it failed.
        seconds: that it took.
        message: why it failed; "" where it did not.
        ended: whether it was ended before it came to its end.
    """

    key: str
    title: str
    claims: Report
    verdict: Verdict | None
    seconds: float
    message: str = ""
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Audit:
    """What the weights of a model give away of its training points.

    Attributes:
        net: the network that the model computes, in units of the data.
        data: the training points, in units of the data.
        classes: the classes of the model in their order.
        coordinates: the coordinates in which the points explain the weights best.
        spread: root of the mean square distance to the centre, in `coordinates`.
        radius: distance within which a point counts as found, as a share of the spread.
        q: margins (n,) of the points.
        certificate: how near to a KKT point the weights are in these coordinates; None where there
            is none.
        tried: the attacks that ran.
        controls: what stood for chance.
        determined: what the weights determine of the points, over all explanations; lengths are
            those of `coordinates`. None where it was not asked for, or cannot be said.
        names: of the coordinates, where the points came with some.
        folded: what the reading of the model made part of the weights; see `Reading`.
        shared: how many held-out points are training points as well.
        undetermined: why nothing can be said of what the weights determine; "" where it can.
        kept: numbers of `data` among the points given, of which repeats count once; () for all.
        repeats: how many of the points given are repeats of others.
        decay: mu of the weight decay that was told, or that the points fit; 0 for none.

    Example:
        >>> from explorer import audit, maximum_margin, preset
        >>> data = preset("alternating-circle", n=6)
        >>> found = audit(maximum_margin(data.x, data.y).net, data.x, data.y, attacks=("kkt",))
        >>> found.certificate.light.value
        'exact'
    """

    net: Network
    data: Dataset
    classes: tuple[Any, ...]
    coordinates: Coordinates
    spread: float
    radius: float
    q: Tensor
    certificate: Certificate | None
    tried: tuple[AuditAttack, ...]
    controls: Controls
    determined: Determination | None = None
    names: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    shared: int = 0
    undetermined: str = ""
    kept: tuple[int, ...] = ()
    repeats: int = 0
    decay: float = 0.0

    @property
    def best(self) -> AuditAttack | None:
        """Return the attack of the smallest p-value, and of those the one that finds most."""
        ran = [one for one in self.tried if one.verdict is not None]

        def order(one: AuditAttack) -> tuple[float, int]:
            made = one.verdict
            assert made is not None
            return (made.p_value if made.p_value == made.p_value else 2.0, -made.found)

        return min(ran, key=order, default=None)

    @property
    def p_value(self) -> float:
        """Return the best attack's p-value times the number of attacks (Bonferroni), or nan."""
        best = self.best
        if best is None or best.verdict is None:
            return math.nan
        ran = sum(one.verdict is not None for one in self.tried)
        return min(1.0, best.verdict.p_value * ran)

    @property
    def found(self) -> list[bool]:
        """Return which points the best attack found."""
        from explorer.research.audit.report import found_points

        return found_points(self)

    @cached_property
    def sentence(self) -> str:
        """Return the verdict in words, with its numbers."""
        from explorer.research.words.audit import sentence

        return sentence(self)

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"Audit({self.net!r}, {self.data.n} points: {self.sentence})"

    def _repr_html_(self) -> str:
        return self.to_html(whole=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the table as plain rows."""
        from explorer.research.audit.report import point_rows

        return point_rows(self)

    @property
    def table(self) -> Any:  # noqa: ANN401 - pandas is untyped and optional
        """Return one row per training point, as a pandas DataFrame.

        Raises:
            ImportError: without pandas; `rows` needs none.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    def plot(self, ax: Any = None) -> Any:  # noqa: ANN401 - matplotlib is untyped
        """Draw the points and the claims of the best attack.

        Points on a line or in the plane are drawn where they are; of others, the distance to the
        nearest claim.

        Args:
            ax: matplotlib axes to draw on; None makes a figure.

        Returns:
            The axes.
        """
        from explorer.research.audit.report import draw

        return draw(self, ax)

    def to_html(self, whole: bool = True) -> str:
        """Return the audit as HTML: the verdict, what it rests on, tables and the picture.

        Args:
            whole: a page of its own, else a part of one.

        Returns:
            HTML that needs no other file.
        """
        from explorer.research.audit.report import html

        return html(self, whole)

    def save(self, path: str | Path) -> Path:
        """Write the audit to a file.

        Args:
            path: where; its ending says what: .html, .json, .csv (the table), or .svg, .pdf, .png
                (the picture).

        Returns:
            The path.

        Raises:
            ValueError: for another ending.
        """
        from explorer.research.audit.report import save

        return save(self, Path(path))
