"""What the pages of docs/ name is there: commands, files, Python names with values, controls."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import pkgutil
import re
import runpy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from anywidget import AnyWidget
from typer.testing import CliRunner

import explorer
from benchmarks import suite
from explorer.cli import app as command
from explorer.cli import load_verb
from explorer.commands import VERBS
from explorer.engine.data import preset
from explorer.engine.roster import ROSTER
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.explorer import FOLDS, App
from explorer.page.apps.membership import MembershipApp
from explorer.page.controls.control import Control
from explorer.page.controls.settings import in_form, items_of
from explorer.page.frame import STAGES
from explorer.page.keeping.words import BUTTONS
from explorer.page.lessons.file import contents
from explorer.page.stages.train import commands as train
from scripts import reference

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = tuple(sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")))
CONFIGS = (TrainConfig, *(entry.config for entry in ROSTER.values()))


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def quoted(page: str) -> list[str]:
    """What stands in backticks, and each line of an indented block that is a command or code."""
    text = text_of(page)
    blocks = re.findall(r"^ {4}((?:margin-explorer|python|make|from) .*)$", text, re.MULTILINE)
    return [*re.findall(r"`([^`\n]+)`", text), *blocks]


@cache
def modules() -> list[ModuleType]:
    """The suite, and all of the package but the server's settings, which no module imports."""
    found = pkgutil.walk_packages(explorer.__path__, "explorer.")
    names = [m.name for m in found if not m.name.startswith("explorer.serve.voila")]
    return [explorer, suite, *map(importlib.import_module, names)]


def values(name: str) -> list[object]:
    """What a name or a dotted name stands for in the package: values, and defaults of fields."""
    head, *rest = name.split(".")
    found: list[object] = []
    for module in modules():
        if hasattr(module, head):
            found.append(getattr(module, head))
    for part in rest:
        found = [v for owner in found for v in members(owner, part)]
    if not rest:
        found += [v for owner in owners() for v in members(owner, head)]
    return found


@cache
def owners() -> list[type]:
    """Every public class of settings: a field may be named without its class."""
    made = {v for m in modules() for v in vars(m).values() if isinstance(v, type)}
    return [c for c in made if is_dataclass(c) and c.__module__.startswith("explorer")]


def members(owner: object, name: str) -> Iterator[object]:
    if is_dataclass(owner):
        yield from (f.default for f in fields(owner) if f.name == name)
        if callable(getattr(owner, name, None)):  # a method, such as one that makes settings
            yield getattr(owner, name)
    elif hasattr(owner, name):
        yield getattr(owner, name)


def problem(token: str) -> str:
    """Why a quoted token names nothing, or an empty string."""
    verb, *rest = token.split()
    if verb == "margin-explorer":
        return wrong_command(rest)
    if verb.startswith("--"):
        return "" if any(verb in options_of(v) for v in verbs().values()) else "no such option"
    if verb == "make":
        made = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return "" if set(rest) <= set(made) else "no such target"
    if verb == "python" and rest[0] == "-m":
        return "" if importlib.util.find_spec(rest[1]) else "no such module"
    if verb == "python":
        script = ROOT / rest[0]
        if not script.is_file():
            return "no such script"
        options = [word for word in rest[1:] if word.startswith("--")]
        return "" if all(f'"{o}"' in script.read_text() for o in options) else "no such option"
    if verb == "from":
        taken = [n for n in ast.walk(ast.parse(token)) if isinstance(n, ast.ImportFrom)]
        owners = [(importlib.import_module(n.module or ""), a.name) for n in taken for a in n.names]
        return "" if all(hasattr(*pair) for pair in owners) else "no such import"
    if "/" in token:
        return "" if (ROOT / token).exists() else "no such file"
    if re.fullmatch(r"[\w.]+ = .+", token):
        name, value = token.split(" = ")
        return "" if ast.literal_eval(value) in values(name) else f"the code has {values(name)}"
    if re.fullmatch(r"[A-Za-z_][\w.]*", token) and token != "None":
        return "" if values(token) else "no such name"
    ast.literal_eval(token)  # a value: it is read beside its field
    return ""


def wrong_command(words: list[str]) -> str:
    if words in ([], ["--help"]):
        return ""
    if words[0] not in verbs():
        return "no such command"
    unknown = {o for o in words if o.startswith("--")} - options_of(verbs()[words[0]])
    return f"no option {unknown}" if unknown else ""


@cache
def verbs() -> dict[str, Any]:
    return {name: load_verb(name) for name in VERBS}


def options_of(verb: Any) -> set[str]:
    return {o for p in verb.params for o in (*p.opts, *p.secondary_opts)}


