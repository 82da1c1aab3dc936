"""A run on paper: its points, its network and what an attack claims, as picture or as film."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.classes import labels
from explorer.engine.data import PLANE, Dataset
from explorer.engine.files import write_file
from explorer.engine.margin import q_of
from explorer.engine.network import Network, phi, phi_all
from explorer.engine.roster import AttackState
from explorer.engine.training import TrainState
from explorer.style import COLOURS, NEGATIVE, POSITIVE

GRID = 160  # arbitrary: pixels of the decision map along one side
PAPER = (6.9, 3.3)  # inches: the width of two columns
KINDS = ("pdf", "svg", "png")
MARGIN = 1.25  # half width of the plane to that of points beyond the usual one; arbitrary
MOST_FRAMES = 60  # of a film; arbitrary
PIXELS, FILM_GRID, FRAME_MS, LAST_MS = 480, 80, 80, 2000  # arbitrary
VIDEO = 720  # pixels a side of a video, which takes less room than a GIF; arbitrary

Box = tuple[float, float, float, float]  # left, right, bottom, top


def new_figure(width: float, height: float, dpi: float = 100) -> Any:  # noqa: ANN401 - untyped
    """An empty figure, in inches. ImportError without matplotlib.

    It is not pyplot's: it needs no window system, and is freed after its drawing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install margin-explorer[cli]", name="matplotlib"
        ) from error

    made = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(made)
    return made


def plain(words: str) -> str:
    """Words of others, in which matplotlib sees no formula."""
    return words.replace("$", r"\$")


def save_figure(path: Path, figure: Any, **more: Any) -> None:  # noqa: ANN401 - untyped
    """Write a figure as the picture that the end of the name asks for, else as a PNG."""
    out, ending = io.BytesIO(), path.suffix.lower().removeprefix(".")
    known = ending in figure.canvas.get_supported_filetypes()
    figure.savefig(out, format=ending if known else "png", **more)
    write_file(path, out.getvalue())


def box_of(data: Dataset) -> Box:
    """The usual plane where it holds all points, else a square around them."""
    if not data.n or bool((data.x.abs() <= PLANE).all()):
        return (-PLANE, PLANE, -PLANE, PLANE)
    low, high = data.x.min(0).values, data.x.max(0).values
    half = MARGIN * float((high - low).max()) / 2 or 1.0
    ends = [float(m) + s * half for m in (low + high) / 2 for s in (-1, 1)]
    return (ends[0], ends[1], ends[-2], ends[-1])


def plot_claims(ax: Any, data: Dataset, net: Network, claims: Report | None = None) -> Any:  # noqa: ANN401
    """Draw the plane, or the graph over the axis, with truth and claims on matplotlib axes.

    Truth hollow, claims filled, their area by multiplier; the margin at its level lines.
    """
    least = float(q_of(net, data.x, data.y).min())
    margin = least if least > 0 else 1.0  # points that are not separated have none
    (_level_lines if data.d == 2 else _graph)(ax, net, margin, box_of(data))
    _marks(ax, data, claims)
    return ax


def attack_picture(
    path: Path, data: Dataset, net: Network, claims: Report | None, title: str
) -> None:
    """Write a picture: truth and claims (`plot_claims`), and q per point; see `save_figure`."""
    figure = run_figure(data, net, claims, title, (10, 4.6))
    save_figure(path, figure, dpi=130)


def run_figure(
    data: Dataset, net: Network | None, claims: Report | None = None, title: str = "",
    size: tuple[float, float] = PAPER,
) -> Any:  # fmt: skip # noqa: ANN401 - matplotlib is untyped
    """Truth and claims on the plane, and q per point; the points alone without a network.

    ImportError without matplotlib.
    """
    figure = new_figure(*size)
    if title:
        figure.suptitle(title, fontsize=9, wrap=True)
    if net is None:
        _marks(figure.subplots(), data, None)
        return figure
    from matplotlib.ticker import MaxNLocator

    plane, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    q = q_of(net, data.x, data.y)
    plot_claims(plane, data, net, claims)
    order, least = torch.argsort(q), float(q.min())
    colours = [COLOURS[int(y)] for y in data.y[order].tolist()]
    bars.bar(range(data.n), (q[order] / (least if least > 0 else 1.0)).tolist(), color=colours)
    bars.axhline(1 if least > 0 else 0, color="black", linewidth=0.8)
    bars.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set(xlabel="point, by margin", ylabel="q / smallest q" if least > 0 else "q")
    return figure


