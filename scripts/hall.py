"""Screen drawings for the hall: which keep their result where sums are taken in another order?

    python scripts/hall.py [NAME-SEED ...]

Such as square-4; without names those that the hall has. Each is trained, attacked and proven with
one thread, with two, by the instructions of an old processor, and by loops that the process itself
compiled, as at the first start. A line for each of these: the points that the machine meets, of 20,
and the places that must hold one (none where too few are met). What fails in one way is not tried
in the next. It takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
OLD = {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default",
       "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}  # fmt: skip
WAYS = {
    "one thread": {"OMP_NUM_THREADS": "1"},
    "two threads": {"OMP_NUM_THREADS": "2"},
    "old processor": {"OMP_NUM_THREADS": "1", **OLD},
    "compiled anew": {"OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": "{fresh}"},
}
MET, PLACES = 17, 13  # least; arbitrary: each act of a round has something to show
ONE = "--here"  # measures these in this process


def measure(name: str, seed: int) -> tuple[int, int]:
    """Return how many points the machine meets, and how many places must hold one."""
    from explorer.engine.progress import no_progress
    from explorer.engine.threads import limit_threads
    from explorer.page.sharing.hall_panel import answers, other_round

    limit_threads()
    met = 0
    for part in answers(other_round(name, seed, 1, no_progress), no_progress):
        if "verdict" in part:
            met = part["verdict"].found
            if met < MET:
                break
        if "needed" in part:
            return met, 0 if part["needed"] is None else len(part["needed"].rows)
    return met, 0


def screened(drawings: list[str], way: dict[str, str], fresh: str) -> list[str]:
    """Measure these in a process of its own: how sums are taken is set when it begins."""
    own = {name: value.format(fresh=fresh) for name, value in way.items()}
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE", **own}
    ask, passed = [sys.executable, "-u", __file__, ONE, *drawings], []
    with subprocess.Popen(ask, env=env, stdout=subprocess.PIPE, text=True) as running:
        for drawing, line in zip(drawings, running.stdout or (), strict=True):
            met, places = map(int, line.split())
            passes = met >= MET and places >= PLACES
            passed += [drawing] * passes
            print(f"  {drawing:12} {met:2} of 20, {places:2} places", "" if passes else "fails")
    return passed


def main(asked: list[str]) -> None:
    """Screen these; an error where one fails."""
    passed = asked
    for name, way in WAYS.items():
        print(name)
        with TemporaryDirectory() as fresh:
            passed = screened(passed, way, fresh)
    print(f"{len(passed)} of {len(asked)} pass:", *passed)
    sys.exit(len(passed) < len(asked))


if __name__ == "__main__":
    if ONE in sys.argv:
        for drawing in sys.argv[2:]:
            kind, _, seed = drawing.partition("-")
            print(*measure(kind, int(seed)))
    else:
        from explorer.research.hall import PREPARED

        main(sys.argv[1:] or [f"{kind}-{seed}" for kind, seed in PREPARED])
