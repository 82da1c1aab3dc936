"""A package of its own brings an attack: what a user installs is on the page and in every verb."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest
import torch

from explorer.engine import attacks, store
from explorer.engine.attacks.target import Target
from explorer.engine.margin import normalise
from explorer.engine.roster import GROUP, ROSTER, Roster
from tests.crafted import changed, run_of

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "tests" / "plugin"
BUILT_IN = tuple(ROSTER)


def installed(site: Path, name: str, module: Path, entries: dict[str, str]) -> Path:
    """A folder as an installer leaves it: the module, and the entry points in its dist-info."""
    notes = site / f"{name.replace('-', '_')}-0.1.dist-info"
    notes.mkdir(parents=True)
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
    (notes / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")
    shutil.copy(module, site)
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    entries = project["entry-points"][GROUP]
    module = PLUGIN / "sample_attack.py"
    return installed(tmp_path_factory.mktemp("site"), project["name"], module, entries)


def python(site: Path | None, *arguments: str, **given) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(p) for p in (ROOT, site) if p)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, **given
    )


def said(site: Path | None, *arguments: str, **given) -> str:
    made = python(site, *arguments, **given)
    assert made.returncode == 0, made.stderr
    return made.stdout


# One process for many calls of the command; each starts as if it were alone.
CALLS = """
import json, sys
from typer.testing import CliRunner
from explorer.cli import app
for words in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, words.split())
    print(json.dumps([result.exit_code, result.stdout, result.stderr]))
