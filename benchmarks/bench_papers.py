"""The measures of docs/papers.md: what the five papers show, with intervals over seeds.

    python benchmarks/bench_papers.py                        every row: half an hour
    python benchmarks/bench_papers.py --only refael-longer   one row
    python benchmarks/bench_papers.py --only haim-images --seeds 0 1

A row of the papers prints several measures. An interval is at 90%: of a mean that of Student over
the seeds, of a share that of `explorer/engine/confidence.py`. A seed draws everything: points or
images, first weights, first candidates. Images are the 8 x 8 digits, odd against even or all ten;
`haim-28` makes smooth random images of 28 x 28, writes them as MNIST files and reads them back.
"""

from __future__ import annotations

import argparse
import math
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from bench_univariate import drawn, met, run
from scipy.stats import spearmanr, t
from torch import Tensor
from torch.nn.functional import interpolate

from explorer.commands.grid import MODELS, PAPER, THREE
from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.attack import Start
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.config import PUBLISHED
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import UnivariateConfig
from explorer.engine.confidence import share
from explorer.engine.controls import control_sets, meeting_counts
from explorer.engine.data import Dataset, preset
from explorer.engine.data.images import MNIST, Choice, Draw, draw, parity_digits
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.safe_split import SafeSplitConfig, in_space, safe_splits
from explorer.engine.membership.experiment import MembershipConfig, membership_experiment
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.roster import by_key
from explorer.engine.scoring import score
from explorer.engine.training import TrainConfig, TrainState
from explorer.research import image_runs
from explorer.research.grid import GridCell, run_cell
from explorer.research.image_runs import ImageComparison, ImageRun
from explorer.research.runs import RADIUS

LEVEL = 0.9
FIVE, TEN = tuple(range(5)), tuple(range(10))


@dataclass(frozen=True)
class Line:
    """One measure of one row, over its seeds; `at` is (low, middle, high) for a picture."""

    what: str
    ours: str
    seeds: int
    at: tuple[float, float, float] | None = None


def mean_of(what: str, values: list[float], form: str = ".3g", least: float = 0.0) -> Line:
    """The mean with Student's interval over the seeds, cut at the least possible value."""
    if len(set(values)) == 1:
        return Line(what, f"{values[0]:{form}} on each seed", len(values), (values[0],) * 3)
    v = torch.tensor(values, dtype=torch.float64)
    half = float(t.ppf((1 + LEVEL) / 2, len(v) - 1) * v.std() / math.sqrt(len(v)))
    at = tuple(max(float(v.mean()) + s * half, least) for s in (-1, 0, 1))
    low, middle, high = (f"{value:{form}}" for value in at)
    return Line(what, f"{middle} ({low} to {high})", len(v), at)


def geometric(what: str, values: list[float]) -> Line:
    """The geometric mean with Student's interval of the logarithms; 0 if all are."""
    if not any(values):
        return Line(what, "0 on each seed", len(values))
    v = torch.tensor(values, dtype=torch.float64).log()
    half = float(t.ppf((1 + LEVEL) / 2, len(v) - 1) * v.std() / math.sqrt(len(v)))
    low, middle, high = (f"{math.exp(float(v.mean()) + s * half):.2g}" for s in (-1, 0, 1))
    return Line(what, f"{middle} ({low} to {high})", len(v))


def share_of(what: str, pairs: list[tuple[int, int]]) -> Line:
    """The share of all draws, with the interval of `engine.confidence` at the same level."""
    found, total = zip(*pairs, strict=True)
    made = share(found, total, LEVEL)
    return Line(what, str(made), len(pairs), (made.low, made.value, made.high))


# Haim et al. 2022


