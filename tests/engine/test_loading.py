"""Compiled loops are kept on disk, and what has none of them goes by torch's calls."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from explorer.engine import kernels
from explorer.engine.kernels.loading import compiled_module

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["compiled", "compiled_deep", "compiled_training"]
TRAIN_AND_ATTACK = """
import torch
from explorer import *
from explorer.engine.kernels.loading import compiled_module
data = preset("moons", n=6)
for widths in ((8,), (6, 5)):
    config = TrainConfig(widths=widths, steps=300)
    state = training.init(data, config, torch.Generator().manual_seed(0))
    state = training.advance(data, state, config, 300)
    target = Target.of(state.net, 1.0)
    for multipliers in ("joint", "projected"):
        config = KKTConfig(m=4, steps=20, multipliers=multipliers)
        found = kkt.init(target, config, torch.Generator().manual_seed(0))
        for found in kkt.iterate(target, found, config, 10):
            pass
made = [
    loop.stats for name in ("compiled", "compiled_deep", "compiled_training")
    for loop in vars(compiled_module(name)).values()
    if hasattr(loop, "stats")
]
print(sum(sum(s.cache_misses.values()) for s in made))
print(sum(sum(s.cache_hits.values()) for s in made))
"""


def broken(*_: object, **__: object) -> None:
    raise RuntimeError("cannot cache function: no locator available")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("why", ["missing", "broken", "no place"])
def test_where_loops_cannot_be_had_there_are_none(why, name, monkeypatch):
    whole = f"{kernels.__name__}.{name}"
    import_module(whole)
    compiled_module.cache_clear()
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, whole)
        patch.delattr(kernels, name)
        if why == "missing":
            patch.setitem(sys.modules, "numba", None)
        elif why == "broken":
            patch.delattr("numba.njit")
        else:
            patch.setattr("numba.njit", broken)
        assert compiled_module(name) is None
    compiled_module.cache_clear()
    assert compiled_module(name) is not None


def test_a_second_process_compiles_nothing(tmp_path) -> None:
    counts = []
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", TRAIN_AND_ATTACK], cwd=ROOT, capture_output=True, text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        counts.append([int(word) for word in ran.stdout.split()])
    (compiled, _), (again, loaded) = counts
    assert compiled > 0 and again == 0 and loaded > 0
