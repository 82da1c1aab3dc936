"""The verb `weight-decay`: train tiny networks with it, check the identity, attack by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import torch

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.engine.attacks.decoreco import ATTACK, DecoRecoConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.weight_decay import DecayConfig, Decayed, settle
from explorer.research import runs
from explorer.research.runs import RunFailed
from explorer.research.words import verdicts

# The identity of weight decay needs no homogeneity; see `weight_decay`.
BY_DECAY = replace(ATTACK, non_homogeneous=True)
DECAY, MOONS = DecayConfig(), options.Points("moons", 30)
Decay = Annotated[
    DecayConfig,
    options.fields(
        widths=option("--widths", "Hidden widths; small ones settle, such as 2 or 2,2."),
        loss=option("--loss", "squared, or logistic (cross-entropy with more classes)."),
        weight_decay=option("--mu", "Weight decay mu, of mean loss + mu/2 |theta|^2.", min=0),
        all_biases=option(
            "--all-biases/--first-bias", "Biases in every layer, or in the first alone."
        ),
    ),
]


@options.grouped
def weight_decay(
    points: options.Points = MOONS, config: Decay = DECAY, m: options.Candidates = None,
    attack_steps: options.AttackSteps = None, device: options.Where = options.Device.cpu,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Train with weight decay to a stationary point, check it, attack by DecoReco."""
    data, mu = points.draw(), config.weight_decay
    generator = torch.Generator().manual_seed(points.seed)
    try:
        done = settle(data.x, data.y, config, generator, data.outputs)
    except ValueError as error:
        raise RunFailed(str(error)) from error
    given = {"m": m, "steps": attack_steps}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    hit = DecoRecoConfig(contribution="outputs", **chosen)
    content, rows = _attack(data, done, hit, generator, device.value)
    apart = abs(done.residual - done.gradient_norm / mu) / float(done.net.rho)
    identity = {
        "attempt": done.attempt, "loss": done.loss, "gradient_norm": done.gradient_norm,
        "residual": done.residual, "difference": apart, "rho": float(done.net.rho),
        "lam": done.lam,
    }  # fmt: skip
    head = [
        ("points", f"{data.n} in {data.d}-D"),
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
