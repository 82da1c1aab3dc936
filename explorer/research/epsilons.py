"""What private training of some points costs and hides: one network at each of several epsilons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explorer.engine.controls import control_sets
from explorer.engine.data import BOX, Dataset
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.private import noise_for, reconstruction_bound, separation
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.roster import DEFAULT
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.runs import RADIUS, certified_points, watch_of
from explorer.research.sweep.experiment import Refused, Victim, run_attack

CLIPPED = 1e8  # as good as infinite: gradients are cut, and no noise is added
EPSILONS = (1.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, CLIPPED)
# Of 0.1, 0.3 and 1 this rate alone learns six presets (seed 100) without noise.
STEPS, RATE, MOMENTUM = 1000, 1.0, 0.9


@dataclass(frozen=True)
class PrivateRun:
    """A network of private training, attacked.

    Attributes:
        epsilon: at delta = 10^-5; `CLIPPED` without noise.
        n: number of points.
        right: how many are on their side of it.
        bound: the most likely that whoever knows all other points comes within `RADIUS` of one that
            was drawn anywhere in the square.
        found: how many the attack finds within `RADIUS`; none where no margin leads it.
        control: how many of an unseen set, on average.
        certified: how many are certified; None where nothing can be.
        why_not: why the attack was refused, or "".
    """

    epsilon: float
    n: int
    right: int
    bound: float
    found: int = 0
    control: float = 0.0
    certified: int | None = None
    why_not: str = ""


def private_run(
    points: Dataset, epsilon: float, widths: tuple[int, ...], seed: int,
    progress: Progress = no_progress,
) -> PrivateRun:  # fmt: skip
    """Train privately, attack with the first attack's defaults, and certify.

    Args:
        points: of a plane or a line.
        epsilon: at delta = 10^-5, of all `STEPS`.
        widths: of the hidden layers.
        seed: of first weights, noise and candidates.
        progress: hears of the work, and may end it.

    Raises:
        RunFailed: where training or attack diverges.

    Example:
        >>> from explorer import preset
        >>> from explorer.research.epsilons import private_run
        >>> made = private_run(preset("blobs", n=6), 1.0, (8,), 0)
        >>> made.n, made.found <= made.n
        (6, True)
    """
    noise = noise_for(epsilon, STEPS)
    config = TrainConfig(
        widths=widths, steps=STEPS, lr=RATE, momentum=MOMENTUM, loss="logistic",
        private_noise=noise,
    )  # fmt: skip
    train, attack, sure = (part_progress(progress, k / 3, (k + 1) / 3) for k in range(3))
    run = Run(points, config, seed=seed)
    done = runs.train(run, keep=1, watch=watch_of(train), separated=False)
    last, target = done.states[-1], done.target
    bound = reconstruction_bound(separation(noise, STEPS), _prior(points.d))
    made = PrivateRun(epsilon, points.n, int((last.q > 0).sum()), bound)
    victim = Victim(target, points, control_sets(points), done.certificate, last.gamma_bar)
    try:
        judged = run_attack(victim, DEFAULT, {}, seed, watch_of(attack), radii=(RADIUS,))
    except Refused as why:
        return replace(made, why_not=str(why))
    chance = [counts[0] for counts in judged["chance"]]
    control = sum(chance) / max(len(chance), 1)
    made = replace(made, found=judged["found"][0], control=control)
    if obstacle(target):
        return made
    sure_of = certified_points(target, points, progress=sure)
    return replace(made, certified=int(sure_of.certain.sum()))


def _prior(d: int) -> float:
    """Return the most that a point drawn anywhere in the square has within `RADIUS` of a place."""
    return math.pi * RADIUS**2 / (2 * BOX) ** 2 if d > 1 else RADIUS / BOX


def private_runs(
    points: Dataset, widths: tuple[int, ...], seed: int, progress: Progress = no_progress
) -> Iterator[PrivateRun]:
    """Yield a run at each of `EPSILONS`, the most private first; see `private_run`."""
    for k, epsilon in enumerate(EPSILONS):
        part = part_progress(progress, k / len(EPSILONS), (k + 1) / len(EPSILONS))
        yield private_run(points, epsilon, widths, seed, part)
