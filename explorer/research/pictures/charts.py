"""Results as charts: made here once, painted on a page and on paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from explorer.engine.certificate import ON_MARGIN
from explorer.engine.charts import NOTHING, Axis, Chart, Guide, Series, decades, next_step
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import NAMES as SETS_IN_ORDER
from explorer.engine.explanations.safe_split import SafeSplit, SafeSplitConfig
from explorer.engine.images import MEASURES, SSIM_LEAST
from explorer.engine.scoring import RADII
from explorer.research.grid import Maps, band
from explorer.research.image_runs import ImageComparison
from explorer.research.pictures.shades import span_of
from explorer.research.rates import Interval, Roc
from explorer.research.sweep.arena import ArenaLine
from explorer.research.tuning import Trial
from explorer.research.words import tuning
from explorer.research.words.grid import SETS
from explorer.style import CLASSES

MARGIN_TOP = 3.0  # q / q_min shown; points beyond stand at the top edge
MOST_LOWEST = 0.02  # of the places, for a mark on the lowest; arbitrary
MOST_OUTPUT = 3.0  # arbitrary: outputs beyond 3 margins are drawn at the edge
MATCHED, CONTROL, STARTED = "good", "ink3", "ink"  # colours of the page
MEMBER, FRESH, LIMIT = "good", "ink3", "accent"  # likewise
TRAINED = (
    ("on_margin", "training points within 10% of m", MEMBER),
    ("beyond", "fresh points with |Φ| ≥ m", FRESH),
    ("beyond_half", "fresh points with |Φ| ≥ m/2", LIMIT),
)
LEAST_FPR = 5e-4  # one of 2000 held-out points

# --- training and attacks ---


def margins_chart(q_values: Tensor, labels: Tensor, at_rest: bool = True) -> Chart:
    """Return the points sorted by margin, in units of the smallest; pale ones are off the margin.

    Args:
        q_values: margins (n,).
        labels: (n,).
        at_rest: whether it is said how many points are on the margin.
    """
    q, y = q_values.cpu().numpy(), labels.cpu().numpy()
    low = float(q.min())
    unit = low if low > 0 else max(float(np.abs(q).max()), 1e-300)
    order = np.argsort(q, kind="stable")
    height = np.clip(q[order] / unit, -1, MARGIN_TOP)
    on = (q[order] <= (1 + ON_MARGIN) * low) & (low > 0)
    rank, wide = np.arange(1, len(q) + 1), float(np.clip(240 / len(q), 1, 4))  # px; arbitrary
    series = [
        Series(rank[mine], height[mine], shown.name, "stems", ids=order[mine],
               colour=shown.ink,
               look={"width": wide, "opacity": 1.0 if filled else 0.4})
        for label, shown in CLASSES.items()
        for filled in (True, False)
        if (mine := (y[order] == label) & (on == filled)).any()
    ]  # fmt: skip
    tips = [f"point {i + 1}: {q[i] / unit:.3g}" for i in range(len(q))]
    top = float(np.clip(1.2 * height.max(), 1.5, MARGIN_TOP + 0.2))
    said = (
        f"{int(on.sum())} of {len(q)} on the margin, within {ON_MARGIN:.0%}"
        if low > 0
        else f"{int((q <= 0).sum())} of {len(q)} on the wrong side"
    )
    rules = [Guide(1.0)] if low > 0 else []
    steps = ((0, "0"), (1, "on the margin"), (2, "2 ×"), (3, "3 ×"))
    ticks = tuple(step for step in steps if step[0] <= top) if low > 0 else None
    return Chart(
        series, Axis(0.2, len(q) + 0.8, short="rank", whole=True, hidden=True),
        Axis(min(0.0, 1.2 * float(height.min())), top, short="margin over the smallest",
             ticks=ticks),
        "Margin of each point", said if at_rest else "", rules=rules, picks=True, tips=tips,
        label=f"Margin of each point: {said}",
    )  # fmt: skip


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
        ticks = tuple(
            (len(ran) - 1 - at, line.title if not i else "") for at, line in enumerate(ran)
        )
        title = f"within {radius:g}"
        charts.append(Chart(
            series, Axis(0, 1, "share", percent=True, ticks=(0, 0.5, 1)),
            Axis(-0.6, max(len(ran), 1) - 0.4, ticks=ticks), title, label=f"Attacks {title}",
        ))  # fmt: skip
    return charts


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
SET_INKS = {"truth": "good", "heldout": "ink3", "noise": "fourth"}


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


# --- energies ---


def has_lowest_mark(picture: Picture) -> bool:
    """Return whether the lowest place is marked: not where many have the lowest colour."""
    low = span_of(picture.values, picture.reference)[0]
    lowest = int((picture.values <= low).sum())
    return lowest <= MOST_LOWEST * int(np.isfinite(picture.values).sum())


def curve_chart(picture: Picture, at: float, truth: float) -> Chart:
    """Return the energy over a line, log upright, with the point at `at`.

    ValueError for a picture that is no curve.
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
    rings = [
        ring(truth, float(np.interp(truth, made.z, seen)), "truth", "circle", 5.5, "ink"),
        ring(at, picture.here, "where the point is", "square", 6.5, "ink"),
        ring(*picture.lowest, "lowest", "diamond", 5, "accent"),
    ]
    line = Series(made.z, seen, picture.names[1], colour="ink", look={"width": 2})
    known = np.isfinite(picture.reference) and picture.reference > low
    rules = [Guide(picture.reference, "without this point")] if known else []
    x = Axis(*picture.box[:2], name="x")
    return Chart(
        [breaks, line, margin, *rings], x, y, "", rules=rules, label=f"{picture.names[1]} over x"
    )


# --- images ---


def output_chart(found: ImageComparison) -> Chart:
    """Return best SSIM of each training image by the network's output (Haim et al. 2022)."""
    outputs, ssim = found.outputs.numpy(), found.truth.ssim.numpy()
    dots = [
        Series(
            outputs[mine].clip(-MOST_OUTPUT, MOST_OUTPUT),
            ssim[mine].clip(-0.2),
            name,
            "dots",
            colour=colour,
        )
        for mine, name, colour in (
            (~found.matched.numpy(), "not found", CONTROL),
            (found.matched.numpy(), "found", MATCHED),
        )
    ]
    return Chart(
        dots, Axis(-MOST_OUTPUT, MOST_OUTPUT, "output Φ / margin", ticks=(-3, -2, -1, 0, 1, 2, 3)),
        Axis(-0.2, 1, short="best SSIM", ticks=(0, 0.4, 1)),
        rules=[Guide(SSIM_LEAST, MEASURES["ssim"])],
        label="Best SSIM of each training image by the output of the network",
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
        *([("start's", found.started, STARTED)] if started else []),
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
        Axis(0.4, len(bars) + 0.6, short="images", ticks=ticks),
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
