"""Images side by side in one PNG, pixel for pixel: candidates below their matches, weights."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.extras import library
from explorer.engine.files import write_file

Pixels = NDArray[np.uint8]
GAP = 3  # pixels between the images of one pair; arbitrary
EDGE = 3  # width of the frame around a pair; arbitrary


def pairs(top: Tensor, bottom: Tensor | None, colours: Sequence[str], columns: int) -> Pixels:
    """Return a sheet (H, W, 4) of images (n, c, h, w), those of `bottom` below them.

    Args:
        top: images, pixels in [0, 1].
        bottom: the image below each of them, or None for a single row.
        colours: of the frame of each pair, "#rrggbb", or "" for none.
        columns: pairs per row.
    """
    rows = [top] if bottom is None else [top, bottom]
    tiles = [_enlarge(images) for images in rows]
    side_h, side_w = tiles[0].shape[1:3]
    height = EDGE + len(rows) * (side_h + EDGE)
    width = side_w + 2 * EDGE
    n = len(top)
    columns = max(1, min(columns, n))
    lines = -(-n // columns)
    sheet = np.zeros((lines * (height + GAP), columns * (width + GAP), 4), np.uint8)
    for i in range(n):
        y, x = (i // columns) * (height + GAP), (i % columns) * (width + GAP)
        if colours[i]:
            sheet[y : y + height, x : x + width] = (*_rgb(colours[i]), 255)
        for k, row in enumerate(tiles):
            at = y + EDGE + k * (side_h + EDGE)
            sheet[at : at + side_h, x + EDGE : x + EDGE + side_w] = row[i]
    return sheet


def grey_at_zero(rows: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Return weights (k, d) of a first layer as images (k, c, h, w), grey at 0, each by its own."""
    images = rows.reshape(-1, *shape)
    largest = images.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
    return (images / largest + 1) / 2


def strongest(first_layer: Tensor, count: int) -> Tensor:
    """Return the rows (k, d) of largest norm, largest first."""
    order = first_layer.norm(dim=1).argsort(descending=True)
    return first_layer[order[:count]]


def png(sheet: Pixels) -> bytes:
    """Return the sheet as a PNG."""
    buffer = io.BytesIO()
    _image(sheet).save(buffer, format="PNG")
    return buffer.getvalue()


def write(path: Path, sheet: Pixels) -> None:
    """Write the sheet as a PNG file on white."""
    opaque = sheet.copy()
    opaque[sheet[..., 3] == 0] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, png(opaque))


def _image(sheet: Pixels) -> Any:  # noqa: ANN401
    return library("PIL.Image", "pictures need Pillow", "images").fromarray(sheet, "RGBA")


def _enlarge(images: Tensor) -> Pixels:
    """Return images (n, c, h, w) in [0, 1] as (n, H, W, 4), each pixel a whole block of pixels."""
    factor = max(1, 48 // max(images.shape[2:]))  # arbitrary: about 48 pixels a side
    grey = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images[:, :3]
    opaque = torch.cat([grey, torch.ones_like(grey[:, :1])], 1)
    array = (opaque.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    grown: Pixels = array.repeat(factor, 1).repeat(factor, 2)
    return grown


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
