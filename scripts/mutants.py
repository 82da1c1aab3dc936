"""Damage the code in one place at a time, and print which damages no test sees.

python scripts/mutants.py 62 0        62 places, drawn with seed 0: minutes each on two cores
python scripts/mutants.py 10 0 explorer/engine/margin.py explorer/engine/exact

A place is an operator, a comparison or a number of `explorer/engine` or `explorer/research`. Its
damage is the usual one of mutation testing (DeMillo, Lipton and Sayward 1978): + for -, < for >=,
`and` for `or`, `max` for `min`, twice the number. The tests that import the damaged module, or the
folder that holds it, run until one fails. A damage that changes nothing that is promised survives,
so the list is to be read, not counted to zero. Loops of `kernels` compile anew for each damage.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("explorer/engine", "explorer/research")
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE,
    ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "all": "any", "any": "all",
         "minimum": "maximum", "maximum": "minimum"}  # fmt: skip
LEFT = (ast.Raise, ast.JoinedStr, ast.AnnAssign, ast.arguments, ast.Assert)
LIMIT_S = 600  # of the tests of one damage; arbitrary


@dataclass(frozen=True)
class Damage:
    """One damaged place: the file, the line, the text there and what takes its place."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    def damaged(self, source: bytes) -> bytes:
        """Return the file's bytes with the damage."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        """Return the place and both texts."""
        old = (ROOT / self.path).read_bytes()[self.start : self.end].decode()
        return f"{self.path}:{self.line}: {' '.join(old.split())}  ->  {self.new}"


def changed(node: ast.expr) -> Iterator[ast.expr]:
    """Yield a copy of an expression for each way to damage its outermost operation."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        text = isinstance(node, ast.BinOp) and any(
            isinstance(side, ast.Constant | ast.JoinedStr) and not number(side)
            for side in (node.left, node.right)
        )
        if not text:
            yield with_field(node, "op", SWAPPED[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield with_field(node, "ops", [SWAPPED[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in NAMES:
            field = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield with_field(node, "func", with_field(node.func, field, NAMES[name]))
    elif number(node) and node.value:  # type: ignore[attr-defined]
        yield ast.Constant(2 * node.value)  # type: ignore[attr-defined]


def number(node: ast.AST) -> bool:
    """Return whether an expression is a written number."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def with_field(node: ast.expr, field: str, value: object) -> ast.expr:
    """Return a copy of a node with another value of one field."""
    fields = {name: getattr(node, name, None) for name in node._fields}
    return type(node)(**{**fields, field: value})


def expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of function bodies that compute: no types, messages or decorators."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(
            child, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.arguments | ast.Assert
        ):
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from expressions(child)


def damages(path: Path) -> Iterator[Damage]:
    """Yield every damage of a file."""
    source = (ROOT / path).read_bytes()
    begins = [0]
    for row in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(row))
    functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    for node in (e for f in functions for s in f.body for e in expressions(s)):
        for new in changed(node):
            yield Damage(
                path,
                node.lineno,
                begins[node.lineno - 1] + node.col_offset,
                begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0),
                f"({ast.unparse(ast.fix_missing_locations(new))})",
            )


def tests_of(path: Path, folder: Path) -> list[str]:
    """Return the test files that import a module; if there is none, those of its folder."""
    parts = path.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    texts = {p: p.read_text() for p in sorted((folder / "tests").rglob("test_*.py"))}
    texts = {p: text for p, text in texts.items() if "browser" not in p.parts}
    for name in (module, module.rpartition(".")[0]):
        head, _, tail = name.rpartition(".")
        wanted = (f"{name} import", f"import {name}", f"from {head} import {tail}")
        found = [p for p, text in texts.items() if any(words in text for words in wanted)]
        if found:
            return [str(p.relative_to(folder)) for p in found]
    return ["tests/engine"]


def fails(folder: Path, tests: tuple[str, ...]) -> bool:
    """Return whether one of these tests fails in `folder`; one that hangs does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    try:
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", *tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


@cache
def passing(folder: Path, tests: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of these test files that pass on whole code: others can tell no damage."""
    return tests if not fails(folder, tests) else tuple(t for t in tests if not fails(folder, (t,)))


def seen(damage: Damage, folder: Path) -> bool:
    """Return whether a test of the damaged file in `folder` fails; the file is mended again."""
    tests = passing(folder, tuple(tests_of(damage.path, folder)))
    whole = (ROOT / damage.path).read_bytes()
    (folder / damage.path).write_bytes(damage.damaged(whole))
    try:
        return bool(tests) and fails(folder, tests)
    finally:
        (folder / damage.path).write_bytes(whole)


def main() -> None:
    """Draw the places, damage them in turn in a copy, and print what no test saw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=62)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("paths", nargs="*", default=FOLDERS)
    given = parser.parse_args()
    files = [f for p in given.paths for f in (sorted((ROOT / p).rglob("*.py")) or [ROOT / p])]
    pool = [damage for file in files for damage in damages(file.relative_to(ROOT))]
    drawn = random.Random(given.seed).sample(pool, min(given.count, len(pool)))
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "copy"
        kept_out = shutil.ignore_patterns(".git", ".venv*", "build", "*_cache")
        shutil.copytree(ROOT, folder, ignore=kept_out)
        for damage in drawn:
            caught = seen(damage, folder)
            missed += not caught
            print("seen    " if caught else "SURVIVES", damage, flush=True)
    print(f"{len(drawn) - missed} of {len(drawn)} damages seen, of {len(pool)} places")


if __name__ == "__main__":
    main()
