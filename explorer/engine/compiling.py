"""Compiling every loop before it is needed: `python -m explorer.engine.compiling`.

Loops are compiled at their first use and kept on disk for all later processes. A server does it in
the background before its first visitor; an image of a machine can have it done when it is built.

>>> from explorer.engine import compiling
>>> compiling.all_kept() in (True, False)
True
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.nonnegative import nonnegative
from explorer.engine.threads import few_threads
from explorer.engine.training import TrainConfig

_BEFORE = "Compiling loops for this machine; until then the first runs wait for them."
_AFTER = "Compiled the loops in {:.0f} s; later starts load them."


def compile_all() -> None:
    """Take every road that loops are compiled for, on small networks: each part in a process."""
    command = (sys.executable, "-m", "explorer.engine.compiling")
    others = {k: subprocess.Popen([*command, str(k)]) for k in range(1, len(PARTS))}
    PARTS[0]()
    for k, process in others.items():
        if process.wait():
            PARTS[k]()  # says what is wrong


def compile_training() -> None:
    """Take the roads of training, of attacks on two layers and two inputs, and of energies."""
    data = preset("moons", n=6)
    with few_threads():
        for widths in ((4, 3), (4,)):
            config = TrainConfig(widths=widths, steps=2)
            state = training.init(data, config, torch.Generator().manual_seed(0))
            state = training.advance(data, state, config, 2)
        _attack(Target(state.net))
    loops: Any = compiled_module("compiled_nonnegative")
    if loops is not None:
        loops.positive(np.eye(2), np.ones(2), np.ones(2), 0.0)
        nonnegative(np.eye(2), np.ones(2))
    loops = compiled_module("compiled_energy")
    if loops is not None:
        x, y, w, v = np.ones((1, 2, 2)), np.ones(2), np.ones((3, 2)), np.ones(2)
        loops.energies(x, y, w, v, 1.0, 1.0, np.ones((1, 2)), np.empty(1), np.empty_like(x))


def compile_layers(dtype: torch.dtype = torch.float64) -> None:
    """Take the roads of attacks on layers of any number and outputs, which share loops."""
    state = training.init(
        preset("moons", n=6), TrainConfig(widths=(4, 3)), torch.Generator().manual_seed(0)
    )
    with few_threads():
        _attack(Target(state.net.to(dtype=dtype)))


def compile_single() -> None:
    """Take the same roads in float32, as attacks on images do."""
    compile_layers(torch.float32)


def _attack(target: Target) -> None:
    """Attack by KKT, with multipliers that are moved and that are solved for."""
    for multipliers in ("joint", "projected"):
        config = KKTConfig(m=4, steps=4, multipliers=multipliers)
        found = kkt.init(target, config, torch.Generator().manual_seed(0))
        kkt.advance(target, found, config, 4)


# Of about equal length, and no loop in two: each would compile it.
PARTS = (compile_training, compile_layers, compile_single)


def all_kept() -> bool:
    """Return whether all loops were compiled by these versions, on this machine.

    Returns:
        False also where there are no loops to compile, as without numba.
    """
    stamp = _stamp()
    return stamp is not None and stamp.exists()


def _stamp() -> Path | None:
    """The file that says so, beside what is kept: of these sources, this numba and machine."""
    kept: Any = compiled_module("jit")
    if kept is None:
        return None
    import llvmlite.binding
    import numba

    machine = f"{numba.__version__}-{llvmlite.binding.get_host_cpu_name()}"
    python = "".join(map(str, sys.version_info[:2]))
    return Path(kept.folder()) / f"all-{python}-{machine}"


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main(only: Sequence[str] = ()) -> None:
    """Compile what is not yet kept, and say so; end when the process that asked for it does.

    `only`: the number of one of `PARTS`, which alone is compiled, without a word.
    """
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    gc.set_threshold(100_000, 50)  # a tenth of the time: most of what a compiler makes stays
    gc.freeze()
    if only:
        PARTS[int(only[0])]()
        return
    stamp, begun = _stamp(), time.monotonic()
    if stamp is None or stamp.exists():
        return
    print(_BEFORE, file=sys.stderr, flush=True)
    compile_all()
    stamp.touch()
    print(_AFTER.format(time.monotonic() - begun), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
