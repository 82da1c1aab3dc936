"""Which charts show a result: the same for page, paper and notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.engine.certificate import Certificate
from explorer.engine.charts import Chart, HeatMap
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import NAMES
from explorer.engine.membership.experiment import MembershipTrial
from explorer.engine.scoring import RADII, RecallCurve
from explorer.engine.training import TrainState
from explorer.research.audit.report import distances_chart
from explorer.research.audit.result import Audit
from explorer.research.grid import Maps
from explorer.research.image_runs import ImageComparison
from explorer.research.pictures import charts
from explorer.research.rates import Roc, rates, summary
from explorer.research.repeat import Repeated
from explorer.research.runs import Trained
from explorer.research.sweep.arena import AT, ArenaLine
from explorer.research.tuning import Trial, best, front

Charts = dict[str, Chart | HeatMap]  # by name; the first is shown where none is named


def charts_of(result: Any) -> Charts:  # noqa: ANN401 - of every kind in ONE and MANY
    """Return the charts of a result by name, the first of them the one to show.

    Args:
        result: a value of a class of `ONE`, or several of one class of `MANY` in a list.

    Raises:
        TypeError: for anything else.
        ValueError: where there is nothing to show.

    Example:
        >>> from explorer import certify, maximum_margin, preset
        >>> from explorer.research.pictures.results import charts_of
        >>> data = preset("alternating-circle", n=6)
        >>> made = certify(maximum_margin(data.x, data.y).net, data.x, data.y)
        >>> list(charts_of(made))
        ['certificate']
    """
    several = isinstance(result, Sequence) and not isinstance(result, str) and len(result) > 0
    table: Mapping[type, Callable[[Any], Charts]] = MANY if several else ONE
    first = result[0] if several else result
    made = next((make for kind, make in table.items() if isinstance(first, kind)), None)
    if made is None or (several and not all(isinstance(one, type(first)) for one in result)):
        one, many = (", ".join(kind.__name__ for kind in kinds) for kinds in (ONE, MANY))
        got = f"a {type(result).__name__}" + (f" of {type(first).__name__}" if several else "")
        raise TypeError(
            f"a figure shows a result: {one}, or a list of one of {many}; got {got}. Give what "
            "training, attack, audit, sweep, arena, grid or tuning returned."
        )
    return made(result)


def _of_trained(found: Trained) -> Charts:
    last, proof = found.states[-1], found.certificate
    points = charts.margins_chart(last.q, found.data.y)
    return {"steps": charts.training_chart(found.states), "points": points, **_of_proof(proof)}


def _of_repeated(found: Repeated) -> Charts:
    if found.state is None:
        raise ValueError(
            "a figure of a repeated run needs a network; got points alone. Give a run of stage "
            "'train' or 'attack'."
        )
    points = charts.margins_chart(found.state.q, found.run.dataset.y)
    return {"points": points, **_of_proof(found.certificate)}


def _of_proof(made: Certificate | None) -> Charts:
    return {} if made is None else {"certificate": charts.certificate_chart(made)}


def _of_maps(found: Maps) -> Charts:
    tables: Charts = {name: charts.distance_map(found, k) for k, name in enumerate(NAMES)}
    return tables | {f"{which} edge": charts.edge_chart(found, which) for which in charts.EDGES}


def _of_picture(found: Picture) -> Charts:
    if found.curve is not None:
        return {"curve": charts.curve_chart(found)}
    if found.kind == "starts":
        return {"edges": charts.edges_chart(found.values)}
    raise ValueError(
        "a figure of energies shows those along a line or a path; got a map of the plane. Save it "
        "by `margin-explorer energy --out map.png`."
    )


def _of_arena(lines: Sequence[ArenaLine]) -> Charts:
    made = dict(zip((f"within {r:g}" for r in RADII), charts.arena_charts(lines), strict=True))
    usual = f"within {RADII[AT]:g}"
    return {usual: made.pop(usual), **made}


def _of_search(trials: Sequence[Trial]) -> Charts:
    good = [trial for trial in trials if not trial.failure]
    return {"front": charts.front_chart(good, front(trials), best(trials))}


def _of_membership(trials: Sequence[MembershipTrial]) -> Charts:
    shares = charts.trained_chart(summary([rates(trial) for trial in trials]))
    return {"roc": charts.trials_chart(trials), "shares": shares}


ONE: dict[type, Callable[[Any], Charts]] = {
    Trained: _of_trained,
    Repeated: _of_repeated,
    Certificate: _of_proof,
    RecallCurve: lambda found: {"recall": charts.recall_chart(found)},
    Audit: lambda found: {"distances": distances_chart(found), **_of_proof(found.certificate)},
    Maps: _of_maps,
    Picture: _of_picture,
    Roc: lambda found: {"roc": charts.roc_chart([("all thresholds", "pos", found)])},
    ImageComparison: lambda found: {"output": charts.output_chart(found)},
    Chart: lambda found: {"chart": found},
    HeatMap: lambda found: {"table": found},
}
MANY: dict[type, Callable[[Any], Charts]] = {
    TrainState: lambda states: {"steps": charts.training_chart(states)},
    ArenaLine: _of_arena,
    Trial: _of_search,
    MembershipTrial: _of_membership,
    dict: lambda rows: {"sweep": charts.sweep_chart(rows), **charts.sweep_maps(rows)},
}
