"""Code in strings, notebooks and pages of docs finds what it imports: a browser says so late."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("benchmarks", "docs", "explorer", "notebooks", "scripts", "tests")
FILES = sorted(
    path
    for folder in FOLDERS
    for kind in ("*.py", "*.md", "*.ipynb")
    for path in (ROOT / folder).rglob(kind)
    if ".ipynb_checkpoints" not in path.parts
)
# What a test says to show that it is not there.
SAID_ABSENT = {"explorer nothing", "explorer.ipynb"}
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"(?:^|;)\s*((?:from|import) (?:margin_)?explorer\b[^;\n(]*)", re.MULTILINE)


def strings(code: str) -> Iterator[str]:
    """Yield the strings of a file, and a formatted one with `None` for what is put into it."""
    inside = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield "".join(p.value if isinstance(p, ast.Constant) else "None" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in inside:
                yield node.value


def pieces(path: Path) -> list[str]:
    """Return what may be code inside a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return FENCED.findall(text)
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return list(strings(text))


def parsed(piece: str) -> ast.Module:
    """Return the tree of a piece; of one that is not whole, the imports of this package alone."""
    try:
        return ast.parse(textwrap.dedent(piece))
    except (SyntaxError, ValueError):
        found = OURS.findall(piece)
    try:
        return ast.parse("\n".join(line.strip() for line in found))
    except SyntaxError:  # a sentence
        return ast.parse("")


def imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield each import of this package: its module, what it takes of that, and its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                module = node.module if isinstance(node, ast.ImportFrom) else alias.name
                member = alias.name if isinstance(node, ast.ImportFrom) else ""
                if re.match(r"(margin_)?explorer\b", module or ""):
                    whole = alias.asname or alias.name.partition(".")[0]
                    yield str(module), member, whole


def value(module: str, member: str) -> object:
    """Return what an import brings; raises ImportError or AttributeError where nothing is."""
    owner = import_module(module)
    if not member or member == "*":
        return owner
    return getattr(owner, member) if hasattr(owner, member) else import_module(f"{module}.{member}")


def missing(codes: list[str]) -> Iterator[str]:
    """Yield imports that bring nothing, and names that are asked of a module and are not there.

    What one piece imports, another may use: a test joins them.
    """
    trees = [parsed(code) for code in codes]
    known: dict[str, list[object]] = {}
    for tree in trees:
        for module, member, name in imported(tree):
            try:
                known.setdefault(name, []).append(value(module, member))
            except (ImportError, AttributeError):
                yield f"{module} {member}"
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owners = known.get(node.value.id, [])
                modules = [owner for owner in owners if isinstance(owner, ModuleType)]
                if modules and not any(hasattr(owner, node.attr) for owner in modules):
                    yield ast.unparse(node)


def test_code_in_strings_finds_what_it_imports() -> None:
    files = [path for path in FILES if path != Path(__file__)]
    found = {str(p.relative_to(ROOT)): set(missing(pieces(p))) - SAID_ABSENT for p in files}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "'from explorer.page.stages.train import jump_to_exact'",
        "'import explorer.nothing'",
        "'from explorer.page import play; play.nothing()'",
        "f'from explorer import nothing; print({3})'",
        "'from explorer import nothing\\nprint({!r'",  # a part: the test appends the rest
        "'from explorer.page import play', 'play.nothing()'",
    ],
)
def test_what_is_not_there_is_seen(code) -> None:
    assert list(missing(list(strings(code))))
