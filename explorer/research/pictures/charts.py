"""Results as charts: made here once, painted on a page and on paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from json import dumps
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from explorer.engine.arrays import Array, Flags
from explorer.engine.certificate import ON_MARGIN, Certificate, holds_margin
from explorer.engine.charts import (
    FEW_CELLS,
    NOTHING,
    Axis,
    Chart,
    Guide,
    HeatMap,
    Series,
    decades,
    dot_rows,
    next_step,
)
from explorer.engine.energy.landscape import path, read_lattice
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import NAMES as SETS_IN_ORDER
from explorer.engine.explanations.safe_split import SafeSplit, SafeSplitConfig
from explorer.engine.images import MEASURES, NCC_LEAST, SSIM_LEAST
from explorer.engine.membership.experiment import MembershipTrial
from explorer.engine.number_words import per_cent_above, share
from explorer.engine.roster import AttackState
from explorer.engine.scoring import RADII, RecallCurve
from explorer.engine.training import TrainState
from explorer.research.grid import Maps, band
from explorer.research.image_runs import ImageComparison
from explorer.research.pictures.shades import span_of
from explorer.research.rates import Interval, Roc, interval, roc
from explorer.research.sweep.arena import AT, ArenaLine, lines_of
from explorer.research.tuning import Trial
from explorer.research.words import tuning
from explorer.research.words.grid import SETS
from explorer.style import CLASSES, LINES, MANY_INKS

MARGIN_TOP = 3.0  # q / q_min shown; stems beyond are broken
BESIDE = 0.1  # margins up to so much above the least look alike; arbitrary
RIGHT, WRONG = "on the right side", "on the wrong side"
BREAK = (2.6, 2.9, 3.1)  # of such a stem: where it breaks, goes on and ends; arbitrary
MOST_LOWEST = 0.02  # of the places, for a mark on the lowest; arbitrary
MOST_OUTPUT = 3.0  # arbitrary: outputs beyond 3 margins are drawn at the edge
MATCHED, CONTROL, STARTED = "good", "ink3", "ink"  # colours of the page
MEMBER, FRESH, LIMIT = "good", "ink3", "accent"  # likewise
TRAINED = (
    ("on_margin", "training points within 10% of m", MEMBER),
    ("beyond", "unseen points with |Φ| ≥ m", FRESH),
    ("beyond_half", "unseen points with |Φ| ≥ m/2", LIMIT),
)
LOSS = "Loss of the attack"
LEAST_LOSS = 1e-16  # below the rounding of float64: a residual of zero on a log axis
LEAST_FPR = 5e-4  # one of 2000 held-out points
Curve = tuple[str, Array, Array]  # its name, t, values
Column = Callable[[str], tuple[ArrayLike, ArrayLike]]  # steps and values, by a column's name

# --- training and attacks ---

MARGINS = "Smallest margin", "over the size of the weights: q_min / ρᴸ"  # title and note
UNEXPLAINED = "Unexplained share of the weights", "‖θ − Σλᵢyᵢ∇Φ(xᵢ)‖ / ‖θ‖"
MARGIN_COLUMNS = (("gamma_bar", "margin"), ("gamma_tilde", "its lower bound"))


def curves_of(
    columns: Sequence[tuple[str, str]], column: Column, ratios: bool = True
) -> list[Curve]:
    """Return the named columns as curves; step 0 has no place on an axis of ratios."""
    found = []
    for key, name in columns:
        t, v = (np.asarray(a, dtype=float) for a in column(key))
        keep = t >= (1 if ratios else 0)
        found.append((name, t[keep], v[keep]))
    return found


def margin_curves(column: Column) -> list[Curve]:
    """Return the normalised margin of Lyu and Li, and its bound, from where there is a margin."""
    made = curves_of(MARGIN_COLUMNS, column)
    return [(name, t, np.where(v > 0, v, np.nan)) for name, t, v in made]


def zero_axis(values: Array) -> Axis:
    """Return an upright axis from 0 to the next step above the values."""
    return Axis(0.0, next_step(max(float(values.max(initial=0.0)), 1e-12)))


def known_values(curves: Sequence[Curve]) -> Array:
    """Return the finite values of all curves."""
    return np.concatenate([v[np.isfinite(v)] for *_, v in curves] or [np.zeros(0)])


def step_series(
    curves: Sequence[Curve], upright: Axis, said: Sequence[str], measured: bool = False
) -> list[Series]:
    """Return a line a curve, named at its end with what is said of it.

    What has no place on a log axis is a gap. `measured`: dots show where the lines were measured.
    """

    def heights(v: Array) -> Array:
        return np.where(v > 0, np.maximum(v, upright.low), np.nan) if upright.log else v

    return [
        Series(t, heights(v), name, colour=colour, value=words, end=True,
               look={"dashed": dashed, "width": 2 if i == 0 else 1.5, "measured": measured})
        for i, ((name, t, v), words, (colour, dashed))
        in enumerate(zip(curves, said, LINES, strict=False))
    ]  # fmt: skip


def step_axis(last: float, ratios: bool = True) -> Axis:
    """Return the level axis of a run of so many steps."""
    return Axis(1.0 if ratios else 0.0, next_step(max(last, 10)), short="step", log=ratios,
                whole=True)  # fmt: skip


def training_chart(states: Sequence[TrainState]) -> Chart:
    """Return the smallest margin of a training and its bound over the steps."""

    def column(name: str) -> tuple[ArrayLike, ArrayLike]:
        return [s.t for s in states], [getattr(s, name) for s in states]

    curves = margin_curves(column)
    return _steps_chart(curves, zero_axis(known_values(curves)), step_axis(states[-1].t), *MARGINS)


def unexplained_axis(values: Array) -> Axis:
    """Return a log axis of shares, up to 100%."""
    least = float(np.maximum(values, LEAST_LOSS).min(initial=0.1))
    return Axis(decades(least, 1.0)[0], 1.0, log=True, percent=True)


def unexplained_chart(known: Sequence[tuple[int, float]], now: int, last: int) -> Chart:
    """Return the unexplained share over the steps, with a line at the present one.

    Args:
        known: steps with the share that the points leave of the weights.
        now: the present step.
        last: of the run.
    """
    t, left = np.array(known, dtype=float).reshape(-1, 2).T
    curves = curves_of((("unexplained", "unexplained"),), lambda _: (t, left))
    upright, steps = unexplained_axis(known_values(curves)), step_axis(last)
    said = share(known[-1][1]) if known else ""
    handle = min(max(float(now), steps.low), steps.high)
    lines = step_series(curves, upright, [said], measured=True)
    return Chart(lines, steps, upright, *UNEXPLAINED, handle=handle, handle_name="step",
                 label=f"{UNEXPLAINED[0]}: {said}")  # fmt: skip


def _steps_chart(
    curves: Sequence[Curve], upright: Axis, steps: Axis, title: str, note: str = ""
) -> Chart:
    """Return curves over the steps, each with its newest value at its end."""
    form = ".0f" if upright.whole else ".3g"
    ends = [format(v[-1], form) if len(v) else "" for *_, v in curves]
    return Chart(step_series(curves, upright, ends), steps, upright, title, note, label=title)


def loss_axis(values: Array) -> Axis:
    """Return a log axis of the losses of an attack, or a plain one of counts."""
    if len(values) and np.array_equal(values, np.round(values)):
        return Axis(0.0, next_step(max(float(values.max()), 4.0)), whole=True)
    positive = np.maximum(values[values > 0], LEAST_LOSS) if (values > 0).any() else np.ones(1)
    return Axis(*decades(float(positive.min()), float(positive.max())), log=True)


def attack_chart(states: Sequence[AttackState], columns: Sequence[tuple[str, str]]) -> Chart:
    """Return the numbers of an attack that its row names, over the steps."""
    rows = [{"t": state.t, **state.numbers()} for state in states]

    def column(name: str) -> tuple[ArrayLike, ArrayLike]:
        known = [row for row in rows if name in row]
        return [row["t"] for row in known], [row[name] for row in known]

    curves = curves_of(columns, column, ratios=False)
    steps = step_axis(states[-1].t, ratios=False)
    return _steps_chart(curves, loss_axis(known_values(curves)), steps, LOSS)


def certificate_chart(made: Certificate) -> Chart:
    """Return each multiplier by its point's margin: at a KKT point those off the margin have none.

    Margins are over the smallest, where there is one.
    """
    unit = made.q_min if made.q_min > 0 else max(float(made.q.abs().max()), 1e-300)
    ratio, lam = made.q.numpy() / unit, made.lam.numpy()
    on, ids = made.on_margin.numpy(), np.arange(len(ratio))
    held = np.minimum(ratio, MARGIN_TOP)
    series = [
        Series(held[mine], lam[mine], name, "dots", ids=ids[mine], colour=colour,
               look={"size": 5, "hollow": hollow})
        for mine, name, colour, hollow in (
            (on, "on the margin", "good", False), (~on, "off the margin", "ink3", True))
        if mine.any()
    ]  # fmt: skip
    tips = [f"point {i + 1}: multiplier {lam[i]:.3g}, margin {ratio[i]:.3g}" for i in ids]
    said = f"{made.light.value}; {share(made.residual)} of the weights unexplained"
    wide = max(1.5, 1.05 * float(held.max(initial=0.0)))
    return Chart(
        series, Axis(min(0.9, float(held.min(initial=1.0))), wide, "margin over the smallest"),
        Axis(0.0, next_step(max(1.05 * float(lam.max(initial=0.0)), 1e-12)), short="multiplier"),
        "Multiplier of each point", said, rules=[Guide(1.0, axis="x")], picks=True, tips=tips,
        label=f"Multiplier of each point: {said}",
    )  # fmt: skip


RECALL = "Points recovered, by distance"
EACH_MARGIN = "Margin of each point"
NEAR_TICKS = (0.003, 0.01, 0.03, 0.1, 0.3)


def recall_chart(whole: RecallCurve, here: RecallCurve | None = None, said: str = "") -> Chart:
    """Return recall against distance: training points green, unseen points grey with a band.

    Args:
        whole: at the radii of the curve.
        here: at the one radius where a line stands; the curve goes through its counts.
        said: what is told of that radius.
    """
    n, handle = whole.n, None if here is None else here.radii[0]
    frame = empty_recall(n, whole.radii)
    at = 0 if handle is None else int(np.searchsorted(whole.radii, handle))

    def through(name: str) -> Array:
        values = getattr(whole, name).double().numpy()
        return values if here is None else np.insert(values, at, float(getattr(here, name)[0]))

    radii = np.array(whole.radii) if handle is None else np.insert(whole.radii, at, handle)
    chance: list[Series] = []
    if whole.controls:
        chance = [
            Series(radii, through("high"), "90% of sets of unseen points", "band",
                   z=through("low"), colour="ink3"),
            Series(radii, through("chance"), "unseen points", colour="ink3", end=True),
        ]  # fmt: skip
    found = Series(radii, through("found"), "training points", colour="good", end=True,
                   look={"width": 2.5})  # fmt: skip
    return replace(frame, series=[*chance, found], note=said, handle=handle, handle_name="within",
                   label=f"{RECALL}. {said}".rstrip(". "))  # fmt: skip


def empty_recall(n: int, radii: Sequence[float]) -> Chart:
    """Return the axes of `recall_chart` for n points, without a curve."""
    y = Axis(0.0, float(max(n, 1)), short="points recovered", whole=True,
             ticks=tuple(sorted({0, n, n // 2 if n % 2 == 0 else n})))  # fmt: skip
    none = Series([], [], "training points", colour="good")
    return Chart([none], _near_axis(radii), y, RECALL, label=RECALL)


def _near_axis(radii: Sequence[float]) -> Axis:
    ticks = tuple(t for t in NEAR_TICKS if radii[0] <= t <= radii[-1])
    return Axis(radii[0], radii[-1], "distance within which a claim counts", "distance", log=True,
                ticks=ticks or None)  # fmt: skip


def dot_chart(
    n: int, kinds: Sequence[tuple[str, str, dict[str, Any], Flags]], **more: Any,  # noqa: ANN401
) -> Chart:  # fmt: skip
    """Return one dot a point, in rows.

    Args:
        n: how many points there are.
        kinds: name, colour, look and which points (n,) are of it, the lowest first; empty ones
            are left out.
        more: further fields of the chart.
    """
    at, (column, row, right, below) = np.arange(n), dot_rows(n)
    series = [
        Series(column[mine], row[mine], name, "dots", ids=at[mine], colour=colour, look=look)
        for name, colour, look, mine in kinds
        if mine.any()
    ]
    x, y = Axis(-0.7, right - 0.3, hidden=True), Axis(below - 0.6, 0.6, hidden=True)
    return Chart(series, x, y, picks=True, **more)


def class_stems(values: Array, labels: Array, ids: ArrayLike | None = None) -> list[Series]:
    """Return a stem for each value (n,) in its order, in the colour of its class.

    `ids`: of the points (n,), where stems answer a pointer.
    """
    count = len(values)
    rank, wide = np.arange(1, count + 1), float(np.clip(240 / count, 1, 8))  # px; arbitrary
    points = np.full(count, -1) if ids is None else np.asarray(ids)
    return [
        Series(rank[mine], values[mine], shown.name, "stems", ids=points[mine], colour=shown.ink,
               look={"width": wide})
        for label, shown in CLASSES.items()
        if (mine := labels == label).any()
    ]  # fmt: skip


def margins_chart(q_values: Tensor, labels: Tensor, at_rest: bool = True) -> Chart:
    """Return the points sorted by margin, in units of the smallest; pale ones are off the margin.

    A stem beyond `MARGIN_TOP` is broken. Before all points are on their side there is no such unit:
    only the side of each is to be read then.

    Args:
        q_values: margins (n,).
        labels: (n,).
        at_rest: whether it is said how many points are on the margin.
    """
    q, y = q_values.cpu().numpy(), labels.cpu().numpy()
    low = float(q.min())
    unit = low if low > 0 else max(float(np.abs(q).max()), 1e-300)
    order = np.argsort(q, kind="stable")
    cut = q[order] > MARGIN_TOP * unit
    height = np.where(cut, BREAK[0], np.clip(q[order] / unit, -1, None))
    on = holds_margin(q_values.cpu()).numpy()[order]
    rank, wide = np.arange(1, len(q) + 1), float(np.clip(240 / len(q), 1, 4))  # px; arbitrary
    series = [
        Series(rank[mine], height[mine], shown.name, "stems", ids=order[mine],
               colour=shown.ink,
               look={"width": wide, "opacity": 1.0 if filled else 0.4})
        for label, shown in CLASSES.items()
        for filled in (True, False)
        if (mine := (y[order] == label) & (on == filled)).any()
    ]  # fmt: skip
    series += [
        Series(rank[mine], np.full(mine.sum(), BREAK[2]), shown.name, "stems", ids=order[mine],
               z=np.full(mine.sum(), BREAK[1]), colour=shown.ink,
               look={"width": wide, "opacity": 0.4})
        for label, shown in CLASSES.items()
        if (mine := (y[order] == label) & cut).any()
    ]  # fmt: skip
    sides = [f"{v / unit:.3g}" if low > 0 else WRONG if v <= 0 else RIGHT for v in q]
    tips = [f"point {i}: {side}" for i, side in enumerate(sides, 1)]
    top = float(np.clip(1.2 * q.max() / unit, 1.25, MARGIN_TOP + 0.2))
    said = _margin_note(q, int(on.sum()))
    rules = [Guide(1.0)] if low > 0 else []
    last = (3, "over 3 ×" if cut.any() else "3 ×")
    steps = ((0, "0"), (1, "on the margin"), (2, "2 ×"), last)
    ticks = tuple(step for step in steps if step[0] <= top) if low > 0 else steps[:1]
    return Chart(
        series, Axis(0.2, len(q) + 0.8, short="rank", whole=True, hidden=True),
        Axis(min(0.0, 1.2 * float(height.min())), top, short="margin over the smallest",
             ticks=ticks),
        EACH_MARGIN, said if at_rest else "", rules=rules, picks=True, tips=tips,
        label=f"{EACH_MARGIN}: {said}",
    )  # fmt: skip


def empty_margins() -> Chart:
    """Return the axes of `margins_chart`, without a point."""
    y = Axis(0.0, 1.25, short="margin over the smallest", ticks=((0, "0"), (1, "on the margin")))
    none = Series([], [], "", "stems")
    return Chart([none], Axis(0.2, 1.8, hidden=True), y, EACH_MARGIN, rules=[Guide(1.0)],
                 label=EACH_MARGIN)  # fmt: skip


def _margin_note(q: Array, on: int) -> str:
    """Return how many points of margins q (n,) are `on` it; where all are beside it, how near."""
    low, high = float(q.min()), float(q.max())
    if not low > 0:
        return f"{int((q <= 0).sum())} of {len(q)} {WRONG}"
    said = f"{on} of {len(q)} on the margin, within {ON_MARGIN:.0%}"
    if on < len(q) and high <= (1 + BESIDE) * low:  # to the eye all stems are of one height
        said += f", all within {per_cent_above(high / low - 1)}"
    return said


def front_chart(good: Sequence[Trial], ahead: Sequence[Trial], chosen: Trial | None) -> Chart:
    """Return agreement against residual: the trials as dots, their front, the best in a ring."""
    residual = np.array([_residual(t) for t in good])
    x = Axis(*decades(float(residual.min(initial=0.1)), float(residual.max(initial=1.0))),
             "residual", log=True)  # fmt: skip
    y = Axis(0.0, next_step(1.1 * max([1.0, *(t.agreement for t in good)])), short="agreement")
    edge, best = [_residual(t) for t in ahead], [t for t in good if t is chosen]
    level = [t.agreement for t in ahead]
    if edge:  # to the right edge: whatever is worse there is beaten
        edge, level = [*edge, x.high], [*level, level[-1]]
    series = [
        Series(edge, level, "best of both", colour="ink3", end=True, look={"steps": True}),
        Series([_residual(t) for t in best], [t.agreement for t in best], "chosen", "dots",
               colour="good", look={"size": 9, "hollow": True}),
        Series(residual, [t.agreement for t in good], "trials", "dots", ids=np.arange(len(good)),
               look={"size": 4.5}),
    ]  # fmt: skip
    title = "Agreement of three noises, by residual"
    tips, label = [tuning.trial(t) for t in good], f"{title}: {len(good)} trials"
    return Chart(series, x, y, title, "high and left is best", picks=True, tips=tips, label=label)


def _residual(trial: Trial) -> float:
    return min(max(trial.residual, 1e-16), 10.0)


SERIES = (("recall", "pos"), ("precision", "good"), ("control", "ink3"))
APART = 0.22  # of a share and the next, in the distance of two attacks; arbitrary


def arena_charts(lines: Sequence[ArenaLine]) -> list[Chart]:
    """Return a chart for each radius: recall, precision and recall of control sets by attack."""
    ran = [line for line in lines if line.runs]
    charts = []
    for i, radius in enumerate(RADII):
        series = []
        for k, (name, colour) in enumerate(SERIES):
            held = [(len(ran) - 1 - at + (1 - k) * APART, getattr(line, name)[i])
                    for at, line in enumerate(ran)]  # fmt: skip
            if name == "control":  # a mean, without an interval
                known = [(height, value) for height, value in held if value == value]
            else:
                sure = [(height, share) for height, share in held if share.value == share.value]
                known = [(height, share.value) for height, share in sure]
                x = [at for _, share in sure for at in (share.low, share.high, np.nan)]
                y = [at for height, _ in sure for at in (height, height, np.nan)]
                series.append(Series(x, y, "", colour=colour, look={"width": 1.5}))
            words = "recall of control sets" if name == "control" else f"{name}, 95% interval"
            series.append(Series([value for _, value in known], [height for height, _ in known],
                                 words, "dots", colour=colour))  # fmt: skip
        ticks = tuple((len(ran) - 1 - at, line.title) for at, line in enumerate(ran))
        title = f"within {radius:g}"
        charts.append(Chart(
            series, Axis(0, 1, "share", percent=True, ticks=(0, 0.5, 1)),
            Axis(-0.6, max(len(ran), 1) - 0.4, ticks=ticks), title, label=f"Attacks {title}",
        ))  # fmt: skip
    return charts


def radius_chart(lines: Sequence[ArenaLine], shown: str = "") -> Chart:
    """Return the share that each attack finds, by how close counts; grey is by chance.

    `shown`: key of the attack whose claims are those of the grey curve; by default that of the
    first one.
    """
    ran = [line for line in lines if line.runs]
    if not ran:
        return NOTHING
    radii = ran[0].radii
    one = next((line for line in ran if line.key == shown), ran[0])
    name = "by chance" if len(ran) == 1 else "chosen attack by chance"
    series = [Series(radii, np.asarray(one.control), name, colour=CONTROL, look={"dashed": True})]
    series += [
        Series(radii, [one.value for one in line.recall], line.title, colour=colour)
        for line, colour in zip(ran, MANY_INKS * len(ran), strict=False)
    ]
    y = Axis(0.0, 1.0, short="points recovered", percent=True, ticks=(0, 0.5, 1))
    return Chart(series, _near_axis(radii), y, RECALL, label=f"{RECALL}, by attack")


# --- sweeps ---

Row = Mapping[str, Any]
REPEATS = ("seed", "data_seed")  # fields that only draw anew
WIDE = 30  # times the smallest value: from there on an axis is by ratios; arbitrary


def sweep_chart(rows: Sequence[Row]) -> Chart:
    """Return what the rows of a sweep found, over the setting that varies; seeds are pooled.

    That is the share of points found within RADIUS with its interval, and the same of control sets;
    of rows without an attack the normalised margin. The first setting that varies is the level
    axis, and every combination of the others, attacks among them, is a line.

    Raises:
        ValueError: where no row is done, or the rows are of another run than `run_experiment`.
    """
    done = [row for row in rows if row["status"] == "done"]
    if not done or any("gamma_bar" not in row["result"] for row in done):
        told = next((row["message"] for row in rows if row["message"]), "")
        raise ValueError(
            "a figure of a sweep needs rows of `run_experiment` that are done; got "
            f"{len(done)} done of {len(rows)}. {told or 'Give the rows that `sweep` yields.'}"
        )
    flat, varied = _settings_of(done)
    first = next((k for k in varied if k != "attack"), "")
    given = [f.get(first) for f in flat]
    places, x = _setting_axis(given, first)
    groups: dict[str, dict[float, list[Row]]] = {}
    for row, settings, at in zip(done, flat, places, strict=True):
        name = ", ".join(_value_words(k, settings.get(k)) for k in varied if k != first)
        groups.setdefault(name, {}).setdefault(at, []).append(row)
    attacked = any("found" in row["result"] for row in done)
    series = [
        one
        for (name, group), colour in zip(groups.items(), MANY_INKS * len(groups), strict=False)
        for one in _sweep_series(name, dict(sorted(group.items())), colour, attacked)
    ]
    heights = [float(v) for one in series for v in np.ravel(one.y) if v == v]
    y = Axis(0, 1, f"share recovered within {RADII[AT]:g}", percent=True, ticks=(0, 0.5, 1))
    if not attacked:
        y = Axis(0.0, next_step(max([1e-12, *heights])), "normalised margin")
    return Chart(
        series, x, y, f"{len(done)} rows, 95% intervals", label=f"{y.name} by {first or 'row'}"
    )


def _settings_of(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the settings of each row by name, those within others by both; which of them vary."""
    flat: list[dict[str, Any]] = [{} for _ in rows]
    for row, settings in zip(rows, flat, strict=True):
        for name, value in row["trial"].items():
            inner = value if isinstance(value, Mapping) else {"": value}
            settings |= {f"{name}.{k}".rstrip("."): v for k, v in inner.items()}
    names = [k for k in (flat[0] if flat else ()) if k not in REPEATS]
    return flat, [k for k in names if len({dumps(f.get(k)) for f in flat}) > 1]


