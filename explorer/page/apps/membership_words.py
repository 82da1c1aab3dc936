"""What the membership page says of one moment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from explorer.engine.membership.experiment import MembershipTrial
from explorer.page.apps.membership_scene import Outcome, World


def sentence(there: World, found: Outcome) -> tuple[str, str, str]:
    """Return what is seen in plain words, its tone ("good", "warn"), and its numbers."""
    low, high = found.fpr_interval
    plain = (
        f"{found.hits} of {found.n} members found; {found.alarms:,} of {found.m:,} unseen points "
        "taken for members"
    )
    words = (
        f"A point is called a member where its output |Φ(x)| is {found.rule.threshold:.3g} margins "
        f"or more: so are {found.tpr:.0%} of the members, and {found.fpr:.2%} of unseen points "
        f"(95%: {low:.2%} to {high:.2%}). "
    )
    return plain, "good" if found.works else "warn", words + proof(there, found)


def threshold(level: float, there: World) -> str:
    """Return what the least threshold finds that allows this share of false positives."""
    m = len(there.held_out)
    limit = there.held_out.sort(descending=True).values[min(int(level * m), m - 1)]
    hits, alarms = (int((some > limit).sum()) for some in (there.members, there.held_out))
    n = len(there.members)
    return (
        f"At most {100 * level:.2g}% false positives: a threshold above {limit:.3g} margins finds "
        f"{hits} of {n} members ({hits / n:.0%}) and takes {alarms:,} of {m:,} unseen points "
        f"({alarms / m:.2%}) for members"
    )


def proof(there: World, found: Outcome) -> str:
    """Return what the certificate says beside what was measured."""
    rho = there.proof.rho
    shown = f"ρ = {rho:.3g}"
    if there.proof.error_free and there.made.ok:
        return (
            f"Proven: {shown} is below ½, and at the threshold of half a margin an error on these "
            "points is impossible."
        )
    here = "no bound of it is known here" if math.isinf(rho) else f"here {shown}"
    ends = "the attack works all the same" if found.works else "at this threshold the attack errs"
    return f"The theorem needs a ρ below ½; {here}, so it promises nothing: {ends}."


def network(there: World) -> str:
    """Return whether the theorem's assumption on the weights holds, as a sentence."""
    on = int((there.members <= 1 + 1e-6).sum())
    if there.made.ok:
        return (
            f"The network is an exact KKT point by construction; {on} of {len(there.members)} "
            "training points lie on the margin."
        )
    return (
        f"The network has margin m but is no KKT point: two neurons are too few for these points "
        f"({on} of {len(there.members)} lie on the margin), so the theorem says nothing here. "
        "Raise d or take fewer points."
    )


def experiment_progress(done: int, total: int, d: int) -> str:
    """Return how many networks of an experiment are trained, the last in dimension d."""
    return f"{done} of {total} networks; the last in dimension {d}"


def experiment(trials: Sequence[MembershipTrial], total: int) -> str:
    """Return what the networks of an experiment show in the highest dimension that was reached."""
    if not trials:
        return "Cancelled before the first network was trained."
    last = trials[-1].d
    mine = [t for t in trials if t.d == last]
    beyond = float(np.nanmean([t.beyond for t in mine]))
    on = float(np.nanmean([t.on_margin for t in mine]))
    what = "" if len(trials) == total else f"Cancelled after {len(trials)} of {total}. "
    return (
        f"{what}At d = {last}, {on:.0%} of the training points lie within 10% of the margin and "
        f"{beyond:.2%} of {len(mine) * mine[0].fresh.numel()} unseen points reach it."
    )
