"""The house keeps its walls: imports, sizes, thin notebooks, no foreign host, papers at hand."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.membership import MembershipApp
from explorer.page.apps.page import SidePage
from explorer.research.pages import pages

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "explorer").rglob("*.py"))
NOTEBOOKS = sorted(
    path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SERVED = sorted(
    path
    for folder in ("explorer/serve", "explorer")
    for kind in ("*.j2", "*.html", "*.css", "*.js")
    for path in (ROOT / folder).rglob(kind)
)
LONGEST_NOTEBOOK = 25  # lines of code; CONTRIBUTING.md
# A name of the vocabulary of drawings, and where a message says that files can be had; nothing is
# asked from there.
NAMES_NOT_ADDRESSES = {"www.w3.org", "ossci-datasets.s3.amazonaws.com", "www.cs.toronto.edu"}
WIDGET_LIBRARIES = ("IPython", "anywidget", "contourpy", "ipywidgets", "traitlets")
EXTRAS = ("matplotlib", "pandas", "rich", "safetensors", "tqdm", "typer", "voila")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_imports_keep_their_contracts() -> None:
    command = "from importlinter.cli import lint_imports_command as lint; lint()"
    result = run("-c", command, "--no-cache")
    assert result.returncode == 0, result.stdout + result.stderr


def test_package_imports_without_any_extra() -> None:
    # What stands in the base dependencies must do: everything else is made unimportable.
    blocked = (*WIDGET_LIBRARIES, *EXTRAS)
    program = "\n".join(
        [
            "import sys",
            f"for name in {blocked!r}: sys.modules[name] = None",
            "import explorer",
            "import explorer.engine",
            "print(explorer.__version__)",
        ]
    )
    result = run("-c", program)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == project()["version"]


def test_attacks_never_name_the_truth() -> None:
    # The contract above follows imports at module level; this one sees late imports by name too.
    for path in sorted((ROOT / "explorer/engine/attacks").glob("*.py")):
        named = {
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (getattr(node, "module", None) or "", *(a.name for a in node.names))
        }
        assert not named & {"explorer.engine.data", "explorer.engine.scoring", "explorer"}, path


def unreadable(text: str) -> Iterator[str]:
    """What keeps a file of the package from being read: how long it is does not."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"line {node.lineno}: a relative import"


def unfit(text: str) -> Iterator[str]:
    """What a notebook holds beside words and a few lines of code."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    code = ["".join(cell["source"]) for cell in cells]
    lines = [line for source in code for line in source.splitlines() if line.strip()]
    if len(lines) > LONGEST_NOTEBOOK:
        yield f"{len(lines)} lines of code; at most {LONGEST_NOTEBOOK}"
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if any(isinstance(node, defined) for source in code for node in ast.walk(ast.parse(source))):
        yield "a function or a class; the app is in the package"
    if any(cell["outputs"] or cell["execution_count"] is not None for cell in cells):
        yield "the output of a run"


def of_session(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is a session, or a part of one; `names` hold one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr == "session":
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def holders(tree: ast.AST) -> set[str]:
    """Names that are given a session or a part of one."""
    names = {"session"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                names |= {
                    t.id for t, v in pairs if isinstance(t, ast.Name) and of_session(v, names)
                }
    return names


def writes(text: str) -> Iterator[str]:
    """Where a panel changes the session by anything but a command."""
    tree = ast.parse(text)
    names = holders(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if of_session(node.value, names):
                yield f"line {node.lineno}: writes {ast.unparse(node)}; call a command"
        elif isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            firsts = [item for a in node.args for item in getattr(a, "elts", [a])[:1]]
            if call.endswith(("setattr", "link")) and any(of_session(f, names) for f in firsts):
                yield f"line {node.lineno}: writes by {call}; call a command"
            inside = isinstance(node.func, ast.Attribute) and of_session(node.func.value, names)
            if inside and (
                call.endswith((".append", ".put", ".set_trait"))
                or (call.endswith(".show") and node.keywords)
            ):
                yield f"line {node.lineno}: changes the session by {call}; call a command"


def offenders(paths: list[Path], look: Callable[[str], Iterable[str]]) -> list[str]:
    """Every file with what is wrong in it, so that one run names them all."""
    assert paths, "nothing to look at: the files have moved"
    return [f"{relative(p)}: {why}" for p in paths for why in look(p.read_text(encoding="utf-8"))]


def test_files_stay_readable() -> None:
    assert offenders(SOURCES, unreadable) == []
    assert list(unreadable("from . import a\n"))


def test_no_panel_writes_the_session() -> None:
    page = ROOT / "explorer" / "page"
    folders = ("panels", "plane", "controls", "view", "words", "apps")
    views = [path for folder in folders for path in sorted((page / folder).rglob("*.py"))]
    views += [path for path in sorted(page.rglob("*panel.py")) if path not in views]
    assert offenders(views, writes) == []
    broken = """
