"""How cost grows: with width, candidates, points, dimension and starts; memory per start.

    python benchmarks/bench_scaling.py           all sizes
    python benchmarks/bench_scaling.py --quick   fewer sizes and repeats

Each row: CPU seconds (median) over the sizes, the exponent fitted to the larger half of them by
least squares on the logarithms, the exponent expected for large sizes and why. One thread, float64,
denormals flushed. Memory is the growth of the largest resident set of a process of its own.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.network import init_network
from explorer.engine.training import TrainConfig

Job = Callable[[], object]


@dataclass(frozen=True)
class Law:
    """One quantity over one size: how to make the job, the sizes, what is expected and why."""

    what: str
    over: str
    sizes: tuple[int, ...]
    job: Callable[[int], Job]
    expected: str
    reason: str


def points(n: int, d: int, seed: int = 0) -> Dataset:
    """Random points with random labels, of both classes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    return Dataset(x, y)


def train_job(n: int, d: int, *widths: int) -> Job:
    """One training step."""
    data, config = points(n, d), TrainConfig(widths=widths)
    state = [training.init(data, config, torch.Generator().manual_seed(0))]

    def job() -> None:
        state[0] = training.step(data, state[0], config)

    return job


def attack_job(m: int, d: int, *widths: int, starts: int = 0, multipliers: str = "joint") -> Job:
    """One step of the attack, nothing merged."""
    generator = torch.Generator().manual_seed(0)
    target = Target(init_network(d, widths, generator=generator, first_scale=d**-0.5))
    config = KKTConfig(
        m=m, steps=10**6, multipliers=multipliers, merge_angle=0.0, lr_x=1e-7, lr_lam=1e-7,
        relu_alpha_start=None, relu_alpha=50.0,
    )  # fmt: skip
    shape = (starts, m, d) if starts else (m, d)
    start = Start(torch.randn(shape, generator=generator).double(), points(m, d).y)
    state = [kkt.init(target, config, generator, start)]

    def job() -> None:
        state[0] = kkt.step(target, state[0], config)

    return job


def exact_job(n: int, d: int) -> Job:
    """Five exact networks."""
    sets = [points(n, d, seed) for seed in range(5)]
    return lambda: [maximum_margin(s.x, s.y) for s in sets]


def certificate_job(n: int, width: int) -> Job:
    """The certificate of a network trained for 1000 steps."""
    data, config = preset("moons", n), TrainConfig(widths=(width,), steps=1000)
    state = training.init(data, config, torch.Generator().manual_seed(0))
    for following in training.iterate(data, state, config):
        state = following
    if state.q_min <= 0:
        raise ValueError(f"the network does not separate the {n} points yet; take more steps")
    return lambda: certify(state.net, data.x, data.y)


PASSES = "a few passes over (m, k) arrays"
LAWS = (
    Law("training step, 2-k-1, n = 20", "width k", (100, 400, 1600, 6400, 25_600),
        lambda k: train_job(20, 2, k), "1", "n k values; calls cost more below k = 1000"),
    Law("training step, 2-k-k-1, n = 20", "width k", (50, 100, 200, 400, 800),
        lambda k: train_job(20, 2, k, k), "2", "n k² products and k² weights"),
    Law("training step, 2-1000-1", "points n", (20, 80, 320, 1280),
        lambda n: train_job(n, 2, 1000), "1", "n k values"),
    Law("attack step, 2-k-1, m = 40", "width k", (100, 300, 1000, 3000, 10_000),
        lambda k: attack_job(40, 2, k), "1", PASSES),
    Law("attack step, 2-1000-1", "candidates m", (10, 40, 160, 640),
        lambda m: attack_job(m, 2, 1000), "1", PASSES),
    Law("attack step, d-1000-1, m = 40", "dimension d", (2, 8, 32, 128, 512),
        lambda d: attack_job(40, d, 1000), "1", "products m k d; below d = 30 passes over (m, k)"),
    Law("attack step, 2-k-k-1, m = 50", "width k", (50, 100, 200, 400, 800),
        lambda k: attack_job(50, 2, k, k), "2", "four products m k²; the Gram forms take m² k"),
    Law("attack step, 2-500-500-1", "candidates m", (26, 50, 100, 200, 400),
        lambda m: attack_job(m, 2, 500, 500), "1 to 2", "m k², and m² k until m = 0.75 k"),
    Law("projected attack step, 2-100-1", "candidates m", (20, 40, 80, 160),
        lambda m: attack_job(m, 2, 100, multipliers="projected"), "3",
        "Cholesky's factors and the active sets of m multipliers; m² k before"),
    Law("attack step of b starts, 2-100-1, m = 40", "starts b", (1, 4, 16, 64, 256),
        lambda b: attack_job(40, 2, 100, starts=b), "1", "calls are shared, passes are not"),
    Law("five exact networks, 1-D", "points n", (4, 8, 16, 32),
        lambda n: exact_job(n, 1), "2 to 3", "rounds of linear programs of n rows over the faces"),
    Law("five exact networks, 2-D", "points n", (4, 6, 8, 12),
        lambda n: exact_job(n, 2), "3 to 4", "n² faces, each priced on n points"),
    Law("certificate, 2-k-1, n = 20", "width k", (50, 100, 200, 400),
        lambda k: certificate_job(20, k), "1", "Gram matrices of n points and kinked pairs"),
    Law("certificate, 2-100-1", "points n", (10, 20, 40, 80),
        lambda n: certificate_job(n, 100), "2 to 3",
        "pairs at a kink grow with n, their constrained fit with the square"),
)  # fmt: skip


