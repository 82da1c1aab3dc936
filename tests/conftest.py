"""What every test shares: workers, one thread, and the same examples on every machine."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

from explorer.engine import compiling
from explorer.engine.threads import limit_threads
from explorer.research.grid import store as grid_store

EXAMPLES = 40  # of a law, arbitrary: a run repeats exactly, so that more are never new ones
# No deadline: a shared machine may stall any example. Derandomised: a run repeats exactly.
settings.register_profile(
    "project", deadline=None, derandomize=True, database=None, max_examples=EXAMPLES
)
settings.load_profile("project")

gc.disable()  # until `pytest_collection_finish`: what imports make stays

ROOT = Path(__file__).resolve().parents[1]
COLLECTED = ROOT / "tests" / "__pycache__" / "collected"  # there is rewritten code of all tests
WORKERS = 4  # arbitrary: on two cores, as those with a browser or a server mostly wait
# Files whose tests share servers and a browser, which take long to start: one worker takes each of
# these groups. The files of `browser` are two groups of about equal length, by the time of a
# processor: that of JupyterLab takes a sixth of all.
SECOND_BEGIN = ("lab", "r", "sh", "sm", "st", *"tuvwxyz")  # the names of the second group
SECOND = tuple(f"tests/browser/test_{begin}" for begin in SECOND_BEGIN)
TOGETHER = ("tests/browser/", "tests/serve/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of `-n auto`."""
    return WORKERS


def is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def pytest_configure(config: pytest.Config) -> None:
    """Before several workers need the compiled loops: compile while they collect the tests."""
    if getattr(config.option, "dist", "no") != "no" and not is_worker():
        threading.Thread(target=compile_loops, daemon=True).start()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """In a fresh checkout: one worker rewrites the asserts of all tests, the others read them."""
    if not is_worker() or sys.dont_write_bytecode or COLLECTED.exists():
        return (yield)
    with FileLock(Path(tempfile.gettempdir()) / "margin-explorer-collecting.lock"):
        if not COLLECTED.exists():
            found = yield
            COLLECTED.touch()
            return found
    return (yield)


def pytest_collection_finish() -> None:
    """Leave what was imported out of all later looks for garbage, a tenth of a second each.

    In a worker: wait for the compiled loops, where no test's time runs.
    """
    gc.freeze()
    gc.enable()
    if is_worker():
        compile_loops()


def compile_loops() -> None:
    """Compile what is not kept yet, in one process; others wait for it."""
    if compiling.all_kept():
        return
    with FileLock(Path(tempfile.gettempdir()) / "margin-explorer-compiling.lock"):
        if not compiling.all_kept():
            subprocess.run([sys.executable, "-m", "explorer.engine.compiling"], check=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker whole files, whose tests share networks and pages, or a whole folder."""
    from xdist.scheduler.loadfile import LoadFileScheduling

    class ByFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = next(filter(nodeid.startswith, TOGETHER), nodeid.partition("::")[0])
            return f"{group} {nodeid.startswith(SECOND)}"

    config.option.loadscopereorder = False  # in the order of `pytest_collection_modifyitems`
    return ByFolder(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a worker longest comes first: none is left with it while the others have ended."""
    folders = [*TOGETHER, "tests/", "tests/page/", "tests/engine/"]  # at last the shortest files

    def place(item: pytest.Item) -> int:
        return folders.index(max(filter(item.nodeid.startswith, folders), key=len))

    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each test that was run once more, and why: tests/browser/conftest.py says which are."""
    again = terminalreporter.stats.get("rerun", [])
    if again:
        terminalreporter.section(f"FLAKY: {len(again)} failed once and ran again")
    for report in again:
        terminalreporter.write_line(f"FLAKY {report.nodeid}\n{report.longreprtext}\n")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two cores are shared with the browser; small matrices gain nothing from threads.

    `make arithmetics` asks for two by OMP_NUM_THREADS, as sums then come out differently.
    """
    limit_threads()


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return ROOT


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, in which nothing is kept unless a test asks for it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(grid_store.sys, "platform", "linux")
    monkeypatch.delenv(grid_store.KEEP, raising=False)
    return tmp_path
