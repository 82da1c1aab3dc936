"""What is said beside the curve of what was found, and of each point."""

from __future__ import annotations

from explorer.engine.scoring import RecallCurve


def within(here: RecallCurve) -> str:
    """Return how many points are found within the one radius, beside how many unseen ones."""
    truth = f"{int(here.found[0])} of {here.n}"
    if not here.controls:
        return f"{truth}; no unseen points to compare with"
    chance, low, high = (float(v[0]) for v in (here.chance, here.low, here.high))
    return f"{truth}; unseen {chance:.2g} (90% of {here.controls} sets: {low:.0f} to {high:.0f})"


def points_found(here: RecallCurve) -> list[str]:
    """Return of each point how near the nearest claim of its class is, and whether it is found."""
    said = []
    for i, (away, yes) in enumerate(zip(here.distances.tolist(), here.met[0], strict=True)):
        near = f"nearest claim {away:.2g} away" if away < float("inf") else "no claim of its class"
        said.append(f"point {i + 1}: {'found, ' if yes else 'not found, '}{near}")
    return said
