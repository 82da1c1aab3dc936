"""A run again from its points, settings and seeds: what a link holds is enough for it.

run = read_link("http://.../#mx1.eNp...")
made = repeat(run)  # trains, attacks and judges, as the page did
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate, certify
from explorer.engine.controls import control_sets
from explorer.engine.energy.starts import attack_start
from explorer.engine.exact.finish import Finished
from explorer.engine.progress import Progress
from explorer.engine.roster import by_key
from explorer.engine.store import Run, StoreError
from explorer.engine.store.check import check_run
from explorer.engine.training import TrainState
from explorer.research.runs import (
    Attacked,
    Trained,
    first_weights,
    granted_target,
    judgement,
    training_states,
)
from explorer.research.state import REMEDY

UNTRAINED = ("", "draw")  # stages without a network
SEEN = 100  # arbitrary: how often a watch is called


@dataclass(frozen=True, eq=False)
class Repeated:
    """What `repeat` made.

    Attributes:
        run: what was repeated.
        state: the training state; None where nothing had been trained.
        certificate: of its weights; None where no theorem speaks of them.
        finished: what is known of a network that was trained to the end.
        attacked: the attack with its verdict; None where none had begun.
        states: of the training, the last among them, where they were to be kept.

    Example:
        >>> from explorer import Run, TrainConfig, preset, repeat
        >>> repeat(Run(preset("moons", n=10), TrainConfig())).state is None  # nothing had begun
        True
    """

    run: Run
    state: TrainState | None = None
    certificate: Certificate | None = None
    finished: Finished | None = None
    attacked: Attacked | None = None
    states: tuple[TrainState, ...] = ()

    @property
    def trained(self) -> Trained | None:
        """Return the training with its last state alone; None where nothing had been trained."""
        if self.state is None:
            return None
        return Trained(self.run, (self.state,), None, self.finished)


def is_attacked(run: Run) -> bool:
    """Return whether the attack of a run without states had begun."""
    return run.stage == "attack" or run.steps[1] > 0


def is_trained(run: Run) -> bool:
    """Return whether the training of a run without states had begun."""
    return is_attacked(run) or run.exact or run.steps[0] > 0 or run.stage not in UNTRAINED


def repeat(
    run: Run, watch: Callable[[str, int, int], None] = lambda *_: None, keep: bool = False
) -> Repeated:
    """Return what a page had made, made again: train, attack, judge.

    Args:
        run: what to repeat, such as `read_link` gives it; states that it holds are not looked at.
        watch: is called with "training" or "attack", the step reached and the last step, now and
            then; it may raise an error to stop.
        keep: whether to keep about a hundred states of the training, and of the attack.

    Returns:
        The states at its steps, the certificate and the verdict: the numbers of the page, to
        rounding, as steps go in other blocks; candidates on their way magnify it.

    Raises:
        StoreError: where there are steps but no points, or the attack does not suit these weights.
        ValueError: where parts of the run do not fit each other.

    Example:
        >>> from explorer import Run, TrainConfig, preset, repeat
        >>> made = repeat(Run(preset("moons", n=10), TrainConfig(), steps=(50, 0)))
        >>> made.state.t, made.attacked
        (50, None)
    """
    check_run(run)
    if not is_trained(run):
        return Repeated(run)
    if not run.dataset.n:
        raise StoreError(f"the link holds steps of a run, but no points to train on. {REMEDY}")
    data, last = run.dataset, run.steps[0]
    known: list[Finished | None] = [None]
    states = training_states(run, every=max(1, last // SEEN), last=last, note=known.append)
    state = next(states)
    kept = [state]
    for state in states:
        watch("training", state.t, last)
        kept += [state] * keep
    proof = certify(state.net, data.x, data.y) if state.net.homogeneous else None
    done = Repeated(run, state, proof, known[-1], states=tuple(kept) if keep else ())
    if not is_attacked(run):
        return done
    return replace(done, attacked=_attack(run, kept[0], state, proof, watch, keep))


def share_of_steps(run: Run, progress: Progress) -> Callable[[str, int, int], None]:
    """Return what watches a run that is repeated, and tells the share of its steps that is done."""

    def watch(part: str, done: int, last: int) -> None:
        before = run.steps[0] if part == "attack" else 0
        progress((before + done) / max(sum(run.steps), 1))

    return watch


def with_states(run: Run, watch: Callable[[str, int, int], None] = lambda *_: None) -> Run:
    """Return a run with states: its own, or those that its points, settings and seeds make again.

    Args:
        run: what to repeat, if it holds no states.
        watch: see `repeat`.
    """
    if run.train_states or not is_trained(run):
        return run
    made = repeat(run, watch, keep=True)
    attack = () if made.attacked is None else made.attacked.states
    return replace(run, train_states=made.states, attack_states=attack, repeatable=True)


def _attack(
    run: Run, first: TrainState, state: TrainState, made: Certificate | None,
    watch: Callable[[str, int, int], None], keep: bool,
) -> Attacked:  # fmt: skip
    """Return the attack at its step, judged."""
    data, entry, last = run.dataset, by_key(run.attack_name), run.steps[1]
    config = cast(Any, run.attack_config or entry.config())
    seed = run.seed if run.attack_seed is None else run.attack_seed
    trained = run.train_config
    before = first_weights([first, state])
    q_min, decay = float(state.q.min()), trained.weight_decay
    target = Target.of(state.net, q_min, decay, before, trained.loss)
    why = entry.refusal(target)
    if why:
        raise StoreError(why)
    controls, start = control_sets(data), None
    if entry.takes_start:
        y = None if entry.own is None else data.y
        mix = run.mix or (0.0, 0.0)
        start = attack_start(data, controls.sets[0], config.m, config.sigma_x, seed, mix, y)
    held = granted_target(target, data, config, seed)
    aimed = entry.target_for(held, data.x, data.y, config, seed)
    found = entry.init(aimed, config, torch.Generator().manual_seed(seed), start)
    states = [found]
    while found.t < last and not entry.terminate(found, config).over:
        found = entry.advance(aimed, found, config, min(max(1, last // SEEN), last - found.t))
        watch("attack", found.t, last)
        states += [found] * keep
    claims = entry.report(held, found, config)
    held = judgement(claims, data, controls, None if entry.own else made, more=True)
    states += [found] * (not keep)
    return Attacked(tuple(states), target, claims, held.scores, held.verdict)
