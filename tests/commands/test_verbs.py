"""Every verb by the tables of tests/verbs.py: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

import explorer
import margin_explorer
from explorer import (
    KKTConfig,
    Target,
    TrainConfig,
    certify,
    cli,
    control_sets,
    judge,
    kkt,
    maximum_margin,
    preset,
    training,
)
from explorer.cli import load_verb
from explorer.commands import READER_LEFT, VERBS, energy, explain, grid, membership
from explorer.commands import sweep as sweep_verbs
from explorer.commands.base import print_table
from explorer.engine.threads import few_threads, limit_threads
from explorer.research import runs, sweep
from tests.commands.conftest import answer
from tests.verbs import FAILED, FILES, REFUSED, SHOWN, UNWRITABLE, USAGE

DATA = {"demo", "train", "weight-decay", "energy", "explain", "tune", "univariate", "grid",
        "bilevel", "sweep", "arena", "census"}  # fmt: skip
DEVICE = DATA - {"bilevel"} | {"audit", "attack", "digits"}
SEEDED = set(VERBS) - {
    "repeat",
    "export",
    "film",
    "show",
    "serve",
    "settings",
}  # a link holds its seeds


@pytest.mark.parametrize(("line", "words", "keys"), SHOWN)
def test_a_verb_prints_a_table_or_json_alone(call, line: str, words: str, keys: str) -> None:
    shown, held = call(line), call(f"{line} --json").json
    missing = [word for word in words.split(", ") if word not in shown.words]
    assert not missing and set(keys.split(", ")) <= set(held)


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_a_mistake_is_one_line_and_ends_with_2(call, tmp_path, line: str, words: str) -> None:
    assert words in call(line, code=2).line
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


@pytest.mark.parametrize("line", USAGE)
def test_usage_is_explained_with_2(call, line: str) -> None:
    told = call(line, code=2)
    assert told.out == "" and "Usage" in told.err


@pytest.mark.parametrize(("line", "words"), FAILED)
def test_a_run_that_fails_ends_with_1(call, line: str, words: str) -> None:
    assert words in call(line, code=1).line
    assert not Path("run.safetensors").exists()


# --- files that cannot be written ---------------------------------------------------------------
@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may run."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work was begun")

    for owner, name in (
        (runs, "train"), (runs, "attack"), (grid, "sweep"), (sweep_verbs, "sweep"),
        (membership, "membership_experiment"), (explain, "first_explained"), (energy, "Answers"),
        (sweep, "run_experiment"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, work)
    monkeypatch.setattr("explorer.commands.digits.image_runs.train_and_attack", work)


@pytest.mark.parametrize("line", UNWRITABLE)
def test_what_cannot_be_written_is_said_before_the_work(call, no_work, line: str) -> None:
    told = call(line, "file/x", code=2).line
    assert "cannot write" in told and "file/x" in told


def test_an_attack_looks_at_its_file_first(call, no_work, saved: Path) -> None:
    assert "file/x" in call("attack", saved, "--out", "file/x", code=2).line
    assert "directory" in call("attack", saved, "--out", ".", code=2).line


def test_looking_at_a_file_leaves_it_as_it_is(call) -> None:
    Path("mine").write_text("mine")
    for name in ("mine", "none"):
        call("train --preset two-points --widths 20 --steps 0 --out", name, code=1)
    assert Path("mine").read_text() == "mine" and not Path("none").exists()


# --- one spelling --------------------------------------------------------------------------------
def options(verb: str) -> dict[str, str]:
    return {name: p.help or "" for p in load_verb(verb).params for name in p.opts}


def test_the_table_of_verbs_is_that_of_their_files_and_help_is_their_first_line() -> None:
    """It is read from the source: a verb is one file, and nothing else names it."""
    shown = answer("--help").words
    for verb, (module, words) in VERBS.items():
        function = import_module(f"explorer.commands.{module}").VERBS[verb]
        assert function.__doc__.partition("\n")[0] == words
        assert load_verb(verb).help.startswith(words) and verb in shown
    for path in (Path(cli.__file__).parent / "commands").glob("[!_]*.py"):
        offered = getattr(import_module(f"explorer.commands.{path.stem}"), "VERBS", {})
        assert {verb for verb, (module, _) in VERBS.items() if module == path.stem} == {*offered}
        assert "Console(" not in path.read_text(encoding="utf-8")  # tables go through `Printer`


@pytest.mark.parametrize(
    ("option", "verbs"),
    [("--data", DATA), ("--device", DEVICE), ("--seed", SEEDED), ("--seeds", set())],
)
def test_a_verb_that_can_take_it_spells_it_so(option: str, verbs: set[str]) -> None:
    assert {verb for verb in VERBS if option in options(verb)} == verbs


def test_an_option_of_many_verbs_has_one_help() -> None:
    for name in ("--data", "--device", "--json"):
        told = {options(v)[name] for v in VERBS if name in options(v) and v != "settings"}
        assert len(told) == 1, told


def test_a_device_that_is_not_there_is_said_before_the_work(call, no_work, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for line in ("grid", "sweep --out rows.jsonl", "arena", "digits"):
        assert "no cuda" in call(line, "--device", "cuda", code=2).line
    assert not Path("rows.jsonl").exists()


# --- the command's start, the package that it starts, and what a pipe gets of it ------------------

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
    pages = {"app", "digits", "figure", "lessons", "link", "membership"}
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


# --- one thread everywhere, unless OMP_NUM_THREADS or an option says otherwise --------------------


@pytest.fixture(autouse=True)
def as_before():
    """Other tests run on as many threads as before: one, unless OMP_NUM_THREADS says otherwise."""
    yield
    limit_threads()


def blas() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("said", "count"), [(None, 1), ("2", 2), ("2,4", 2), ("", 1), ("0", 1), ("many", 1)]
)
def test_threads_are_one_or_those_of_the_environment(monkeypatch, said, count) -> None:
    torch.set_num_threads(3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    limit_threads()
    assert torch.get_num_threads() == count
    assert all(n <= count for n in blas())


def test_blas_is_limited_too(monkeypatch) -> None:
    given = []
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda n, user_api: given.append(n))
    limit_threads(3)
    assert given == [3]


def test_without_threadpoolctl_torch_alone_is_limited(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    limit_threads(2)
    assert torch.get_num_threads() == 2


def test_every_verb_runs_on_one_thread(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    assert CliRunner().invoke(cli.app, ["show", str(tmp_path / "absent")]).exit_code == 2
    assert torch.get_num_threads() == 1


def test_digits_have_their_own_option(tmp_path) -> None:
    words = ["digits", "--threads", "2", "--images", "mnist", "--folder", str(tmp_path)]
    assert CliRunner().invoke(cli.app, words).exit_code == 2
    assert torch.get_num_threads() == 2


def test_a_call_of_the_library_takes_one_thread_and_puts_back_what_it_found(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    counts: list[int] = []
    before = torch.set_num_threads
    monkeypatch.setattr(torch, "set_num_threads", lambda n: (counts.append(n), before(n)))
    data, generator = preset("alternating-line", n=4), torch.Generator().manual_seed(0)
    config, attack = TrainConfig(widths=(8,)), KKTConfig(m=4, steps=4)
    target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    state, found = training.init(data, config, generator), kkt.init(target, attack, generator)
    calls = (
        lambda: training.step(data, state, config), lambda: kkt.step(target, found, attack),
        lambda: list(kkt.iterate(target, found, attack)),
        lambda: kkt.advance(target, found, attack, 4),
        lambda: certify(target.net, data.x, data.y), lambda: maximum_margin(data.x, data.y),
        lambda: judge(data, control_sets(data), data.x, data.y, 0.03),
    )  # fmt: skip
    for call in calls:
        counts.clear()
        call()
        assert counts[0] == 1 and counts[-1] == 3 and torch.get_num_threads() == 3
    with pytest.raises(ValueError, match="stop"), few_threads():
        assert torch.get_num_threads() == 1
        raise ValueError("stop")
    assert torch.get_num_threads() == 3


def test_a_call_of_the_library_limits_blas_and_puts_back_what_it_found(monkeypatch) -> None:
    """The loops of deep networks call it: on a busy machine they took 60 times as long."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    limit_threads()
    before = blas()
    monkeypatch.delenv("OMP_NUM_THREADS")
    if before == {1}:
        pytest.skip("a BLAS of one thread")
    with pytest.raises(ValueError, match="stop"), few_threads():
        assert blas() == {1}
        with few_threads():
            assert blas() == {1}
        raise ValueError("stop")
    assert blas() == before
