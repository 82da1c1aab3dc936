"""Exact English is asserted in one file; no sentence or name of the package is a puzzle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MOST = 2  # words of English that an assertion may compare
WORD = re.compile(r"[(“‘\"']*[A-Za-z][A-Za-z’'-]*[.,;:!?)”\"']*")
# "A label that is none of them": the reader has to ask what. "There is none" is plain.
PUZZLE = re.compile(
    r"\b(?![Tt]here\b)\w+\s+(# )?(is|are|was|were)\s+(# )?none\b|\bleft\s+to\s+ask\s+for\b"
)
# Is a function named `drawn` a command or a value? `draw` and `drawing` say it.
PARTICIPLE = re.compile(
    "_?([a-z]+(?<!e)ed|[a-z]{2,}[dkoprstuvz]en|found|grown|held|kept|known|laid|left|lost|made|"
    "met|paid|drawn|said|seen|sent|shown|spent|thrown|told|torn|worn|built|brought)"
)
NO_PARTICIPLE = {"open", "_open", "reopen"}
# Properties and methods that tell whether, which or how much: adjectives, not commands.
FLAGS = set(
    "diverged fitted found kept left matched merged met needed pinned proved proven rolled "
    "trained".split()
)
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# Texts that are no sentences: letters, a repr, a declaration of the test's own, a line of code.
ALLOWED = {
    "test_files.py": ("a b [2J c",),
    "test_network.py": ("Network(2-6-1, biases in several layers, 1 output, float32)",),
    "test_settings.py": ("Rate of x. How fast.",),
    "test_serve.py": ("from explorer import",),
}


def literal(node: ast.expr) -> str:
    """A string, or the fixed parts of an f-string; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else " 0 " for v in node.values]
        return "".join(map(str, parts))
    return ""


def texts(asserted: ast.expr) -> Iterator[str]:
    """What is compared in an assertion, or asked for at an end of a text."""
    for node in ast.walk(asserted):
        if isinstance(node, ast.Compare):
            yield from (literal(side) for side in (node.left, *node.comparators))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "count"):
                yield from map(literal, node.args)


def sentences(source: str) -> list[tuple[int, str]]:
    """Line and text of the assertions that compare more than `MOST` words of English."""
    return [
        (node.lineno, text)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        for text in texts(node.test)
        if sum(bool(WORD.fullmatch(word)) for word in text.split()) > MOST
    ]


def test_exact_english_is_asserted_in_one_file(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{line}: {text}"
        for path in sorted((root / "tests").rglob("test_*.py"))
        for line, text in sentences(path.read_text(encoding="utf-8"))
        if text not in ALLOWED.get(path.name, ())
    ]
    assert not found, "\n".join([f"{len(found)} assertions on English:", *found])


def test_a_sentence_is_seen_however_it_is_compared() -> None:
    for text in ('"one two three" in x', 'x == f"{n} points are near"', 'x.startswith("a b c.")',
                 'not ("The margin is" in x and y)'):  # fmt: skip
        assert len(sentences(f"assert {text}")) == 1, text
    for text in ('"one two" in x', '"--data points.csv" in x', "x == y", 'f("one two three")'):
        assert not sentences(f"assert {text}"), text


def puzzles(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of puzzling phrases, and of docstrings of one word."""
    for found in PUZZLE.finditer(source):
        line = source.count("\n", 0, found.start())
        yield line + 1, source.splitlines()[line].strip()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and len((ast.get_docstring(node) or "").split()) == 1:
            yield getattr(node, "lineno", 1), f'"""{ast.get_docstring(node)}"""'


def test_no_sentence_is_a_puzzle(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{line}: {text}"
        for path in sorted((root / "explorer").rglob("*.py"))
        for line, text in sorted(puzzles(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join([f"{len(found)} puzzles:", *found])


def test_a_puzzle_is_seen_across_lines() -> None:
    for text in ("'places that are none'", "# a label that is none of\n# them", "# it is\n# none",
                 "'what is left to ask for'", "class A:\n    'Empty.'"):  # fmt: skip
        assert len(list(puzzles(text))) == 1, text
    for text in ("# There is none", "# where there\n# are none", "x is None", "'none of them'"):
        assert not list(puzzles(text)), text


def participles(source: str) -> set[str]:
    """Names of functions that are a bare participle."""
    names = {n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)}
    return {name for name in names - NO_PARTICIPLE if PARTICIPLE.fullmatch(name)}


def test_a_function_is_no_bare_participle(root: Path) -> None:
    found = {
        name: path.relative_to(root).as_posix()
        for path in sorted((root / "explorer").rglob("*.py"))
        for name in participles(path.read_text(encoding="utf-8"))
    }
    assert {name: path for name, path in found.items() if name not in FLAGS} == {}


def test_a_bare_participle_is_seen() -> None:
    for name in ("drawn", "_needed", "taken", "broken", "told"):
        assert participles(f"class A:\n    def {name}(self): ...") == {name}
    for name in ("draw", "drawn_points", "open", "seed", "feed", "need", "length", "golden_text"):
        assert not participles(f"def {name}(): ..."), name