def texts(value: Any) -> Iterator[str]:
    """Every text in plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


@cache
def labels() -> set[str]:
    """Every name that a control of the page carries, its choices and the titles of its folds."""
    app, others = App(preset("alternating-line", n=3)), (MembershipApp(), DigitsApp())
    found: set[str] = {*FOLDS, *BUTTONS.values()}
    train.jump_to_exact(app.session)
    for stage in STAGES:
        play.go(app.session, stage)
        play.set_truth_shown(app.session, stage != "attack")
        for title in FOLDS:
            app.unfold(title)
        found |= {x for panel in app.panels.values() if isinstance(panel.widget, Control)
                  for x in texts(panel.widget.state)}  # fmt: skip
    for panel in app.panels.values():
        if panel.widget is None:  # built when it is first seen
            panel.build()
    roots = [*(panel.widget for panel in app.panels.values()), *(o.widget for o in others)]
    asked = [row.panel.question for row in ROSTER.values() if row.panel is not None]
    found |= {question.label for question in asked if question is not None}
    for entry in ROSTER.values():
        for item in items_of(in_form(entry.config), lambda *_: None).values():
            found |= {item.label, *(words for words, *_ in item.options)}
    while roots:
        widget = roots.pop()
        roots += getattr(widget, "children", ())
        if isinstance(widget, AnyWidget):  # words stand in the script, or come with a state
            found |= set(re.findall(r'"([^"\n]+)"', widget.get_state("_esm")["_esm"]))
            found |= set(texts(getattr(widget, "state", "")))
    app.close()
    for other in others:
        other.close()
    teacher = (ROOT / "explorer" / "serve" / "voila" / "teacher.html").read_text()
    found |= {re.sub(r" \(.*\)$", "", name) for name in found}  # what 0 means stands behind a name
    return found | set(re.findall(r"<button[^>]*>([^<]+)</button>", teacher))


@pytest.mark.parametrize("page", PAGES)
def test_every_name_in_backticks_is_there(page: str) -> None:
    tokens = quoted(page)
    assert [(t, why) for t in tokens if (why := problem(t))] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_control_in_bold_is_on_the_page(page: str) -> None:
    bold = set(re.findall(r"\*\*([^*\n]+)\*\*", text_of(page).replace("\\|", "|")))
    headings = {words for words in bold if words.endswith(".")}
    assert bold - headings - labels() == set()


def test_the_tables_hold_every_setting() -> None:
    tokens = [token for page in PAGES for token in quoted(page)]
    named = {token.split(" = ")[0].split(".")[-1] for token in tokens}
    for config in CONFIGS:
        assert {f.name for f in fields(config)} <= named


@pytest.mark.parametrize(
    "token",
    ["--fly", "margin-explorer fly",
     "margin-explorer demo --fast", "make tea", "python benchmarks/no.py",
     "from explorer import nothing", "explorer/nothing.py", "KKTConfig.m = 7", "nothing_at_all"],
)  # fmt: skip
def test_what_is_not_there_is_seen(token: str) -> None:
    assert problem(token)


def test_the_rows_of_the_papers_are_those_of_their_benchmark() -> None:
    script = (ROOT / "benchmarks" / "bench_papers.py").read_text(encoding="utf-8")
    made = set(re.findall(r'^    "([\w-]+)": \(\w+, ', script, re.MULTILINE))
    assert made and made == set(
        re.findall(r"bench_papers\.py --only ([\w-]+)", text_of("papers.md"))
    )


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", text_of(page)):
            assert (DOCS / page).parent.joinpath(link).exists(), (page, link)


def test_every_page_lies_behind_one_door() -> None:
    doors = re.findall(
        r"```\{toctree\}\n:caption: (.+)\n(?::.*\n)*\n([^`]*)```", text_of("contents.md")
    )
    listed = [f"{page}.md" for _, pages in doors for page in pages.split()]
    assert [name for name, _ in doors] == [
        "Tutorial", "How-to", "Explanation", "Reference", "Measured"
    ]  # fmt: skip
    assert sorted([*listed, "contents.md"]) == list(PAGES)


@pytest.mark.parametrize("page", reference.PAGES)
def test_the_generated_pages_are_what_the_code_says(page: str) -> None:
    assert text_of(page) == reference.PAGES[page](), "run: python scripts/reference.py"


def test_the_pages_of_the_reference_hold_every_verb_option_and_export() -> None:
    made = text_of("commands.md")
    for name, verb in verbs().items():
        part = made.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert {f"`{o}`" for o in options_of(verb) if o.startswith("-")} <= set(
            re.findall(r"`--?[^`]+`", part)
        ), name
    exported = {line.rpartition(".")[2] for line in text_of("api.md").splitlines()}
    exported |= set(re.findall(r"^- `(\w+)`: ", text_of("api.md"), re.MULTILINE))
    assert {name for name in explorer.__all__ if not name.startswith("__")} <= exported


# --- the README's Python runs as it stands, and its commands exist --------------------------------

README = Path(__file__).resolve().parents[1] / "README.md"


def test_every_python_example_prints_what_it_says() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried >= 12
    assert failed == 0


def test_every_command_named_exists() -> None:
    named = set(re.findall(r"^ {4}margin-explorer (\w+)", README.read_text(), re.MULTILINE))
    assert {"demo", "train", "attack", "show"} <= named
    for verb in named:
        result = CliRunner().invoke(command, [verb, "--help"])
        assert result.exit_code == 0, (verb, result.output)


def test_every_file_named_is_there() -> None:
    text = README.read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (README.parent / link).exists(), link


def test_every_page_that_plays_is_made_and_linked() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "playing.py"))
    linked = re.findall(
        r'href="playing/([\w-]+)\.html"', text_of("plays.md") + text_of("papers.md")
    )
    lessons = re.findall(r'href="playing/lesson-(\d+)\.html"', text_of("lessons.md"))
    assert lessons == [str(k) for k in range(len(contents()))]
    assert sorted(linked) == sorted([*script["PAGES"], *script["ROWS"]])
    assert "scripts/playing.py build/docs\n" in (ROOT / "Makefile").read_text()
    for name, _ in script["PAGES"].values():
        run = script["whole_run"](name)
        assert (run.steps[0] or run.exact) and run.steps[1] and run.stage == "attack"
