"""The pages beside the main one: each is a notebook with a title, served under its name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_SHIPPED = _PACKAGE / "notebooks"  # in an installed package
_SOURCE = _PACKAGE.parent / "notebooks"  # in a checkout
FOLDER = _SHIPPED if _SHIPPED.is_dir() else _SOURCE
FIRST = "explorer.ipynb"
KERNEL = "margin-explorer"  # the folder of that name under voila/kernels
_KERNELSPEC = {"display_name": "Margin Explorer", "language": "python", "name": KERNEL}
# They fill the machine, or are to be written on: not for thirty visitors.
FOR_JUPYTER = {"audit.ipynb", "lab.ipynb", "sweep.ipynb"}


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


@cache
def pages() -> tuple[Page, ...]:
    """Return all pages but the main one, by name."""
    skipped = {FIRST, *FOR_JUPYTER}
    return tuple(
        Page(path.name, _title(path), path)
        for path in sorted(FOLDER.glob("*.ipynb"))
        if path.name not in skipped
    )


def _title(path: Path) -> str:
    """Return the first heading; of a page without words, the title in its metadata."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    words = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    lines = [line.strip() for cell in words for line in cell["source"]]
    named = str(notebook["metadata"].get("title", path.stem))
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), named)


def write_pages(folder: Path, cells: tuple[str, ...], opening: bool = False) -> Path:
    """Write all pages into a folder of ours, on our kernel; the first one has these cells alone.

    Args:
        folder: where to write.
        cells: the code of the first page.
        opening: whether a recording is played there while the kernel starts.

    Returns:
        The first one's path.
    """
    for page in pages():
        notebook = json.loads(page.path.read_text(encoding="utf-8"))
        notebook["metadata"]["kernelspec"] = _KERNELSPEC
        (folder / page.name).write_text(json.dumps(notebook), encoding="utf-8")
    first = folder / FIRST
    first.write_text(json.dumps(_notebook(cells, opening)), encoding="utf-8")
    return first


def _notebook(cells: tuple[str, ...], opening: bool) -> dict[str, object]:
    """Return a notebook of these code cells alone."""
    return {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"cell-{i}",
                "metadata": {},
                "outputs": [],
                "source": code,
            }
            for i, code in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": _KERNELSPEC,
            "opening": opening,
            "title": "Margin Explorer",
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