def median_seconds(job: Job, repeats: int) -> float:
    """The median CPU seconds; short jobs are called often enough to last 5 ms."""
    job()
    begun = time.process_time()
    job()
    times = max(1, math.ceil(0.005 / max(time.process_time() - begun, 1e-5)))
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        for _ in range(times):
            job()
        taken.append((time.process_time() - begun) / times)
    return statistics.median(taken)


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log value over log size, on the larger half (at least two)."""
    half = len(sizes) // 2
    pairs = [(math.log(s), math.log(v)) for s, v in zip(sizes, values, strict=True)][half:]
    mean_s, mean_v = (statistics.fmean(column) for column in zip(*pairs, strict=True))
    above = sum((s - mean_s) * (v - mean_v) for s, v in pairs)
    return above / sum((s - mean_s) ** 2 for s, _ in pairs)


def rows(quick: bool, only: str) -> Iterator[str]:
    """One line per law whose name holds `only`."""
    for law in (law for law in LAWS if only in law.what):
        sizes = law.sizes[:3] if quick else law.sizes
        values = [median_seconds(law.job(size), 3 if quick else 5) for size in sizes]
        cells = ", ".join(f"{s:,}: {1e3 * v:.3g}" for s, v in zip(sizes, values, strict=True))
        fitted = exponent(sizes, values)
        yield (
            f"| {law.what} | {law.over} | {cells} | {fitted:.2f} | {law.expected} | {law.reason} |"
        )


def resident(starts: int, m: int, width: int) -> int:
    """The largest resident set, in bytes, of a process that takes ten steps with these starts."""
    asked = [sys.executable, __file__, "--memory", str(starts), str(m), str(width)]
    return int(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def largest() -> int:
    """The largest resident set of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # of this program alone; getrusage remembers the one that started it
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_rows(quick: bool) -> Iterator[str]:
    """Memory per start of a batch."""
    for m, width, starts in ((40, 100, 1024), (40, 1000, 1024), (100, 100, 512)):
        many = starts // 4 if quick else starts
        grown = resident(many, m, width) - resident(1, m, width)
        state = 8 * m * (2 * 4 + 5)  # x, its gradient, two moments; lam, y and the like
        per = grown / (many - 1) / 1e3
        yield f"| 2-{width}-1, m = {m}, {many} starts | {per:.3g} kB | {state / 1e3:.3g} kB |"


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="a part of the work's name")
    parser.add_argument("--memory", nargs=3, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if args.memory:
        starts, m, width = args.memory
        job = attack_job(m, 2, width, starts=starts)
        for _ in range(10):
            job()
        print(largest())
        return
    print("| work | over | size: ms | fitted | expected | why |\n|---|---|---|---|---|---|")
    for line in rows(args.quick, args.only):
        print(line, flush=True)
    print("\n| batch | memory per start | of it the state |\n|---|---|---|")
    for line in memory_rows(args.quick):
        print(line, flush=True)


if __name__ == "__main__":
    main()
