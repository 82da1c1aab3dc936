"""Every public name says what it returns, shapes, units, errors and source, and shows an example.

Public are the names that `explorer` exports, what the modules among them export, the attributes of
these classes, and the functions that pages of docs/ tell a reader of Python to call.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import explorer

ROOT = Path(__file__).resolve().parents[1]
DOCS = tuple(sorted((ROOT / "docs").glob("*.md")))

# What docs/ tells a reader to call beside the names of `explorer`.
TOLD = {
    "explorer.widgets": "DrawingPad Landscape Margins Needles Plane Recall Transport",
    "explorer.engine.attacks.attack": "Attack",
    "explorer.engine.attacks.claims": "merge_candidates",
    "explorer.engine.attacks.shapes": "Shapes places",
    "explorer.engine.data.images": "draw",
    "explorer.engine.images": "ncc_distance ssim vote_image image_scores image_verdict",
    "explorer.engine.membership.law": (
        "MemberRule Isolation bounded_margin decide isolation known_margin leaked_point"
    ),
    "explorer.engine.multipliers": "fit_multipliers",
    "explorer.engine.settings": "setting settings",
    "explorer.engine.sizes": "Size",
    "explorer.research.sweep": "experiments processes sweep threads",
}

# A docstring of a function begins with one of these. A property is named like a noun.
VERBS = "Return Yield Raise Draw Match Merge Read Run Write Pause Close".split()

# Formulas whose first arguments do not say so: beside functions of tensors and networks.
FORMULAS = (
    "Network Network.order Certificate Exact KKTConfig KKTConfig.from_paper Target.of Target.mass "
    "TrainState.gamma_bar TrainState.gamma_tilde KKTConfig.alpha Verdict.least_p "
    "heldout training.init training.step training.refresh kkt.init kkt.step kkt.report"
).split()

# Functions of tensors or networks that compute nothing that has a source.
PLAIN = ("places",)

# What an argument of this name is counted in.
UNITS = {
    "angle": "radians",
    "noise": "units of the plane|draw of noise",
    "radius": "units of the data",
    "radii": "units of the data",
    "margin": "units of Phi",
    "seconds": "CPU time",
}


@cache
def public() -> dict[str, Any]:
    """Every public class, function, method and property, by the name a reader knows."""
    found: dict[str, Any] = {}
    for name in explorer.__all__:
        value = getattr(explorer, name)
        if isinstance(value, ModuleType):
            found |= {f"{name}.{n}": getattr(value, n) for n in value.__all__ if n not in found}
        else:
            found[name] = value
    for module, names in TOLD.items():
        found |= {n: getattr(import_module(module), n) for n in names.split()}
    found = {n: v for n, v in found.items() if inspect.isclass(v) or inspect.isfunction(v)}
    found = {n: v for n, v in found.items() if n.rpartition(".")[2] not in found or "." not in n}
    for name, kind in [(n, v) for n, v in found.items() if inspect.isclass(v)]:
        found |= {f"{name}.{n}": v for n, v in members(kind)}
    return found


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, those of its parents in the package too.

    A field whose default is a function is told among the attributes.
    """
    for owner in kind.__mro__:
        if owner.__module__.startswith("explorer"):
            for name, value in vars(owner).items():
                told = name.startswith("_") or name in getattr(kind, "__dataclass_fields__", ())
                if not told and function_of(value) is not None:
                    yield name, value


def function_of(value: Any) -> Any:
    """What stands behind a function, a method or a property; None for anything else."""
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    value = getattr(value, "func", value)  # of a cached property
    return value if inspect.isfunction(value) else None


def is_property(value: Any) -> bool:
    return isinstance(value, property) or hasattr(value, "func")


def words(value: Any) -> str:
    made = value if inspect.isclass(value) else function_of(value)
    return inspect.cleandoc(made.__doc__ or "")


def parameters(value: Any) -> dict[str, str]:
    """The arguments of a function with their annotations as they are written."""
    if inspect.isclass(value) or is_property(value):
        return {}
    made = inspect.unwrap(function_of(value))
    found = [(n, str(p.annotation)) for n, p in inspect.signature(made).parameters.items()]
    method = "." in made.__qualname__ and not isinstance(value, staticmethod)
    return dict(found[1:] if method else found)


def section(text: str, title: str) -> str:
    """The indented lines below `title:`; an empty text where there is no such section."""
    found = re.search(rf"^{title}:\n((?:(?: +.*)?\n)*(?: +.*)?)", text, re.MULTILINE)
    return found.group(1) if found else ""


def entries(text: str, title: str) -> dict[str, str]:
    """A section of named entries, each on its own line or more."""
    body = textwrap.dedent(section(text, title))
    pairs = re.findall(r"^(\w+): ((?:.|\n(?= ))*)", body, re.MULTILINE)
    return {name: " ".join(of.split()) for name, of in pairs}


def raised(value: Any) -> set[str]:
    """The exceptions that a function raises itself or by a helper of its module or class.

    A class raises what its instances raise when they are made.
    """
    kind = inspect.isclass(value)
    made = vars(value).get("__post_init__") if kind else inspect.unwrap(function_of(value))
    return set(_raised(made, value if kind else None, set())) if made else set()


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function but those of functions within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from own_nodes(child)


