"""Make the saved runs of this folder, and read the numbers that they hold.

    python tests/engine/kept/make.py FOLDER

The runs here were made by commit ca7d2b3, whose names differ in two imports: `draw` was in
`explorer.imaging.images`, and `Start` in `explorer.engine.attacks.kkt`. `numbers` runs in both.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from explorer.engine import store, training
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.data.images import Choice, draw
from explorer.engine.exact import maximum_margin
from explorer.engine.roster import by_key
from explorer.engine.scoring import RADII, judge, score
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig

RADIUS = RADII[1]
CONTROLS = 10  # sets behind the p-value that is compared; a verdict of today takes more


@dataclass(frozen=True)
class Case:
    """A run: points, training, attack with its settings, how many steps, and its start's mix."""

    points: tuple[Any, ...]
    widths: tuple[int, ...]
    attack: str
    steps: int
    settings: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=lambda: {"steps": 600})
    exact: bool = False
    mix: tuple[float, float] | None = None
    seed: int = 0


CASES = {
    "line-exact-univariate": Case(("alternating-line", 6, None, 0), (9,), "univariate", 8,
                                  exact=True),
    "line-inversion": Case(("pairs-line", 6, None, 1), (20,), "inversion", 30, {"m": 8},
                           seed=1),
    "circle-kkt-projected": Case(("alternating-circle", 8, None, 2), (30,), "kkt", 30,
                                 {"m": 10}, {"steps": 900}, seed=2),
    "moons-three-layers-kkt-joint": Case(
        ("moons", 8, 0.05, 3), (12, 10), "kkt", 30, {"m": 8, "multipliers": "joint", "prior": 1.5},
        {"steps": 900, "batch": 4}, seed=3),
    "xor-kkt-mixed": Case(("xor", 8, 0.05, 4), (16,), "kkt", 20, {"m": 8, "lam_min": 0.1},
                          {"steps": 900, "loss": "logistic"}, mix=(0.6, 0.5), seed=4),
    "blobs-classes-decoreco": Case(("three-blobs", 9, 0.1, 5), (15,), "decoreco", 20, {"m": 9},
                                   {"steps": 900}, seed=5),
    "moons-bilevel": Case(("moons", 6, 0.05, 6), (10,), "bilevel", 15, {"m": 6}, seed=6),
    "circle-exact-hinge": Case(("alternating-circle", 6, None, 7), (9,), "hinge", 400,
                               {"grid": 8, "rounds": 4}, exact=True, seed=7),
    "circle-pooled": Case(("alternating-circle", 6, None, 8), (12,), "pooled", 400,
                          {"grid": 8, "rounds": 3, "starts": 2, "m": 6, "descent": 20},
                          {"steps": 900, "method": "ascent", "ascent_steps": 600}, seed=8),
    "moons-weight-decay-kkt": Case(
        ("moons", 8, 0.05, 9), (14,), "kkt", 20, {"m": 8, "same_slopes": True},
        {"steps": 900, "weight_decay": 0.003, "all_biases": True, "method": "gradient"}, seed=9),
    "digits-kkt": Case(("digits", 4), (8,), "kkt", 3, {"m": 4}, {"steps": 300}, seed=10),
}  # fmt: skip


def made(case: Case) -> Run:
    """The run of a case: the first, the middle and the last state of both parts."""
    if case.points[0] == "digits":
        sets = draw(Choice("digits", "two", case.points[1], case.seed))
        data, other = sets.train, sets.other
    else:
        data = preset(*case.points)
        other = heldout(data, 1)
    config = TrainConfig(widths=case.widths, **({"steps": 0} if case.exact else case.train))
    net = maximum_margin(data.x, data.y).net if case.exact else None
    first = training.init(data, config, torch.Generator().manual_seed(case.seed), net)
    trained = [first, *training.iterate(data, first, config)]
    entry = by_key(case.attack)
    settings = entry.config(**case.settings)
    if hasattr(settings, "steps"):
        settings = replace(settings, steps=case.steps)
    target = entry.target_for(_target(trained[-1]), data.x, data.y, settings, case.seed)
    generator = torch.Generator().manual_seed(case.seed)
    begin = None
    if case.mix is not None:
        truth, share = case.mix
        noise = torch.randn(data.x.shape, generator=generator, dtype=torch.float64)
        mixed = truth * (share * data.x + (1 - share) * other.x) + (1 - truth) * 0.7 * noise
        begin = (mixed, data.y)
    state = entry.init(target, settings, generator, begin)
    attacked = [state]
    while not entry.terminate(state, settings).over and state.t < case.steps:
        state = entry.step(target, state, settings)
        attacked.append(state)
    return Run(
        data, config, _some(trained), settings, _some(attacked), case.seed, case.mix,
        attack_name=case.attack,
    )  # fmt: skip


