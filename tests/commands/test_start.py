"""The command's start, the package that it starts, and what a pipe gets of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import explorer
import margin_explorer
from explorer.commands import READER_LEFT
from explorer.commands.base import print_table

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numpy", "scipy", "matplotlib", "tqdm")  # typer itself takes pydantic
LOADED = f"print([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)"
HELP = f"""
import sys
from explorer.cli import main
try:
    main()
finally:
    {LOADED}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def process(*words: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=ENVIRONMENT, text=True, check=False, timeout=300, **more
    )


# --- the start ------------------------------------------------------------------------------
@pytest.mark.parametrize("word", ["--help", "--version", "no-such-verb"])
def test_what_calls_no_verb_loads_no_library_of_the_engine(word) -> None:
    assert process("-c", HELP, word, capture_output=True).stderr.endswith("[]\n")


def test_importing_the_package_loads_nothing_until_a_name_is_asked_for() -> None:
    program = (
        f"import sys, explorer, margin_explorer; {LOADED}\n"
        "print({*explorer.__all__, 'app'} <= set(dir(explorer)))\n"
        f"{LOADED}\nfrom margin_explorer import *; print(preset('moons', n=4).n); {LOADED}"
    )
    done = process("-c", program, capture_output=True)
    before, listed, after = done.stderr.splitlines()
    assert before == listed == "[]" and "torch" in after and done.stdout == "True\n4\n"


# --- the package ----------------------------------------------------------------------------
def test_public_names_are_the_same_for_a_reader_of_types() -> None:
    tree = ast.parse(Path(explorer.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {(n.module, a.name) for n in typed.body for a in n.names}
    pages = {"app", "digits", "lessons", "membership"}
    assert {name for _, name in names} == {*explorer.__all__, *pages} - {"__version__"}
    for module, name in names:
        home = import_module(module)
        found = getattr(home, name, None) or import_module(f"{module}.{name}")
        assert getattr(explorer, name) is found


def test_the_other_name_is_the_same_package() -> None:
    assert margin_explorer.__all__ == explorer.__all__
    for name in explorer.__all__:
        assert getattr(margin_explorer, name) is getattr(explorer, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = margin_explorer.nothing
    shown = process("-m", "margin_explorer", "--version", capture_output=True).stdout
    assert shown.strip() == explorer.__version__


def test_both_packages_say_that_they_are_typed() -> None:
    for package in (explorer, margin_explorer):
        assert (Path(package.__file__).parent / "py.typed").is_file()


# --- pipes ----------------------------------------------------------------------------------
@pytest.mark.parametrize("words", [("settings", "kkt"), ("settings", "kkt", "--json")])
def test_a_reader_that_leaves_ends_the_command_without_a_word(words) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = process("-m", "explorer", *words, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (READER_LEFT, "")


def test_a_table_in_a_pipe_is_not_cut(capsys) -> None:
    cells = [f"{k:_>30}" for k in range(40)]
    print_table("", [str(k) for k in range(40)], [cells])
    shown = capsys.readouterr().out
    assert "…" not in shown and all(cell in shown for cell in cells)
