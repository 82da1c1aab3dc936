"""Compiling every loop before it is needed: `python -m explorer.engine.compiling`.

Loops are compiled at their first use and kept on disk for all later processes. A server does it in
the background before its first visitor; an image of a machine can have it done when it is built.

>>> from explorer.engine import compiling
>>> compiling.all_kept() in (True, False)
True
"""

from __future__ import annotations

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
from explorer.engine.attacks import decoreco, kkt
from explorer.engine.attacks.decoreco import DecoRecoConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.nonnegative import nonnegative
from explorer.engine.threads import few_threads
from explorer.engine.training import TrainConfig

NETWORKS = ((4,), (4, 3))  # one for the loops of two layers, one for those of more
_BEFORE = "Compiling loops for this machine; until then the first runs wait for them."
_AFTER = "Compiled the loops in {:.0f} s; later starts load them."


def compile_all() -> None:
    """Take every road that loops are compiled for, on small networks: each in a process."""
    command = (sys.executable, "-m", "explorer.engine.compiling")
    others = {k: subprocess.Popen([*command, str(k)]) for k in range(1, len(NETWORKS))}
    compile_for(NETWORKS[0])
    for k, process in others.items():
        if process.wait():
            compile_for(NETWORKS[k])  # says what is wrong


def compile_for(widths: tuple[int, ...]) -> None:
    """Take the roads of networks of so many layers."""
    data = preset("moons", n=6)
    with few_threads():
        config = TrainConfig(widths=widths, steps=2)
        state = training.init(data, config, torch.Generator().manual_seed(0))
        target = Target(training.advance(data, state, config, 2).net)
        for multipliers in ("joint", "projected"):
            attack = KKTConfig(m=4, steps=4, multipliers=multipliers)
            found = kkt.init(target, attack, torch.Generator().manual_seed(0))
            kkt.advance(target, found, attack, 4)
        if len(widths) == 1:
            several = DecoRecoConfig(m=4, steps=4)
            seen = decoreco.init(target, several, torch.Generator().manual_seed(0))
            decoreco.advance(target, seen, several, 4)
    loops: Any = compiled_module("compiled_nonnegative")
    if len(widths) == 1 and loops is not None:
        loops.positive(np.eye(2), np.ones(2), np.ones(2), 0.0)
        nonnegative(np.eye(2), np.ones(2))


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

    `only`: the number of one of `NETWORKS`, whose loops alone are compiled, without a word.
    """
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    if only:
        compile_for(NETWORKS[int(only[0])])
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
