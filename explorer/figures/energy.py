"""An energy map or curve as a picture file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from explorer.stages.energy_question import Picture
from explorer.triangle import CORNERS, raster

Array = NDArray[np.float64]


def draw(path: Path, picture: Picture, x: Array, y: Array, index: int) -> None:
    """Write the map of a picture with the points x (n, d), or its curve."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    axes = figure.subplots()
    top = float(max(np.nanmax(picture.values), 1e-12))
    low = max(top * 1e-4, 1e-12)
    if picture.curve is not None:
        axes.semilogy(picture.curve.z, np.maximum(picture.values[0], low))
        for at in picture.curve.breaks:
            axes.axvline(at, color="0.6", lw=0.6, ls=":")
        axes.axvline(float(x[index, 0]), color="black", lw=0.8)
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
    else:
        starts = picture.kind == "starts"
        values = raster(picture.values) if starts else picture.values
        image = axes.imshow(
            np.maximum(values, low), extent=picture.box, cmap="viridis_r",
            norm=LogNorm(low, top), interpolation="nearest",
        )  # fmt: skip
        figure.colorbar(image, ax=axes, label="share of the weights not explained")
        if picture.kind in ("point", "ridge", "last"):
            for label, marker in ((1, "o"), (-1, "^")):
                mine = y == label
                axes.plot(x[mine, 0], x[mine, 1], marker, color="white", mec="black", ms=6)
            axes.plot(*x[index], "s", mfc="none", mec="white", ms=13)
        axes.plot(*picture.lowest, "d", mfc="none", mec="magenta", ms=8)
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
        if starts:
            axes.set_axis_off()
            for (across, up), name in zip(
                CORNERS, ("truth", "held-out data", "noise"), strict=True
            ):
                axes.annotate(name, (across, up + (0.02 if up > 0.5 else -0.05)), ha="center")
    axes.set_title("\n".join(_wrapped(picture.words)), fontsize=8)
    figure.savefig(path, dpi=120)


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, 92)
