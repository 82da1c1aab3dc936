"""Whether this version is as fast as another: every row of `bench_speed.py`, both in turns.

    git worktree add ../before ca7d2b3
    OMP_NUM_THREADS=1 python benchmarks/versions.py ../before
    OMP_NUM_THREADS=1 python benchmarks/versions.py ../before --only deep --rounds 20

Each version runs its own `benchmarks/bench_speed.py` in a process of its own. The two take turns
at each call that is timed, so that both meet the same moments of a busy machine and neither runs
while the other is timed. A round is a fresh pair of processes. A ratio is the time before over the
time now, of one round: above 1 this version is faster. All are CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ASK = "?"  # said by a version that waits for its turn
Rows = dict[str, float]  # of each row, seconds


def work(checkout: Path, parts: list[str], repeats: int) -> None:
    """Time the rows of one version, each timed call after a line on the standard input."""
    sys.path[:0] = [str(checkout / "benchmarks"), str(checkout)]
    import bench_speed
    import torch

    import explorer

    if checkout not in Path(explorer.__file__).parents:
        raise SystemExit(f"expected the package of {checkout}; got {explorer.__file__}")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    timed = bench_speed.seconds

    def in_turn(*call: object) -> float:
        print(ASK, flush=True)
        sys.stdin.readline()
        return timed(*call)

    bench_speed.seconds = in_turn
    for part in parts:
        for what, theirs, ours, _ in bench_speed.PARTS[part](repeats):
            print(f"{ours or theirs}\t{what}", flush=True)


def started(checkout: Path, parts: list[str], repeats: int) -> subprocess.Popen[str]:
    """A version that waits for its first turn."""
    command = [sys.executable, __file__, str(checkout), "--work", "--repeats", str(repeats)]
    return subprocess.Popen(
        [*command, "--only", *parts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(checkout)}, cwd=checkout,
    )  # fmt: skip


def turn(version: subprocess.Popen[str], rows: Rows) -> bool:
    """Read what it says until it asks for a turn, True, or has ended."""
    for line in version.stdout:
        if line.strip() == ASK:
            return True
        figure, what = line.rstrip("\n").split("\t")
        rows[what] = float(figure)
    return False


def round_of(checkouts: list[Path], parts: list[str], repeats: int) -> list[Rows]:
    """The rows of each version, in the order given."""
    rows: list[Rows] = [{} for _ in checkouts]
    versions = []
    for checkout, mine in zip(checkouts, rows, strict=True):  # one after another until they ask
        versions.append(started(checkout, parts, repeats))
        turn(versions[-1], mine)
    going = list(zip(versions, rows, strict=True))
    while going:
        for version, mine in list(going):
            version.stdin.write("\n")
            version.stdin.flush()
            if not turn(version, mine):
                going.remove((version, mine))
    failed = [str(c) for c, v in zip(checkouts, versions, strict=True) if v.wait()]
    if failed:
        raise SystemExit(f"the benchmark failed in {', '.join(failed)}")
    return rows


def table(rounds: list[list[Rows]]) -> Iterator[str]:
    """A line for each row that both have: medians over the rounds, ratios with their spread."""
    yield "| row | before | now | before / now | least to most | rounds |"
    yield "|---|---|---|---|---|---|"
    for what in rounds[0][0]:
        if any(what not in rows for made in rounds for rows in made):
            continue
        pairs = [(before[what], now[what]) for before, now in rounds]
        ratios = [before / now for before, now in pairs]
        before, now = (f"{1e3 * statistics.median(v):.3g} ms" for v in zip(*pairs, strict=True))
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        middle = f"{statistics.median(ratios):.3f}"
        yield f"| {what} | {before} | {now} | {middle} | {spread} | {len(ratios)} |"


def main() -> None:
    """Print the table; or, with --work, be one of the versions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="folder of a checkout of the other version")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5, help="turns of each row in a round")
    parser.add_argument("--only", nargs="+", default=["circle", "deep", "exact"])
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    before = args.before.resolve()
    if args.work:
        work(before, args.only, args.repeats)
        return
    rounds = []
    for k in range(args.rounds):
        order = [before, HERE] if k % 2 == 0 else [HERE, before]
        made = round_of(order, args.only, args.repeats)
        rounds.append(made if k % 2 == 0 else made[::-1])
        print(f"round {k + 1} of {args.rounds}", file=sys.stderr, flush=True)
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