def _raised(made: Any, owner: type | None, seen: set[Any]) -> Iterator[str]:
    seen.add(made)
    scope = made.__globals__
    owner = owner or getattr(inspect.getmodule(made), made.__qualname__.partition(".")[0], None)
    for node in own_nodes(ast.parse(textwrap.dedent(inspect.getsource(made))).body[0]):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            kind = scope.get(name, getattr(builtins, name, None))
            if inspect.isclass(kind) and issubclass(kind, Exception):
                yield name
        if isinstance(node, ast.Call):
            called = None
            if isinstance(node.func, ast.Name):
                called = scope.get(node.func.id)
            elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
                called = vars(owner).get(node.func.attr) if inspect.isclass(owner) else None
            if inspect.isfunction(called) and called not in seen:
                called = inspect.unwrap(called)
                if called.__module__ == made.__module__:
                    yield from _raised(called, None, seen)


def wrong(name: str) -> Iterator[str]:
    """What the docstring of a public name leaves out."""
    value = public()[name]
    text = words(value)
    if not text:
        yield "has no docstring"
        return
    first = text.split("\n")[0]
    given = parameters(value)
    called = not inspect.isclass(value) and not is_property(value)
    if not first.endswith((".", "...")):
        yield "its first line is no sentence"
    if ";" in re.sub(r"\(.*?\)", "", first) and called:
        yield "its first line has several clauses"
    if called and first.split()[0] not in VERBS:
        yield f"begins with {first.split()[0]!r}, which is none of {', '.join(VERBS)}"
    yield from wrong_arguments(text, given)
    yield from wrong_attributes(text, value)
    made = None if inspect.isclass(value) else inspect.signature(function_of(value))
    returned = str(made.return_annotation) if made else "None"
    said = section(text, "Returns") or section(text, "Yields")
    if given and returned != "None" and not said:
        yield "does not say what it returns"
    if returned == "Tensor" and "(" not in (said if given else text):
        yield "does not say the shape that it returns"
    missing = raised(value) - set(entries(text, "Raises"))
    if missing:
        yield f"raises {', '.join(sorted(missing))} and does not say so"
    formula = {"Tensor", "Network"} & {a.removesuffix(" | None") for a in given.values()}
    if name in FORMULAS or (formula and "." not in name and name not in PLAIN):
        if not re.search(r"^Source: .*(\b(19|20)\d\d\b|\bown\b)", text, re.MULTILINE):
            yield "names no source"
    if "." not in name or name.split(".")[0] in ("kkt", "training"):
        if not (section(text, "Example").strip().startswith(">>>") or shown_with(name, value)):
            yield "shows no example"


def shown_with(name: str, value: Any) -> bool:
    """Whether the module that holds a function calls it in an example of all of its functions."""
    text = inspect.getdoc(inspect.getmodule(value)) or ""
    return re.search(rf"^ *>>> .*\b{re.escape(name)}\(", text, re.MULTILINE) is not None


def wrong_arguments(text: str, given: dict[str, str]) -> Iterator[str]:
    said = entries(text, "Args")
    for name in given.keys() - said.keys():
        yield f"does not say what {name} is"
    for name in said.keys() - given.keys():
        yield f"speaks of an argument {name} that it does not take"
    for name in given.keys() & said.keys():
        if given[name].startswith("Tensor") and not re.search(r"\([\w., /]*\)", said[name]):
            yield f"does not say the shape of {name}"
        if not re.search(UNITS.get(name, ""), said[name]):
            yield f"does not say what {name} is counted in"


def wrong_attributes(text: str, value: Any) -> Iterator[str]:
    """Fields of a dataclass; settings are declared at the field itself."""
    if not is_dataclass(value) or hasattr(value, "__pydantic_config__"):
        return
    said = entries(text, "Attributes")
    for name, kind in inspect.get_annotations(value).items():
        if name.startswith("_"):
            continue
        if name not in said:
            yield f"does not say what {name} is"
        elif kind == "Tensor" and not re.search(r"\([\w., /]*\)", said[name]):
            yield f"does not say the shape of {name}"


def test_every_public_name_has_a_whole_docstring() -> None:
    missing = [f"{name} {what}" for name in public() for what in wrong(name)]
    assert not missing, "\n" + "\n".join(missing)


def test_public_are_more_than_the_exports() -> None:
    found = public()
    assert {
        "preset",
        "Network.order",
        "Dataset.with_point_at",
        "kkt.single_states",
        "training.refresh",
    } <= {*found}
    assert set(FORMULAS) <= {*found}


def examples() -> list[doctest.DocTest]:
    """The examples of every public name and of their modules, each to be run on its own."""
    finder = doctest.DocTestFinder(recurse=False)
    made = {n: v if inspect.isclass(v) else function_of(v) for n, v in public().items()}
    modules = {inspect.getmodule(value) for value in made.values()}
    made |= {module.__name__: module for module in modules if module}
    found = [t for n, v in made.items() for t in finder.find(v, n, module=False, globs={})]
    return sorted((test for test in found if test.examples), key=lambda test: test.name)


def run(test: doctest.DocTest) -> None:
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_every_example_prints_what_it_says(test: doctest.DocTest) -> None:
    run(test)


def test_every_block_of_python_in_the_docs_is_run() -> None:
    """As an example that prints, or as the sample of an attack, which `test_plugin` runs."""
    sample = (ROOT / "tests" / "plugin" / "sample_attack.py").read_text()
    blocks = [
        (p, b) for p in DOCS for b in re.findall(r"```python\n(.*?)```", p.read_text(), re.DOTALL)
    ]
    assert blocks
    for page, block in blocks:
        if ">>>" in block:
            run(doctest.DocTestParser().get_doctest(block, {}, page.name, str(page), 0))
        else:
            assert block == sample, page
