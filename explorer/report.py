"""What a run amounts to, for a terminal, a program or a page of paper."""

from __future__ import annotations

import math
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.engine.attacks.kkt import Report
from explorer.engine.attacks.target import NO_THEOREM
from explorer.engine.data import PLANE, Dataset
from explorer.engine.margin import q_of
from explorer.engine.network import Network, phi
from explorer.engine.store import Run
from explorer.headless import Attacked, Trained
from explorer.style import NEGATIVE, POSITIVE

GRID = 160  # arbitrary: pixels of the decision map along one side


def jsonable(value: Any) -> Any:  # noqa: ANN401 (JSON has no type)
    """Plain JSON: tensors as lists, enums by name, what is not finite as null."""
    if isinstance(value, Tensor):
        return jsonable(value.detach().cpu().tolist())
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def of_dataset(data: Dataset) -> dict[str, Any]:
    """Size and source of the points."""
    return {
        "n": data.n,
        "d": data.d,
        "positive": int((data.y > 0).sum()),
        "source": asdict(data.source) if data.source else None,
    }


def of_network(net: Network) -> dict[str, Any]:
    """Shape and norm of the weights."""
    return {
        "d": net.d,
        "widths": list(net.widths),
        "homogeneous": net.homogeneous,
        "rho": float(net.rho),
        "dtype": str(net.dtype).removeprefix("torch."),
    }


def of_training(data: Dataset, done: Trained) -> dict[str, Any]:
    """The points, the weights, how far training came, and how near to a KKT point."""
    state, made = done.states[-1], done.certificate
    training = {
        "t": state.t,
        "log_loss": state.log_loss,
        "gamma_bar": state.gamma_bar,
        "gamma_tilde": state.gamma_tilde,
        "q": state.q,
        "q_min": done.q_min,
    }
    if made is not None:
        training |= {
            "on_margin": int(made.on_margin.sum()),
            "lam": made.lam,
            "residual": made.residual,
            "residual_strict": made.residual_strict,
            "slackness": made.slackness,
            "light": made.light,
            "sentence": made.sentence,
        }
    return {"dataset": of_dataset(data), "network": of_network(done.net), "training": training}


def of_attack(done: Attacked) -> dict[str, Any]:
    """What is claimed, and where the truth is known, how much of it is true."""
    state, claims, scores, verdict = done.states[-1], done.claims, done.scores, done.verdict
    out: dict[str, Any] = {
        "t": state.t,
        "candidates": len(state.x),
        **state.numbers(),
        "claims": [
            {"x": x, "y": int(y), "lam": lam}
            for x, y, lam in zip(
                claims.x.tolist(), claims.y.tolist(), claims.lam.tolist(), strict=True
            )
        ],
        "scores": None,
        "verdict": None,
    }
    if scores is not None and verdict is not None:
        truth, control = scores
        out["scores"] = [
            {
                "radius": radius,
                "found": int(truth.found[i]),
                "found_heldout": int(control.found[i]),
                "recall": float(truth.recall[i]),
                "precision": float(truth.precision[i]),
            }
            for i, radius in enumerate(truth.radii)
        ]
        out["verdict"] = {
            "kind": verdict.kind,
            "sentence": verdict.sentence,
            "p_value": verdict.p_value,
        }
    return out