"""
SMALL = "--preset blobs --n 8 --widths"
ROWS = "--set preset=blobs --set n=8 --set widths=16 --set steps=300"
VERBS = {
    "train": f"{SMALL} 20 --method exact --out trained.safetensors",
    "attack": "trained.safetensors --attack sample --set pace=0.25 --out attacked.safetensors "
    "--json",
    "settings": "sample",
    "demo": "--attack sample --set pace=2 --n 4 --steps 10",
    "sweep": f"{ROWS} --set attack=sample --set attack_config.pace=[0.5,1.0] --out rows.jsonl "
    "--workers 1",
    "arena": f"{SMALL} 16 --attacks sample,kkt --seed 1 --steps 300 --fast --executor threads "
    "--workers 1 --json",
}


@dataclass(frozen=True)
class Called:
    """What every verb answered, (exit code, output, errors), what follows them, and the folder."""

    answers: dict[str, tuple[int, str, str]]
    lines: list[str]
    folder: Path


@pytest.fixture(scope="module")
def called(site, tmp_path_factory) -> Called:
    """The verbs, a saved run that is opened and a page, in one process: torch is imported once."""
    folder = tmp_path_factory.mktemp("runs")
    calls = json.dumps([f"{verb} {words}" for verb, words in VERBS.items()])
    lines = said(site, "-c", CALLS + OPEN + PAGE, calls, cwd=folder).splitlines()
    answers = map(json.loads, lines[: len(VERBS)])
    return Called(dict(zip(VERBS, answers, strict=True)), lines[len(VERBS) :], folder)


def test_its_settings_are_listed_and_checked(called) -> None:
    code, words, _ = called.answers["settings"]
    assert code == 0 and "pace" in words and "Newton" in words and "Sample" in words
    code, _, refused = called.answers["demo"]
    assert code and "pace must" in refused


def test_its_runs_open_where_it_is_installed_and_nowhere_else(called) -> None:
    code, words, wrong = called.answers["attack"]
    assert code == 0, wrong
    assert "claims" in json.loads(words)["attack"]
    assert called.lines[0].split() == ["sample", "0.25", "30"]
    with pytest.raises(store.StoreError) as refused:
        store.load_run(called.folder / "attacked.safetensors")
    assert "'sample'" in str(refused.value) and ", ".join(BUILT_IN) in str(refused.value)


OPEN = """
from explorer import load_run
run = load_run("attacked.safetensors")
print(run.attack_name, run.attack_config.pace, run.attack_states[-1].t)
"""


def test_it_stands_in_the_arena_and_in_sweeps(called) -> None:
    code, _, wrong = called.answers["sweep"]
    assert code == 0, wrong
    rows = [json.loads(line) for line in (called.folder / "rows.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["done", "done"], rows
    code, words, wrong = called.answers["arena"]
    assert code == 0, wrong
    assert "sample" in words


PAGE = """
from explorer.engine import attacks, store
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.sharing import files
from explorer.page.session import Session
from explorer.page.apps.explorer import App
from explorer.page.stages.train import commands as train
page = App(preset("moons", n=8))
train.jump_to_exact(page.session)
play.go(page.session, "attack")
page.panels["Chooser"].view.commands["choose"]("sample")
form = page.panel("AttackForm").forms["sample"]
form.row.take(["pace", 0.25])
play.step(page.session, 3)
now = page.session.frame.attack
print(now.name, now.state.t, page.session.attack_config.pace)
shown, axes = page.panels["PlanePanel"].view.frame, page.session.axes
before, near = now.state.before, now.state.x[now.state.off < 0.1]
gap = abs(axes.shares(before.numpy()) - shown["dots"]).max()
print(len(shown["dots"]), gap < 1e-6, len(shown["rings"]) == len(near) > 0)
print(*form.row.items, sep=",")
own = page.panels["OwnPanel"]
print(own.on_screen, own.title.value, own.note.value, len(own.chart.shown.series[0].x))
play.step(page.session, 97)
print(page.panels["HeadlinePanel"].view.state["title"])
play.go(page.session, "arena")
arena = page.panels["Arena"]
arena.rest_shown = True
arena.draw()
print("sample" in [row["key"] for row in arena.table.rows])
play.go(page.session, "attack")
other = Session()
files.open_file(other, store.dump(files.as_run(page.session)))
print(other.frame.attack.name, other.frame.attack.state.t)
page.close()
"""
ON_THE_PAGE = ["sample 3 0.25", "20 True True", "m,pace,steps",
               "True Off the margin 20 candidates, sorted 20",
               "20 of 20 candidates hold the margin", "True", "sample 30"]  # fmt: skip


def test_it_is_on_the_page_with_its_form_its_shapes_its_headline_and_its_panel(called) -> None:
    assert called.lines[1:] == ON_THE_PAGE


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("ATTACK = 3", "expected an Attack; got a int"),
        ("raise RuntimeError('no such card')", "no such card"),
        ("raise SystemExit(3)", "it raises SystemExit"),
        ("class Odd(BaseException): pass\nraise Odd", "it raises Odd"),
        ("from explorer.engine.attacks.kkt import ATTACK", "there is an attack 'kkt' already"),
    ],
)
def test_a_broken_package_is_named_and_stops_nothing(
    site, tmp_path, monkeypatch, body, words
) -> None:
    module = tmp_path / "broken_attack.py"
    module.write_text(body)
    entries = {"broken": "broken_attack:ATTACK"}
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(installed(tmp_path / "site", "broken-attack", module, entries))
    monkeypatch.delitem(sys.modules, "broken_attack", raising=False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        keys = list(Roster())
    assert keys == [*BUILT_IN, "sample"]
    (warned,) = [str(w.message) for w in heard if "left out" in str(w.message)]
    assert words in warned and "'broken'" in warned and "broken_attack:ATTACK" in warned
    assert warned.count(". ") == 1, "one sentence, and what to do"


def test_the_docs_show_the_sample_that_is_run() -> None:
    page = (ROOT / "docs" / "write-an-attack.md").read_text()
    code = (PLUGIN / "sample_attack.py").read_text()
    assert f"```python\n{code}```" in page and len(code.splitlines()) < 100
    entry = 'entry-points."explorer.attacks"]\nsample = "sample_attack:ATTACK"\n'
    assert entry in page and entry in (PLUGIN / "pyproject.toml").read_text()


def test_an_attack_of_this_package_is_one_file(tmp_path) -> None:
    """In a copy of the package with one file more: the page, the form, the shapes, the verbs."""
    copy = tmp_path / "explorer"
    shutil.copytree(ROOT / "explorer", copy)  # with what was compiled of it: the same files
    shutil.copy(PLUGIN / "sample_attack.py", copy / "engine" / "attacks" / "sample.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    calls = [
        "settings sample",
        "demo --attack sample --preset blobs --n 4 --widths 8 --steps 300 --set steps=9",
    ]
    # Without compiled loops, which would be compiled anew for the folder of the copy.
    program = f"import sys; sys.modules['numba'] = None\n{PAGE}{CALLS}"
    made = subprocess.run([sys.executable, "-c", program, json.dumps(calls)], cwd=tmp_path,
                          env=environment, capture_output=True, text=True)  # fmt: skip
    assert made.returncode == 0, made.stderr
    *lines, listed, shown = made.stdout.splitlines()
    assert lines == ON_THE_PAGE
    for answer, found in ((listed, ["pace", "Newton"]), (shown, ["claims", "verdict"])):
        code, words, wrong = json.loads(answer)
        assert code == 0, wrong
        assert all(word in words for word in found), words


@pytest.fixture
def run(monkeypatch) -> store.Run:
    """A run of the sample, which is installed for the length of a test."""
    monkeypatch.syspath_prepend(PLUGIN)
    sample = import_module("sample_attack").ATTACK
    monkeypatch.setitem(ROSTER, "sample", sample)
    trained = run_of(attack=False)
    net, _ = normalise(trained.train_states[-1].net, trained.dataset.x, trained.dataset.y)
    target, config = Target.of(net, 1.0), sample.config(m=6)
    first = sample.init(target, config, torch.Generator().manual_seed(0))
    states = (first, *islice(sample.iterate(target, first, config), 2))
    return replace(trained, attack_name="sample", attack_config=config, attack_states=states)


BENT = {
    "off, one more": ("off", lambda v: torch.cat([v, v[:1]])),
    "off, a table": ("off", lambda v: v[:, None]),
    "before, transposed": ("before", lambda v: v.T.contiguous()),
    "before, whole": ("before", lambda v: v.long()),
    "before, of one coordinate": ("before", lambda v: v[:, :1].contiguous()),
    "x, one less": ("x", lambda v: v[1:].contiguous()),
    "x, nan": ("x", lambda v: v * torch.nan),
}


@pytest.mark.parametrize("how", BENT)
def test_its_states_are_checked_as_ours_are(run, how) -> None:
    name, bend = BENT[how]

    def change(held: dict, tensors: dict[str, torch.Tensor]) -> None:
        place = held["attack_states"][-1]["fields"][name]["tensor"]
        tensors[place] = bend(tensors[place])

    assert store.load(changed(lambda held, tensors: None, run)).attack_states[-1].t == 2
    with pytest.raises(store.StoreError):
        store.load(changed(change, run))


def test_a_state_that_could_not_be_opened_is_not_saved(run) -> None:
    @dataclass(frozen=True, eq=False)
    class Loose(type(run.attack_states[0])):
        table: torch.Tensor  # two axes, and no word of them

    last = run.attack_states[-1]
    loose = Loose(**vars(last), table=torch.zeros(3, 4, dtype=last.x.dtype))
    with pytest.raises(store.StoreError, match=r"table must be .*Declare the sizes"):
        store.dump(replace(run, attack_states=(loose,)))


GENERIC = [
    path
    for layer in ("engine", "research", "page", "commands")
    for path in sorted((ROOT / "explorer" / layer).rglob("*.py"))
    if "attacks" not in path.parts
]
ONE_ATTACK = tuple(
    f"{attacks.__name__}.{found.name}"
    for found in iter_modules(attacks.__path__)
    if hasattr(import_module(f"{attacks.__name__}.{found.name}"), "ATTACK")
)


def of_one_attack(code: str) -> list[str]:
    """What a module has of one attack's module, under whatever name and from anywhere."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("explorer"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            held = [getattr(import_module(str(node.module)), a.name, None) for a in node.names]
            names += [str(getattr(one, "__module__", None)) for one in held]
            names += [one.__name__ for one in held if isinstance(one, ModuleType)]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node).replace("attacks.", "explorer.engine.attacks.")]
        else:
            continue
        found += [n for n in names if any(n == m or n.startswith(f"{m}.") for m in ONE_ATTACK)]
    return found


