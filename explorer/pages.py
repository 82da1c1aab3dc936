"""The pages beside the first one: each a notebook with a title, served by Voila under its name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SHIPPED = Path(__file__).with_name("notebooks")  # in an installed package
_SOURCE = Path(__file__).resolve().parent.parent / "notebooks"  # in a checkout
FOLDER = _SHIPPED if _SHIPPED.is_dir() else _SOURCE
FIRST = "explorer.ipynb"
FOR_JUPYTER = {"sweep.ipynb"}  # fills the machine for minutes: not for thirty visitors


@dataclass(frozen=True)
class Page:
    """A notebook to serve.

    Attributes:
        name: its file name, and the end of its address, voila/render/<name>.
        title: its first heading.
        path: where it lies.
    """

    name: str
    title: str
    path: Path

    @property
    def lesson(self) -> bool:
        """Whether it is a lesson rather than an app."""
        return self.name.startswith("lesson-")


@cache
def pages() -> tuple[Page, ...]:
    """All pages but the first, apps before lessons, lessons in their order."""
    skipped = {FIRST, *FOR_JUPYTER}
    found = [
        Page(path.name, _title(path), path)
        for path in sorted(FOLDER.glob("*.ipynb"))
        if path.name not in skipped
    ]
    return tuple(sorted(found, key=lambda page: page.lesson))


def _title(path: Path) -> str:
    """The first heading; of a page without words, the title in its metadata."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    words = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    lines = [line.strip() for cell in words for line in cell["source"]]
    named = str(notebook["metadata"].get("title", path.stem))
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), named)
