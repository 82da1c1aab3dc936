"""Points as a small picture: of ready-made sets, and of examples."""

from __future__ import annotations

from explorer.engine.data import Dataset
from explorer.style import CLASSES


def thumb(data: Dataset) -> list[list[float | str]]:
    """Return the points as `controls/dots.js` takes them: place, scaled to ±1, shape and ink."""
    x = data.x if data.d == 2 else data.x.repeat(1, 2) * data.x.new_tensor([1.0, 0.0])
    scale = 1.0 / max(float(x.abs().max()), 1e-9)
    return [
        [round(a * scale, 2), round(b * scale, 2), CLASSES[label].shape, CLASSES[label].ink]
        for (a, b), label in zip(x.tolist(), data.y.int().tolist(), strict=True)
    ]