def _value_words(name: str, value: Any) -> str:  # noqa: ANN401 - of any setting
    return str(value) if name == "attack" else f"{name.split('.')[-1]} {value}".replace("_", " ")


def _setting_axis(given: Sequence[Any], name: str) -> tuple[list[float], Axis]:
    """Return where each value stands, and the axis; what is no number stands in the order given."""
    words = name.replace("_", " ")
    if given and all(type(v) in (int, float) for v in given):
        low, high = float(min(given)), float(max(given))
        ratios = low > 0 and high / low >= WIDE
        edge = 0.0 if ratios else 0.05 * (high - low)
        ticks = tuple(sorted(set(given))) if len(set(given)) <= 8 else None
        return [float(v) for v in given], Axis(low - edge, high + edge, words, log=ratios,
                                               ticks=ticks)  # fmt: skip
    kinds = list(dict.fromkeys(map(str, given)))
    ticks = tuple((k, "none" if kind == "None" else kind) for k, kind in enumerate(kinds))
    return [float(kinds.index(str(v))) for v in given], Axis(
        -0.5, len(kinds) - 0.5, words, ticks=ticks if name else ()
    )


def _sweep_series(
    name: str, group: Mapping[float, Sequence[Row]], colour: str, attacked: bool
) -> list[Series]:
    """Return the line of one combination: its values with their intervals, and the control."""
    at, control = np.array(list(group)), []
    if attacked:
        lines = [lines_of(rows)[0] for rows in group.values()]
        shares = [line.recall[AT] for line in lines]
        middle, low, high = ([getattr(s, k) for s in shares] for k in ("value", "low", "high"))
        control = [Series(at, [line.control[AT] for line in lines],
                          f"{name}, control sets".lstrip(", "), colour=colour,
                          look={"dashed": True, "width": 1.5})]  # fmt: skip
    else:
        made = [interval([row["result"]["gamma_bar"] for row in rows]) for rows in group.values()]
        middle, low, high = ([getattr(m, k) for m in made] for k in ("mean", "low", "high"))
    title = name or ("training points" if attacked else "margin")
    return [
        Series(at, high, "", "stems", low, colour=colour, look={"width": 1.5}),
        Series(at, middle, title, colour=colour), Series(at, middle, "", "dots", colour=colour),
        *control,
    ]  # fmt: skip


