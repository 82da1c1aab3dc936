"""Run by the Python of an environment: open its pages as notebooks, and use what they offer.

python open_pages.py explorer.ipynb membership.ipynb ...   # without names: every page
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from explorer.research.pages import write_pages
from explorer.serve.server import CELLS

PATIENCE_S = 300  # arbitrary: a cell that takes as long hangs
WIDGET = "application/vnd.jupyter.widget-view+json"
# What a visitor presses on a page, as small as it goes; the cell goes after those of the page.
TASKS = {
    "membership.ipynb": """
from explorer import membership
page = membership(scenario="threshold")
page.trained.put("dims", value="8")
page.trained.put("trials", value=2)
page.run_training()
await page.job.wait()
assert len(page.trials) == 2
""",
    "lessons.ipynb": """
import asyncio
from explorer import app, preset
from explorer.page import play
from explorer.page.stages.train import commands as train
page = app(preset("two-points"))
play.go(page.session, "train")
train.jump_to_exact(page.session)
play.go(page.session, "attack")
tuner = page.panel("Tuner")
tuner.row.press("go")
while tuner.job.busy and not tuner.rows:
    await asyncio.sleep(0.1)
assert tuner.rows and not any(trial.failure for trial in tuner.rows), tuner.answer.text
tuner.row.press("go")
""",
    "digits.ipynb": """
from explorer import digits
page = digits(n=4, widths=(50,), train_steps=100, steps=5)
page.run_training()
await page.job.wait()
page.run_attack()
await page.job.wait()
assert page.scored is not None, page.sentence.value
""",
}


def opened(notebook: nbformat.NotebookNode, task: str) -> list[str]:
    """What is wrong with a page once all its cells have run: errors, and what it says failed."""
    if task:
        notebook.cells.append(nbformat.v4.new_code_cell(task))
    client = NotebookClient(
        notebook, timeout=PATIENCE_S, kernel_name="python3", store_widget_state=True,
        allow_errors=True,
    )  # fmt: skip
    client.execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    wrong = [f"{o.ename}: {o.evalue}" for o in outputs if o.output_type == "error"]
    if not any(WIDGET in o.get("data", {}) for o in outputs):
        wrong.append("shows nothing")
    kinds = notebook.metadata.get("widgets", {}).values()
    widgets = {k: v["state"] for kind in kinds for k, v in kind["state"].items()}
    for state in widgets.values():
        layout = widgets.get(str(state.get("layout")).removeprefix("IPY_MODEL_"), {})
        failed = "mx-failed" in (state.get("_dom_classes") or ())
        words = str(state.get("value", ""))
        if (failed and layout.get("display") != "none") or "pip install" in words:
            wrong.append(words)
    return wrong


def main() -> None:
    """Open each page; end with 1 where one is not as it should be."""
    with tempfile.TemporaryDirectory() as name:
        write_pages(Path(name), CELLS)
        paths = [Path(name, word) for word in sys.argv[1:]] or sorted(Path(name).glob("*.ipynb"))
        wrong = {}
        for path in paths:
            found = opened(nbformat.read(path, as_version=4), TASKS.get(path.name, ""))
            print(path.name, *(found or ["opens"]), flush=True)
            wrong |= {path.name: found} if found else {}
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
