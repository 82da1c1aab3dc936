"""Each extra alone is enough for what it is for: installed into an environment of its own.

Run by `make long`. pip brings what constraints.txt names, from its cache where it can.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.verbs import RUNS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # arbitrary: torch may come slowly

NO_NETWORK = re.compile(
    "name resolution|Failed to establish a new connection|Network is unreachable|"
    "Name or service not known|getaddrinfo failed|Connection refused"
)
WIDGETS = ("IPython", "anywidget", "bqplot", "ipywidgets", "traitlets", "voila")
SAVE_AND_LOAD = """
import torch
from explorer import *
data, config = preset("two-points"), TrainConfig(widths=(6,), steps=3)
state = training.init(data, config, torch.Generator().manual_seed(0))
save_run(Run(data, config, (state,)), "run.safetensors")
assert torch.equal(load_run("run.safetensors").net.theta, state.net.theta)
"""
COMPILED = """
import sys, torch
from explorer import *
data, config = preset("moons", n=6), KKTConfig(m=4, steps=20, multipliers="joint")
target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
state = kkt.init(target, config, torch.Generator().manual_seed(0))
for state in kkt.iterate(target, state, config, 20):
    pass
assert state.t == 20 and "explorer.engine.kernels.compiled_two_inputs" in sys.modules
"""
SERVED = """
import urllib.request
from explorer.serve import server as serve
with serve.start(port=0) as server:
    for page in ("", "voila/render/digits.ipynb"):
        with urllib.request.urlopen(server.url + page) as answer:
            words = answer.read().decode()
        assert "vnd.jupyter.widget-view+json" in words, words
"""


class Environment:
    """A new environment with the working tree and some extras; `run` runs a program of it."""

    def __init__(self, root: Path, folder: Path, extras: str) -> None:
        """Install. Skips without a network, but on a build machine fails."""
        self.folder, self.home = folder / "environment", folder / "home"
        self.home.mkdir()
        venv.create(self.folder, with_pip=True, symlinks=os.name != "nt")
        tree = f"{root}[{extras}]" if extras else str(root)
        told = self.run(
            *("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--constraint", str(root / "constraints.txt"), tree),
            code=None,
            HOME=os.environ.get("HOME", ""),
        )
        if told.returncode and os.environ.get("CI", "").lower() not in ("1", "true"):
            found = NO_NETWORK.search(told.stderr)
            if found:
                pytest.skip(f"no network to install from: {found[0]}")
        assert told.returncode == 0, told.stderr

    def run(
        self, program: str, *words: str, code: int | None = 0, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment in a folder of its own, and check its exit code."""
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        kept |= {"HOME": str(self.home), "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
        scripts = self.folder / ("Scripts" if os.name == "nt" else "bin")
        result = subprocess.run(
            [str(scripts / program), *words], cwd=self.home, env=kept | settings,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert code is None or result.returncode == code, result.stdout + result.stderr
        return result

    def verb(self, line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run one line of the command."""
        return self.run("margin-explorer", *line.split(), code=code)


@pytest.fixture
def installed(root: Path, tmp_path: Path) -> Iterator[Callable[[str], Environment]]:
    """Make an environment with these extras; it goes with the test, as it takes a gigabyte."""
    yield lambda extras: Environment(root, tmp_path, extras)
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_bare(installed) -> None:
    here = installed("")
    here.run("python", "-c", "from explorer import *; print(preset('moons').n)")
    here.run("python", "-c", COMPILED)
    for words in (("margin-explorer",), ("python", "-m", "explorer")):
        (line,) = here.run(*words, code=1).stderr.splitlines()
        assert "pip install margin-explorer[cli]" in line
    result = here.run("python", "-c", "from explorer import app", code=1)
    assert "margin-explorer[app]" in result.stderr.splitlines()[-1]


def test_files(installed) -> None:
    installed("files").run("python", "-c", SAVE_AND_LOAD)


def test_cli(installed) -> None:
    here = installed("cli")
    there = f"import importlib.util as u; print([n for n in {WIDGETS!r} if u.find_spec(n)])"
    assert here.run("python", "-c", there).stdout.strip() == "[]"
    for line in RUNS["cli"]:
        here.verb(line)
    for extra in RUNS.keys() - {"cli"}:  # and what it has not, it says
        for line in RUNS[extra]:
            (advice,) = here.verb(line, code=2).stderr.splitlines()
            assert f"pip install margin-explorer[{extra}]" in advice
    (advice,) = here.verb("serve --no-open", code=1).stderr.splitlines()
    assert "margin-explorer[app]" in advice


@pytest.mark.parametrize("extra", sorted(RUNS.keys() - {"cli"}))
def test_what_goes_with_the_command(installed, extra: str) -> None:
    here = installed(f"cli,{extra}")
    for line in RUNS[extra]:
        here.verb(line)


def test_ui(installed, root: Path) -> None:
    here = installed("ui")
    here.run("python", str(root / "tests" / "open_pages.py"), "explorer.ipynb")


def test_app(installed, root: Path) -> None:
    here = installed("app")
    told = here.run("python", str(root / "tests" / "open_pages.py")).stdout
    assert "lessons.ipynb opens" in told
    here.run("python", "-c", SERVED)
    here.verb("--help")