# What a table over two settings shows the means of.
FOUND, SURE = f"recovered within {RADII[AT]:g}", "certified"
FARTHEST = "distance of the farthest other set"
LAWS = {"parameters": "p = d n", "merged_parameters": "p = d n, neurons merged"}


def sweep_maps(rows: Sequence[Row]) -> dict[str, HeatMap]:
    """Return tables of rows over the last two settings that vary; seeds are pooled.

    They are the share of the points that is found, the share that is certified, and the mean
    distance of the farthest other training set that explains the weights as well, as far as the
    rows know them; with more settings that vary, one of each for every combination of these. Where
    the axes are number of points and width, the line p = d n is drawn in (Iurada et al. 2026:
    beyond it p parameters give n points of d coordinates away), of the network and of its merged
    neurons. A cell without a row that is done is empty.

    Returns:
        The tables by name; none where fewer than two settings vary.
    """
    done = [row for row in rows if row["status"] == "done" and "gamma_bar" in row["result"]]
    flat, varied = _settings_of(done)
    if len(varied) < 2:
        return {}
    *others, x, y = sorted(varied, key=lambda k: k != "attack")
    axes = [_cells_axis([f.get(k) for f in flat], k) for k in (x, y)]
    groups: dict[str, list[tuple[int, int, Row]]] = {}
    for row, settings in zip(done, flat, strict=True):
        name = ", ".join(_value_words(k, settings.get(k)) for k in others)
        a, b = (places[dumps(settings.get(k))] for k, (places, _) in zip((x, y), axes, strict=True))
        groups.setdefault(name, []).append((b, a, row))
    (across, x_axis), (upright, y_axis) = axes
    made = {}
    for name, cells in groups.items():
        lines = _law_lines(cells, (len(upright), len(across))) if (x, y) == ("n", "widths") else ()
        for title, known in _KNOWN.items():
            values = _cell_values(cells, known, (len(upright), len(across)))
            if np.isfinite(values).any():
                top = float(np.nanmax(values)) if title == FARTHEST else 1.0
                full = f"{title}, {name}".removesuffix(", ")
                made[full] = HeatMap(values, np.arange(len(across)), np.arange(len(upright)),
                                     x_axis, y_axis, top or 1.0, full, lines)  # fmt: skip
    return made


