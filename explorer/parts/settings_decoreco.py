"""Settings of the DecoReco reconstruction."""

from __future__ import annotations

from dataclasses import fields

from explorer.engine.attacks.decoreco_config import DecoRecoConfig
from explorer.parts import settings_kkt
from explorer.parts.settings import Row, Rows, choice


def rows() -> Rows:
    """What the candidates contribute in sight; the rest as in the KKT reconstruction."""
    shown, folded = settings_kkt.rows()
    own = [
        Row("contribution", choice(
            "contribution", "The margin's gradients with λ of one sign, or the outputs' with any "
            "sign, for networks trained with weight decay",
            ("margin", "margin"), ("outputs", "outputs"))),
        Row("rivals", choice(
            "rival classes", "One multiplier per rival class, the full KKT conditions, or the "
            "runner-up alone, as published", ("all", "all"), ("runner-up", "runner-up"))),
    ]  # fmt: skip
    known = {field.name for field in fields(DecoRecoConfig)}
    return [*own, *shown], [row for row in folded if row.field in known]
