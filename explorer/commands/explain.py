"""The verb `explain`: other training sets for the same weights, and how long a split is safe."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.commands.outputs import check_pictures
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.masses import forced_points
from explorer.engine.explanations.others import RADIUS, farthest_set, forced_mass
from explorer.engine.explanations.safe_split import MARKS, SafeSplitConfig, in_space, safe_splits
from explorer.research import explained, runs
from explorer.research.determined import Determination, determination
from explorer.research.explained import first_explained
from explorer.research.pictures import figures as explanation_pictures
from explorer.research.report import Summary, line
from explorer.research.words import explanations

Experiment = StrEnum("Experiment", {"explanations": "explanations", "longer": "longer"})
_ONE = Experiment("explanations")
TRAINED, LONGER = options.Weights(), SafeSplitConfig()
What = Annotated[Experiment, option("--experiment", "Of one network, or the split over training.")]
Digits = Annotated[bool, option("--digits", "longer: the 8 x 8 digits instead of a preset.")]
Extent = Annotated[float, option("--extent", "Half width of the box of explanations.", min=0.1)]
Longer = Annotated[
    SafeSplitConfig,
    options.fields(
        init_scale=option("--init-scale", "longer: of the first layer's first weights."),
        share=option("--share", "longer: of the weights' norm a split may miss."),
    ),
]
Out = Annotated[Path | None, option("--out", "The figure.")]


@options.expand_groups
def explain(
    weights: options.Weights = TRAINED, extent: Extent = 2.0,
    experiment: What = _ONE, digits: Digits = False, config: Longer = LONGER,
    out: Out = None, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Say which other points explain the same weights: splits, masses, the farthest set."""
    check_pictures(out)
    if experiment is not _ONE:
        points = weights.points
        config = replace(config, steps=weights.training.steps, seed=points.seed)
        _longer(points, digits, config, out, as_json)
        return
    data, net = weights.open()
    target = runs.aim(net, data, None, weights.trained)[0]
    if target.decay is None:
        _explanations(data, target, extent, out, as_json)
        return
    if out is not None:
        raise ValueError("the picture is of weights trained without decay. Leave --out away.")
    if obstacle(target):
        raise ValueError(obstacle(target))
    base.show(as_json, "Explanations", _over_all(determination(target, data), data, target))


def _over_all(made: Determination, points: Dataset, target: Target) -> Summary:
    """Return what all explanations share, of weights trained with decay, where no point splits."""
    sure = made.certainty.certain
    rows = [
        ("unexplained by the points", f"{made.certainty.truth:.2%}"),
        (f"certified within {made.within:.2g}", f"{int(sure.sum())} of {points.n}"),
        ("over all explanations", explanations.over_all(made)),
    ]
    content = {
        "points": points.n, "classes": points.outputs, "certified": sure,
        "decay": None if target.decay is None else target.decay._asdict(),
        "over_all": asdict(made),
    }  # fmt: skip
    return Summary(rows, content)


def _explanations(
    points: Dataset, target: Target, extent: float, out: Path | None, as_json: bool
) -> None:
    state = first_explained(target, points)
    splits = _splits(state, extent)
    rivals = explained.rivals_of(state, extent)
    found = farthest_set(rivals)
    with base.progress_bar("masses") as bar:
        mass = forced_mass(rivals, bar)
    over = None if obstacle(target) else determination(target, points)
    forced, edge = (int(which.sum()) for which in forced_points(mass, rivals.mass))
    content: dict[str, Any] = {
        "points": points.n, "support": state.truth.n, "exact": state.exact,
        "residual": state.base, "pinned": int(state.pinned.sum()), "split": splits,
        "mass": rivals.mass, "extent": extent, "radius": RADIUS, "tolerance": rivals.allowed,
        "x": state.truth.x, "y": state.truth.y, "lam": state.truth.lam,
        "forced": forced, "at_the_edge": edge, "forced_mass": mass,
        "farthest_distance": found.distance, "farthest_at_most": found.at_most,
        "farthest_residual": found.residual, "farthest_points": found.explanation.n,
        "over_all": None if over is None else asdict(over),
    }  # fmt: skip
    each = "" if state.net.outputs == 1 else ", each once for a class beside it"
    rows = [
        ("points that carry the weights", f"{len(state.truth.origin.unique())} of {points.n}"),
        ("unexplained by the points", f"{state.base:.1e}"),
        ("cannot be split", f"{content['pinned']} of {state.truth.n}{each}"),
        ("split as far as they go", str(splits["points"])),
        ("change of the sum by the splits", f"{splits['change']:.1e}"),
        (
            f"forced within {RADIUS:g}",
            f"{forced} of {state.truth.n}" + (f", {edge} at the edge" if edge else ""),
        ),
        ("farthest set", explanations.farthest_set(found)),
    ]
    if over is not None:
        rows.append(("over all explanations", explanations.over_all(over)))
    else:
        rows.append(("over all explanations", f"Not bounded. {obstacle(target)}"))
    told = Summary(rows, content)
    if out is not None:
        explanation_pictures.sets(out, state, found.explanation, mass, extent)
        told += line("picture", out)
    base.show(as_json, "Explanations", told)


def _splits(state: explained.Explained, extent: float) -> dict[str, float]:
    e = explained.split_all(state, 2 * extent)
    made = explained.measures(state.net, e, state.reference)
    keep = ("change", "margin_error", "slackness")
    return {"points": e.n, **{key: float(made[key]) for key in keep}}  # type: ignore[arg-type]


def _longer(
    drawn: options.Points, digits: bool, config: SafeSplitConfig, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    if digits:
        from explorer.engine.data.images import parity_digits

        points, low, high, label = parity_digits(drawn.n or 40, drawn.seed)[0], 0.0, 1.0, "digits"
    else:
        points, low, high, label = in_space(drawn.preset_points()), -2.0, 2.0, drawn.preset
    config = replace(config, low=low, high=high)
    rows = list(base.watch(safe_splits(points, config), MARKS, "training"))
    content: dict[str, Any] = {
        "data": label, "n": points.n, "d": points.d, "config": asdict(config),
        "steps": [asdict(row) for row in rows],
    }  # fmt: skip
    shown = [
        (
            f"step {row.t}",
            f"wall {row.wall:.3g}, safe {row.safe:.3g}, in the box {row.boxed:.3g}",
        )
        for row in rows
        if row.safe == row.safe
    ]
    told = Summary(shown, content)
    if out is not None:
        explanation_pictures.longer(out, rows, config, label)
        told += line("picture", out)
    base.show(as_json, "Safe split over training", told)


VERBS = {"explain": explain}