# What a row knows of each: nothing, a value, or one for each point.
_KNOWN: dict[str, Callable[[Row], Iterable[float]]] = {
    FOUND: lambda one: np.arange(one["n"]) < one["found"][AT] if "found" in one else (),
    SURE: lambda one: one.get("determined") or (),
    FARTHEST: lambda one: [
        away for away in [(one.get("other") or {}).get("distance")] if away is not None
    ],
}


def _cells_axis(given: Sequence[Any], name: str) -> tuple[dict[str, int], Axis]:
    """Return the place of each value, from 0 by size, and the axis of the cells."""
    kinds = {dumps(v): v for v in given}
    plain = all(isinstance(v, int | float) for v in kinds.values())
    order = sorted(kinds, key=lambda k: kinds[k] if plain else (len(k), k))
    said = [", ".join(map(str, v)) if isinstance(v, list | tuple) else str(v)
            for v in (kinds[k] for k in order)]  # fmt: skip
    ticks = tuple(enumerate(said))
    return {k: at for at, k in enumerate(order)}, Axis(
        -0.5, len(order) - 0.5, name.replace("_", " "), ticks=ticks
    )


def _cell_values(
    cells: Sequence[tuple[int, int, Row]], known: Callable[[Row], Iterable[float]],
    shape: tuple[int, int],
) -> Array:  # fmt: skip
    """Return the mean of what the rows of each cell know; nan where they know nothing."""
    part, whole = np.zeros(shape), np.zeros(shape)
    for b, a, row in cells:
        values = list(known(row["result"]))
        part[b, a] += sum(values)
        whole[b, a] += len(values)
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _law_lines(cells: Sequence[tuple[int, int, Row]], shape: tuple[int, int]) -> list[Series]:
    """Return where the parameters are as many as the coordinates of the points, by the column.

    Between two widths it is placed by logarithms; beyond the first and the last at the edge. What
    is not known of a cell is known of its row, but for merged neurons.
    """
    need = _cell_values(cells, lambda one: [np.log(one["d"] * one["n"])], shape)
    made: list[Series] = []
    for name, words in LAWS.items():
        size = _cell_values(cells, partial(_log_of, name), shape)
        places = np.full(shape[1], np.nan)
        for a in np.flatnonzero(np.isfinite(need).any(0)):
            column = size[:, a] if made else [_mean_known(row) for row in size]
            at = np.flatnonzero(np.isfinite(column))
            if len(at):
                ends = (-0.5 if at[0] == 0 else np.nan), (
                    shape[0] - 0.5 if at[-1] == shape[0] - 1 else np.nan)  # fmt: skip
                rising = np.maximum.accumulate(np.asarray(column)[at])
                places[a] = np.interp(_mean_known(need[:, a]), rising, at, *ends)
        made.append(Series(np.arange(shape[1]), places, words, colour="neg",
                           look={"dashed": bool(made), "width": 3}))  # fmt: skip
    return made


