"""`import explorer` and the engine need torch, numpy, scipy and pydantic; numba makes them fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import explorer

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = (
    "IPython", "anywidget", "bqplot", "contourpy", "ipywidgets", "matplotlib", "numba", "rich",
    "safetensors", "tqdm", "traitlets", "typer", "voila",
)  # fmt: skip
ROAD = """
import torch
from explorer import *
data = preset("two-points")
config = TrainConfig(widths=(6,), steps=30)
state = training.init(data, config, torch.Generator().manual_seed(0))
for state in training.iterate(data, state, config):
    pass
exact = maximum_margin(data.x, data.y)
assert certify(exact.net, data.x, data.y, tau=1e-6).residual < 1e-10
target = Target.of(exact.net, 1.0)
attack = KKTConfig(m=4, steps=5)
claim = kkt.init(target, attack, torch.Generator().manual_seed(0))
for claim in kkt.iterate(target, claim, attack):
    pass
report = kkt.report(target, claim, attack)
print(judge(data, [heldout(data, k) for k in range(9)], report.x, report.y, 0.03).kind.name)
try:
    save_run(Run(data, config), "never-written")
except ImportError as error:
    print(error)
try:
    import explorer
    explorer.app
except ImportError as error:
    print(error)
"""


def run(program):
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_road_runs_without_any_optional_library():
    program = "\n".join([
        "import sys",
        f"for name in {OPTIONAL!r}: sys.modules[name] = None",
        ROAD,
    ])  # fmt: skip
    result = run(program)
    assert result.returncode == 0, result.stderr
    verdict, saving, app = result.stdout.splitlines()
    assert verdict == "CANNOT_KNOW"
    assert "margin-explorer[files]" in saving
    assert "margin-explorer[app]" in app
    assert not (ROOT / "never-written").exists()


def test_what_is_slow_to_load_is_loaded_when_it_is_needed():
    """No optional library by the import, no statistics by a verb, no numba by a new page."""
    ours = [name for name in OPTIONAL if name != "tqdm"]  # torch takes that one by itself
    program = "\n".join([
        "import sys, explorer",
        f"print([name for name in {ours!r} if name in sys.modules])",
        "import explorer.commands.road, explorer.engine.roster",
        "print('scipy.stats' in sys.modules)",
        "import explorer.page.apps.explorer",
        "from explorer.page.session import Session",
        "Session()",
        "print('ipywidgets' in sys.modules, 'numba' in sys.modules, 'bqplot' in sys.modules)",
    ])  # fmt: skip
    assert run(program).stdout.splitlines() == ["[]", "False", "True False False"]


def test_every_public_name_is_there_and_listed_in_order():
    for name in explorer.__all__:
        assert getattr(explorer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = explorer.nothing
