"""Many starts of one attack on the same weights, and what they claim together.

    made = attack_starts(target, KKTConfig(), range(64), truth=data, certificate=certificate)
    print(verdicts.verdict(made.union.verdict))

Each start is the run of its seed alone. On the CPU they descend one after another, where compiled
loops are quickest. On another device all that its memory takes descend in one program, where the
attack has one (`Attack.many`); the program is that of a single start, with an axis before.

More starts make more claims, and more claims meet more points by chance. So the union is judged as
the claims of one attack are: the same claims against the controls. Which start leaves least
unexplained is known from the weights alone, and needs no correction. Which one met most points is
known from the truth alone: its p-value is that of the best of all starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.attacks.claims import MERGE_RADIUS, Report, merge_candidates
from explorer.engine.certificate import Certificate
from explorer.engine.controls import Controls, control_sets, meeting_counts
from explorer.engine.data import Dataset
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.roster import DEFAULT, AnyAttack, AnyTarget, AttackConfig, AttackState, by_key
from explorer.engine.scoring import adjusted_p_values, score
from explorer.engine.status import Status
from explorer.research.devices import (
    MemoryFull,
    at_once,
    check_device,
    last_states,
    most_that_fit,
    starts_load,
)
from explorer.research.runs import (
    RADIUS,
    Attacked,
    RunFailed,
    granted_target,
    judgement,
    stride_of,
)
from explorer.research.words import weights


@dataclass(frozen=True)
class BestStart:
    """The start that met most points of the truth.

    Attributes:
        seed: of the start; the first of those that met as many.
        found: points it met within `RADIUS`.
        p_value: chance that the best of so many starts meets as many; nan where it is not known.
    """

    seed: int
    found: int
    p_value: float


@dataclass(frozen=True, eq=False)
class Starts:
    """Many starts of one attack that came to their end.

    Attributes:
        seeds: of these starts.
        each: their attacks, with the last state alone; they are not judged.
        union: what they claim together, each place once, at its mean multiplier over the starts;
            with scores and verdict where the truth is known. Its state is that of `least`.
        made_by: by how many starts each place of the union is claimed (c,), int64.
        together: how many descended at once; 1 where they went one after another.
        diverged: seeds of starts that did not come to an end.
        least: which of them leaves least of the weights unexplained, as an index; the first where
            the attack explains none.
        most: which met most points; None where the truth is not known.

    Example:
        >>> from explorer import KKTConfig, Target, attack_starts, maximum_margin, preset
        >>> data = preset("alternating-line", n=4)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> made = attack_starts(target, KKTConfig(m=8, steps=200), range(3), truth=data)
        >>> made.seeds, made.together, made.most.found >= 2
        ((0, 1, 2), 1, True)
    """

    seeds: tuple[int, ...]
    each: tuple[Attacked, ...]
    union: Attacked
    made_by: Tensor
    together: int
    diverged: tuple[int, ...] = ()
    least: int = 0
    most: BestStart | None = None


def attack_starts(
    target: AnyTarget, config: AttackConfig, seeds: Sequence[int], *,
    name: str | AnyAttack = DEFAULT, truth: Dataset | None = None,
    controls: Controls | None = None, certificate: Certificate | None = None,
    device: str = "cpu", dtype: torch.dtype | None = None, progress: Progress = no_progress,
) -> Starts:  # fmt: skip
    """Return many attacks from noise on the same weights, with what they claim together.

    Each start is, to rounding, the attack of its seed alone. On the CPU they go one after another;
    on a device as many at once as its memory takes, where the attack has a program for it.

    Args:
        target: the weights, of the attack's own kind where it has one.
        config: settings of the attack's class.
        seeds: of the starts, one or more.
        name: the attack's key in the roster, or its row.
        truth: the points (n, d) that the weights were trained on, to judge the claims. An attack
            with a victim of its own trains one on them, with the first seed, for all starts.
        controls: sets that stand for chance; None takes `control_sets`.
        certificate: of the weights on the truth, where there is one.
        device: where to run, such as "cuda".
        dtype: floating type, where the attack has a choice.
        progress: hears what share is done, and may end the work.

    Returns:
        The starts, their union, and where the truth is known its verdict.

    Raises:
        ValueError: where there is no seed, or one twice, or the attack does not fit the weights.
        DeviceError: where the device is not there, or not even one start fits its memory.
        RunFailed: where every start diverged.

    Source: own; starts many at once as in Haim et al. 2022, whose candidates are many instead.

    Example:
        >>> from explorer import KKTConfig, Target, attack_starts, maximum_margin, preset
        >>> data = preset("alternating-line", n=4)
        >>> target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
        >>> made = attack_starts(target, KKTConfig(m=8, steps=200), [0, 1])
        >>> len(made.each), int(made.made_by.max())
        (2, 2)
    """
    chosen = tuple(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"expected seeds that differ, one or more; got {chosen[:9]}. Take 0 to 9.")
    entry = by_key(name) if isinstance(name, str) else name
    aimed = target
    if truth is not None:
        held = granted_target(target, truth, config, chosen[0])
        aimed = entry.target_for(held, truth.x, truth.y, config, chosen[0])
    check_device(device, dtype)
    ends, together = _ends(aimed, entry, config, chosen, device, dtype, progress)
    good = {seed: end for seed, end in zip(chosen, ends, strict=True) if end is not None}
    if not good:
        raise RunFailed(weights.status(Status.DIVERGED))
    lost = tuple(seed for seed in chosen if seed not in good)
    made = _union(tuple(good), tuple(good.values()), together, lost)
    if truth is None:
        return made
    proof = None if entry.own is not None else certificate  # its victim was trained otherwise
    return _with_verdict(made, truth, control_sets(truth) if controls is None else controls, proof)


def _ends(
    target: AnyTarget, entry: AnyAttack, config: AttackConfig, seeds: tuple[int, ...], device: str,
    dtype: torch.dtype | None, progress: Progress,
) -> tuple[list[Attacked | None], int]:  # fmt: skip
    """Return the attack of each seed, None where it diverged; and how many descended together."""
    whole, together, many = len(seeds), 1, at_once(entry, device)
    size = whole
    if many:
        size = most_that_fit(starts_load(entry, target, config, whole, dtype), device, whole)
    stride = stride_of(entry.step_count(config, 1))
    ends: list[AttackState] = []
    while len(ends) < len(seeds):
        some = seeds[len(ends) : len(ends) + size]
        part = part_progress(progress, len(ends) / whole, (len(ends) + len(some)) / whole)
        try:
            ends += last_states(target, entry, config, some, device, dtype, stride, part)
        except MemoryFull:  # a run takes more than was reckoned with
            if len(some) == 1 or not many:
                raise
            size = len(some) // 2
        else:
            together = max(together, len(some)) if many else 1
    failed = [entry.terminate(end, config) is Status.DIVERGED for end in ends]
    return [
        None if off else Attacked((end,), target, entry.report(target, end, config))
        for end, off in zip(ends, failed, strict=True)
    ], together


def _union(
    seeds: tuple[int, ...], each: tuple[Attacked, ...], together: int, lost: tuple[int, ...]
) -> Starts:
    """Return the starts with the union of their claims."""
    x, y, lam = (
        torch.cat([getattr(one.claims, name) for one in each]) for name in ("x", "y", "lam")
    )
    claims = merge_candidates(x, y, lam / len(each), MERGE_RADIUS)
    left = [one.states[-1].numbers().get("l_stationary", 0.0) for one in each]
    least = min(range(len(each)), key=left.__getitem__)
    union = replace(each[least], claims=claims)
    by = torch.stack([_near(claims, one.claims) for one in each]).sum(0)
    return Starts(seeds, each, union, by, together, lost, least)


def _near(union: Report, claims: Report) -> Tensor:
    """Return which places of a union (c,) these claims hold, 0 or 1: those near, or the nearest."""
    if not len(claims.x):
        return torch.zeros(len(union.x), dtype=torch.int64)
    apart = torch.cdist(union.x, claims.x, compute_mode="donot_use_mm_for_euclid_dist")
    apart = apart.masked_fill(union.y[:, None] != claims.y, torch.inf)
    return ((apart <= MERGE_RADIUS) | (apart == apart.amin(0))).any(1).long()


def _with_verdict(
    made: Starts, truth: Dataset, controls: Controls, certificate: Certificate | None
) -> Starts:
    """Return the starts with the verdict on their union, and the one that met most points."""
    found = judgement(made.union.claims, truth, controls, certificate)
    union = replace(made.union, scores=found.scores, verdict=found.verdict)
    counts = [int(score(truth, one.claims.x, one.claims.y, (RADIUS,)).found) for one in made.each]
    best = max(range(len(counts)), key=counts.__getitem__)
    p_value = math.nan
    if not math.isnan(found.verdict.p_value):
        p_value = max(
            adjusted_p_values(counts, [
                meeting_counts(way, one.claims.x, one.claims.y, (RADIUS,))[:, 0].tolist()
                for one in made.each
            ])[best]
            for way in controls.ways
        )  # fmt: skip
    return replace(made, union=union, most=BestStart(made.seeds[best], counts[best], p_value))