def _log_of(name: str, result: Row) -> list[float]:
    return [float(np.log(result[name]))] if name in result else []  # not in files of old versions


def _mean_known(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan


SHORTEST = 1e-3  # of a split: at the lower edge, as on an axis by logarithms 0 has no place


def split_chart(rows: Sequence[SafeSplit], config: SafeSplitConfig, label: str) -> Chart:
    """Return how far a point can split safely over the steps of a training."""
    t = [max(row.t, 1) for row in rows]
    kinds = (
        ("safe", f"safe split: misses under {config.share:g} of |θ|", "pos"),
        ("wall", "nearest wall of any neuron", "neg"),
        ("boxed", f"safe split within [{config.low:g}, {config.high:g}]", "good"),
        ("frozen", "|Wν| / |W|", "ink3"),
    )
    lines = [(np.maximum([getattr(row, name) for row in rows], SHORTEST), words, colour)
             for name, words, colour in kinds]  # fmt: skip
    finite = np.concatenate([y[np.isfinite(y)] for y, *_ in lines])
    series = [Series(t, y, words, colour=colour, look={"width": 1.5, "dashed": colour == "ink3"})
              for y, words, colour in lines]  # fmt: skip
    return Chart(
        series,
        Axis(1, next_step(max([*t, 10])), "training step", log=True),
        Axis(*decades(SHORTEST, float(finite.max(initial=1.0))), "length along ν", log=True),
        f"{label}: safe split over training",
    )


EDGES = {
    "data": ("λ₂ = 1: from held-out data to the truth", "λ₁", 1),
    "noise": ("λ₁ = 1: from noise to the truth", "λ₂", 2),
}  # title, name of the axis, and the other set of an edge of the grid
SET_INKS = {"truth": "good", "heldout": "ink3", "noise": "third"}


def edge_chart(found: Maps, which: str) -> Chart:
    """Return mean distances to two sets along an edge of the grid of starts, with their bands."""
    title, name, other = EDGES[which]
    end, start = found.edge(which)
    series, top = [], 1e-9
    for k in (0, other):
        mean, low, high = band(end[:, k])
        first, colour = band(start[:, k])[0], SET_INKS[SETS_IN_ORDER[k]]
        series += [
            Series(found.values, high, "", "band", low, colour=colour),
            Series(found.values, mean, f"to {SETS[SETS_IN_ORDER[k]]}", colour=colour),
            Series(found.values, first, f"to {SETS[SETS_IN_ORDER[k]]}, at the start", colour=colour,
                   look={"dashed": True, "width": 1.5}),
        ]  # fmt: skip
        top = max(top, float(np.nanmax([*high, *first, top])))
    ends = min(found.values), max(found.values)
    return Chart(series, Axis(*ends, name), Axis(0, 1.05 * top, "mean distance"), title)


STARTS = "λ₁ (truth against held-out)", "λ₂ (data against noise)"  # axes of the grid


def distance_map(found: Maps, k: int) -> HeatMap:
    """Return mean distances to set `k` of NAMES after the run, by the start."""
    half, values = 0.5 / (len(found.values) - 1), found.mean
    top = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    ticks = tuple(found.values.tolist()) if len(found.values) <= FEW_CELLS else None
    x, y = (Axis(-half, 1 + half, name, ticks=ticks) for name in STARTS)
    title = f"distance to {SETS[SETS_IN_ORDER[k]]}"
    return HeatMap(values[k], found.values, found.values, x, y, top, title)


# --- energies ---


def strip_chart(frame: Mapping[str, Any], label: str) -> Chart:
    """Return a frame of the strip below the triangle: energies along a path; see `strip.js`."""
    looks = (("start", "at the start", "ink2", True), ("end", "after the attack", "good", False))
    series = [
        Series(rows[:, 0], rows[:, 1], name, colour=colour, look={"dashed": dashed})
        for key, name, colour, dashed in looks if key in frame for rows in [np.asarray(frame[key])]
    ]  # fmt: skip
    if frame.get("handle"):
        place, energy = frame["handle"]
        fall = [energy, *frame.get("fall", ())]
        series.append(
            Series(np.full(len(fall), place), fall, "from the handle", "dots", colour="accent")
        )
    marks = tuple(tuple(mark) for mark in frame.get("marks", ()))
    return Chart(
        series, Axis(0.0, 1.0, short="along the path", ticks=marks),
        Axis(0.0, 1.05 * float(frame.get("top", 1.0)), short="energy"), "Energy along the path",
        label=label,
        rules=[Guide(at, axis="x", colour="ink3") for at, _ in marks if 0.02 < at < 0.98],
    )  # fmt: skip


def edges_chart(values: Array) -> Chart:
    """Return the energies of starts (side, side) along the edges: truth, unseen, noise, truth."""
    line = path("edges", (1.0, 0.0, 0.0))
    energy = read_lattice(values, line.places)
    frame = {"start": np.column_stack([line.along, energy]), "marks": line.marks,
             "top": max(float(np.nanmax(energy)), 1e-9)}  # fmt: skip
    return strip_chart(frame, "Energy along the edges")


def has_lowest_mark(picture: Picture) -> bool:
    """Return whether the lowest place is marked: not where many have the lowest colour."""
    low = span_of(picture.values, picture.reference)[0]
    lowest = int((picture.values <= low).sum())
    return lowest <= MOST_LOWEST * int(np.isfinite(picture.values).sum())


def curve_chart(picture: Picture, at: float | None = None, truth: float | None = None) -> Chart:
    """Return the energy over a line, log upright, with the point where it is and where it was.

    Args:
        picture: a curve.
        at: the place of the point; None where it is not known, and for `truth` likewise.
        truth: its place in the training set.

    Raises:
        ValueError: for a picture that is no curve.
    """
    made = picture.curve
    if made is None:
        raise ValueError(f"expected a curve; got a map of {picture.values.shape}")
    low, top = span_of(picture.values, picture.reference)
    low = 10.0 ** np.floor(np.log10(low))
    y = Axis(low, top * 1.3, short=picture.names[1], log=True)
    seen = np.maximum(picture.values[0], low)

    def ring(x: float, value: float, name: str, shape: str, size: float, colour: str) -> Series:
        look = {"shape": shape, "size": size, "hollow": True}
        return Series([x], [max(value, low)], name, "dots", colour=colour, look=look)

    breaks = Series(made.breaks, np.full(len(made.breaks), y.high), "breakpoints of Φ", "stems",
                    z=np.full(len(made.breaks), low), colour="ink3",
                    look={"width": 1, "opacity": 0.5})  # fmt: skip
    margin = Series(
        made.candidates, np.interp(made.candidates, made.z, seen), "on the margin", "dots",
        colour="good", look={"shape": "diamond", "size": 4},
    )  # fmt: skip
    rings = [ring(*picture.lowest, "lowest", "diamond", 5, "accent")]
    if at is not None:
        rings.insert(0, ring(at, picture.here, "where the point is", "square", 6.5, "ink"))
    if truth is not None:
        level = float(np.interp(truth, made.z, seen))
        rings.insert(0, ring(truth, level, "truth", "circle", 5.5, "ink"))
    line = Series(made.z, seen, picture.names[1], colour="ink", look={"width": 2})
    known = np.isfinite(picture.reference) and picture.reference > low
    rules = [Guide(picture.reference, "without this point")] if known else []
    x = Axis(*picture.box[:2], name="x")
    return Chart(
        [breaks, line, margin, *rings], x, y, "", rules=rules, label=f"{picture.names[1]} over x"
    )


# --- images ---


def output_chart(found: ImageComparison) -> Chart:
    """Return the best score of each training image by the network's output (Haim et al. 2022).

    The score is SSIM where that is the measure named, else NCC.
    """
    outputs, scores = found.outputs.numpy(), found.scores.numpy()
    score = found.score_name
    furthest = float(np.abs(outputs).max(initial=1.0))
    reach = min(MOST_OUTPUT, math.ceil(2.2 * furthest) / 2)
    dots = [
        Series(
            outputs[mine].clip(-MOST_OUTPUT, MOST_OUTPUT), scores[mine].clip(-0.2), name, "dots",
            ids=np.flatnonzero(mine), colour=colour,
        )
        for mine, name, colour in (
            (~found.matched.numpy(), "not found", CONTROL),
            (found.matched.numpy(), "found", MATCHED),
        )
    ]  # fmt: skip
    limits = {"ssim": SSIM_LEAST, "ncc": NCC_LEAST}
    rules = [Guide(limits[name], MEASURES[name]) for name in limits if name == found.measure]
    seen = min([*scores, *(rule.at for rule in rules)], default=0.0)
    low = max(-0.2, math.floor(10 * seen - 0.5) / 10)
    whole = range(-int(reach), int(reach) + 1)
    return Chart(
        dots, Axis(-reach, reach, "output Φ / margin", ticks=tuple(map(float, whole))),
        Axis(low, 1, short=f"best {score}", ticks=(low, round((low + 1) / 2, 2), 1)), rules=rules,
        label=f"Best {score} of each training image by the output of the network",
        tips=[f"training image {k + 1}: {score} {value:.2f}, output {outputs[k]:.2f}"
              for k, value in enumerate(scores)],
    )  # fmt: skip


def share_chart(found: ImageComparison, started: bool) -> Chart:
    """Return the share found of the training images, of unseen images, of images of the start.

    The third bar stands only where the attack began at those images; whiskers go from the lowest
    to the highest unseen set.
    """
    each = [float(c.matched(found.measure).double().mean()) for c in found.controls]
    bars = [
        ("training", found.verdict.share, MATCHED),
        ("unseen", found.chance, CONTROL),
        *([("start's", found.start_share, STARTED)] if started else []),
    ]
    series = [
        Series([k], [share], f"{name} images", "stems", colour=colour, look={"width": 34})
        for k, (name, share, colour) in enumerate(bars, 1)
    ]
    series.append(Series([2], [max(each)], "unseen sets, lowest to highest", "stems", [min(each)],
                         look={"width": 2}))  # fmt: skip
    ticks = tuple((k, name) for k, (name, *_) in enumerate(bars, 1))
    return Chart(
        series,
        Axis(0.4, len(bars) + 0.6, "images", ticks=ticks),
        Axis(0, 1, short="share found", percent=True, ticks=(0, 0.25, 0.5, 0.75, 1)),
        label="Share found of training images and of unseen images",
    )


# --- membership ---


def roc_chart(
    curves: Sequence[tuple[str, str, Roc]],
    rule: tuple[float, float] | None = None,
    least: float = LEAST_FPR,
) -> Chart:
    """Return true against false positive rates for every threshold.

    Args:
        curves: name, colour and rates of each.
        rule: false and true positive rate of one rule.
        least: the false positive rate at the left edge; lower ones stand there.
    """
    places = np.geomspace(least, 1, 60)
    series = [Series(places, places, "guess", colour="ink3", look={"dashed": True, "width": 1.5})]
    series += [Series(np.maximum(curve.fpr, least), curve.tpr, name, colour=colour,
                      look={"width": 2.5}) for name, colour, curve in curves]  # fmt: skip
    if rule is not None:
        fpr, tpr = rule
        series.append(Series([max(fpr, least)], [tpr], "this rule", "dots", colour=LIMIT,
                             look={"shape": "diamond", "size": 6}))  # fmt: skip
    return Chart(
        series, Axis(least, 1, "false positive rate", log=True, percent=True,
                     ticks=tuple(at for at in (1e-3, 1e-2, 0.1, 1) if at >= least)),
        Axis(0, 1.05, short="true positive rate", percent=True, ticks=(0, 0.5, 1)),
        label="Every threshold: true positive rate by false positive rate",
    )  # fmt: skip


def trials_chart(trials: Sequence[MembershipTrial]) -> Chart:
    """Return the rates of a few dimensions; below one false positive nothing is known."""
    usable = [t for t in trials if t.margin == t.margin]
    dims = list(dict.fromkeys(t.d for t in usable))
    few = np.unique(np.linspace(0, len(dims) - 1, len(MANY_INKS)).astype(int)) if dims else ()
    curves, least = [], 1.0
    for d, colour in zip((dims[i] for i in few), MANY_INKS, strict=False):
        mine = [t for t in usable if t.d == d]
        curve = roc(torch.cat([t.members for t in mine]), torch.cat([t.fresh for t in mine]))
        curves.append((f"d = {d}", colour, curve))
        least = min(least, 1 / sum(len(t.fresh) for t in mine))
    return roc_chart(curves, least=min(least, 0.1))


def trained_chart(
    found: dict[int, dict[str, Interval]], shown: Sequence[tuple[str, str, str]] = TRAINED
) -> Chart:
    """Return shares by the dimension, of trained networks, with intervals over trials.

    Args:
        found: the numbers of each dimension, by name.
        shown: which of them: name, words and colour.
    """
    if not found:
        return NOTHING
    d = np.array(list(found), dtype=float)
    series = []
    for name, words, colour in shown:
        rows = [row[name] for row in found.values()]
        mean, low, high = (
            np.array([getattr(r, side) for r in rows]) for side in ("mean", "low", "high")
        )
        low, high = (np.where(np.isnan(v), mean, v).clip(0, 1) for v in (low, high))
        series += [
            Series(d, high, f"{words}, interval", "stems", low, colour=colour, look={"width": 1.2}),
            Series(d, mean, words, colour=colour),
            Series(d, mean, "", "dots", colour=colour, look={"size": 3.5}),
        ]
    ends = min(8.0, d.min() / 1.2), max(1200.0, d.max() * 1.2)
    return Chart(
        series,
        Axis(*ends, "dimension d", log=True, ticks=(10, 100, 1000)),
        Axis(0, 1.05, short="share", percent=True, ticks=(0, 0.5, 1)),
        label="Trained networks: shares by dimension",
    )
