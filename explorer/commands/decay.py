"""The verb `weight-decay`: train tiny networks with it, check the identity, attack by it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import torch

from explorer.commands import base
from explorer.engine.attacks.decoreco import ATTACK, DecoRecoConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.weight_decay import DecayConfig, Decayed, settle
from explorer.research import runs
from explorer.research.runs import RunFailed
from explorer.research.words import verdicts

# The identity of weight decay needs no homogeneity; see `weight_decay`.
BY_DECAY = replace(ATTACK, non_homogeneous=True)
Mu = Annotated[float, base.option("--mu", "Weight decay mu, of mean loss + mu/2 |theta|^2.", min=0)]


class LossName(StrEnum):
    """The loss before the decay."""

    squared = "squared"
    logistic = "logistic"


Loss = Annotated[
    LossName, base.option("--loss", "squared, or logistic (cross-entropy with more classes).")
]
Everywhere = Annotated[
    bool, base.option("--all-biases/--first-bias", "Biases in every layer, or in the first alone.")
]
Narrow = Annotated[
    str, base.option("--widths", "Hidden widths; small ones settle, such as 2 or 2,2.")
]


def weight_decay(
    preset: base.Preset = "moons", n: base.Count = 30, noise: base.Noise = None,
    seed: base.Seed = 0, data: base.Data = None, widths: Narrow = "2",
    loss: Loss = LossName.logistic, mu: Mu = DecayConfig.weight_decay,
    all_biases: Everywhere = True, m: base.Candidates = None, attack_steps: base.AttackSteps = None,
    device: base.Where = base.Device.cpu, as_json: base.Json = False,
) -> None:  # fmt: skip
    """Train with weight decay to a stationary point, check it, attack by DecoReco."""
    points = base.points_of(preset, n, noise, seed, data)
    sizes = base.train_config(widths, 0, base.Method.gradient).widths
    config = DecayConfig(widths=sizes, loss=loss.value, weight_decay=mu, all_biases=all_biases)
    generator = torch.Generator().manual_seed(seed)
    try:
        done = settle(points.x, points.y, config, generator, points.outputs)
    except ValueError as error:
        raise RunFailed(str(error)) from error
    given = {"m": m, "steps": attack_steps}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    hit = DecoRecoConfig(contribution="outputs", **chosen)
    content, rows = _attack(points, done, hit, generator, device.value)
    apart = abs(done.residual - done.gradient_norm / mu) / float(done.net.rho)
    identity = {
        "attempt": done.attempt, "loss": done.loss, "gradient_norm": done.gradient_norm,
        "residual": done.residual, "difference": apart, "rho": float(done.net.rho),
        "lam": done.lam,
    }  # fmt: skip
    head = [
        ("points", f"{points.n} in {points.d}-D"),
        ("initialisations", f"{done.attempt + 1}, the last one settled"),
        ("gradient of the loss", f"{done.gradient_norm:.1e}"),
        ("theta unexplained by the points", f"{done.residual:.1e}"),
        ("the same less gradient / mu", f"{apart:.1e} of |theta|"),
    ]
    base.show_result(as_json, {"identity": identity, **content}, "Weight decay", [*head, *rows])


def _attack(
    points: Dataset,
    done: Decayed,
    config: DecoRecoConfig,
    generator: torch.Generator,
    device: str,
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    hit = runs.attack(
        Target(done.net),
        config,
        generator,
        name=BY_DECAY,
        truth=points,
        keep=1,
        watch=base.watch,
        device=device,
    )
    state, claims, verdict = hit.states[-1], hit.claims, hit.verdict
    assert verdict is not None  # the truth is known
    left = state.numbers()["l_stationary"]
    text = verdicts.verdict(verdict)
    content = {"attack": {"l_stationary": left, "claims": claims.x, "verdict": text}}
    return content, [
        ("theta unexplained by the candidates", f"{left:.2%}"),
        ("claims", f"{len(claims.x)} of {len(state.x)} candidates"),
        ("verdict", f"{verdict.kind.value}: {text}"),
    ]


VERBS = {"weight-decay": weight_decay}
