"""How soon a widget is drawn in a cell of JupyterLab, and four pages side by side.

    python benchmarks/bench_widgets.py [--times 5]

Chromium without a screen runs the cells of a notebook, on the same machine. A time runs from the
press on Shift+Enter to the first frame that is drawn, by the browser's clock: the import, the
widgets, their messages and their scripts are in it. The first cell of a new kernel loads torch and
the page; a warm kernel has run a cell like this before, and the middle of some times is told. A
page counts as drawn when its plane is; four are drawn when the last of them is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from pathlib import Path

from bench_live import FLAGS
from lab import lab_server
from playwright.sync_api import Page, sync_playwright

PAD = "from explorer.widgets import DrawingPad\nDrawingPad()"
FOUR = """import ipywidgets as w
from explorer import app
w.HBox([app(shown=False).widget for _ in range(4)])"""
# Notes the seconds until so many planes are drawn that no earlier cell had.
WATCH = """count => {
  const begun = performance.now(), seen = new Set();
  window.took = 0;
  const note = e => {
    const plane = e.target.closest('.mx-plane');
    if (!plane || plane.dataset.old) return;
    seen.add(plane);
    if (seen.size < count) return;
    for (const one of seen) one.dataset.old = 1;
    document.removeEventListener('mx-drawn', note);
    window.took = (performance.now() - begun) / 1000;
  };
  document.addEventListener('mx-drawn', note);
}"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="warm cells of each kind")
    times = parser.parse_args().times
    with lab_server("explorer.ipynb") as server, sync_playwright() as play:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        page = play.chromium.launch(executable_path=path, args=FLAGS).new_page(
            viewport={"width": 1920, "height": 1080}
        )
        cells = [PAD, *[PAD] * times, *[FOUR] * times]
        open_notebook(page, server.url, Path(server.folder.name) / "work", cells)
        took = [seconds_of(page, k, 4 if cell is FOUR else 1) for k, cell in enumerate(cells)]
    print("| what | seconds |\n|---|---|")
    print(f"| a pad, first in a new kernel | {took[0]:.2f} |")
    print(f"| a pad, in a warm kernel | {statistics.median(took[1 : 1 + times]):.2f} |")
    print(f"| four pages side by side, in a warm kernel | {statistics.median(took[-times:]):.2f} |")


def open_notebook(page: Page, url: str, work: Path, cells: list[str]) -> None:
    """Open a notebook with these cells, and wait for its kernel."""
    book = json.loads((work / "explorer.ipynb").read_text())
    book["cells"] = [
        {**book["cells"][0], "id": f"cell-{k}", "source": lines} for k, lines in enumerate(cells)
    ]
    (work / "given.ipynb").write_text(json.dumps(book))
    page.goto(f"{url}lab/tree/given.ipynb?reset")
    page.locator(".jp-NotebookPanel .jp-Toolbar-kernelName", has_text="Python 3").wait_for()
    page.get_by_text("| Idle").wait_for()


def seconds_of(page: Page, k: int, count: int) -> float:
    """Run cell k; seconds until so many new planes are drawn."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(k)
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.evaluate(WATCH, count)
    page.keyboard.press("Shift+Enter")
    return float(page.wait_for_function("window.took", timeout=120_000).json_value())


if __name__ == "__main__":
    main()