def haim_plane(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 2: 20 points of a circle from noise, 100 candidates."""
    for widths in ((1000,), (100, 100)):
        yield from circle(widths, seeds)


def haim_wide(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 2 at the published widths."""
    yield from circle((1000, 1000), seeds)


def haim_published(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 2 with the settings of the published runs, in all their 50,000 steps."""
    for name in PUBLISHED:
        yield from circle((1000,), seeds, name, 50_000)


def haim_published_wide(seeds: tuple[int, ...]) -> Iterator[Line]:
    """The same at the published widths, in fewer steps."""
    yield from circle((1000, 1000), seeds, "MNIST kcf9bhbi", 2000)


def circle(
    widths: tuple[int, ...], seeds: tuple[int, ...], published: str = "", steps: int = 2000
) -> Iterator[Line]:
    """What the default attack, or that of a published run, finds of 20 alternating points."""
    found, chance, claims, left, mass = [], [], [], [], []
    for seed in seeds:
        truth = preset("alternating-circle", n=20, seed=seed)
        plan = TrainConfig(widths=widths, steps=10_000)
        first = training.init(truth, plan, torch.Generator().manual_seed(seed))
        state = training.advance(truth, first, plan, plan.steps)
        target = Target.of(state.net, state.q_min)
        config = KKTConfig(steps=steps)
        if published:
            config = KKTConfig.from_paper(target, published, m=100, steps=steps)
        end = kkt.init(target, config, torch.Generator().manual_seed(seed))
        end = kkt.advance(target, end, config, config.steps)
        left.append(float(end.l_stationary))
        mass.append(float(end.lam.sum()) / target.mass)
        made = kkt.report(target, end, config)
        hits = int(score(truth, made.x, made.y, (RADIUS,)).found)
        found.append((hits, truth.n))
        claims.append((hits, len(made.x)))
        by_chance = meeting_counts(control_sets(truth), made.x, made.y, (RADIUS,))
        chance.append(float(by_chance.double().mean()) / truth.n)
    name = "-".join(map(str, (2, *widths, 1))) + (f", {published}" if published else "")
    yield share_of(f"{name}: points within {RADIUS} of a claim", found)
    yield share_of(f"{name}: claims that are points", claims)
    yield mean_of(f"{name}: the same share by chance", chance)
    yield mean_of(f"{name}: share of ‖θ‖² left", left)
    yield mean_of(f"{name}: sum of the multipliers, of that of a KKT point", mass)


# The mean loss at a constant rate, as published, for a hundredth of the steps: 0.1 / (1 - 0.9) is a
# hundred times the published rate of 0.01 without momentum.
PUBLISHED_RULE = {"step_rule": "constant", "lr": 0.1, "momentum": 0.9}


@cache
def images(
    run: ImageRun,
    decay: float = 0.0,
    offset: float = 0.0,
    loss: str = "exponential",
    published: bool = False,
    how: tuple[tuple[str, object], ...] = (),
    knobs: str = "",
) -> tuple[ImageComparison, Draw, TrainState]:
    """One run on images: its score, its images, and the end of the training.

    `offset` is added to every pixel of all sets and taken off again before the score: the attacker
    does not know. `published` trains by `PUBLISHED_RULE`; `how` are other settings of the attack
    than those for images, and `knobs` is the published run of which it takes all.
    """
    made = shifted(draw(run.choice), offset)
    plan = replace(run.run_on(made).train_config, weight_decay=decay, loss=loss)
    plan = replace(plan, **PUBLISHED_RULE) if published else plan
    state = training.init(made.train, plan, torch.Generator().manual_seed(run.seed))
    state = training.advance(made.train, state, plan, plan.steps)
    aimed = image_runs.aim(made, run, state)
    config = replace(run.config, **dict(how))
    if offset:
        config = replace(config, prior=1.0)  # the range of the moved pixels is not known either
    if knobs:
        config = KKTConfig.from_paper(aimed.target, knobs, m=config.m, steps=config.steps)
    generator = torch.Generator().manual_seed(run.seed)
    start = image_runs.start_of(made, run, aimed.net.outputs)
    for following in by_key(run.attack).states(aimed.target, config, generator, start):
        end = following
    return image_runs.assess(made, aimed, [end]), made, state


def shifted(made: Draw, offset: float) -> Draw:
    """The same sets with every pixel moved."""
    if not offset:
        return made

    def moved(s: Dataset) -> Dataset:
        return Dataset(s.x + offset, s.y)

    return replace(made, mean=made.mean - offset, train=moved(made.train), other=moved(made.other),
                   controls=tuple(map(moved, made.controls)))  # fmt: skip


def matched(what: str, runs: list[ImageRun], **more: object) -> Iterator[Line]:
    """Share of training images matched, and of held-out images by the same candidates."""
    scores = [images(run, **more)[0] for run in runs]
    pairs = [(s.verdict.found, s.verdict.n) for s in scores]
    yield share_of(f"{what}: matched", pairs)
    yield mean_of(f"{what}: held-out images matched", [s.chance for s in scores])


def digits_run(seed: int, n: int = 20, task: str = "two", **more: object) -> ImageRun:
    """An attack on the 8 x 8 digits; all draws from one seed."""
    return ImageRun(Choice(task=task, n=n, seed=seed), seed=seed, **more)


def haim_images(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 3: the share of training images that are recognised."""
    for widths in ((1000,), (300, 300)):
        runs = [digits_run(s, widths=widths) for s in seeds]
        name = "-".join(map(str, (64, *widths, 1)))
        yield from matched(f"{name}, 20 digits", runs)


def haim_published_images(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 3 with the settings of a published run, in 20,000 of its 50,000 steps."""
    runs = [digits_run(s, steps=20_000) for s in seeds]
    yield from matched("64-1000-1, CIFAR-10 b9dfyspx", runs, knobs="CIFAR-10 b9dfyspx")


def haim_margin(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 4: images near the margin are reconstructed better."""
    runs = [digits_run(s, n=60) for s in seeds]
    yield from matched("64-1000-1, 60 digits", runs)
    near, far, rank = [], [], []
    for run_ in runs:
        made = images(run_)[0]
        away, ssim = made.outputs.abs(), made.truth.ssim
        half = away <= away.median()
        near.append(float(ssim[half].mean()))
        far.append(float(ssim[~half].mean()))
        rank.append(float(spearmanr(away, ssim).statistic))
    yield mean_of("mean SSIM, half nearer to the margin", near)
    yield mean_of("mean SSIM, half farther from it", far)
    yield mean_of("rank correlation of SSIM with |Φ|/m", rank, least=-1.0)


def haim_inversion(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 5: the baseline that follows the output alone."""
    yield from matched("model inversion", [digits_run(s, attack="inversion") for s in seeds])


def haim_28(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 3 at the size of MNIST, on smooth random images, through the files."""
    with tempfile.TemporaryDirectory() as folder:
        write_mnist(Path(folder))
        runs = [
            ImageRun(Choice("mnist", n=20, seed=s, folder=folder), (300,), seed=s, init_scale=0.01)
            for s in seeds  # the scale was chosen on seed 100 among 0.1, 0.03 and 0.01
        ]
        yield from matched("784-300-1, 20 generated images", runs)


def write_mnist(folder: Path, count: int = 600) -> None:
    """Smooth random images of 28 x 28 with random digits, as the two files of MNIST."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(count, 1, 5, 5, generator=generator)
    fine = interpolate(coarse, size=(28, 28), mode="bicubic", align_corners=True)
    low, high = fine.amin((2, 3), keepdim=True), fine.amax((2, 3), keepdim=True)
    pixels = (255 * (fine - low) / (high - low)).to(torch.uint8).numpy()
    labels = torch.arange(count).remainder(10).to(torch.uint8).numpy()
    (folder / MNIST[0]).write_bytes(struct.pack(">4i", 2051, count, 28, 28) + pixels.tobytes())
    (folder / MNIST[1]).write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())


# Buzaglo et al. 2023


def buzaglo_classes(seeds: tuple[int, ...]) -> Iterator[Line]:
    """More classes leak more: DecoReco on two and on ten classes."""
    for task in ("two", "ten"):
        runs = [digits_run(s, task=task, attack="decoreco") for s in seeds]
        yield from matched(f"DecoReco, {task} classes, 20 digits", runs)


def buzaglo_ten(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Ten classes of six images each."""
    runs = [digits_run(s, n=60, task="ten", attack="decoreco") for s in seeds]
    yield from matched("DecoReco, ten classes, 60 digits", runs)


def buzaglo_two(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Why DecoReco finds fewer than KKT with two classes: it has no pull onto the margin."""
    without = (("weight_margin", 0.0),)
    for name, attack, how in (
        ("KKT", "kkt", ()),
        ("KKT without the margin's pull", "kkt", without),
        ("DecoReco, outputs", "decoreco", ()),
        ("DecoReco, margin", "decoreco", (("contribution", "margin"),)),
        ("DecoReco, margin without its pull", "decoreco", (("contribution", "margin"), *without)),
    ):
        yield from matched(name, [digits_run(s, attack=attack) for s in seeds], how=how)


def buzaglo_decay(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Weight decay by the published rule of training: more leaks, until few neurons are left."""
    for steps, decay in ((2700, 0.0), (2700, 7.5e-4), (10_000, 0.0), (10_000, 1e-4),
                         (10_000, 2e-4), (10_000, 7.5e-4)):  # fmt: skip
        name = f"{steps} steps, weight decay {decay:g}"
        yield from decayed(name, seeds, steps, decay, published=True)
    name = "10000 steps, weight decay 0, first layer 0.01"
    yield from decayed(name, seeds, 10_000, 0.0, published=True, scale=0.01)


def buzaglo_decay_60(seeds: tuple[int, ...]) -> Iterator[Line]:
    """The same with three times as many images, which need more neurons."""
    for decay in (0.0, 2e-4, 7.5e-4):
        name = f"60 digits, 10000 steps, weight decay {decay:g}"
        yield from decayed(name, seeds, 10_000, decay, published=True, n=60)


def buzaglo_decay_end(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Weight decay where training goes to its end: the loss-scaled step, logistic loss."""
    for decay in (0.0, 7.5e-4):
        yield from decayed(f"weight decay {decay:g}", seeds, 3000, decay)


def decayed(
    name: str,
    seeds: tuple[int, ...],
    steps: int,
    decay: float,
    published: bool = False,
    scale: float | None = None,
    n: int = 20,
) -> Iterator[Line]:
    """What leaks of networks trained with weight decay, how near they are, and how sparse."""
    runs = [digits_run(s, n, train_steps=steps, init_scale=scale) for s in seeds]
    more = {"decay": decay, "loss": "logistic", "published": published}
    yield from matched(name, runs, **more)
    ends = [images(run_, **more)[1:] for run_ in runs]
    left = [truth_leaves(made.train, state, runs[0]) for made, state in ends]
    yield mean_of(f"{name}: share of ‖θ‖² that the images leave", left)
    live = [heavy_neurons(state) for _, state in ends]
    yield mean_of(f"{name}: neurons with 99% of the path weight", live, ".0f")


def heavy_neurons(state: TrainState, share: float = 0.99) -> int:
    """Merged neurons of two layers, heaviest first, that hold this share of the path weight."""
    net = Target.of(state.net, state.q_min).merged(MERGE_ANGLE)
    incoming = net.weights[0].square().sum(1)
    if net.biases[0] is not None:
        incoming = incoming + net.biases[0].square()
    path = (incoming.sqrt() * net.weights[1].norm(dim=0)).sort(descending=True).values
    return int((path.cumsum(0) < share * path.sum()).sum()) + 1


def truth_leaves(truth: Dataset, state: TrainState, run: ImageRun) -> float:
    """Share of ||theta||^2 left by the training images with the best multipliers, last slopes."""
    config = replace(replace(run, attack="kkt").config, relu_alpha_start=None)
    target = Target.of(state.net, state.q_min)
    start = Start(truth.x, truth.y)
    return float(kkt.init(target, config, torch.Generator(), start).l_stationary)


def buzaglo_width(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Neurons against training images."""
    for width in (30, 100, 300, 1000):
        runs = [digits_run(s, widths=(width,)) for s in seeds]
        yield from matched(f"64-{width}-1, 20 digits", runs)


def buzaglo_images(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Training images against neurons: 1000 neurons, more and more images."""
    for n in (10, 20, 60, 120):
        yield from matched(f"64-1000-1, {n} digits", [digits_run(s, n=n) for s in seeds])


# Runkel et al. 2024

# The hidden layer with larger steps, and more of them.
LONGER = {**MODELS["hidden"], "lr_x": 0.03, "steps": 1000}


def runkel_table(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Table 1: how far the weights stay apart, from three starts."""
    both = (*((k, *item) for k, item in enumerate(MODELS.items())), (1, "longer", LONGER))
    for k, model, settings in both:
        for start, (a, b) in THREE.items():
            cells = [
                GridCell("digits", "bilevel", a, b, 20, seed=s, settings=settings) for s in seeds
            ]
            ends = [2 * run_cell(cell)["numbers"]["l_upper"] for cell in cells]
            yield geometric(f"{model}, from {start} (paper: {PAPER[start][k]:.2e})", ends)


def edge(seeds: tuple[int, ...], fixed: str, names: tuple[str, str]) -> Iterator[Line]:
    """Distances at the end along an edge of the grid, for bilevel and DecoReco."""
    for attack in ("bilevel", "decoreco"):
        for moving in (0.0, 0.25, 0.5, 0.75, 1.0):
            mix = (1.0, moving) if fixed == "truth" else (moving, 1.0)
            ends = [run_cell(GridCell("digits", attack, *mix, 20, seed=s)) for s in seeds]
            for name in names:
                to = "partition" if name == "heldout" else name
                what = f"{attack}, λ = {moving:g}: distance to {to}"
                yield mean_of(what, [end[name] for end in ends])


def runkel_11(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 11 a, b: from partition (0) to truth (1)."""
    yield from edge(seeds, "data", ("truth", "heldout"))


def runkel_12(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 12 (11 c, d): from noise (0) to truth (1)."""
    yield from edge(seeds, "truth", ("truth", "noise"))


# Smorodinsky, Vardi and Safran 2024


def smorodinsky_membership(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Figure 1 a to c: the trained experiment; the seeds are trials."""
    dims = (20, 50, 100, 400, 1000)
    yield from margins_by_dimension(MembershipConfig(dims=dims, trials=len(seeds), seed=1))


def margins_by_dimension(config: MembershipConfig) -> Iterator[Line]:
    """Who lies on and beyond the margin, over the trials of each dimension."""
    trials = list(membership_experiment(config))
    for d in config.dims:
        mine = [trial for trial in trials if trial.d == d]
        yield mean_of(f"d = {d}: training points on the margin (a)", [x.on_margin for x in mine])
        yield mean_of(f"d = {d}: test points with yΦ ≥ m (b, c)", [x.beyond_signed for x in mine])
        yield mean_of(f"d = {d}: test points on their side", [x.test_accuracy for x in mine])


def smorodinsky_mixture(seeds: tuple[int, ...]) -> Iterator[Line]:
    """The second version's mixture of two Gaussians, labelled by component; seeds are trials."""
    yield from margins_by_dimension(
        MembershipConfig(
            dims=(20, 100, 400), trials=len(seeds), seed=1, law="mixture", labels="component"
        )
    )


def smorodinsky_line(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Algorithm 1 on exact networks of the line, n 3 to 15."""
    precision, recall, groups = [], [], []
    for seed in seeds:
        data = drawn(90_000 + seed, 15)
        made = maximum_margin(data.x, data.y)
        if not made.polished:
            continue
        target = Target.of(made.net, 1.0)
        state, union = run(target, UnivariateConfig(mode="algorithm 1"))
        support = made.lam > 1e-6 * made.lam.max()
        right, found = met(data, union.x, union.y, 1e-6)
        precision.append(float(right.double().mean()))
        recall.append((int((found & support).sum()), int(support.sum())))
        parts = [(torch.tensor(g.x).double(), torch.tensor(g.y).double()) for g in state.groups]
        right_groups = [bool(met(data, x[:, None], y, 1e-6)[0].any()) for x, y in parts]
        groups.append((sum(right_groups), len(parts)))
    yield mean_of("share of S that are training points", precision)
    yield Line("the least of these shares", f"{min(precision):.2f}", len(precision))
    yield share_of("support points in S", recall)
    yield share_of("groups with a training point", groups)


# Refael et al. 2025


def refael_sphere(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Candidates that begin on spheres of another radius: the same loss, farther points."""
    n, d, width = 20, 40, 200
    made = [sphere_target(seed, n, d, width) for seed in seeds]
    for radius, steps in ((0.5, 1000), (0.5, 4000), (1.0, 1000), (2.0, 1000), (4.0, 1000),
                          (8.0, 1000), (8.0, 4000)):  # fmt: skip
        config = KKTConfig(m=2 * n, steps=steps, weight_margin=0.0)
        left, near, size = [], [], []
        for seed, (data, target) in zip(seeds, made, strict=True):
            generator = torch.Generator().manual_seed(seed)
            x = on_sphere(config.m, d, generator)
            y = torch.ones(config.m, dtype=torch.float64)
            y[n:] = -1
            end = kkt.init(target, config, generator, Start(radius * x, y))
            end = kkt.advance(target, end, config, config.steps)
            apart = torch.cdist(end.x, data.x).min(1).values
            left.append(float(end.l_stationary))
            near.append(float(apart.sort().values[:5].mean()))
            size.append(float(end.x.norm(dim=1).mean()))
        name = f"from radius {radius:g}, {steps} steps"
        yield mean_of(f"{name}: share of ‖θ‖² left", left)
        yield mean_of(f"{name}: distance of the best five", near)
        yield mean_of(f"{name}: mean radius at the end", size)


def on_sphere(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Uniform points (n, d) of the unit sphere."""
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def sphere(seed: int, n: int, d: int) -> Dataset:
    """Points of the sphere labelled by their first coordinate."""
    x = on_sphere(n, d, torch.Generator().manual_seed(seed))
    return Dataset(x, torch.where(x[:, 0] > 0, 1.0, -1.0).double())


def sphere_target(seed: int, n: int, d: int, width: int) -> tuple[Dataset, Target]:
    """Points of the sphere, and a network trained on them."""
    generator = torch.Generator().manual_seed(seed)
    x = on_sphere(n, d, generator)
    data = Dataset(x, torch.where(x[:, 0] > 0, 1.0, -1.0).double())
    plan = TrainConfig(widths=(width,), steps=5000)
    state = training.init(data, plan, generator)
    state = training.advance(data, state, plan, plan.steps)
    return data, Target.of(state.net, state.q_min)


def refael_offset(seeds: tuple[int, ...]) -> Iterator[Line]:
    """A secret offset of the training images."""
    for offset in (0.0, 0.5, 1.0, 3.0):
        runs = [digits_run(s) for s in seeds]
        yield from matched(f"every pixel moved by {offset:g}", runs, offset=offset)


def refael_longer(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Longer training: does less leak?"""
    for steps in (300, 1000, 3000, 10_000):
        runs = [digits_run(s, train_steps=steps) for s in seeds]
        yield from matched(f"{steps} training steps", runs)


def refael_split(seeds: tuple[int, ...]) -> Iterator[Line]:
    """Does the safe split grow with training? Points of the sphere, the digits, moons in space."""
    for name, points in (("sphere", lambda s: sphere(s, 20, 40)),
                         ("digits", lambda s: parity_digits(40, s)[0]),
                         ("moons", lambda s: in_space(preset("moons", seed=s)))):  # fmt: skip
        for missed in (0.01, 0.001):
            config = [SafeSplitConfig(steps=5000, seed=seed, share=missed) for seed in seeds]
            runs = [[r for r in safe_splits(points(c.seed), c) if r.safe == r.safe] for c in config]
            for when, at in (("once separated", 0), ("at 5000 steps", -1)):
                ends = [rows[at] for rows in runs]
                yield geometric(f"{name}, {missed:g} missed, split {when}", [r.safe for r in ends])
                if missed == SafeSplitConfig.share:
                    yield geometric(f"{name}, |Wν| / |W| {when}", [r.frozen for r in ends])
                    yield mean_of(f"{name}, nearest wall {when}", [r.wall for r in ends])
            grew = [(int(rows[-1].safe > rows[0].safe), 1) for rows in runs]
            yield share_of(f"{name}, {missed:g} missed: runs in which it grew", grew)


ROWS: dict[str, tuple[Callable[[tuple[int, ...]], Iterator[Line]], tuple[int, ...]]] = {
    "haim-plane": (haim_plane, TEN),
    "haim-wide": (haim_wide, (0, 1, 2)),
    "haim-published": (haim_published, (0, 1, 2)),
    "haim-published-wide": (haim_published_wide, (0, 1, 2)),
    "haim-images": (haim_images, FIVE),
    "haim-published-images": (haim_published_images, (0, 1, 2)),
    "haim-28": (haim_28, FIVE),
    "haim-margin": (haim_margin, FIVE),
    "haim-inversion": (haim_inversion, TEN),
    "buzaglo-classes": (buzaglo_classes, FIVE),
    "buzaglo-ten": (buzaglo_ten, (0, 1, 2)),
    "buzaglo-two": (buzaglo_two, FIVE),
    "buzaglo-decay": (buzaglo_decay, FIVE),
    "buzaglo-decay-60": (buzaglo_decay_60, (0, 1, 2)),
    "buzaglo-decay-end": (buzaglo_decay_end, (0, 1, 2)),
    "buzaglo-width": (buzaglo_width, FIVE),
    "buzaglo-images": (buzaglo_images, FIVE),
    "runkel-table": (runkel_table, FIVE),
    "runkel-11": (runkel_11, FIVE),
    "runkel-12": (runkel_12, FIVE),
    "smorodinsky-membership": (smorodinsky_membership, TEN),
    "smorodinsky-mixture": (smorodinsky_mixture, TEN),
    "smorodinsky-line": (smorodinsky_line, tuple(range(100))),
    "refael-sphere": (refael_sphere, FIVE),
    "refael-offset": (refael_offset, FIVE),
    "refael-longer": (refael_longer, FIVE),
    "refael-split": (refael_split, tuple(range(20))),
}


def main() -> None:
    """Print the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS)
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="two or more; each row has its own")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| row | measure | ours (90%) | seeds |\n|---|---|---|---|")
    for name in asked.only:
        make, seeds = ROWS[name]
        begun = time.process_time()
        for line in make(tuple(asked.seeds) if asked.seeds else seeds):
            print(f"| {name} | {line.what} | {line.ours} | {line.seeds} |", flush=True)
        print(f"{name}: {time.process_time() - begun:.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
