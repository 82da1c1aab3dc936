r"""How far independent restarts of an attack agree: a surrogate of recall without any truth.

With claims C_1 ... C_r of r restarts from independent noise, and s_ab the number of claims of a and
b that can be paired one to one, same label and within `MERGE_RADIUS`,

    agreement = mean_{a<b} s_ab  *  mean_{a<b} 2 s_ab / (|C_a| + |C_b|).

The first factor counts claims that survive another start, the second is their share of all claims:
it takes the credit from attacks that claim much, where some claims meet by crowding. What the noise
put there does not come back from other noise; what theta put there does. So does whatever else of
theta draws candidates, training point or not (spurious stationary points): agreement is evidence,
not proof. Measured by `benchmarks/bench_tune.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from explorer.engine.attacks.claims import MERGE_RADIUS, Report


def survivors(a: Report, b: Report, radius: float = MERGE_RADIUS) -> int:
    """The most claims of a and b that can be paired one to one, same label, within `radius`."""
    if not (len(a.x) and len(b.x)):
        return 0
    apart = torch.cdist(a.x, b.x, compute_mode="donot_use_mm_for_euclid_dist")
    near = (apart <= radius) & (a.y[:, None] == b.y[None])
    if not bool(near.any()):
        return 0
    matched = maximum_bipartite_matching(csr_matrix(near.numpy()), perm_type="column")
    return int((matched >= 0).sum())


def agreement(reports: Sequence[Report], radius: float = MERGE_RADIUS) -> float:
    """See the module. Symmetric; k for restarts that all claim the same k points; 0 for no claims.

    Raises:
        ValueError: for fewer than two reports.
    """
    if len(reports) < 2:
        raise ValueError(f"agreement needs two restarts or more; got {len(reports)}")
    pairs = list(combinations(reports, 2))
    kept = [survivors(a, b, radius) for a, b in pairs]
    sizes = [max(len(a.x) + len(b.x), 1) for a, b in pairs]
    share = sum(2 * s / size for s, size in zip(kept, sizes, strict=True)) / len(pairs)
    return share * sum(kept) / len(pairs)
