"""Five defences on one axis, and the bound on reconstruction of private training put to the test.

python benchmarks/bench_private.py --seeds 10 --picture docs/pictures/private.png
python benchmarks/bench_private.py --only audit --seeds 10
python benchmarks/bench_private.py --only many --seeds 10
python benchmarks/bench_private.py --only accountant

Each point of the circle is drawn about a place of its own that everybody knows, by N(place, s^2 I),
so that the most a prior puts within 0.03 of anything is known: 1 - exp(-0.03^2 / (2 s^2)).
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from explorer.engine import private, training
from explorer.engine.charts import Axis, Chart, Series
from explorer.engine.classes import margins
from explorer.engine.confidence import Share, share
from explorer.engine.data import BOX, Dataset, preset
from explorer.engine.gradients import gradient
from explorer.engine.margin import slopes_of
from explorer.engine.network import phi, phi_all
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.research.pictures import painting
from explorer.research.runs import RADIUS
from explorer.research.sweep import Experiment, processes, sweep
from explorer.research.sweep.experiment import (
    Refused,
    run_attack,
    run_experiment,
    victim_of,
)

SPREAD, N, WIDTH, STEPS = 0.15, 8, 30, 4000
BASE = {"preset": "alternating-circle", "n": N, "noise": SPREAD, "widths": (WIDTH,), "steps": STEPS}
DP = {"steps": 1000, "train": {"lr": 0.1, "momentum": 0.9, "loss": "logistic"}}  # on seeds 100+
NO_NOISE = 1e8  # as good as infinite: clipping alone
EPSILONS = (1, 3, 10, 30, 100, 300, 1000, 10_000, NO_NOISE)
LEVELS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "private training": ("epsilon", EPSILONS),
    "early stopping": ("early_stop", (0, 30, 100, 300, 1000)),
    "weight decay": ("weight_decay", (0.0001, 0.001, 0.003, 0.01, 0.03)),
    "label noise": ("label_noise", (0.125, 0.25)),
    "width": ("widths", ((10,), (30,), (100,), (300,))),
}
KAPPA = 1 - math.exp(-(RADIUS**2) / (2 * SPREAD**2))
CANDIDATES, AUDITED, AUDIT_STEPS = 50, 4, 100
LINES = (("accuracy", "ink"), ("found", "good"), ("control", "ink3"), ("certified", "pos"))


def table(seeds: int) -> Iterator[Experiment]:
    """Yield all rows; the network without a defence is that of the width's level."""
    for name, levels in LEVELS.values():
        for level in levels:
            for seed in range(seeds):
                more = DP if name == "epsilon" else {}
                yield Experiment.of({**BASE, **more, name: level, "seed": seed, "determine": True})


def run_row(row: Experiment) -> dict[str, Any]:
    """Return accuracy on the true labels, what KKT finds, and what is certified."""
    out = run_experiment(replace(row, attack=""))
    victim = victim_of(row)
    clean = preset(row.preset, row.n, row.noise, row.seed)
    right = margins(phi_all(victim.target.net, clean.x), clean.y) > 0
    out |= {"accuracy": float(right.double().mean()), "refused": False, "found": [0, 0, 0]}
    try:
        found = run_attack(victim, row.attack, {}, row.seed)
        out |= {k: found[k] for k in ("found", "chance", "claims")}
    except Refused:
        out["refused"] = True
    return out


def pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Share]:
    """Return the shares of one level over its seeds."""
    results = [row["result"] for row in rows]
    n = [r["n"] for r in results]
    sure = [sum(r["determined"] or []) for r in results]
    chance = [
        sum(c[1] for c in r["chance"]) / len(r["chance"]) if "chance" in r else 0 for r in results
    ]
    return {
        "accuracy": share([round(r["accuracy"] * r["n"]) for r in results], n),
        "found": share([r["found"][1] for r in results], n),
        "control": share([round(c) for c in chance], n),
        "certified": share(sure, n),
    }


