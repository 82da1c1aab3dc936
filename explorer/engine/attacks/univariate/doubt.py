"""Why nothing is proven: the weights are no exact KKT point, or are not taken for one."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING

from explorer.engine.attacks.univariate.config import CERTIFIED, EXACT, Tolerances

if TYPE_CHECKING:
    from explorer.engine.attacks.univariate import UnivariateState


class Inexact(Enum):
    """Why nothing is proven: the weights are no exact KKT point, or are not taken for one."""

    UNKNOWN = "unknown"
    OFF = "off"
    TOLERANCES = "tolerances"


def doubt(defect: float, tol: Tolerances) -> Inexact | None:
    """Return why nothing is proven on weights so far from a KKT point; None on exact ones."""
    if math.isnan(defect):
        return Inexact.UNKNOWN
    if defect > CERTIFIED:
        return Inexact.OFF
    return None if tol == EXACT else Inexact.TOLERANCES


def doubt_words(state: UnivariateState) -> str:
    """Return why nothing is proven, as part of a sentence; "" where the weights are exact."""
    if state.doubt is Inexact.TOLERANCES:
        return "the tolerances in force are those of trained weights"
    if state.doubt is None:
        return ""
    off = f"off by {state.defect:.1e} of |θ|"
    if state.doubt is Inexact.UNKNOWN:
        off = "nobody looked how far"
    return (
        f"the weights are not an exact KKT point of this margin: {off}, and a proof needs "
        f"{CERTIFIED:.0e}"
    )
