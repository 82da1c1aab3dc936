"""The band of weights in a recording: needles, and the terms of the points that add up to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import as_array
from explorer.page.plane.weights import BandContent
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.needles import needles

LONG = ("needles", "ends", "glow", "pulls")  # in units of the longest needle, for int16
LEFT_OUT = ("neurons", "bias", "lines", "count")  # what only a page with a kernel asks for


def band_arrays(shown: BandContent | None, axes: Axes) -> dict[str, NDArray[Any]]:
    """Return the arrays of the band that `figure.js` paints; none where there are no weights.

    Args:
        shown: of a frame (`plane.weights.shown_of`).
        axes: of the plane beside it.
    """
    if shown is None:
        return {}
    found: dict[str, Any] = dict(needles(shown.net, axes, as_array(shown.x), shown.made))
    long = max(np.linalg.norm(found["needles"], axis=1).max(), 1e-300)
    found |= {name: found[name] / long for name in LONG if name in found}
    found["out"] = found["out"] / max(found["out"].max(), 1e-300)
    if "group" in found:
        found["group"] = found["group"] % 2  # only neighbours are compared
    if shown.made is not None:
        found["labels"] = as_array(shown.y)
    return {f"band_{name}": array for name, array in found.items() if name not in LEFT_OUT}
