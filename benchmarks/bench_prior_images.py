"""What an attacker finds of images by what it is granted of them: range, components, or nothing.

    python benchmarks/bench_prior_images.py --n 20 --seeds 0 1 2
    python benchmarks/bench_prior_images.py --n 50 --seeds 0 1 --priors pixels

One row a prior: KKT from noise on a network trained on n images of MNIST, at all defaults but the
prior. Counts of each seed, by rank and by NCC above 0.9; the unseen images, 19 sets of n, are put
to the same candidates, which return to the same prior. Largest p of the seeds. "Off" is how far the
training images lie off what is granted, the median over the images, in lengths of the images.
`--picture FILE` draws, of the first seed, some training images and what comes nearest to each.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import torch

from explorer.engine.data.images import Choice, Draw, draw
from explorer.engine.known import span_of
from explorer.engine.threads import limit_threads
from explorer.research import image_runs
from explorer.research.image_runs import ImageComparison, ImageRun

PRIORS = {
    "nothing": {"prior": None}, "a box": {"prior": 1.0}, "pixels": {},
    "components": {"prior": None, "knows": "components"},
    "pixels and components": {"knows": "components"},
}  # fmt: skip
SHOWN = 10  # training images in the picture, the first that were drawn; arbitrary
HEADS = ("", "rank", "unseen", "p", "NCC above 0.9", "unseen", "p", "SSIM above 0.4", "unseen",
         "p", "median NCC, unseen", "CPU s")  # fmt: skip


def run_of(n: int, seed: int, prior: str, components: int | None) -> ImageRun:
    """Return the run of a prior."""
    given = dict(PRIORS[prior])
    if components and "knows" in given:
        given["components"] = components
    return ImageRun(Choice("mnist", n=n, seed=seed), seed=seed, attack_settings=given)


def line(prior: str, found: list[ImageComparison], seconds: float) -> str:
    """Return a row of the table."""
    cells = [prior]
    for measure in ("rank", "ncc", "ssim"):
        made = [one.verdicts[measure] for one in found]
        cells += [
            ", ".join(f"{round(v.share * v.n)}" for v in made),
            f"{sum(v.of_controls for v in made) / len(made):.1%}",
            f"{max(v.p_value for v in made):.1g}",
        ]
    seen = torch.cat([one.truth.ncc for one in found]).median()
    unseen = torch.cat([c.ncc for one in found for c in one.controls]).median()
    return "| " + " | ".join([*cells, f"{seen:.2f}, {unseen:.2f}", f"{seconds:.0f}"]) + " |"


def off_the_span(n: int, seed: int, components: int) -> str:
    """Return how far images lie off the span: training images, and public ones in the median."""
    drawn = draw(Choice("mnist", n=n, seed=seed))
    known = span_of(drawn.public, components)
    span, away = replace(known, reach=0.0), drawn.train.x
    off = (span.put_back(away, drawn.train.y) - away).norm(dim=1).median()
    whole = (away - known.x[0]).norm(dim=1).median()
    return f"{components} components: {len(drawn.public)} public images lie {known.reach:.2f} off, \
training images {off:.2f} of {whole:.2f}"


def picture(drawn: Draw, made: dict[str, ImageComparison], file: str) -> None:
    """Draw training images, and below them what comes nearest to each with each prior.

    A frame is around those that match by NCC above 0.9.
    """
    from matplotlib import pyplot

    rows = {"truth": drawn.pictures(drawn.train.x)} | {k: c.truth.images for k, c in made.items()}
    figure, axes = pyplot.subplots(len(rows), SHOWN, figsize=(7.5, 0.57 * len(rows)))
    for (name, images), line_ in zip(rows.items(), axes, strict=True):
        found = made[name].truth.matched("ncc") if name in made else [False] * SHOWN
        for plot, image, matched in zip(line_, images[:SHOWN], found[:SHOWN], strict=True):
            plot.imshow(image[0], cmap="gray", vmin=0, vmax=1)
            plot.set(xticks=[], yticks=[])
            plot.spines[:].set(color="#0072B2", linewidth=2.5, visible=bool(matched))
        line_[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    figure.subplots_adjust(0.22, 0.01, 0.995, 0.99, wspace=0.06, hspace=0.08)
    figure.savefig(file, dpi=84)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20, help="training images")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--priors", nargs="+", default=list(PRIORS), choices=list(PRIORS))
    parser.add_argument("--components", type=int, help="how many, in place of the default")
    parser.add_argument("--picture", default="", help="file of the picture")
    asked = parser.parse_args()
    limit_threads()
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|", flush=True)
    firsts = {}
    for prior in asked.priors:
        begun, found = time.process_time(), []
        for seed in asked.seeds:
            run = run_of(asked.n, seed, prior, asked.components)
            found.append(image_runs.train_and_attack(draw(run.choice), run)[0])
        print(line(prior, found, time.process_time() - begun), flush=True)
        firsts[prior] = found[0]
    if asked.picture:
        first = asked.seeds[0]
        picture(draw(Choice("mnist", n=asked.n, seed=first)), firsts, asked.picture)
    for components in (20, 50, 100, 200):
        print(off_the_span(asked.n, asked.seeds[0], components), flush=True)


if __name__ == "__main__":
    main()
