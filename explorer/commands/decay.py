"""The verb `weight-decay`: train tiny networks with it, check the identity, attack by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import torch

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.engine.attacks.decoreco import ATTACK, DecoRecoConfig
from explorer.engine.attacks.target import Target
from explorer.engine.weight_decay import DecayConfig, settle
from explorer.research import runs
from explorer.research.report import Summary
from explorer.research.runs import Attacked, RunFailed
from explorer.research.words import verdicts

# The identity of weight decay needs no homogeneity; see `weight_decay`.
BY_DECAY = replace(ATTACK, needs=replace(ATTACK.needs, non_homogeneous=True))
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


@options.expand_groups
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
    attacked = runs.attack(
        Target(done.net), hit, generator, name=BY_DECAY, truth=data, keep=1, watch=base.watch,
        device=device.value,
    )  # fmt: skip
    apart = abs(done.residual - done.gradient_norm / mu) / float(done.net.rho)
    identity = {
        "attempt": done.attempt, "loss": done.loss, "gradient_norm": done.gradient_norm,
        "residual": done.residual, "difference": apart, "rho": float(done.net.rho),
        "lam": done.lam,
    }  # fmt: skip
    rows = [
        ("points", f"{data.n} in {data.d}-D"),
        ("initialisations", f"{done.attempt + 1}, the last one settled"),
        ("gradient of the loss", f"{done.gradient_norm:.1e}"),
        ("theta unexplained by the points", f"{done.residual:.1e}"),
        ("the same less gradient / mu", f"{apart:.1e} of |theta|"),
    ]
    found = Summary(rows, {"identity": identity}) + _of_attack(attacked)
    base.show(as_json, "Weight decay", found)


def _of_attack(done: Attacked) -> Summary:
    state, claims, verdict = done.states[-1], done.claims, done.verdict
    assert verdict is not None  # the truth is known
    left = state.numbers()["l_stationary"]
    text = verdicts.verdict(verdict)
    rows = [
        ("theta unexplained by the candidates", f"{left:.2%}"),
        ("claims", f"{len(claims.x)} of {len(state.x)} candidates"),
        ("verdict", f"{verdict.kind.value}: {text}"),
    ]
    return Summary(rows, {"attack": {"l_stationary": left, "claims": claims.x, "verdict": text}})


VERBS = {"weight-decay": weight_decay}
