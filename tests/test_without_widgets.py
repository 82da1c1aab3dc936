"""Whoever has no widget library has the library and every verb; advice names what is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.commands import VERBS
from tests.verbs import RUNS

ROOT = Path(__file__).resolve().parents[1]
WIDGETS = ("IPython", "anywidget", "bqplot", "ipywidgets", "traitlets", "voila")
CALLS = """
import json, sys
import explorer
from explorer import *
print(json.dumps([preset("moons", n=4).n, str(explorer.phi)]))
from typer.testing import CliRunner
from explorer.cli import app
for words in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, words.split())
    print(json.dumps([words, result.exit_code, result.output]))
"""
# What needs a library beyond the base: the message of each call names an extra to install.
ADVICE = """
import json, torch
from pathlib import Path
import explorer
from explorer.engine.data import images
from explorer.research.sweep import executors
from explorer.research.pictures import image_sheets
from explorer.research import rates, tuning
from explorer.serve import server

points, config = explorer.preset("moons"), explorer.TrainConfig(widths=(4,))
net = explorer.training.init(points, config, torch.Generator().manual_seed(0)).net
tuned = tuning.tune(explorer.Target.of(net, 1.0), tuning.TuneConfig())
calls = [
    ("safetensors", lambda: explorer.save_run(explorer.Run(points, config), Path("never"))),
    ("ipywidgets", lambda: explorer.app),
    ("ipywidgets", lambda: explorer.widgets),
    ("bqplot", lambda: explorer.figure),
    ("voila", server.start),
    ("scikit-learn", lambda: images.draw(images.Choice(n=4))),
    ("scikit-learn", lambda: images.parity_digits(4, 0)),
    ("scikit-learn", rates.ready),
    ("pillow", lambda: image_sheets.png(torch.zeros(2, 2, 4, dtype=torch.uint8).numpy())),
    ("optuna", lambda: next(tuned)),
    ("distributed", executors.dask_client),
]
for library, call in calls:
    try:
        call()
    except (ImportError, RuntimeError) as error:
        print(json.dumps([library, str(error)]))
"""
ADVISED = 11
BLOCKED = (*WIDGETS, "PIL", "distributed", "optuna", "safetensors", "sklearn")


def alone(
    program: str, *words: str, blocked: tuple[str, ...] = WIDGETS, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """A process of its own that cannot import these."""
    shut = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    shut += f"for name in {blocked!r}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", shut + program, *words],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


def printed(program: str, *words: str, **how: Any) -> str:
    """What it prints; it has to end well."""
    result = alone(program, *words, **how)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def called(words: list[str], cwd: Path) -> Iterator[tuple[str, int, str]]:
    """Each call of the command, its exit code and what it printed; before them, the library."""
    library, *lines = printed(CALLS, json.dumps(words), cwd=cwd).splitlines()
    assert json.loads(library)[0] == 4 and len(lines) == len(words)
    return map(json.loads, lines)


def libraries(extra: str) -> set[str]:
    """What an extra installs by name, those of the extras in it too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    for line in project["optional-dependencies"][extra]:
        own = re.fullmatch(r"margin-explorer\[(.+)\]", line)
        if own:
            found |= set().union(*(libraries(part) for part in own[1].split(",")))
        else:
            found.add(re.match(r"[\w.-]+", line)[0])
    return found


def verbs() -> set[str]:
    return set(VERBS)


def test_the_library_is_there_and_every_verb_but_the_one_that_serves_pages(tmp_path) -> None:
    words = [line for lines in RUNS.values() for line in lines if "dask" not in line]
    assert {line.split()[0] for line in words} == verbs() - {"serve"}
    helps = [f"{verb} --help" for verb in sorted(verbs())]
    *ran, (_, refused, advice) = called([*helps, *words, "serve --no-open"], tmp_path)
    for line, code, output in ran:
        assert code == 0, (line, output)
    assert refused == 1 and "margin-explorer[app]" in advice


def test_advice_names_an_extra_that_holds_the_missing_library(tmp_path: Path) -> None:
    lines = printed(ADVICE, blocked=BLOCKED, cwd=tmp_path).splitlines()
    assert len(lines) == ADVISED
    for library, message in map(json.loads, lines):
        (extra,) = re.findall(r"pip install '?margin-explorer\[(\w+)\]", message)
        assert library in libraries(extra), message


def test_app_holds_all_that_a_page_can_ask_for() -> None:
    parts = [libraries(extra) for extra in ("cli", "ui", "images", "rates", "tune")]
    assert libraries("app") == set().union(*parts)
    assert libraries("all") > libraries("app") | libraries("cluster")
    assert not libraries("app") & (libraries("dev") | libraries("test"))


@pytest.mark.parametrize("module", ["explorer", "explorer.cli"])
def test_without_the_command_one_line_says_what_to_install(module: str) -> None:
    result = alone(
        f"import runpy; runpy.run_module({module!r}, run_name='__main__')", blocked=("typer",)
    )
    (line,) = result.stderr.splitlines()
    assert result.returncode == 1 and "margin-explorer[cli]" in line


def test_what_is_missing_otherwise_is_not_taken_for_the_command_line() -> None:
    program = "from explorer.cli import load_verb; load_verb('show')"
    result = alone(program, blocked=("explorer.research.report",))
    assert result.returncode == 1
    assert "explorer.research.report" in result.stderr and "[cli]" not in result.stderr
