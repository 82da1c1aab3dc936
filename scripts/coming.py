"""Make the picture that the page of images shows while its kernel starts.

    python scripts/coming.py

The page's own run, with its defaults: the training images that it recovers clearly, ten at most,
each beside what the attack read. Run it again after a change of these defaults.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from explorer.engine.arrays import Array, as_array
from explorer.engine.data.images import draw
from explorer.engine.threads import limit_threads
from explorer.page.apps.digits_charts import FEW, MOST_FEW
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun

STATIC = "explorer/serve/voila/nbconvert/templates/margin-explorer/static"
PICTURE = Path(__file__).resolve().parents[1] / STATIC / "digits.png"
LARGER = 12  # pixels of the picture to one of an image
GAP, WITHIN = 12, 4  # pixels between pairs, and within one


def pairs(run: ImageRun) -> tuple[Array, Array]:
    """Return training images (k, h, w) and reconstructions, the best first, those clear alone."""
    drawn = draw(run.choice)
    *_, trained = image_runs.train(drawn, run)
    aimed = image_runs.aim(drawn, run, trained)
    *_, last = image_runs.attack(drawn, run, aimed)
    found = image_runs.assess(drawn, aimed, [last], run.vote, run.measure)
    best = found.order[found.clear[found.order]][:MOST_FEW]
    truth = drawn.pictures(drawn.train.x)[best]
    return tuple(as_array(part.clamp(0, 1))[:, 0] for part in (truth, found.truth.images[best]))


def sheet(truth: Array, read: Array) -> Image.Image:
    """Return the pairs (k, h, w) as one picture, five in a row, clear where nothing is."""
    pair = 2 * LARGER * truth.shape[2] + WITHIN + GAP, LARGER * truth.shape[1] + GAP
    size = FEW * pair[0] - GAP, -(-len(truth) // FEW) * pair[1] - GAP
    made = Image.new("LA", size, (0, 0))
    for i, both in enumerate(zip(truth, read, strict=True)):
        for j, image in enumerate(both):
            tile = np.kron((255 * image).round().astype(np.uint8), np.ones((LARGER, LARGER)))
            left = i % FEW * pair[0] + j * (LARGER * truth.shape[2] + WITHIN)
            made.paste(Image.fromarray(tile.astype(np.uint8)), (left, i // FEW * pair[1]))
    return made


if __name__ == "__main__":
    limit_threads()
    sheet(*pairs(ImageRun())).save(PICTURE, optimize=True)
