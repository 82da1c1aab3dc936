"""Membership inference in words: where a threshold comes from."""

from __future__ import annotations

from explorer.engine.membership.law import MemberRule


def without_margin(wrong: int, of: int) -> str:
    """Return how many trained networks have no margin; empty for none."""
    if not wrong:
        return ""
    return (
        f"{wrong} of {of} networks leave a training point on the wrong side. They have no margin: "
        "there m is the smallest positive y Φ."
    )


def rule(made: MemberRule) -> str:
    """Return how a threshold was found, as the end of a sentence."""
    if made.name == "known margin":
        return f"{made.share:g} of the margin m = {made.margin:.4g}, which is known"
    if made.name == "leaked point":
        return f"{made.share:g} of M = {made.top:.4g}, the largest |Φ| of {made.suspects} suspects"
    if made.separates:
        return (
            f"between the ceiling {made.ceiling:.4g} of unseen points and the margin's bound "
            f"{made.low:.4g}"
        )
    return (
        f"the margin's bound {made.low:.4g} itself: unseen points reach {made.ceiling:.4g}, so no "
        "threshold separates them"
    )