def as_bytes(figure: Any, kind: str) -> bytes:  # noqa: ANN401 - matplotlib is untyped
    """The figure as one of `KINDS`: for a PDF with fonts that publishers take, a PNG at 300 dpi."""
    from matplotlib import rc_context

    # No date and no random names: the same run gives the same bytes.
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": None}
    out = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "margin-explorer"}):
        figure.savefig(out, format=kind, dpi=300, metadata=dates[kind])
    return out.getvalue()


def film(
    data: Dataset, states: Sequence[TrainState] | Sequence[AttackState], net: Network | None = None,
    pixels: int = PIXELS,
) -> Iterator[Any]:  # fmt: skip
    """Yield frames of a film: networks of a training, or candidates of an attack on `net`.

    At most `MOST_FRAMES`, evenly chosen, each of `pixels` squared. ImportError without matplotlib
    and pillow.
    """
    from PIL import Image

    count = min(len(states), MOST_FRAMES)
    places = [round(i * (len(states) - 1) / max(count - 1, 1)) for i in range(count)]
    figure = new_figure(PIXELS / 100, PIXELS / 100, dpi=100 * pixels / PIXELS)
    axes = figure.subplots()
    for i in places:
        state = states[i]
        axes.clear()
        shown = state.net if net is None and isinstance(state, TrainState) else net
        if shown is not None:
            least = float(q_of(shown, data.x, data.y).min()) if data.n else 1.0
            plot = _level_lines if data.d == 2 else _graph
            plot(axes, shown, least if least > 0 else 1.0, box_of(data), FILM_GRID)
        found = None if isinstance(state, TrainState) else state
        _marks(axes, data, found, legend=False)
        axes.set_title(f"step {state.t:,}", fontsize=10)
        figure.canvas.draw()
        yield Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")


def gif(frames: Sequence[Any]) -> bytes:
    """The film of these frames; the last stands for `LAST_MS`, then it begins again."""
    out = io.BytesIO()
    frames[0].save(
        out, "GIF", save_all=True, append_images=frames[1:], duration=times(frames), loop=0,
        optimize=True,
    )  # fmt: skip
    return out.getvalue()


def times(frames: Sequence[Any]) -> list[int]:
    """How long each frame of a film stands, in milliseconds."""
    return [FRAME_MS] * (len(frames) - 1) + [LAST_MS]


def jpegs(frames: Sequence[Any]) -> list[bytes]:
    """The frames of a film one by one, for a browser that records a video of them."""
    made = []
    for frame in frames:
        out = io.BytesIO()
        frame.save(out, "JPEG", quality=95)
        made.append(out.getvalue())
    return made


def _level_lines(
    axes: Any, net: Network, margin: float, box: Box, size: int = GRID  # noqa: ANN401
) -> None:  # fmt: skip
    """The decision map, pale, and the lines where Phi is 0 and +-margin."""
    left, right, bottom, top = box
    x = torch.linspace(left, right, size, dtype=net.dtype)
    y = torch.linspace(bottom, top, size, dtype=net.dtype)
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).reshape(-1, 2)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    if net.outputs > 1:
        return _several(axes, phi_all(net, grid).T.reshape(-1, size, size) / margin, x, y)
    values = phi(net, grid).reshape(size, size) / margin
    sides = torch.where(values > 0, 1.0, -1.0)
    at = x.numpy(), y.numpy()
    axes.pcolormesh(*at, sides.numpy(), cmap=_two_colours(), vmin=-1, vmax=1, alpha=0.15,
                     rasterized=True)  # fmt: skip
    # matplotlib warns of levels that no value reaches.
    inside = [v for v in (-1, 0, 1) if float(values.min()) < v < float(values.max())]
    if inside:
        widths = [1.2 if v == 0 else 0.6 for v in inside]
        axes.contour(*at, values.numpy(), levels=inside, colors="black", linewidths=widths)


