"""The decision map of a network with one output per class. Pure numpy and torch; no widgets."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import torch
from PIL import Image

from explorer.engine.classes import labels
from explorer.engine.network import Network, phi_all
from explorer.parts.drawing import Array, joined, level_lines, pixels
from explorer.style import COLOURS

Path = tuple[Array, Array]
LEVELS = 60  # shades per class; four classes fill a palette of 256. Arbitrary
STRONGEST = 84  # of 255, the alpha of a class's map: that of two classes


def class_field(net: Network, extent: float, size: int) -> Array:
    """All outputs on a grid over [-extent, extent]^2. -> (C, size, size), first row on top."""
    grid = pixels(size, extent).to(device=net.device)
    values = phi_all(net.to(dtype=torch.float32), grid)
    return values.T.reshape(net.outputs, size, size).cpu().numpy().astype(np.float64)


def leads(values: Array) -> Array:
    """Each class's output less the best of its rivals', (C, h, w): positive where it wins."""
    best = values.argmax(0)
    top = values.max(0)
    rest = np.where(np.arange(len(values))[:, None, None] == best, -np.inf, values).max(0)
    lead: Array = np.where(np.arange(len(values))[:, None, None] == best, top - rest, values - top)
    return lead


@cache
def _palette(classes: int) -> tuple[bytes, bytes]:
    """RGB and alpha: clear at the border, pale in the class's colour beyond."""
    rgb, alpha = bytearray(), bytearray()
    for label in labels(classes):
        for i in range(LEVELS):
            rgb += bytes.fromhex(COLOURS[label][1:])
            alpha.append(round(STRONGEST * (i / (LEVELS - 1)) ** 0.8))
    return bytes(rgb), bytes(alpha)


def class_map_png(lead: Array) -> bytes:
    """A palette PNG of the winner's lead in units of the margin, saturated at 2. (C, h, w)."""
    shade = np.rint(np.clip(lead.max(0) / 2, 0, 1) * (LEVELS - 1)).astype(np.int64)
    index = (lead.argmax(0) * LEVELS + shade).astype(np.uint8)
    rgb, alpha = _palette(len(lead))
    image = Image.fromarray(index, mode="L")
    image.putpalette(rgb)
    out = io.BytesIO()
    image.save(out, "PNG", transparency=alpha, compress_level=1)
    return out.getvalue()


def class_levels(lead: Array, extent: float) -> tuple[Path, list[Path]]:
    """The border between the classes, and for each class where its lead is the margin."""
    pairs = [level_lines(one, extent, (0.0, 1.0)) for one in lead]
    border = [np.column_stack(line) for line, _ in pairs]
    return joined(border), [at_margin for _, at_margin in pairs]