@pytest.mark.parametrize(
    "code",
    [
        "from explorer.engine.attacks.hinge import HingeState",
        "if TYPE_CHECKING:\n    from explorer.engine.attacks.kkt.config import PUBLISHED",
        "from explorer.engine.attacks import certified as places",
        "from explorer.research.tuning import kkt",
        "from explorer.research.tuning import KKTConfig as C",
        "import explorer.engine.attacks.bilevel.lower",
        "from explorer.engine import attacks\nattacks.hinge.fits",
        "import_module('explorer.engine.attacks.univariate')",
    ],
)
def test_what_brings_one_attack_is_seen(code) -> None:
    assert of_one_attack(code)


def test_no_page_module_imports_one_attack() -> None:
    """Else an attack of another package could not have what that one has."""
    pages = (ROOT / "explorer" / "page").rglob("*.py")
    found = {str(path.relative_to(ROOT)): of_one_attack(path.read_text()) for path in pages}
    assert {name: names for name, names in found.items() if names} == {}


OF_AN_ATTACK = ("attack", "config", "engine", "entry", "state")


def asked(code: str) -> list[str]:
    """Calls that ask something of an attack whether it has a name written there."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "getattr")
        if isinstance(call.args[1], ast.Constant)
        if any(word in ast.unparse(call.args[0]) for word in OF_AN_ATTACK)
    ]


def test_no_generic_code_asks_what_an_attack_has() -> None:
    assert asked('if hasattr(self.attack_config, "relu_alpha_start"): ...')
    found = {str(path.relative_to(ROOT)): asked(path.read_text()) for path in GENERIC}
    assert {name: calls for name, calls in found.items() if calls} == {}


def keys_in(code: str) -> list[str]:
    """Keys of attacks that stand as a word of their own in this code."""
    words = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
    return [word for word in words if word in BUILT_IN]


def test_no_generic_code_names_an_attack() -> None:
    assert keys_in('attacks = ("kkt",)') == ["kkt"]
    found = {str(path.relative_to(ROOT)): keys_in(path.read_text()) for path in GENERIC}
    assert {name: set(keys) for name, keys in found.items() if keys} == {
        "explorer/engine/roster.py": {"kkt"},  # DEFAULT
        "explorer/engine/controls.py": {"pooled"},  # an origin of controls
        "explorer/research/audit/__init__.py": {  # what it runs unless asked
            "kkt", "decoreco", "univariate", "certified_places",
        },
        "explorer/research/scenarios.py": {  # data that say which one
            "inversion", "decoreco", "bilevel", "univariate", "hinge",
        },
        "explorer/research/game.py": {"univariate"},  # what the computer guesses with on a line
        "explorer/commands/grid.py": {"bilevel"},
        "explorer/commands/univariate.py": {"univariate"},
        "explorer/commands/census.py": {"kkt", "bilevel"},  # losses that it compares
        "explorer/research/convolutions.py": {"kkt", "decoreco"},  # signs of its multipliers
        "explorer/research/census/__init__.py": {"kkt", "decoreco", "bilevel"},
        "explorer/research/census/losses.py": {"kkt", "decoreco", "bilevel"},
    }  # fmt: skip