def _target(state: Any) -> Target:
    return Target.of(state.net, state.q_min)


def _some(states: list[Any]) -> tuple[Any, ...]:
    picked = sorted({0, len(states) // 2, len(states) - 1})
    return tuple(states[i] for i in picked)


def numbers(data: bytes) -> dict[str, Any]:
    """What the run in a file says: `held`, as it was written, and `found`, made from it anew."""
    run = store.load(data)
    last, attacked = run.train_states[-1], run.attack_states[-1]
    entry, config, truth = by_key(run.attack_name), run.attack_config, run.dataset
    target = _target(last)
    held = {
        "attack": run.attack_name, "seed": run.seed, "mix": run.mix,
        "settings": {"train": asdict(run.train_config), "attack": asdict(config)},
        "points": _digest(truth.x, truth.y), "source": asdict(truth.source)
        if truth.source else None,
        "theta": [_digest(s.net.theta) for s in run.train_states],
        "train": [_of_training(s) for s in run.train_states],
        "candidates": [_digest(s.x, s.y, s.lam) for s in run.attack_states],
        "attacks": [{"t": s.t, **s.numbers()} for s in run.attack_states],
    }  # fmt: skip
    claims = entry.report(target, attacked, config)
    found: dict[str, Any] = {
        "q_min": last.q_min, "gamma_bar": last.gamma_bar, "rho": last.net.rho,
        "claims": _rows(claims.x, claims.y, claims.lam),
        "score": score(truth, claims.x, claims.y).found.tolist(),
        "p": _p_value(truth, claims),
    }  # fmt: skip
    if last.net.homogeneous:
        light = certify(last.net, truth.x, truth.y)
        found |= {"light": light.light.name, "residual": light.residual, "gamma": light.gamma_bar}
    if not entry.terminate(attacked, config).over:
        held_target = entry.target_for(target, truth.x, truth.y, config, run.seed)
        found["next"] = entry.step(held_target, attacked, config).numbers()
    return _finite({"held": held, "found": found})


def _of_training(state: Any) -> dict[str, float]:
    names = ("t", "log_loss", "log_scale", "log_pull", "kappa", "rho", "q_min", "gamma_bar",
             "gamma_tilde")  # fmt: skip
    return {name: getattr(state, name) for name in names}


def _p_value(truth: Dataset, claims: Any) -> float:
    controls = [heldout(truth, seed) for seed in range(1, CONTROLS + 1)]
    return float(judge(truth, controls, claims.x, claims.y, RADIUS).p_value)


def _digest(*values: torch.Tensor) -> str:
    whole = b"".join(v.contiguous().numpy().tobytes() for v in values)
    return hashlib.sha256(whole).hexdigest()[:16]


def _rows(x: torch.Tensor, y: torch.Tensor, lam: torch.Tensor) -> list[list[float]]:
    """Each claim's first two coordinates, the sum of all, label and multiplier."""
    columns = (*x[:, :2].T, x.sum(1), y, lam)
    return torch.stack([c.double() for c in columns], 1).tolist()


def _finite(held: Any) -> Any:
    """The same as JSON gives it back: lists for tuples, words for numbers that are not finite."""
    if isinstance(held, dict):
        return {k: _finite(v) for k, v in held.items()}
    if isinstance(held, list | tuple):
        return [_finite(v) for v in held]
    if isinstance(held, torch.Tensor):
        return _finite(held.tolist())
    if isinstance(held, float) and not math.isfinite(held):
        return str(held)
    return held


def main() -> None:
    """Write every run, and the numbers of all in `numbers.json`."""
    folder, said = Path(sys.argv[1]), {}
    for name, case in CASES.items():
        data = store.dump(made(case))
        (folder / f"{name}.safetensors").write_bytes(data)
        said[name] = numbers(data)
        print(f"{name}: {len(data)} bytes")
    (folder / "numbers.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