def of_file(opened: Run | Network) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What a file holds, for a program and for a table."""
    if isinstance(opened, Network):
        return {"kind": "weights", "network": of_network(opened)}, _network_rows(opened)
    run = opened
    attack = None if run.attack_config is None else asdict(run.attack_config)
    content: dict[str, Any] = {
        "kind": "run",
        "dataset": of_dataset(run.dataset),
        "network": of_network(run.net) if run.net else None,
        "seed": run.seed,
        "mix": run.mix,
        "train_config": asdict(run.train_config),
        "train_steps": [state.t for state in run.train_states],
        "attack_config": attack,
        "attack_steps": [state.t for state in run.attack_states],
        "versions": run.versions,
    }
    source = run.dataset.source
    rows = [("points", f"{run.dataset.n} in {run.dataset.d}-D, {source or 'drawn by hand'}")]
    rows += _network_rows(run.net) if run.net else [("network", "none yet")]
    for name, states in (("training", run.train_states), ("attack", run.attack_states)):
        last = f", the last of step {states[-1].t}" if states else ""
        rows.append((name, f"{len(states)} states{last}"))
    rows.append(("seed", str(run.seed)))
    rows.append(("written by", ", ".join(f"{k} {v}" for k, v in run.versions.items())))
    return content, rows


def _network_rows(net: Network) -> list[tuple[str, str]]:
    biases = (
        "first layer"
        if net.homogeneous
        else "several layers: not homogeneous, no margin to scale to"
    )
    if all(b is None for b in net.biases):
        biases = "none"
    return [
        ("network", "-".join(map(str, (net.d, *net.widths, 1)))),
        ("biases", biases),
        ("norm", f"{float(net.rho):.6g}"),
        ("type", str(net.dtype).removeprefix("torch.")),
    ]


def training_rows(points: Dataset, done: Trained) -> list[tuple[str, str]]:
    """Names and values of a finished training, for a table."""
    made, last = done.certificate, done.states[-1]
    rows = [
        ("points", f"{points.n} in {points.d}-D"),
        ("network", "-".join(map(str, (done.net.d, *done.net.widths, 1)))),
        ("steps", f"{last.t}"),
    ]
    if made is None:
        return [*rows, ("smallest margin", f"{done.q_min:.6g}"), ("certificate", NO_THEOREM)]
    return [
        *rows,
        ("normalised margin", f"{last.gamma_bar:.6g}"),
        ("on the margin (1%)", f"{int(made.on_margin.sum())} of {points.n}"),
        ("KKT residual", f"{made.residual:.2g} (strict {made.residual_strict:.2g})"),
        ("certificate", made.sentence),
    ]


def attack_rows(done: Attacked) -> list[tuple[str, str]]:
    """Names and values of a finished attack, for a table."""
    rows = [
        ("attack steps", f"{done.states[-1].t}"),
        *_unexplained(done),
        ("claims", f"{len(done.claims.x)} of {len(done.states[-1].x)} candidates"),
    ]
    if done.scores is None or done.verdict is None:
        return [*rows, ("verdict", "Cannot know: nothing to compare the claims with.")]
    truth, control = done.scores
    for i, radius in enumerate(truth.radii):
        found = f"{int(truth.found[i])} (held-out: {int(control.found[i])})"
        rows.append((f"found within {radius:g}", found))
    return [*rows, ("verdict", f"{done.verdict.kind.name}: {done.verdict.sentence}")]


def _unexplained(done: Attacked) -> list[tuple[str, str]]:
    """The share of ||theta||^2 left over, of attacks that explain theta."""
    share = done.states[-1].numbers().get("l_stationary")
    return [] if share is None else [("theta unexplained", f"{share:.2%}")]


def picture(path: Path, data: Dataset, net: Network, claims: Report | None, title: str) -> None:
    """Write a PNG: the plane (or the graph over the axis) with truth and claims, and q per point.

    Truth hollow, claims filled, their area by multiplier; the margin at its level lines.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    # Not pyplot: no window system is asked, and no figure outlives this call.
    figure = Figure(figsize=(10, 4.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    plane, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    q = q_of(net, data.x, data.y)
    margin = float(q.min())
    (_level_lines if data.d == 2 else _graph)(plane, net, margin)
    _marks(plane, data, claims)
    order = torch.argsort(q)
    colours = [POSITIVE if y > 0 else NEGATIVE for y in data.y[order].tolist()]
    bars.bar(range(data.n), (q[order] / margin).tolist(), color=colours)
    bars.axhline(1, color="black", linewidth=0.8)
    bars.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set_xlabel("point, by margin")
    bars.set_ylabel("q / smallest q")
    figure.suptitle(title, fontsize=9, wrap=True)
    figure.savefig(path, format="png")


def _level_lines(axes: Any, net: Network, margin: float) -> None:  # noqa: ANN401
    """The decision map, pale, and the lines where Phi is 0 and +-margin."""
    side = torch.linspace(-PLANE, PLANE, GRID, dtype=net.dtype)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(-1, 2)
    values = phi(net, grid).reshape(GRID, GRID) / margin
    sides = torch.where(values > 0, 1.0, -1.0)
    at = side.numpy()
    axes.pcolormesh(at, at, sides.numpy(), cmap=_two_colours(), vmin=-1, vmax=1, alpha=0.15)
    # matplotlib warns of levels that no value reaches.
    inside = [v for v in (-1, 0, 1) if float(values.min()) < v < float(values.max())]
    if inside:
        widths = [1.2 if v == 0 else 0.6 for v in inside]
        axes.contour(at, at, values.numpy(), levels=inside, colors="black", linewidths=widths)
    axes.set(ylim=(-PLANE, PLANE), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def _two_colours() -> Any:  # noqa: ANN401 (a class of an untyped library)
    from matplotlib.colors import ListedColormap

    return ListedColormap([NEGATIVE, POSITIVE])


def _graph(axes: Any, net: Network, margin: float) -> None:  # noqa: ANN401
    """The graph of Phi over the axis, at margin 1, with the levels that points must reach."""
    side = torch.linspace(-PLANE, PLANE, 8 * GRID, dtype=net.dtype)
    axes.plot(side.numpy(), (phi(net, side[:, None]) / margin).numpy(), color="black", linewidth=1)
    for level in (-1, 0, 1):
        axes.axhline(level, color="grey", linewidth=0.5)
    axes.set(xlabel="$x$", ylabel="Φ / margin")


def _marks(axes: Any, data: Dataset, claims: Report | None) -> None:  # noqa: ANN401
    """Truth hollow, claims filled; in 1-D at the height of their label."""
    for label, colour, marker in ((1, POSITIVE, "o"), (-1, NEGATIVE, "^")):
        at = _places(data.x, data.y, label)
        axes.scatter(*at, 60, facecolors="none", edgecolors=colour, marker=marker,
                     linewidths=1.5, label=f"truth {label:+d}")  # fmt: skip
        if claims is not None and bool((claims.y == label).any()):
            lam = claims.lam[claims.y == label]
            areas = (8 + 37 * lam / claims.lam.max()).tolist()  # within the marks of the truth
            axes.scatter(*_places(claims.x, claims.y, label), areas, color=colour, marker=marker,
                         linewidths=0, label=f"claim {label:+d}")  # fmt: skip
    axes.set(xlim=(-PLANE, PLANE))
    axes.legend(fontsize=7, loc="upper right")


def _places(x: Tensor, y: Tensor, label: int) -> tuple[list[float], list[float]]:
    own = x[y == label]
    height = own[:, 1] if x.shape[1] == 2 else torch.full_like(own[:, 0], label)
    return own[:, 0].tolist(), height.tolist()