def defences(seeds: int, path: Path | None, picture: str) -> None:
    """Print the table of all defences, and draw them on one axis."""
    rows = list(sweep(table(seeds), processes(2), path=path, run=run_row, again=True))
    made: dict[str, list[tuple[str, dict[str, Share]]]] = {}
    print("| defence | accuracy | found | of control sets | certified | runs without a margin |")
    print("|---|---|---|---|---|---|")
    for title, (name, levels) in LEVELS.items():
        for level in levels:
            told = list(level) if isinstance(level, tuple) else level
            mine = [
                row for row in rows
                if row["status"] == "done" and row["trial"].get(name) == told
                and (name != "widths" or not others(row["trial"]))
            ]  # fmt: skip
            words = str(level[0]) if isinstance(level, tuple) else name_of(level)
            if not mine:
                print(f"| {title} {words} | no run ended |")
                continue
            shares = pooled(mine)
            made.setdefault(title, []).append((words, shares))
            refused = sum(row["result"]["refused"] for row in mine)
            cells = " | ".join(str(shares[key]) for key, _ in LINES)
            print(f"| {title} {words} | {cells} | {refused} of {len(mine)} |", flush=True)
    for message in sorted({row["message"] for row in rows if row["message"]}):
        print(message)
    if picture:
        charts = [chart_of(title, levels) for title, levels in made.items()]
        figure = painting.charts_figure(charts, (12.5, 3.0), "")
        painting.save_figure(Path(picture), figure)


def others(trial: Mapping[str, Any]) -> bool:
    """Return whether a row has a defence other than its width."""
    return any(trial.get(k) for k in ("epsilon", "weight_decay", "label_noise")) or (
        trial.get("early_stop") is not None
    )


def chart_of(title: str, levels: Sequence[tuple[str, dict[str, Share]]]) -> Chart:
    """Return one defence over its strength; of private training with the bound."""
    at = list(range(len(levels)))
    series = []
    for key, colour in LINES:
        shares = [found[key] for _, found in levels]
        names = {"found": "found within 0.03", "control": "of control sets"}
        series += [
            Series(at, [s.high for s in shares], "", "stems", [s.low for s in shares],
                   colour=colour, look={"width": 1.5}),
            Series(at, [s.value for s in shares], names.get(key, key), colour=colour),
        ]  # fmt: skip
    if title == "private training":
        bound = [private.reconstruction_bound(mu_of(e), KAPPA) for e in EPSILONS]
        series.append(Series(at, bound, "bound on finding a point, all others known",
                             colour="neg", look={"dashed": True}))  # fmt: skip
    name = "ε" if title == "private training" else ""
    return Chart(series, Axis(-0.4, len(levels) - 0.6, name or "strength",
                              ticks=tuple(enumerate(words for words, _ in levels))),
                 Axis(0, 1.02, short="share", percent=True), title, label=title)  # fmt: skip


def name_of(level: float) -> str:
    """Return a level in words."""
    return {NO_NOISE: "∞", 1e3: "10³", 1e4: "10⁴"}.get(level, f"{level:g}")


def mu_of(epsilon: float) -> float:
    """Return mu of a training that is (epsilon, 1e-5)-private."""
    return private.separation(private.noise_for(epsilon, 1), 1)


# --- the informed adversary ----------------------------------------------------------------------
def hits(epsilon: float, seed: int, canary: bool) -> int:
    """Return how many of the audited points an adversary names among CANDIDATES draws of the prior.

    It knows all other points, the first weights, and the weights after each step, and takes the
    most likely candidate. A canary may lie anywhere in the square and be of either class, and
    gradients are clipped so that all are of one length.
    """
    steps = AUDIT_STEPS
    noise = private.noise_for(epsilon, steps)
    more: dict[str, Any] = {**DP["train"], "private_clip": 0.05 if canary else 1.0}  # type: ignore[dict-item]
    config = TrainConfig(widths=(WIDTH,), steps=steps, private_noise=noise, **more)
    places = preset("alternating-circle", N, 0.0)
    generator = torch.Generator().manual_seed(1000 + seed)
    drawn = places.x[:, None] + SPREAD * torch.randn(
        N, CANDIDATES, 2, generator=generator, dtype=torch.float64
    )
    labels = places.y[:, None].expand(N, CANDIDATES).clone()
    if canary:
        shape = AUDITED, CANDIDATES
        drawn[:AUDITED] = BOX * (2 * torch.rand(*shape, 2, generator=generator).double() - 1)
        labels[:AUDITED] = 2.0 * torch.randint(0, 2, shape, generator=generator).double() - 1
    data = Dataset(drawn[:, 0].clone(), labels[:, 0].clone())  # the truth is candidate 0
    score = torch.zeros(AUDITED, CANDIDATES, dtype=torch.float64)
    state = training.init(data, config, generator)
    for _ in range(steps):
        after = training.step(data, state, config)
        told = (after.velocity - config.momentum * state.velocity) * N / config.rate
        whole = rows_of(state.net, data.x, data.y, config)
        for i in range(AUDITED):
            rest = told - whole.sum(0) + whole[i]
            each = rows_of(state.net, drawn[i], labels[i], config)
            score[i] += 2 * each @ rest - each.square().sum(1)
        state = after
    return int((score.argmax(1) == 0).sum())


