"""Public functions take weights and points of any device, and give what they give on the CPU.

What has no program for a device is computed on the CPU: nothing is refused, nothing crashes. The
device is a pretended one and, where there is one, a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import explorer
from explorer import KKTConfig, Run, Target, TrainConfig, kkt, training
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.roster import ROSTER
from explorer.research import runs
from explorer.research.explained import first_explained
from tests.engine.draws import rng
from tests.engine.pretend import NAME, Pretend

MOONS = explorer.preset("moons", 6)
LINE = explorer.preset("alternating-line", 4)
ON_LINE = explorer.maximum_margin(LINE.x, LINE.y).net
IN_PLANE = explorer.maximum_margin(MOONS.x, MOONS.y).net
SMALL = TrainConfig(widths=(6,), steps=30)

Sent = Callable[[Any], Any]
Case = Callable[[Sent, Path], Any]


def layers(sent: Sent) -> dict[str, torch.Tensor]:
    return {"0.weight": sent(IN_PLANE.weights[0]), "0.bias": sent(IN_PLANE.biases[0]),
            "2.weight": sent(IN_PLANE.weights[1])}  # fmt: skip


def trained(sent: Sent) -> Any:
    state = training.init(sent(MOONS), SMALL, rng(0))
    return training.step(sent(MOONS), training.advance(sent(MOONS), state, SMALL, 5), SMALL)


def saved(sent: Sent, folder: Path) -> Any:
    made = training.init(MOONS, SMALL, rng(0))
    explorer.save_run(Run(sent(MOONS), SMALL, (made,)), folder / "run.safetensors")
    return explorer.load_run(folder / "run.safetensors").dataset.x


CASES: dict[str, Case] = {
    "maximum_margin": lambda s, _: explorer.maximum_margin(s(MOONS.x), s(MOONS.y)).objective,
    "certify": lambda s, _: explorer.certify(s(IN_PLANE), s(MOONS.x), s(MOONS.y)),
    "certify, points here": lambda s, _: explorer.certify(s(IN_PLANE), MOONS.x, MOONS.y).lam,
    "certify, weights here": lambda s, _: explorer.certify(IN_PLANE, s(MOONS.x), s(MOONS.y)).lam,
    "fit_multipliers": lambda s, _: fit_multipliers(s(IN_PLANE), s(MOONS.x), s(MOONS.y)).lam,
    "q_of": lambda s, _: explorer.q_of(s(IN_PLANE), s(MOONS.x), s(MOONS.y)),
    "phi": lambda s, _: explorer.phi(s(IN_PLANE), s(MOONS.x)),
    "normalise": lambda s, _: explorer.normalise(s(IN_PLANE), s(MOONS.x), s(MOONS.y))[1],
    "scaled_network": lambda s, _: explorer.scaled_network(s(IN_PLANE), 2.0).theta,
    "merge_neurons": lambda s, _: explorer.merge_neurons(s(IN_PLANE), 0.02).net.theta,
    "class_labels": lambda s, _: explorer.class_labels(s(MOONS.y)),
    "control_sets": lambda s, _: explorer.control_sets(s(MOONS), 2).sets[0].x,
    "controls of a drawing": lambda s, _: explorer.control_sets(
        explorer.Dataset(s(MOONS.x), s(MOONS.y)), 2).beside[0].sets[0].x,
    "heldout": lambda s, _: explorer.heldout(s(MOONS), 3).x,
    "judge": lambda s, _: explorer.judge(
        s(MOONS), explorer.control_sets(s(MOONS), 19), s(MOONS.x), s(MOONS.y), 0.03,
        on_margin=s(MOONS.y > 0)),
    "judge, truth here": lambda s, _: explorer.judge(
        MOONS, explorer.control_sets(MOONS, 19), s(MOONS.x), s(MOONS.y), 0.03),
    "score": lambda s, _: explorer.score(s(MOONS), s(MOONS.x), s(MOONS.y)).found,
    "score, claims here": lambda s, _: explorer.score(s(MOONS), MOONS.x, MOONS.y).found,
    "mix_init": lambda s, _: explorer.mix_init(*[s(MOONS.x)] * 3, 0.3, 0.4),
    "network_of": lambda s, _: explorer.network_of(layers(s)).theta,
    "link_of": lambda s, _: explorer.link_of(Run(s(MOONS), SMALL)),
    "write_csv": lambda s, _: explorer.write_csv(s(MOONS)),
    "save_run": saved,
    "repeat": lambda s, _: explorer.repeat(Run(s(MOONS), SMALL, steps=(20, 0))).state.q,
    "with_point": lambda s, _: s(MOONS).with_point([0.0, 0.5], 1).x,
    "training": lambda s, _: trained(s).net.theta,
    "attack_starts": lambda s, _: explorer.attack_starts(
        Target(s(IN_PLANE)), KKTConfig(m=6, steps=3), [0, 1], truth=s(MOONS)).union.claims.x,
    "explained": lambda s, _: first_explained(Target(s(IN_PLANE)), s(MOONS)).base,
    "kkt": lambda s, _: kkt.step(
        Target(s(IN_PLANE)), kkt.init(Target(s(IN_PLANE)), KKTConfig(m=6), rng(0)), KKTConfig(m=6)
    ).x,
}  # fmt: skip

ATTACKS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    key: (IN_PLANE, MOONS, {"m": 6, "steps": 3}) for key in ("kkt", "inversion", "decoreco")
} | {
    "bilevel": (IN_PLANE, MOONS, {"m": 6, "steps": 2}), "hinge": (IN_PLANE, MOONS, {}),
    "univariate": (ON_LINE, LINE, {}), "certified_places": (ON_LINE, LINE, {}),
    "black_box": (ON_LINE, LINE, {}),
    "snapshots": (IN_PLANE, MOONS, {"steps": 2}),
    "pooled": (IN_PLANE, MOONS, {"starts": 2, "m": 6, "descent": 10}),
}  # fmt: skip
STEPS = 1  # of attacks that plan none

PRETENDED = pytest.param(NAME, Pretend, id="pretended")
GPU = pytest.param("cuda", nullcontext, id="cuda")
on_devices = pytest.mark.parametrize(
    ("device", "used"), [PRETENDED, GPU] if torch.cuda.is_available() else [PRETENDED]
)


def here(value: Any) -> Any:
    """All of it on the CPU, as plain values."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu")
    if is_dataclass(value) and not isinstance(value, type):
        return [here(getattr(value, f.name)) for f in fields(value)]
    return [here(v) for v in value] if isinstance(value, list | tuple) else value


