"""Make the pictures of docs/papers.md anew, from the rows of bench_papers.

    python scripts/papers.py

Five minutes of one core. The pictures go to docs/pictures/.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from bench_papers import FIVE, Line, decayed, digits_run, images, runkel_11, runkel_12

from explorer.commands.digits import picture
from explorer.research.pictures import image_sheets
from explorer.research.pictures.painting import new_figure
from explorer.style import CURVES, INK

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
DECAYS = (0.0, 5e-5, 1e-4, 2e-4, 3e-4, 4e-4, 7.5e-4)
STEPS = 10_000
NAMES = {"bilevel": "bilevel, to truth", "decoreco": "DecoReco, to truth"}


def curve(axes: Any, x: Sequence[float], lines: Sequence[Line], colour: str, name: str) -> None:
    """A curve with the interval of each place as a bar."""
    low, middle, high = zip(*(line.at or (0.0, 0.0, 0.0) for line in lines), strict=True)
    below = [max(m - a, 0.0) for m, a in zip(middle, low, strict=True)]
    above = [max(b - m, 0.0) for m, b in zip(middle, high, strict=True)]
    axes.errorbar(
        x, middle, yerr=(below, above), fmt="o-", color=colour, label=name, markersize=4, capsize=2
    )


def bare(axes: Any, **labels: str) -> None:
    """Labels, a legend and no box."""
    axes.set(**labels)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def mixes(path: Path) -> None:
    """Runkel et al., figures 11 a, b and 12: distances at the end over the mix of the start."""
    data, noise = list(runkel_11(FIVE)), list(runkel_12(FIVE))
    figure = new_figure(10, 3.2, 150)
    for axes, title, rows, attacks, ends in zip(
        figure.subplots(1, 3, sharey=True),
        ("11 a: bilevel", "11 b: DecoReco", "12: noise to truth"),
        (data, data, noise),
        (("bilevel",), ("decoreco",), ("bilevel", "decoreco")),
        (("truth", "partition"), ("truth", "partition"), ("truth",)),
        strict=True,
    ):
        colours = iter(CURVES)
        for attack in attacks:
            for end in ends:
                lines = [
                    r for r in rows if r.what.startswith(f"{attack},") and r.what.endswith(end)
                ]
                name = f"to {end}" if len(ends) > 1 else NAMES[attack]
                curve(axes, MIXES, lines, next(colours), name)
        begun = "partition" if rows is data else "noise"
        bare(axes, title=title, xlabel=f"λ: {begun} (0) to truth (1)")
    figure.axes[0].set_ylabel("distance at the end")
    figure.savefig(path)


def decays(path: Path) -> None:
    """Buzaglo et al.: the matched share over the weight decay, by the published rule."""
    rows = [list(decayed("", FIVE, STEPS, decay, published=True)) for decay in DECAYS]
    figure = new_figure(7, 3.2, 150)
    left, right = figure.subplots(1, 2)
    x = range(len(DECAYS))
    curve(left, x, [r[0] for r in rows], CURVES[0], "training images")
    curve(left, x, [r[1] for r in rows], INK, "held-out images")
    curve(right, x, [r[2] for r in rows], CURVES[1], "share of ‖θ‖² the images leave")
    for axes in (left, right):
        axes.set_xticks(x, [f"{d:g}" for d in DECAYS], fontsize=7)
    bare(left, ylabel="share matched", xlabel="weight decay")
    bare(right, xlabel="weight decay")
    figure.savefig(path)


def digits(path: Path) -> None:
    """Haim et al., figure 3: training digits above what stands for them, best first."""
    run = digits_run(0)
    image_sheets.write(path, picture(run, images(run)[0]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    digits(FOLDER / "papers-digits.png")
    mixes(FOLDER / "papers-mixes.png")
    decays(FOLDER / "papers-decay.png")
