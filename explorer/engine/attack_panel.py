"""A panel of an attack's own: plain words and charts, which the page shows beside its stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.engine.charts import NOTHING, Chart
from explorer.engine.progress import Progress


@dataclass(frozen=True, eq=False)
class PanelContent:
    """What the panel shows of one state, beside what the last step did (`Attack.words`).

    Attributes:
        chart: in its middle.
        rules: names with a sentence or more each, which are folded away.
        note: below the chart; □ and ◌ in it have the colour of marks on the plane.
    """

    chart: Chart = NOTHING
    rules: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True, eq=False)
class PanelAnswer:
    """An answer in a sentence or two, and charts side by side."""

    words: str
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, eq=False)
class PanelQuestion:
    """What a visitor may ask, and is computed beside the page.

    Attributes:
        label: of its button.
        tip: what is said of it.
        before: what stands there before it is asked.
        cancelled: and after it was cancelled.
        ask: (target, config, progress) -> the answer.
    """

    label: str
    tip: str
    before: str
    cancelled: str
    ask: Callable[[Target, Any, Progress], PanelAnswer]


@dataclass(frozen=True, eq=False)
class AttackPanel:
    """What an attack shows of itself.

    Attributes:
        show: (target, state, config, (centre, half width) of the level axis of the plane) -> its
            content.
        title: of the card; "" for a chart alone, which stands with the further curves.
        rules: name of the fold with the rules.
        question: what may be asked; None for nothing.
    """

    show: Callable[[Target, Any, Any, tuple[float, float]], PanelContent]
    title: str = ""
    rules: str = ""
    question: PanelQuestion | None = None
