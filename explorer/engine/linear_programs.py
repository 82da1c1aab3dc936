"""Linear programs, by HiGHS."""

from __future__ import annotations

from typing import Any

from scipy.optimize import OptimizeResult, linprog

from explorer.engine.arrays import Array

TOLERANCES = (1e-10, 1e-7)  # the tightest that HiGHS takes, then its default


def least(cost: Array, rows: Any, right: Array, **more: Any) -> OptimizeResult:  # noqa: ANN401
    """Return what HiGHS finds for min cost' z, rows z <= right; its `status` is 0 for a solution.

    The solution is as accurate as HiGHS can make it. `more`: further arguments of `linprog`.
    """
    for tolerance in TOLERANCES:
        options = dict.fromkeys(
            ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), tolerance
        )
        given: dict[str, Any] = {"method": "highs", "bounds": (0, None), **more}
        found = linprog(cost, A_ub=rows, b_ub=right, options=options, **given)
        if found.status == 0:
            break
    return found
