"""Write the generated pages of the docs: the command line and the API.

`python scripts/reference.py` writes docs/commands.md, docs/api.md and docs/engine.md. The tables of
settings are made by `margin-explorer settings --markdown`.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer  # noqa: E402
import explorer.engine  # noqa: E402
from explorer.cli import app, load_verb  # noqa: E402
from explorer.commands import VERBS  # noqa: E402

MADE = "<!-- Made by `python scripts/reference.py`: change the code, not this page. -->"
# Plain values have no docstring of their own.
CONSTANTS = {
    "PRESETS": "every preset by its key, with its defaults and bounds.",
    "RADII": "the radii at which claims are scored, in units of the plane.",
}
OWN = "explorer.engine.kernels."  # how the steps are made fast: nothing to call


def commands() -> str:
    """The page of the command line: each verb with what it takes."""
    lines = ["# Command line", "", MADE, "", paragraph(app.info.help), ""]
    for name in VERBS:
        verb = load_verb(name)
        words = " ".join(p.name.upper() for p in verb.params if p.param_type_name == "argument")
        lines += [f"## {name}", "", paragraph(verb.help), ""]
        lines += [f"    margin-explorer {name} {words}".rstrip(), ""]
        lines += ["| option | meaning | default |", "|---|---|---|"]
        lines += [row(p) for p in verb.params if not p.hidden]
        lines += [""]
    return "\n".join(lines)


def row(param: object) -> str:
    """One argument or option of a verb, as a row of its table."""
    if param.param_type_name == "argument":
        name = param.name.upper()
    else:
        name = ", ".join(f"`{o}`" for o in (*param.opts, *param.secondary_opts))
    shown = "required" if param.required else default(param.default)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (name, said(param), shown)) + " |"


def said(param: object) -> str:
    """What the help says of it, and what it may be."""
    kind = param.type_descriptor.annotation
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    listed = f" One of: {', '.join(map(str, choices))}." if choices else ""
    return (paragraph(param.help) + listed).strip()


def default(value: object) -> str:
    """A default in words: nothing where the option may be left out."""
    if value is None or value == () or callable(value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(getattr(value, "value", value)).replace(str(Path.cwd()), ".")


def paragraph(text: str | None) -> str:
    """Words as they stand, on one line."""
    return " ".join((text or "").split())


def api() -> str:
    """The page of what `explorer` exports, each name with the first line of its docstring."""
    lines = ["# What `explorer` exports", "", MADE, ""]
    lines += ["Each of these is imported from `explorer`; more of each stands in",
              "[the engine](engine.md). `app`, `membership` and `digits` show the pages in",
              "a notebook, and `figure` [draws a result](build.md), with the extra “app”.",
              ""]  # fmt: skip
    lines += [*(f"- `{name}`: {what}" for name, what in CONSTANTS.items()), ""]
    public = [name for name in explorer.__all__ if not name.startswith("__")]
    names = [full(name) for name in public if name not in CONSTANTS]
    return "\n".join([*lines, *directive("autosummary", ":nosignatures:", "", *names), ""])


def full(name: str) -> str:
    """Where a name of the package is documented: in its own module, constants in the package."""
    value = getattr(explorer, name)
    if inspect.ismodule(value):
        return value.__name__
    home = getattr(value, "__module__", "")
    named = inspect.isclass(value) or inspect.isfunction(value)
    return f"~{home}.{name}" if named and home.startswith("explorer") else f"~explorer.{name}"


def engine() -> str:
    """The page of the engine's modules, with every public function and class."""
    lines = ["# The engine", "", MADE, ""]
    for module in modules():
        lines += [f"## {module.removeprefix('explorer.engine.')}", ""]
        package, _, name = module.rpartition(".")
        import_module(module)
        alone = inspect.ismodule(getattr(import_module(package), name))  # no function is named so
        options = [":members:", ":ignore-module-all:", *([] if alone else [":no-index:"])]
        lines += [*directive(f"automodule:: {module}", *options), ""]
    return "\n".join(lines)


def modules() -> list[str]:
    """Every module of the engine but those of its kernels."""
    found = pkgutil.walk_packages(explorer.engine.__path__, "explorer.engine.")
    return sorted(m.name for m in found if not f"{m.name}.".startswith(OWN))


def directive(head: str, *body: str) -> list[str]:
    """A directive of Sphinx within Markdown."""
    head = head if "::" in head else f"{head}::"
    return ["```{eval-rst}", f".. {head}", *(f"   {line}".rstrip() for line in body), "```"]


PAGES = {"commands.md": commands, "api.md": api, "engine.md": engine}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (ROOT / "docs" / name).write_text(made(), encoding="utf-8")
