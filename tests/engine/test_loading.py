"""Compiled loops are kept on disk, and what has none of them goes by torch's calls."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import pytest

from explorer.engine import compiling, kernels
from explorer.engine.kernels import jit
from explorer.engine.kernels.loading import compiled_module

KERNELS = Path(kernels.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "compiled_layers", "compiled_nonnegative", "compiled_training", "compiled_two_inputs",
]  # fmt: skip
TRAIN_AND_ATTACK = f"""
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
    loop.stats for name in {NAMES}
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
        for own in (whole, jit.__name__):
            patch.delitem(sys.modules, own)
            patch.delattr(kernels, own.rpartition(".")[2])
        if why == "missing":
            patch.setitem(sys.modules, "numba", None)
        elif why == "broken":
            patch.delattr("numba.njit")
        else:
            patch.setattr("numba.njit", broken)
        assert compiled_module(name) is None
    compiled_module.cache_clear()
    assert compiled_module(name) is not None


def ran(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow  # compiles all there is
def test_what_is_compiled_once_is_compiled_for_all_processes(tmp_path) -> None:
    said = [ran(tmp_path, "-m", "explorer.engine.compiling").stderr for _ in range(2)]
    assert said[0].count("\n") == 2 and not said[1]
    misses, hits = map(int, ran(tmp_path, "-c", TRAIN_AND_ATTACK).stdout.split())
    assert misses == 0 and hits > 0


def test_whether_all_is_kept_can_be_asked_of_the_loops_themselves() -> None:
    assert compiling.all_kept() in (True, False)


def test_what_changes_makes_all_loops_anew(tmp_path, monkeypatch) -> None:
    """A later version of one file, or of numba."""
    monkeypatch.setattr(compiling, "compiled_module", lambda _: None)
    assert not compiling.all_kept()
    monkeypatch.undo()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(compiling, "compile_all", lambda: None)
    copied = tmp_path / "jit.py"
    for name in (name for pattern in jit.SOURCES for name in KERNELS.glob(pattern)):
        (tmp_path / name.name).write_bytes(name.read_bytes())
    monkeypatch.setattr(jit, "__file__", str(copied))
    jit.folder.cache_clear()
    try:
        assert not compiling.all_kept()
        compiling.main()
        assert compiling.all_kept()
        with monkeypatch.context() as patch:
            patch.setattr("numba.__version__", "0.0")
            assert not compiling.all_kept()
        copied.write_text("")
        jit.folder.cache_clear()
        assert not compiling.all_kept()
    finally:
        jit.folder.cache_clear()


def test_where_no_folder_can_be_written_there_are_no_loops(tmp_path, monkeypatch) -> None:
    """Neither the one asked for, nor, where none is, that beside the sources and the user's."""
    closed = tmp_path / "a file"
    closed.write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(closed))
        jit.folder.cache_clear()
        with pytest.raises(RuntimeError, match="set NUMBA_CACHE_DIR"):
            jit.folder()
    with monkeypatch.context() as patch:  # a disk that is only read
        patch.setattr(numba.config, "CACHE_DIR", "")
        patch.setattr(jit.appdirs, "user_cache_dir", lambda *_: str(tmp_path / "user"))
        patch.setattr(jit, "__file__", str(closed / "jit.py"))
        jit.folder.cache_clear()
        assert jit.folder().parent == tmp_path / "user"
    jit.folder.cache_clear()
