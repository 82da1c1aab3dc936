"""How the site is built: `make docs` writes it to build/docs. No page asks another host."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer  # noqa: E402 (from this tree)

project = "Margin Explorer"
author = "Margin Explorer developers"
version = release = explorer.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "contents"  # the first page of the site is the story: scripts/playing.py

html_theme = "furo"  # its styles and scripts lie in the site, and its letters are the reader's own
html_title = f"Margin Explorer {version}"
html_copy_source = False
html_show_sphinx = False
smartquotes = False  # `--json` keeps its two hyphens

myst_heading_anchors = 3
autosummary_generate = False
default_role = "literal"  # docstrings mark code by one backtick
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("numba", "sklearn") if find_spec(name) is None]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # an attribute is listed once, with its class
python_maximum_signature_line_length = 88


def plain(_app: object, what: str, _name: str, _of: object, _by: object, lines: list[str]) -> None:
    """Let `|z|`, `x*` and `x_` of a docstring stand for themselves; what is in backticks is code.

    What a module's docstring indents is a formula or a line of code, and stays as it is. So does an
    example, from its first `>>>` to the next empty line.
    """
    made: list[str] = []
    inside = example = False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line))
        deeper = what == "module" and line.startswith(" ")
        if deeper and not inside:
            made += ["", "::", ""]
        elif inside and not deeper and line:
            made += [""]
        inside = deeper or (inside and not line)
        made.append(line if deeper or example else escaped(line))
    lines[:] = made


def escaped(line: str) -> str:
    """A line of a docstring in which only backticks mean anything."""
    parts = re.split(r"(`[^`]*`)", line)
    parts[::2] = [re.sub(r"([|*]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def short(_app: object, what: str, _name: str, obj: object, *_: object) -> tuple[str, str] | None:
    """Settings have a page of their own: their class is listed without them."""
    return ("(...)", "") if what == "class" and hasattr(obj, "__pydantic_config__") else None


def setup(app: Any) -> None:  # noqa: ANN401 (Sphinx is not there for the types)
    """Before napoleon, which reads the docstrings at priority 500."""
    app.connect("autodoc-process-docstring", plain, priority=400)
    app.connect("autodoc-process-signature", short)
