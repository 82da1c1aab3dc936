"""Commands around the attacked weights: take them, choose an attack, start it, mix its start."""

from __future__ import annotations

from typing import Any, cast

import torch

from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.energy.starts import attack_start
from explorer.engine.roster import ROSTER, AnyAttack, AttackConfig, by_key
from explorer.engine.status import Status
from explorer.page.frame import Frame, certified, judged, numbers
from explorer.page.history import Timeline
from explorer.page.state import State


class Attacking(State):
    """What a page can do once there are weights to attack."""

    def take_target(self) -> None:
        """Take the present weights as those attacked, at margin 1; nothing runs yet."""
        now = self.now
        if now.train is None or not now.dataset.n:
            raise ValueError("No network to attack: draw points and train first.")
        q_min = float(now.train.q.min())
        if not q_min > 0:
            raise ValueError(
                "The network does not separate the points, so it has no margin to attack. "
                "Train on until the light says that it separates them."
            )
        target = Target.of(now.train.net, q_min)
        name = self._fitting(target)
        self._controls = control_sets(now.dataset)
        self.branch.attack = Timeline()
        self.show(
            attack_name=name, attacked=now.train.net, target=target, truth=now.dataset,
            heldout=self._controls.sets[0], attack=None, scores=None, verdict=None,
            **certified(now),
        )  # fmt: skip

    def _fitting(self, target: Target) -> str:
        """The present attack where it suits these weights, else the first of the roster to do."""
        why = self.entry.refusal(target)
        if not why:
            return self.frame.attack_name
        name = next(key for key, row in ROSTER.items() if not row.refusal(target))
        self._turn_to(name)
        self.message = f"{by_key(name).title} takes over. {why.partition(' Choose ')[0]}"
        return name

    def begin_attack(self) -> None:
        """Take the present weights as the target, and start the attack at t = 0."""
        self.take_target()
        self.show(stage="attack")
        self.restart_attack()

    def choose_attack(self, name: str) -> None:
        """Turn to another attack of the roster, with the settings it was left with.

        Raises:
            ValueError: for an unknown name, or where the attack cannot be used on these weights;
                the present attack then stays.
        """
        target = self.now.target
        why = by_key(name).refusal(target) if target is not None else ""
        if why:
            raise ValueError(why)
        if name == self.frame.attack_name:
            return
        self.running = False
        self._turn_to(name)
        self.branch.attack = Timeline()
        self.show(attack_name=name, attack=None, scores=None, verdict=None)
        if self.now.stage == "attack":
            self.restart_attack()

    def restart_attack(self) -> None:
        """Begin the attack again at t = 0, from the mix and the seed of the session."""
        now = self.now
        if now.target is None or now.truth is None or now.heldout is None:
            raise ValueError("No attack to start: train a network, then turn to Attack.")
        state = first_state(now, self.entry, self.attack_config, self.seed, self.mix)
        self.branch.attack = Timeline()
        self.branch.attack.append(state, numbers)
        mix = self.mix if self.entry.takes_start else (0.0, 0.0)
        self.show(attack=state, mix=mix, status=Status.RUNNING)
        self.assess()

    def remix(self, mix_truth: float, mix_data: float) -> None:
        """Start the attack anew from another mix of truth, held-out data and noise."""
        self.running = False
        self.mix = (mix_truth, mix_data)
        self.attack_config = self.entry.suited(self.attack_config, mix_data)
        self.restart_attack()

    def assess(self) -> None:
        """Compute the certificate or the verdict of the present moment, and show it."""
        now = self.now
        if now.aimed:
            self.show(**judged(now, self.attack_config, self._controls))
            return
        seen = certified(now)
        if seen and now.train is not None:
            made = seen["certificate"]
            row = {"strict": made.residual_strict, "kink_aware": made.residual}
            self.branch.train.note(now.train.t, row)
        self.show(**seen)


def first_state(
    frame: Frame, entry: AnyAttack, config: AttackConfig, seed: int, mix: tuple[float, float]
) -> Any:  # noqa: ANN401 - of the entry's own class
    """The attack's state at t = 0: from the mix of truth, held-out data and noise if it takes one.

    Raises:
        ValueError: where the attack cannot be used on these weights.
    """
    target, truth, heldout = frame.target, frame.truth, frame.heldout
    if target is None or truth is None or heldout is None:
        raise ValueError("No weights to attack: train a network first.")
    start, given = None, cast(Any, config)
    if entry.takes_start:
        # Where training itself is seen through, labels and their number are known.
        y = truth.y if entry.victim is not None else None
        start = attack_start(truth, heldout, given.m, given.sigma_x, seed, mix, y)
    aimed = entry.aimed(target, truth.x, truth.y, config, seed)
    return entry.init(aimed, config, torch.Generator().manual_seed(seed), start)
