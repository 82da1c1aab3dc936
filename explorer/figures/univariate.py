"""The graph of Phi with the groups of the provable attack, for a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, view
from explorer.engine.dataset import Dataset
from explorer.style import INK, NEGATIVE, POSITIVE, PROVEN


def picture(path: Path, target: Target, state: UnivariateState, truth: Dataset | None) -> None:
    """Write a PNG: groups as bands with their rule, candidates, proven and likely points; lambda.

    A ring is proven, a dashed diamond likely. Truth, where it is given, hollow and larger than the
    candidates.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    line = view(target, state)
    x, y = state.x[:, 0].numpy(), state.y.numpy()
    everything = np.concatenate([x, line.breaks if not len(x) else x, [-1.0, 1.0]])
    low, high = float(everything.min()) - 0.6, float(everything.max()) + 0.6
    figure = Figure(figsize=(9, 6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    graph, bars = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for i, group in enumerate(state.groups):
        ends = max(group.low, low), min(group.high, high)
        graph.axvspan(*ends, color=PROVEN, alpha=0.10 + 0.08 * (i % 2), linewidth=0)
        graph.text(np.clip(sum(ends) / 2, low, high), 1.75, group.rule, ha="center", color=INK)
    at = np.unique(np.concatenate([np.linspace(low, high, 400), np.clip(line.breaks, low, high)]))
    graph.plot(at, [line.value(t) for t in at], color="black", linewidth=1.2)
    for level in (-1, 0, 1):
        graph.axhline(level, color="grey", linewidth=0.5)
    if truth is not None:
        colours = [POSITIVE if label > 0 else NEGATIVE for label in truth.y.tolist()]
        graph.scatter(truth.x[:, 0], truth.y, 110, facecolors="none", edgecolors=colours,
                      label="training points")  # fmt: skip
    graph.scatter(x, y, 22, color="black", zorder=3, label="candidates")
    proven, likely = state.proven.numpy(), state.likely.numpy()
    looks = ((proven, "proven", "o", "-", 260), (likely, "likely, not proven", "D", "--", 180))
    for kept, name, marker, style, size in looks:
        if kept.any():
            graph.scatter(x[kept], y[kept], size, facecolors="none", edgecolors=PROVEN,
                          linewidths=1.8, marker=marker, linestyles=style, label=name)  # fmt: skip
    graph.set(xlim=(low, high), ylim=(-2, 2), ylabel="Φ / margin")
    graph.legend(fontsize=7, loc="lower right", markerscale=0.6)
    solved = np.isfinite(state.least.numpy()) & np.isfinite(state.most.numpy())
    least, most = state.least.numpy()[solved], state.most.numpy()[solved]
    for kept, colour, wide in ((proven, PROVEN, 5), (likely, PROVEN, 2)):
        shown = kept[solved]
        bars.vlines(x[solved][shown], least[shown], most[shown], colors=colour, linewidth=wide)
    rest = ~(proven | likely)[solved]
    bars.vlines(x[solved][rest], least[rest], most[rest], colors=INK, linewidth=5)
    bars.scatter(x[solved], state.lam.numpy()[solved], 14, color="black", zorder=3)
    bars.set(xlabel="x", ylabel="λ, least to largest")
    bars.set_ylim(bottom=0)
    figure.suptitle(state.sentence, fontsize=9, wrap=True)
    figure.savefig(path, format="png")
