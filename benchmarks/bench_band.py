"""What the weights below the plane cost: the kernel's part of a frame, and the browser's.

    python benchmarks/bench_band.py [--frames 200]

The kernel's CPU time of a frame is that of its sum over points and its arrays, with those of the
plane beside it; the browser's is the least and the median clock time of painting it in a Chromium
without a screen, on a canvas of 576 x 160 px. A frame every 33 ms leaves room for both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time

import torch
from playwright.sync_api import Page, sync_playwright

from explorer.engine.data import preset
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.view.base import script

SETS = (("alternating-circle", 20, 100), ("blobs", 20, 1000), ("blobs", 200, 100))
PAINT = """
(frame, times) => {
  const canvas = document.createElement("canvas"), taken = [];
  [canvas.width, canvas.height] = [576, 160];
  const context = canvas.getContext("2d");
  for (const [name, [shape, numbers]] of Object.entries(frame.arrays))
    frame[name] = { data: Float32Array.from(numbers), shape };
  for (let i = 0; i < times; i++) {
    const begun = performance.now();
    context.clearRect(0, 0, 576, 160);
    paintBand(context, { ...frame, lit: -1, lift: -1 }, { width: 576, height: 160 }, COLOURS);
    context.getImageData(0, 0, 1, 1);
    taken.push(performance.now() - begun);
  }
  return taken;
}
"""


def page_of(name: str, n: int, width: int) -> App:
    """A page in training, some steps on, with its weights unfolded."""
    app = App(preset(name, n=n))
    app.session.train_config = TrainConfig(widths=(width,), steps=10**7)
    play.go(app.session, "train")
    play.advance(app.session, steps=1500)
    play.assess(app.session)
    app.session.band = True
    return app


def kernel_ms(app: App, panel: str, frames: int) -> float:
    """CPU time of the kernel for one frame of a panel: the median."""
    taken = []
    for _ in range(frames):
        play.advance(app.session, steps=1)
        begun = time.process_time()
        app.panels[panel].render(app.session.frame)
        taken.append(1000 * (time.process_time() - begun))
    return statistics.median(taken)


def browser_ms(page: Page, app: App, frames: int) -> tuple[float, float]:
    """Time to paint one frame: the least and the median."""
    shown = app.panels["BandPanel"].view.frame  # type: ignore[attr-defined]
    arrays = {
        k: [list(v.shape), v.ravel().tolist()] for k, v in shown.items() if hasattr(v, "shape")
    }
    taken = page.evaluate(f"given => ({PAINT})({{arrays: given}}, {frames})", arrays)
    return min(taken), statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=200)
    args = parser.parse_args()
    torch.set_num_threads(1)
    program = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    source = script("band.js").replace("export default { render };", "")
    print("points  neurons  kernel: band, plane (ms)  browser: least, median (ms)  bytes")
    with sync_playwright() as play_:
        browser = play_.chromium.launch(
            executable_path=program, args=["--headless", "--no-sandbox"]
        )
        page = browser.new_page()
        page.add_script_tag(content=source)
        for name, n, width in SETS:
            app = page_of(name, n, width)
            band, plane = (kernel_ms(app, p, args.frames) for p in ("BandPanel", "PlanePanel"))
            least, middle = browser_ms(page, app, args.frames)
            shown = app.panels["BandPanel"].view.frame  # type: ignore[attr-defined]
            size = sum(v.nbytes for v in shown.values() if hasattr(v, "nbytes"))
            print(
                f"{n:6} {width:8} {band:12.1f} {plane:6.1f} {least:21.1f} {middle:6.1f} {size:13,}"
            )
            app.close()
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
