"""Settings of the DecoReco reconstruction."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal

from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.attacks.kkt_config import KKTConfig, Knobs
from explorer.engine.attacks.target import Target
from explorer.engine.settings import setting, settings

# The reconstructions of Buzaglo et al. 2023 in the units of their code: contribution and knobs.
PUBLISHED: dict[str, tuple[Literal["margin", "outputs"], Knobs]] = {
    "multiclass": ("margin", Knobs(6.23e-5, 1.362e-3, 0.203, 39.5, 0.479)),
    "weight decay": ("outputs", Knobs(0.0197, 0.952, 0.0, 90.3)),
    "regression": ("outputs", Knobs(0.0137, 0.872, 0.0, 107.4)),
}


@settings
class DecoRecoConfig(DescentConfig):
    """Settings of the attack; see `decoreco` for the losses.

    For "outputs" the first lam / mean are N(0, lam_start^2), without a floor and without l_margin.
    """

    # fmt: off
    m: Annotated[int, setting(
        "In equal shares of the classes; at least 2n is usual", title="candidates m",
        form="sight", place=1, page=(2, 400), ge=2,
    )] = 60
    contribution: Annotated[Literal["margin", "outputs"], setting(
        "The margin's gradients with λ of one sign, or the outputs' with any sign, for networks "
        "trained with weight decay", title="contribution", form="sight", place=-2,
        note="margin: λᵢ grad qᵢ with λᵢ ≥ 0; outputs: the sum over c of λᵢc grad Φc of any sign.",
    )] = "margin"
    rivals: Annotated[Literal["all", "runner-up"], setting(
        "One multiplier per rival class, the full KKT conditions, or the runner-up alone, as "
        "published", title="rival classes", form="sight", place=-1,
    )] = "all"
    # fmt: on

    @classmethod
    def published(
        cls, target: Target, run: str = "multiclass", m: int = 60, steps: int = 2000
    ) -> DecoRecoConfig:
        """The published attack on these weights, in the units of this class.

        The units change as in `KKTConfig.published`: the same losses on other contributions. For
        "outputs" no floor, no l_dual.

        Args:
            target: the attacked weights.
            run: a key of `PUBLISHED`.
            m: candidates; the published multiclass run took 1000.
            steps: planned steps.

        Raises:
            ValueError: for an unknown run.
        """
        if run not in PUBLISHED:
            raise ValueError(f"no published run {run!r}; there are: {', '.join(PUBLISHED)}")
        contribution, knobs = PUBLISHED[run]
        base = KKTConfig.published(target, knobs, m=m + m % 2, steps=steps)
        own = {field.name for field in fields(cls)}
        values = {f.name: getattr(base, f.name) for f in fields(base) if f.name in own}
        return cls(**{**values, "m": m, "contribution": contribution, "rivals": "runner-up"})