def rows_of(net: Any, x: torch.Tensor, y: torch.Tensor, config: TrainConfig) -> torch.Tensor:
    """Return the clipped gradient of each point (n, P)."""
    each = gradient(net, x) * y[:, None]
    length = each.norm(dim=1).clamp_min(1e-300)
    pull = slopes_of(y * phi(net, x), config.loss).exp()
    return each * torch.minimum(pull, config.private_clip / length)[:, None]


def audit(seeds: int) -> None:
    """Print what the informed adversary names beside the bound, and what a prior alone would."""
    print("| ε | μ | point named | canary named | bound | by chance |\n|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        totals = [
            share([hits(epsilon, seed, canary) for seed in range(seeds)], [AUDITED] * seeds)
            for canary in (False, True)
        ]
        mu = mu_of(epsilon)
        bound = private.reconstruction_bound(mu, 1 / CANDIDATES)
        cells = name_of(epsilon), f"{mu:.2f}", *map(str, totals)
        print("| " + " | ".join(cells) + f" | {bound:.2f} | {1 / CANDIDATES:.2f} |", flush=True)


def many(seeds: int) -> None:
    """Print the accuracy of private training on a hundred points, and what KKT finds."""
    print("| ε | accuracy | on fresh points | found | runs with a margin |\n|---|---|---|---|---|")
    train = {**DP["train"], "lr": 0.02}  # type: ignore[dict-item]
    for epsilon in (1, 3, 10, 100, 1000, NO_NOISE, None):
        base = {"preset": "moons", "n": 100, "widths": (WIDTH,), "attack": "kkt"}
        more = {"steps": 300, "train": train, "epsilon": epsilon} if epsilon else {"steps": STEPS}
        found, right, fresh, ended = [], [], [], 0
        for seed in range(seeds):
            row = Experiment.of({**base, **more, "seed": seed})
            out = run_experiment(replace(row, attack=""))
            right.append(out["accuracy"])
            fresh.append(out["fresh_accuracy"])
            try:
                found.append(run_attack(victim_of(row), "kkt", {}, seed)["found"][1])
                ended += 1
            except Refused:
                found.append(0)
        name = "not private" if epsilon is None else name_of(epsilon)
        print(f"| {name} | {sum(right) / seeds:.2f} | {sum(fresh) / seeds:.2f} | "
              f"{share(found, [100] * seeds)} | {ended} of {seeds} |", flush=True)  # fmt: skip


def accountants() -> None:
    """Print epsilon by the closed form, and by two accountants of opacus where it is there."""
    try:
        warnings.filterwarnings("ignore")
        from opacus.accountants import PRVAccountant, RDPAccountant
    except ImportError:
        print("opacus is not installed: pip install opacus")
        return
    print("| noise, steps | closed form | opacus, RDP | opacus, PRV |\n|---|---|---|---|")
    for noise, steps in ((60.0, 300), (25.0, 300), (9.0, 300), (1.0, 10)):
        found = [private.epsilon_of(private.separation(noise, steps))]
        for kind in (RDPAccountant, PRVAccountant):
            one = kind()
            one.history = [(noise, 1.0, steps)]
            found.append(one.get_epsilon(private.DELTA))
        print(f"| {noise:g}, {steps} | " + " | ".join(f"{v:.3f}" for v in found) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ("defences", "audit", "many", "accountant")
    parser.add_argument("--only", choices=kinds, default="defences")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=Path, help="file of rows to go on from")
    parser.add_argument("--picture", default="")
    options = parser.parse_args()
    limit_threads()
    if options.only == "defences":
        defences(options.seeds, options.rows, options.picture)
    elif options.only == "audit":
        audit(options.seeds)
    elif options.only == "many":
        many(options.seeds)
    else:
        accountants()


if __name__ == "__main__":
    main()
