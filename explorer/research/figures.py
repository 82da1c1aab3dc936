"""Results as pictures on paper: arenas, energies, explanations, grids, membership."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, shapes, view
from explorer.engine.data import Dataset
from explorer.engine.energy.questions import Picture
from explorer.engine.energy.starts import CORNERS, NAMES, outline, raster
from explorer.engine.explanations.alternatives import forced_points
from explorer.engine.explanations.safe_split import SafeSplit, SafeSplitConfig
from explorer.engine.explanations.splitting import Explanation
from explorer.engine.files import write_file
from explorer.engine.intervals import Share
from explorer.engine.membership.experiment import MembershipTrial
from explorer.engine.network import phi
from explorer.engine.scoring import RADII
from explorer.research.arena import Line
from explorer.research.explained import Explained
from explorer.research.grid import WORDS, Maps, band
from explorer.research.planes import new_figure, plain, save_figure
from explorer.research.rates import Interval, roc, summary
from explorer.research.records import table_of
from explorer.research.tuning import Trial, front
from explorer.research.words import energy
from explorer.style import COLOURS, CONTROL, CURVES, INK, NEGATIVE, POSITIVE, PROVEN, SHADES

# --- The arena as a picture: recall and precision per attack with intervals, control in grey ----

SERIES = (("recall", CURVES[0]), ("precision", CURVES[2]))
WIDTH = 0.27  # of a bar, in the distance of two attacks


def arena_figure(path: Path, lines: Sequence[Line], title: str) -> None:
    """Write a PNG with one part per radius. ImportError without matplotlib."""
    ran = [line for line in lines if line.runs]
    figure = new_figure(11, 0.6 + 1.2 + 0.62 * max(len(ran), 2))
    parts: Any = figure.subplots(1, len(RADII), sharey=True)
    for i, (axes, radius) in enumerate(zip(parts, RADII, strict=True)):
        for k, (name, colour) in enumerate(SERIES):
            _bars(axes, [getattr(line, name)[i] for line in ran], (k - 1) * WIDTH, name, colour)
        places = [place + WIDTH for place in range(len(ran))]
        control = [line.control[i] for line in ran]
        axes.barh(places, control, WIDTH, color=CONTROL, label="recall of control sets")
        axes.set(xlim=(0, 1), xlabel="share", title=f"within {radius:g}")
        axes.set_yticks(range(len(ran)), [line.title for line in ran])
        axes.invert_yaxis() if i == 0 else None
    if ran:
        figure.legend(*parts[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("\n".join(textwrap.wrap(plain(title), 110)), fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(path, figure, dpi=130)


def _bars(axes: Any, shares: list[Share], at: float, name: str, colour: str) -> None:  # noqa: ANN401
    values = [s.value if s.value == s.value else 0.0 for s in shares]
    reach = [[v - s.low, s.high - v] if s.value == s.value else [0.0, 0.0]
             for v, s in zip(values, shares, strict=True)]  # fmt: skip
    axes.barh(
        [place + at for place in range(len(shares))], values, WIDTH, color=colour, label=name,
        xerr=[[max(r[k], 0.0) for r in reach] for k in (0, 1)],
        error_kw={"lw": 1.2, "capsize": 2.5, "ecolor": "#333333"},
    )  # fmt: skip


# --- An energy map or curve as a picture file ---------------------------------------------------

Array = NDArray[np.float64]


def draw(path: Path, picture: Picture, x: Array, y: Array, index: int) -> None:
    """Write the map of a picture with the points x (n, d), or its curve."""
    from matplotlib.colors import LogNorm

    figure = new_figure(6.4, 5.4)
    axes = figure.subplots()
    top = float(max(np.nanmax(picture.values), 1e-12))
    low = max(top * 1e-4, 1e-12)
    if picture.curve is not None:
        axes.semilogy(picture.curve.z, np.maximum(picture.values[0], low))
        for at in picture.curve.breaks:
            axes.axvline(at, color="0.6", lw=0.6, ls=":")
        axes.axvline(float(x[index, 0]), color="black", lw=0.8)
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
    else:
        starts = picture.kind == "starts"
        values = raster(picture.values) if starts else picture.values
        image = axes.imshow(
            np.maximum(values, low), extent=picture.box, cmap="viridis_r",
            norm=LogNorm(low, top), interpolation="nearest",
        )  # fmt: skip
        figure.colorbar(image, ax=axes, label="share of the weights not explained")
        if picture.kind in ("point", "ridge", "last"):
            for label, marker in ((1, "o"), (-1, "^")):
                mine = y == label
                axes.plot(x[mine, 0], x[mine, 1], marker, color="white", mec="black", ms=6)
            axes.plot(*x[index], "s", mfc="none", mec="white", ms=13)
        axes.plot(*picture.lowest, "d", mfc="none", mec="magenta", ms=8)
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
        if starts:
            axes.set_axis_off()
            for (across, up), name in zip(
                CORNERS, ("truth", "held-out data", "noise"), strict=True
            ):
                axes.annotate(name, (across, up + (0.02 if up > 0.5 else -0.05)), ha="center")
    axes.set_title("\n".join(textwrap.wrap(energy.picture(picture), 92)), fontsize=8)
    save_figure(path, figure, dpi=120)


# --- Explanations as files: the truth beside another set, and the safe split over training ------

MARKERS = {1: "o", -1: "^"}
FINE = 200  # arbitrary: pixels a side behind the points


def sets(path: Path, state: Explained, other: Explanation, mass: Tensor, extent: float) -> None:
    """The truth, hollow, and another set that explains the weights, filled; forced ones ringed."""
    figure = new_figure(5.6, 5.2)
    axes = figure.subplots()
    at = torch.linspace(-extent, extent, FINE, dtype=torch.float64)
    if state.net.d == 2:
        grid = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1).reshape(-1, 2)
        values = phi(state.net, grid).reshape(FINE, FINE).numpy()
        axes.contour(
            at.numpy(), at.numpy(), values, [-1, 0, 1], colors=[COLOURS[-1], INK, COLOURS[1]],
            linewidths=1,
        )  # fmt: skip
    else:
        axes.plot(at.numpy(), phi(state.net, at[:, None]).numpy(), color=PROVEN)
    for label in (1, -1):
        for e, filled in ((other, True), (state.truth, False)):
            mine = (e.y == label).numpy()
            x, y = _place(e)
            size = 20 + 160 * (e.lam / e.lam.max()).numpy()
            axes.scatter(
                x[mine], y[mine], size[mine] if filled else 60, marker=MARKERS[label],
                facecolor=COLOURS[label] if filled else "none", edgecolor=COLOURS[label],
                label=f"{'explains the weights too' if filled else 'the truth'}, {label:+d}",
            )  # fmt: skip
    forced = forced_points(mass, state.target.mass)[0].numpy()
    x, y = _place(state.truth)
    axes.scatter(
        x[forced], y[forced], 260, facecolor="none", edgecolor=PROVEN, linewidth=2, label="forced"
    )
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), xlabel="x₁", ylabel="x₂")
    axes.legend(frameon=False, fontsize=8)
    save_figure(path, figure, dpi=150)


def _place(e: Explanation) -> tuple[np.ndarray, np.ndarray]:
    x = e.x.numpy()
    return x[:, 0], x[:, 1] if x.shape[1] > 1 else e.y.numpy()


def longer(path: Path, rows: Sequence[SafeSplit], config: SafeSplitConfig, label: str) -> None:
    """Extents of the cells along a free direction over the training steps."""
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    t = np.array([max(row.t, 1) for row in rows])
    for name, words, colour in (
        ("safe", f"safe split: misses under {config.share:g} of |θ|", CURVES[0]),
        ("wall", "nearest wall of any neuron", CURVES[1]),
        ("boxed", f"safe split within [{config.low:g}, {config.high:g}]", CURVES[2]),
    ):
        axes.plot(t, [getattr(row, name) for row in rows], "o-", color=colour, label=words,
                  markersize=3)  # fmt: skip
    axes.plot(t, [row.frozen for row in rows], ":", color=INK, label="|Wν| / |W|")
    axes.set(
        xscale="log", xlabel="training step", ylabel="length along ν",
        title=f"{label}: safe split over training",
    )  # fmt: skip
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    save_figure(path, figure, dpi=150)


# --- The grid as a picture: three maps of distances, the nearest set, two edges, the triangle ---

TITLES = {
    "data": "λ₂ = 1: from held-out data to the truth",
    "noise": "λ₁ = 1: from noise to the truth",
}


def grid_picture(path: Path, found: Maps, rows: Iterable[Mapping[str, Any]], title: str) -> None:
    """Write the figure. `rows` as `maps` takes them: their trajectories are drawn."""
    figure = new_figure(13, 7)
    axes = figure.subplots(2, 4)
    mean = found.mean
    top = float(np.nanmax(mean)) if np.isfinite(mean).any() else 1.0
    for k, name in enumerate(NAMES):
        axis = axes[0, k]
        image = axis.imshow(
            mean[k], origin="lower", cmap="viridis", vmin=0, vmax=top, extent=_box(found)
        )
        axis.set_title(f"distance to {WORDS[name]}", fontsize=10)
        _numbers(axis, found, mean[k], top)
    figure.colorbar(image, ax=list(axes[0, :3]), shrink=0.8)
    _nearest(axes[0, 3], found)
    for axis in axes[0]:
        axis.set_xlabel("λ₁ (truth against held-out)")
        axis.set_ylabel("λ₂ (data against noise)")
        if len(found.values) <= 6:
            axis.set_xticks(found.values)
            axis.set_yticks(found.values)
    for axis, which in zip(axes[1, :2], ("data", "noise"), strict=True):
        _edge(axis, found, which)
    _triangle(axes[1, 2], rows)
    axes[1, 3].axis("off")
    axes[1, 3].text(
        0, 0.9, f"{title}\n\n{textwrap.fill(found.sentence(), 38)}", va="top", fontsize=10
    )
    save_figure(path, figure, dpi=110)


def _box(found: Maps) -> tuple[float, float, float, float]:
    half = 0.5 / (len(found.values) - 1)
    return (-half, 1 + half, -half, 1 + half)


def _numbers(axis: Any, found: Maps, values: Any, top: float) -> None:  # noqa: ANN401
    if len(found.values) > 6:
        return
    for i, b in enumerate(found.values):
        for j, a in enumerate(found.values):
            if np.isfinite(values[i, j]):
                shade = "white" if values[i, j] < 0.6 * top else "black"
                axis.text(a, b, f"{values[i, j]:.2f}", ha="center", va="center",
                          color=shade, fontsize=8)  # fmt: skip


def _nearest(axis: Any, found: Maps) -> None:  # noqa: ANN401
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ["white", *(SHADES[name] for name in NAMES)]
    axis.imshow(
        found.nearest + 1, origin="lower", cmap=ListedColormap(colours), vmin=0, vmax=3,
        extent=_box(found), interpolation="nearest",
    )  # fmt: skip
    axis.set_title("nearest set", fontsize=10)
    marks = [Patch(color=SHADES[name], label=WORDS[name]) for name in NAMES]
    axis.legend(handles=marks, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncol=3)


def _edge(axis: Any, found: Maps, which: str) -> None:  # noqa: ANN401
    end, start = found.edge(which)
    other = 1 if which == "data" else 2
    for k in (0, other):
        mean, low, high = band(end[:, k])
        name = NAMES[k]
        axis.fill_between(found.values, low, high, color=SHADES[name], alpha=0.2, linewidth=0)
        axis.plot(found.values, mean, color=SHADES[name], label=f"to {WORDS[name]}")
        axis.plot(found.values, band(start[:, k])[0], color=SHADES[name], ls=":", lw=1)
    axis.set_title(TITLES[which], fontsize=10)
    axis.set_xlabel("λ₁" if which == "data" else "λ₂")
    axis.set_ylabel("mean distance")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, title="dotted: at the start", title_fontsize=8)


def _triangle(axis: Any, rows: Iterable[Mapping[str, Any]]) -> None:  # noqa: ANN401
    closed = outline()
    axis.plot(closed[:, 0], closed[:, 1], color=INK, lw=1)
    for row in rows:
        path = np.asarray(row["result"]["trail"]) @ CORNERS
        axis.plot(path[:, 0], path[:, 1], color=INK, lw=0.8, alpha=0.7)
        axis.plot(*path[-1], "o", color=INK, ms=3)
    for (x, y), name in zip(CORNERS, NAMES, strict=True):
        axis.annotate(WORDS[name], (x, y), xytext=(0, 6 if y > 0.5 else -12), ha="center",
                      textcoords="offset points", fontsize=9)  # fmt: skip
    axis.set_title("runs on the triangle of starts", fontsize=10, pad=18)
    axis.set_aspect("equal")
    axis.axis("off")


# --- The trained experiment on membership as files: a table of trials and three figures ---------

FIGURES = ("on-margin.png", "fresh-points.png", "roc.png")
TABLE = "trials.csv"
SHOWN = (
    ("beyond_signed", "y Φ ≥ m"),
    ("beyond", "|Φ| ≥ m"),
    ("beyond_half", "|Φ| ≥ m / 2"),
)
MOST_CURVES = 6  # arbitrary: dimensions in the ROC figure

Row = dict[str, float | int]


def write(folder: Path, trials: Sequence[MembershipTrial], rows: Sequence[Row]) -> list[Path]:
    """The CSV of all trials and the three figures, in `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / TABLE, table_of(rows))
    found = summary(rows)
    paths = [folder / name for name in FIGURES]
    for path, draw in zip(paths, (_on_margin, _fresh), strict=False):
        _figure(path, lambda axes, draw=draw: draw(axes, found))
    _figure(paths[2], lambda axes: _roc(axes, trials))
    return [folder / TABLE, *paths]


def _figure(path: Path, draw: Any) -> None:  # noqa: ANN401
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    draw(axes)
    axes.legend(frameon=False)
    save_figure(path, figure, dpi=150)


def _band(axes: Any, found: dict[int, dict[str, Interval]], name: str, label: str, i: int) -> None:  # noqa: ANN401
    d = np.array(list(found))
    mean = np.array([v[name].mean for v in found.values()])
    low, high = (
        np.array([getattr(v[name], side) for v in found.values()]).clip(0, 1)
        for side in ("low", "high")
    )
    axes.plot(d, mean, "o-", color=CURVES[i], label=label, markersize=4)
    axes.fill_between(d, low, high, color=CURVES[i], alpha=0.2, linewidth=0)


def _shares(axes: Any, what: str) -> None:  # noqa: ANN401
    axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="dimension d", ylabel=what)


def _on_margin(axes: Any, found: dict[int, dict[str, Interval]]) -> None:  # noqa: ANN401
    _band(axes, found, "on_margin", "mean over trials, 95% interval", 0)
    _shares(axes, "share of training points within 10% of the margin")


def _fresh(axes: Any, found: dict[int, dict[str, Interval]]) -> None:  # noqa: ANN401
    for i, (name, label) in enumerate(SHOWN):
        _band(axes, found, name, label, i)
    _shares(axes, "share of fresh points")


def _roc(axes: Any, trials: Sequence[MembershipTrial]) -> None:  # noqa: ANN401
    usable = [t for t in trials if t.margin == t.margin]
    dims = list(dict.fromkeys(t.d for t in usable))
    picked = [dims[i] for i in np.unique(np.linspace(0, len(dims) - 1, MOST_CURVES).astype(int))]
    colours = (*CURVES, "#56B4E9", "#E69F00")
    least = 1.0
    for d, colour in zip(picked, colours, strict=False):
        mine = [t for t in usable if t.d == d]
        curve = roc(torch.cat([t.members for t in mine]), torch.cat([t.fresh for t in mine]))
        one = 1 / sum(len(t.fresh) for t in mine)  # below one false positive nothing is known
        least = min(least, one)
        axes.plot(np.maximum(curve.fpr, one), curve.tpr, color=colour, label=f"d = {d}")
    axes.plot([least, 1], [least, 1], color=INK, linestyle=":", label="a guess")
    axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="false positive rate",
             ylabel="true positive rate")  # fmt: skip


# --- Another training set that explains the same weights, beside the true one, as a picture -----


def other_figure(path: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Write a PNG for the first row that knows another set in the plane; False for none.

    ImportError without matplotlib.
    """
    told: list[Any] = [(row.get("result") or {}).get("other") for row in rows]
    told = [other for other in told if other and other["x"] and len(other["x"][0]) == 2]
    if not told:
        return False
    other = told[0]
    figure = new_figure(6, 6.6)
    axes: Any = figure.subplots()
    for label, marker, colour in ((1, "o", POSITIVE), (-1, "^", NEGATIVE)):
        for name, face, size in (("truth_", "none", 110), ("", colour, 30)):
            pairs = zip(other[f"{name}x"], other[f"{name}y"], strict=True)
            spots = [x for x, y in pairs if y == label]
            axes.scatter([x[0] for x in spots], [x[1] for x in spots], marker=marker,
                         s=size, facecolors=face, edgecolors=colour)  # fmt: skip
    axes.set(aspect="equal", xlabel="hollow: training points; filled: another set")
    figure.suptitle("\n".join(textwrap.wrap(other["sentence"], 76)), fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(path, figure, dpi=130)
    return True


# --- The graph of Phi with the groups of the provable attack, for a file ------------------------


def line_picture(
    path: Path, target: Target, state: UnivariateState, truth: Dataset | None, words: str = ""
) -> None:  # fmt: skip
    """Write a PNG: groups as bands with their rule, candidates, proven and likely points; lambda.

    A circle means proven, a dashed one likely. The truth, if given, is hollow and larger than
    the candidates.
    """
    line = view(target, state)
    x, y = state.x[:, 0].numpy(), state.y.numpy()
    everything = np.concatenate([x, line.breaks if not len(x) else x, [-1.0, 1.0]])
    low, high = float(everything.min()) - 0.6, float(everything.max()) + 0.6
    figure = new_figure(9, 6, 130)
    graph, bars = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    drawn = shapes(target, state)
    for i, (group, span) in enumerate(zip(state.groups, drawn.spans, strict=True)):
        ends = max(span[0], low), min(span[1], high)
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
    looks = (
        (drawn.rings, "proven", "o", "-", 260),
        (drawn.likely, "likely, not proven", "o", "--", 260),
    )
    for places, name, marker, style, size in looks:
        if len(places):
            graph.scatter(*places.T, size, facecolors="none", edgecolors=PROVEN,
                          linewidths=1.8, marker=marker, linestyles=style, label=name)  # fmt: skip
    proven, likely = state.proven.numpy(), state.likely.numpy()
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
    bars.set(xlabel="x", ylabel="λ, least to largest", ylim=(0, None))
    figure.suptitle(words, fontsize=9, wrap=True)
    save_figure(path, figure)


# --- The trials of a search, and their front ----------------------------------------------------


def front_picture(path: Path, rows: Sequence[Trial], chosen: Trial | None) -> None:
    """Write a PNG: every trial, the front, and the one that was taken."""
    figure = new_figure(5.2, 3.8, 130)
    axes: Any = figure.subplots()
    good, ahead = [t for t in rows if not t.failure], front(rows)
    axes.scatter([t.residual for t in good], [t.agreement for t in good], color=INK, s=18)
    axes.step(
        [t.residual for t in ahead], [t.agreement for t in ahead], where="post", color=POSITIVE
    )
    if chosen is not None:
        axes.scatter([chosen.residual], [chosen.agreement], color=PROVEN, s=90, marker="*")
    axes.set(xscale="log", xlabel="stationarity residual, share of ‖θ‖²")
    axes.set_ylabel("agreement of restarts")
    save_figure(path, figure)