self.session.seed, said = 3, ""
session.branch.last = moment
session.seed += 1
setattr(self.session, name, value)
link((session, "seed"), (widget, "value"))
self.session.show(arena=shown)
page, line = self.session, session.branch.attack
page.put(status=over)
line.append(state)
"""
    assert len(list(writes(broken))) == 8
    assert not list(writes("self.session = session; now = session.frame; session.show()"))


OF_TORCH = "_make_wrapper_subclass"  # the only name that torch has for it; see `pretend`


def private_names(text: str) -> Iterator[str]:
    """Private names of other objects and modules: read, imported, or replaced by their address."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="os" | "self")):  # os._exit; the test's own object
                continue
            case ast.Attribute(attr=name):
                found = [name]
            case ast.ImportFrom(names=names):
                found = [alias.name for alias in names]
            case ast.Call(func=ast.Name(id="replace"), keywords=fields):
                found = [str(field.arg) for field in fields]
            case (
                ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"))
                | ast.Call(func=ast.Attribute(attr="setattr" | "delattr"))
            ):
                given = [a.value for a in node.args if isinstance(a, ast.Constant)]
                found = [part for a in given if isinstance(a, str) for part in a.split(".")]
            case _:
                continue
        for name in found:
            if re.fullmatch(r"_[a-zA-Z]\w*", name) and name != OF_TORCH:
                yield f"line {node.lineno}: {name}"


def test_no_test_names_what_is_private() -> None:
    """A test asks what a user or a caller can ask; else it holds the code, and no law."""
    assert offenders(TESTS, private_names) == []
    for text in ("a._b", "from a import _b", "replace(a, _b=1)", "getattr(a, '_b')",
                 "patch.setattr('a._b.c', 1)", "patch.setattr(a, '_b', 1)"):  # fmt: skip
        assert list(private_names(text)) == ["line 1: _b"], text


def test_notebooks_are_words_and_a_few_lines_of_code() -> None:
    assert offenders(NOTEBOOKS, unfit) == []
    cell = {"cell_type": "code", "source": ["def f(): ...\n"] * 26, "outputs": [1]}
    assert len(list(unfit(json.dumps({"cells": [{**cell, "execution_count": 1}]})))) == 3


def test_the_first_page_is_the_notebook_of_its_name() -> None:
    from explorer.serve.server import CELLS

    notebook = json.loads((ROOT / "notebooks" / "explorer.ipynb").read_text(encoding="utf-8"))
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert tuple("".join(cell["source"]) for cell in code) == CELLS


def test_every_page_has_a_title() -> None:
    names = [page.name for page in pages()]
    assert set(names) == {p.name for p in (ROOT / "notebooks").glob("*.ipynb")} - {
        "audit.ipynb", "explorer.ipynb", "lab.ipynb", "sweep.ipynb"
    }  # fmt: skip
    assert all(page.title and not page.title.endswith(".ipynb") for page in pages())


@pytest.mark.parametrize("kind", [DigitsApp, MembershipApp])
def test_a_notebook_asks_the_question_of_its_page(kind: type[SidePage]) -> None:
    path = ROOT / "notebooks" / f"{kind.__module__.rpartition('.')[2]}.ipynb"
    assert json.loads(path.read_text(encoding="utf-8"))["metadata"]["question"] == kind.question


def test_what_the_page_is_made_of_names_no_foreign_host() -> None:
    assert SERVED, "the template has moved; look for it where it is"
    for path in (*SERVED, *SOURCES):
        text = path.read_text(encoding="utf-8")
        if path in SOURCES:
            # In Python only strings reach a page; citations in docstrings may give addresses.
            text = "\n".join(strings_that_are_used(text))
        hosts = set(re.findall(r"(?:https?:|wss?:|[\"'(]\s*)//([\w-]+(?:\.[\w-]+)+)", text))
        assert hosts <= NAMES_NOT_ADDRESSES, f"{relative(path)} names {hosts}"


def strings_that_are_used(text: str) -> list[str]:
    tree = ast.parse(text)
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle
    ]


def project() -> dict[str, str]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def test_version_is_the_same_everywhere() -> None:
    version = project()["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == version
    package = (ROOT / "explorer/__init__.py").read_text(encoding="utf-8")
    assert re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)[1] == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LICENSE", "BSD 3-Clause"),
        ("README.md", "make app"),
        ("CHANGELOG.md", "Unreleased"),
        ("CONTRIBUTING.md", "make check"),
        ("CITATION.cff", "cff-version"),
        ("SECURITY.md", "toy"),
        ("binder/requirements.txt", "constraints.txt"),
    ],
)
def test_papers_are_at_hand(name: str, words: str) -> None:
    assert words in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", [".ci/run", "scripts/chromium.sh", "scripts/arithmetics.sh", "binder/start"]
)
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert subprocess.run(["bash", "-n", str(ROOT / name)], check=False).returncode == 0


def test_constraints_pin_every_dependency_we_name() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    canonical = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = list(extras["dependencies"])
    for group in extras["optional-dependencies"].values():
        named += group
    for requirement in named:
        name = re.match(r"[\w.-]+", requirement)[0]
        assert name == "margin-explorer" or name in canonical, f"{name} is not pinned"


def test_the_source_archive_holds_the_whole_tree_and_an_image_what_it_needs() -> None:
    """What git keeps is in the sdist; what it ignores, and its own folder, is not in an image."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    there = {line.partition("/")[0] for line in told.stdout.splitlines()}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert there == {name.removeprefix("/") for name in packed}
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {".git", *ignored} <= set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
