"""What the membership page says of one moment."""

from __future__ import annotations

import math

from explorer.page.apps.membership_scene import Outcome, World


def sentence(there: World, found: Outcome) -> tuple[str, str]:
    """Return what is seen, with its numbers, and its tone ("good", "warn", "bad")."""
    low, high = found.fpr_interval
    words = (
        f"|Φ(x)| ≥ {found.rule.threshold:.3g} m calls {found.hits} of {found.n} members and "
        f"{found.alarms} of {found.m} fresh points members: true positive rate {found.tpr:.0%}, "
        f"false positive rate {found.fpr:.2%} (95%: {low:.2%} to {high:.2%}). "
    )
    return words + proof(there, found), ("good" if found.works else "bad")


def proof(there: World, found: Outcome) -> str:
    """Return what the certificate says beside what was measured."""
    rho = there.proof.rho
    shown = "ρ = ∞" if math.isinf(rho) else f"ρ = {rho:.3g}"
    if there.proof.error_free and there.made.ok:
        return f"{shown} is below ½: at the threshold m/2 an error on these points is impossible."
    if found.works:
        return f"The certificate is vacuous at these sizes ({shown}), while the attack works."
    return f"The certificate proves nothing here ({shown}), and the attack errs."


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