def _several(axes: Any, values: Tensor, x: Tensor, y: Tensor) -> None:  # noqa: ANN401
    """The same for outputs (C, h, w): the winner's colour, the borders, its lead at the margin."""
    from matplotlib.colors import ListedColormap

    at, best = (x.numpy(), y.numpy()), values.argmax(0)
    top = values.topk(2, 0).values
    colours = ListedColormap([COLOURS[label] for label in labels(len(values))])
    axes.pcolormesh(*at, best.numpy(), cmap=colours, vmin=0, vmax=len(values) - 1, alpha=0.15,
                     rasterized=True)  # fmt: skip
    for k, one in enumerate(values):
        rest = torch.where(best == k, top[1], top[0])
        lead = (one - rest).numpy()
        inside = [v for v in (0, 1) if lead.min() < v < lead.max()]
        if inside:
            widths = [1.2 if v == 0 else 0.6 for v in inside]
            axes.contour(*at, lead, levels=inside, colors="black", linewidths=widths)


def _two_colours() -> Any:  # noqa: ANN401 (a class of an untyped library)
    from matplotlib.colors import ListedColormap

    return ListedColormap([NEGATIVE, POSITIVE])


def _graph(
    axes: Any, net: Network, margin: float, box: Box, size: int = GRID  # noqa: ANN401
) -> None:  # fmt: skip
    """The graph of Phi over the axis, at margin 1, with the levels that points must reach."""
    side = torch.linspace(box[0], box[1], 8 * size, dtype=net.dtype)
    axes.plot(side.numpy(), (phi(net, side[:, None]) / margin).numpy(), color="black", linewidth=1)
    for level in (-1, 0, 1):
        axes.axhline(level, color="grey", linewidth=0.5)
    axes.set(xlim=box[:2], xlabel="$x$", ylabel="Φ / margin")


def _marks(
    axes: Any, data: Dataset, claims: Report | AttackState | None, legend: bool = True  # noqa: ANN401
) -> None:  # fmt: skip
    """Truth hollow, claims or candidates filled; in 1-D at the height of their label."""
    shapes = zip(labels(data.outputs), "o^sD", strict=False)
    for label, colour, marker in ((k, COLOURS[k], shape) for k, shape in shapes):
        at = _places(data.x, data.y, label)
        axes.scatter(*at, 60, facecolors="none", edgecolors=colour, marker=marker,
                     linewidths=1.5, label=f"truth {label:+d}")  # fmt: skip
        if claims is not None and bool((claims.y == label).any()):
            own = claims.y == label
            lam = getattr(claims, "lam", None)
            most = 0.0 if lam is None or lam.shape != own.shape else float(lam.max())
            share = lam[own] / most if lam is not None and most > 0 else torch.ones(int(own.sum()))
            areas = (8 + 37 * share).tolist()  # within the marks of the truth
            axes.scatter(*_places(claims.x, claims.y, label), areas, color=colour, marker=marker,
                         linewidths=0, label=f"claim {label:+d}")  # fmt: skip
    axes.set(xlim=box_of(data)[:2])
    if legend:
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2,
                    frameon=False)  # below: it would hide points  # fmt: skip


def _places(x: Tensor, y: Tensor, label: int) -> tuple[list[float], list[float]]:
    own = x[y == label]
    height = own[:, 1] if x.shape[1] == 2 else torch.full_like(own[:, 0], label)
    return own[:, 0].tolist(), height.tolist()
