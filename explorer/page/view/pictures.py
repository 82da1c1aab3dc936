"""Images as tiles that show themselves large under the pointer; and a pad to draw one by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from traitlets import Bool, Bytes, Dict, Int, List, Unicode

from explorer.page.view.base import HERE, POPUP
from explorer.page.view.bundle import View

DRAWN = 28  # pixels a side of what is drawn, as of MNIST


class PicturesView(View):
    """Tiles of images, those of one tile above each other.

    It tells of "press": the number of a tile that is pressed, where tiles can be.

    Attributes:
        tiles: of each its `mark` ("", "good", "faint", "pos" or "neg"), its `words`,
            and whether it is `on`.
        captions: of the images of a tile, shown where it is large.
        shape: images in a tile, their height, width and channels.
        pixels: of all images, tile by tile.
        pressable: whether tiles can be pressed.
        few: how many tiles are shown before one asks for all; 0: all.
    """

    _esm = f"{POPUP}\n{(HERE / 'pictures.js').read_text()}"
    _css = HERE / "pictures.css"
    tiles = List(Dict()).tag(sync=True)
    captions = List(Unicode()).tag(sync=True)
    shape = List(Int(), [1, 1, 1, 1]).tag(sync=True)
    pixels = Bytes(b"").tag(sync=True)
    pressable = Bool(False).tag(sync=True)
    few = Int(0).tag(sync=True)

    def draw(
        self, rows: Sequence[Tensor], captions: Sequence[str], tiles: list[dict[str, Any]]
    ) -> None:
        """Show images (n, c, h, w) in [0, 1], a row for each caption, and n tiles."""
        stacked = torch.stack([images.detach().cpu() for images in rows], 1)
        whole = (stacked.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2)
        with self.hold_sync():
            self.tiles, self.captions = tiles, list(captions)
            self.shape = list(whole.shape[1:])
            self.pixels = whole.contiguous().numpy().tobytes()

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Tell which tile is pressed."""
        tile = content.get("tile")
        if kind == "press" and self.pressable and tile in range(len(self.tiles)):
            self.tell(kind, tile)


class DigitPad(View):
    """A black square to draw a digit on, in white.

    Attributes:
        image: what is drawn (28, 28) in [0, 1].
        blank: grows by one to wipe the square.
    """

    _esm = f"{POPUP}\n{(HERE / 'digit_pad.js').read_text()}"
    _css = HERE / "digit_pad.css"
    blank = Int(0).tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Nothing is drawn."""
        super().__init__(**traits)
        self.image = torch.zeros(DRAWN, DRAWN, dtype=torch.float64)

    def wipe(self) -> None:
        """Wipe the square."""
        self.image = torch.zeros_like(self.image)
        self.blank += 1

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Take what is drawn, as bytes."""
        if kind == "drawn" and buffers and len(buffers[0]) == DRAWN**2:
            pixels = np.frombuffer(bytes(buffers[0]), np.uint8).reshape(DRAWN, DRAWN)
            self.image = torch.from_numpy(pixels.copy()).double() / 255
            self.tell(kind)
