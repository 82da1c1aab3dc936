"""The charts that the membership page alone has."""

from __future__ import annotations

import math

import numpy as np

from explorer.engine.arrays import Array
from explorer.engine.charts import Axis, Chart, Guide, Series
from explorer.page.apps.membership_scene import Outcome, World
from explorer.research.pictures.charts import FRESH, LIMIT, MEMBER

# Arbitrary, but no edge at 1, where members are; |Phi| / m beyond is counted in the last bin.
BINS, WIDEST = 61, 2.5
RHO_MIN, RHO_MAX = 1e-2, 1e2  # arbitrary: ends of the certificate's axis


def steps(values: Array) -> tuple[Array, Array]:
    """Return the outline of a histogram over [0, WIDEST]; its fullest bin is 1."""
    edges = np.linspace(0, WIDEST, BINS + 1)
    count, _ = np.histogram(np.clip(values, 0, WIDEST - 1e-9), edges)
    height = np.repeat(count / max(count.max(), 1), 2)
    return np.repeat(edges, 2), np.concatenate([[0.0], height, [0.0]])


def histogram(there: World, found: Outcome) -> Chart:
    """|Phi| of members against held-out points, with the threshold."""
    series = []
    for values, name, colour in (
        (there.held_out.double().numpy(), "unseen points", FRESH),
        (there.members.numpy(), "members", MEMBER),
    ):
        outline = steps(values)
        series += [Series(*outline, "", "band", colour=colour, look={"opacity": 0.35}),
                   Series(*outline, name, colour=colour, look={"width": 1.5})]  # fmt: skip
    limit = Guide(min(found.rule.threshold, WIDEST), "threshold", "x", LIMIT)
    return Chart(
        series, Axis(0, WIDEST, "|Φ(x)| / m", ticks=(0, 0.5, 1, 1.5, 2, 2.5)),
        Axis(0, 1.08, short="points, of the fullest bin", ticks=(0, 0.5, 1)), rules=[limit],
        label="Members and unseen points by their output: how many points, of the fullest bin",
    )  # fmt: skip


def proof_chart(there: World) -> Chart:
    """The bound of the certificate beside the largest measured value, in units of the margin."""
    most, rho = float(there.held_out.max()), there.proof.rho
    proven = "∞" if math.isinf(rho) else f"{rho:.3g}"
    bars = [(most, 1.7, f"measured {most:.3g}", FRESH), (rho, 0.7, f"possible ρ = {proven}", "ink")]
    series = [
        Series([RHO_MIN, float(np.clip(value, RHO_MIN * 1.01, RHO_MAX))], [height] * 2,
               f"largest {words}", colour=colour, look={"width": 14})
        for value, height, words, colour in bars
    ]  # fmt: skip
    return Chart(
        series, Axis(RHO_MIN, RHO_MAX, "|Φ(x)| / m of unseen points", log=True,
                     ticks=(0.01, 0.1, 1, 10, 100)),
        Axis(0, 2.4, ticks=tuple((height, words) for _, height, words, _ in bars)),
        rules=[Guide(0.5, "½", "x", LIMIT)],
        label="The certificate: the largest measured and the largest possible output",
    )  # fmt: skip