def same(ours: Any, wanted: Any) -> None:
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(ours, wanted, rtol=1e-6, atol=1e-9)
    elif isinstance(wanted, list):
        assert len(ours) == len(wanted)
        for a, b in zip(ours, wanted, strict=True):
            same(a, b)
    elif isinstance(wanted, float):
        assert ours == pytest.approx(wanted, rel=1e-6, abs=1e-12, nan_ok=True)
    else:
        assert ours == wanted


def sender(device: str) -> Sent:
    """What sends a network, points or a tensor to the device."""
    return lambda value: (
        value.to(device) if isinstance(value, torch.Tensor) else value.to(device=device)
    )


@on_devices
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_lies_on_a_device_is_taken_as_from_the_cpu(
    case: Case, device: str, used: Any, tmp_path: Path
) -> None:
    wanted = here(case(lambda v: v, tmp_path))
    with used():
        ours = here(case(sender(device), tmp_path))
    same(ours, wanted)


@on_devices
@pytest.mark.parametrize("key", ATTACKS)
def test_every_attack_takes_weights_and_truth_of_a_device(key: str, device: str, used: Any) -> None:
    entry, (net, data, given) = ROSTER[key], ATTACKS[key]
    config = entry.config(**given)
    bound = entry if "steps" in given else _short(entry)

    def run(move: Sent) -> Any:
        target = Target(move(net), before=move(net.with_theta(net.theta.flip(0))))
        made = runs.attack(target, config, 0, name=bound, truth=move(data))
        return made.states[-1].x, made.claims.x, made.verdict

    wanted = here(run(lambda v: v))
    with used():
        ours = here(run(sender(device)))
    same(ours, wanted)


def _short(entry: Any) -> Any:
    """The same attack, over after some steps."""
    from dataclasses import replace

    from explorer.engine.status import Status

    def terminate(state: Any, config: Any) -> Status:
        return Status.FINISHED if state.t >= STEPS else entry.terminate(state, config)

    return replace(entry, terminate=terminate, leaps=None)


def test_every_attack_is_among_these() -> None:
    assert set(ATTACKS) == {key for key, entry in ROSTER.items() if entry.paper}
