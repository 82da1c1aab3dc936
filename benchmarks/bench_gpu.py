"""Training and attacks on a GPU: graphs of steps, share of the peak, crossover, many starts.

    python benchmarks/bench_gpu.py           needs CUDA; writes benchmarks/gpu.md, row by row
    python benchmarks/bench_gpu.py --smoke   the same code on the CPU, in small; writes nothing
    python benchmarks/bench_gpu.py --minutes 8   leave out the parts that would begin later
    python benchmarks/bench_gpu.py --only training verbs   print these parts alone; writes nothing
    python benchmarks/bench_gpu.py --starts 16,64   on the CPU: starts at once against one by one

Without a GPU it says so, does the smoke run and ends with 0; a table is kept from a GPU alone.
float32, no TF32, no bf16; the sums of the losses are made in float64, and multipliers are solved
for in it. "One by one" is the CPU's usual path in float64, one core.
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start
from explorer.engine.attacks.kkt.blocks import BLOCK, Replay, start_bytes
from explorer.engine.attacks.target import Target
from explorer.engine.classes import from_numbers
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.network import init_network
from explorer.engine.roster import ROSTER
from explorer.engine.training import TrainConfig
from explorer.research.devices import DeviceError, free_bytes
from explorer.research.starts import Starts, attack_starts
from explorer.research.tuning import USUAL, TuneConfig, attempt

OUT = Path(__file__).with_name("gpu.md")


@dataclass(frozen=True)
class Size:
    """What is run: a network, candidates, steps, products of a side, widths, starts, points."""

    d: int
    width: int
    m: int
    steps: int
    product: int
    widths: tuple[int, ...]
    starts: int
    points: int


FULL = Size(784, 1000, 1000, 50_000, 8192, (10, 30, 100, 300, 1000, 3000, 10_000), 1024, 500)
SMOKE = Size(20, 30, 12, 2 * BLOCK, 128, (10, 30), 8, 12)


def seconds(call: Callable[[], object], device: str) -> float:
    """Wall seconds of one call, all of the device's work included."""
    _wait(device)
    begun = time.perf_counter()
    call()
    _wait(device)
    return time.perf_counter() - begun


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def run(
    d: int, widths: tuple[int, ...], m: int, device: str, starts: int = 0,
    dtype: torch.dtype = torch.float32, multipliers: str = "joint", steps: int = 50_000,
) -> tuple[Target, kkt.KKTState, KKTConfig]:  # fmt: skip
    """A random network with the attack on it; `starts` > 0 puts an axis of starts before."""
    generator = torch.Generator().manual_seed(0)
    net = init_network(d, widths, generator=generator, first_scale=d**-0.5)
    target = Target(net.to(dtype=dtype, device=device))
    config = KKTConfig(m=m, steps=steps, multipliers=multipliers, merge_angle=0.0, lr_x=1e-3)
    shape = (starts, m, d) if starts else (m, d)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).double()
    return target, kkt.init(target, config, generator, Start(x, y)), config


def difference(device: str) -> float:
    """The largest relative difference of blocks on the device and the same steps one by one."""
    worst = 0.0
    for widths in ((30,), (20, 20)):
        for multipliers in ("joint", "projected"):
            target, state, config = run(5, widths, 12, device, 2, torch.float64, multipliers)
            fast = Replay(target, state, config, portable=True)
            fast.advance(2 * BLOCK)
            target, state, config = run(5, widths, 12, "cpu", 2, torch.float64, multipliers)
            for _ in range(2 * BLOCK):
                state = kkt.step(target, state, config)
            apart = (fast.state().x.cpu() - state.x).norm() / state.x.norm()
            worst = max(worst, float(apart))
    return worst


def attack_lines(size: Size, device: str) -> Iterator[str]:
    """The large attack: its time, and its arithmetic against that of one large product."""
    torch.backends.cuda.matmul.allow_tf32 = False
    target, state, config = run(size.d, (size.width,) * 2, size.m, device, steps=size.steps)
    replay = Replay(target, state, config, portable=True)
    replay.advance(BLOCK)  # captures the graph
    taken = seconds(lambda: replay.advance(size.steps - BLOCK), device)
    per = taken / (size.steps - BLOCK)
    m, d, k, n = size.m, size.d, size.width, size.product
    # forward, back, up, down; slopes for the margin; then either form of the second residual
    inner = 4 * m * k * k + min(3 * m * k * k, 4 * m * m * k)
    flops = 2 * (inner + 6 * m * k * d)
    a = torch.rand(n, n, device=device)
    _ = a @ a
    peak = 2 * n**3 / min(seconds(lambda: a @ a, device) for _ in range(5))
    name = f"{d}-{k}-{k}-1, m = {m}"
    loss = float(replay.state().l_stationary)
    yield f"| {name}: {size.steps:,} steps | {per * size.steps:.4g} s |"
    yield f"| {name}: one step | {1e3 * per:.3g} ms |"
    yield f"| float32 product {n} x {n} | {peak / 1e12:.3g} TFLOP/s |"
    yield f"| share of it that the products of a step reach | {flops / per / peak:.0%} |"
    yield f"| unexplained at the end | {loss:.3g} |"


def crossover_lines(size: Size, device: str) -> Iterator[str]:
    """One start of m = 40 on 2-k-1, by the program of a device on one core and on the device."""
    for width in size.widths:
        rates = []
        for where in dict.fromkeys(("cpu", device)):
            replay = Replay(*run(2, (width,), 40, where))
            replay.advance(BLOCK)
            taken = min(seconds(lambda w=replay: w.advance(2 * BLOCK), where) for _ in range(3))
            rates.append(2 * BLOCK / taken)
        both = " and ".join(f"{rate:,.0f}" for rate in rates)
        yield f"| 2-{width}-1, m = 40, this program: steps per second, one core and GPU | {both} |"


def starts_lines(size: Size, device: str) -> Iterator[str]:
    """Many starts of m = 40 on 2-k-1 at once, against the CPU's usual path one by one."""
    for multipliers in ("joint", "projected"):
        name = f"2-{size.width}-1, m = 40, {multipliers}"
        alone = one_by_one(size.width, multipliers)
        yield f"| {name}: steps per second, one by one on the CPU | {alone:,.0f} |"
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        rate = at_once(size.width, multipliers, size.starts, device)
        yield f"| the same, {size.starts} starts at once, sum over starts | {rate:,.0f} |"
        yield f"| times as many | {rate / alone:.3g} |"
        if device == "cuda":
            held = torch.cuda.max_memory_allocated() / size.starts
            yield f"| memory per start | {held / 1e6:.3g} MB |"


def at_once(width: int, multipliers: str, starts: int, device: str) -> float:
    """Steps per second, summed over starts that descend at once as on a device; float32."""
    target, state, config = run(2, (width,), 40, device, starts, multipliers=multipliers)
    replay = Replay(target, state, config, portable=True)
    replay.advance(BLOCK)
    taken = min(seconds(lambda: replay.advance(BLOCK), device) for _ in range(3))
    return starts * BLOCK / taken


def one_by_one(width: int, multipliers: str) -> float:
    """Steps per second of one start on the CPU's usual path."""
    target, state, config = run(
        2, (width,), 40, "cpu", dtype=torch.float64, multipliers=multipliers
    )
    states = kkt.iterate(target, state, config, BLOCK)
    next(states)
    return BLOCK / min(seconds(lambda: next(states), "cpu") for _ in range(5))


def training_lines(size: Size, device: str) -> Iterator[str]:
    """Training in blocks on the device, against the CPU's usual path; float64, one core."""
    n, wide = size.points, torch.float64
    for d, widths, classes, decay in (
        (2, (size.width,), 2, 0.0), (2, (size.width,), 3, 0.0), (2, (size.width,), 2, 0.01),
        (size.d, (size.width,) * 2, 2, 0.0),
    ):  # fmt: skip
        rates = []
        for where in dict.fromkeys(("cpu", device)):
            drawn = torch.Generator().manual_seed(0)
            x = torch.randn(n, d, generator=drawn, dtype=wide)
            y = from_numbers(torch.arange(n) % classes + 1)
            data = Dataset(x, y).to(device=where)
            config = TrainConfig(widths=widths, steps=10**6, weight_decay=decay)
            state = training.advance(data, training.init(data, config, drawn), config, BLOCK)
            taken = min(
                seconds(lambda a=data, s=state, c=config: training.advance(a, s, c, BLOCK), where)
                for _ in range(2)
            )
            rates.append(BLOCK / taken)
        both = " and ".join(f"{rate:,.0f}" for rate in rates)
        name = "-".join(map(str, (d, *widths, 1 if classes == 2 else classes)))
        more = ", weight decay" if decay else ""
        yield f"| training {name}{more}, {n} points: steps per second, one core and GPU | {both} |"


def single_lines(size: Size, device: str) -> Iterator[str]:
    """DecoReco and inversion, which read numbers after a block: steps per second, float64."""
    for key, more, outputs in (
        ("decoreco", {"multipliers": "joint"}, 3), ("decoreco", {}, 3), ("inversion", {}, 1),
    ):  # fmt: skip
        entry, rates = ROSTER[key], []
        config = entry.config(m=42, steps=10**6, **more)
        drawn = torch.Generator().manual_seed(0)
        net = init_network(2, (size.width,), generator=drawn, first_scale=0.7, outputs=outputs)
        for where in dict.fromkeys(("cpu", device)):
            target = Target(net.to(device=where))
            state = entry.init(target, config, torch.Generator().manual_seed(0))
            state = entry.advance(target, state, config, BLOCK)
            taken = min(
                seconds(
                    lambda e=entry, t=target, s=state, c=config: e.advance(t, s, c, BLOCK), where
                )
                for _ in range(2)
            )
            rates.append(BLOCK / taken)
        both = " and ".join(f"{rate:,.0f}" for rate in rates)
        name = f"{key}, {' '.join(more.values()) or 'usual'}, 2-{size.width}-{outputs}, m = 42"
        yield f"| {name}: steps per second, one core and GPU | {both} |"


def verb_lines(size: Size, device: str) -> Iterator[str]:
    """What `attack --starts` does, claims and union included, and a trial of `tune`; whole runs."""
    data = preset("alternating-circle", 20 if device == "cuda" else 8)
    target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    config = KKTConfig(m=40, steps=2000 if device == "cuda" else BLOCK)
    made: list[Starts] = []
    starts = min(size.starts, 128)  # claims are merged on the CPU, which takes longer than the rest

    def call() -> None:
        made.append(attack_starts(target, config, range(starts), device=device))

    taken = seconds(call, device)
    alone = seconds(lambda: attack_starts(target, config, range(2)), "cpu") / 2
    name = f"attack_starts, alternating circle, {starts} starts of {config.steps:,} steps"
    yield f"| {name}, {made[-1].together} at once | {taken:.3g} s |"
    yield f"| the same on one core, from two starts | {alone * starts:.3g} s |"
    search = TuneConfig(restarts=8, steps=500 if device == "cuda" else BLOCK)
    trial = seconds(lambda: attempt(target, search, 0, dict(USUAL), device=device), device)
    here = seconds(lambda: attempt(target, search, 0, dict(USUAL)), "cpu")
    yield f"| a trial of tune, 8 restarts: one core and GPU | {here:.3g} and {trial:.3g} s |"


def memory_lines(size: Size, device: str) -> Iterator[str]:
    """The start that does not fit is said before; the memory that is reckoned holds."""
    net = run(2, (size.width,), 40, device)[0].net
    one = start_bytes(net, 40, torch.float32, projected=False)
    free = free_bytes(device)
    fit = "unknown" if free is None else f"{free // one:,}"
    yield f"| joint starts of 2-{size.width}-1, m = 40 reckoned to fit | {fit} |"


def in_turns(counts: list[int], width: int) -> Iterator[str]:
    """On the CPU: starts at once, by the program of a device, against one by one, in turns."""
    yield "| what | one by one | at once | times as many |\n|---|---|---|---|"
    for multipliers in ("joint", "projected"):
        for starts in counts:
            rates = [(one_by_one(width, multipliers), at_once(width, multipliers, starts, "cpu"))
                     for _ in range(3)]  # fmt: skip
            alone, many = (max(column) for column in zip(*rates, strict=True))
            yield (
                f"| 2-{width}-1, m = 40, {multipliers}, {starts} starts | {alone:,.0f} | "
                f"{many:,.0f} | {many / alone:.2g} |"
            )


PARTS = {
    "starts": starts_lines, "attack": attack_lines, "verbs": verb_lines,
    "training": training_lines, "single": single_lines, "memory": memory_lines,
    "crossover": crossover_lines,
}  # fmt: skip


def table(
    size: Size, device: str, parts: Sequence[str] = tuple(PARTS), minutes: float = math.inf
) -> Iterator[str]:
    """Lines of the parts; those that would begin after so many minutes are named only."""
    begun = time.perf_counter()
    yield "| what | measured |\n|---|---|"
    off = difference(device)
    if not off < 1e-6:
        raise SystemExit(f"the steps of a block are not those of kkt.step: {off:.1e} apart")
    yield f"| blocks against single steps on the CPU, float64 | {off:.1e} |"
    for part in map(PARTS.get, parts):
        if time.perf_counter() - begun > 60 * minutes:
            yield f"| {part.__name__} | not run: the time was over |"
            continue
        try:
            yield from part(size, device)
        except (torch.OutOfMemoryError, DeviceError) as error:
            yield f"| {part.__name__} | {str(error).partition(chr(10))[0]} |"


def main() -> None:
    """Print the table, and keep it where there is a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="on the CPU, in small")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[], help="print these alone")
    parser.add_argument("--starts", help="on the CPU: so many starts at once, such as 16,64")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no part later")
    parser.add_argument("--width", type=int, default=1000, help="with --starts: hidden neurons")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the CPU's side is one core
    if args.starts:
        for line in in_turns([int(count) for count in args.starts.split(",")], args.width):
            print(line, flush=True)
        return
    device = "cuda" if torch.cuda.is_available() and not args.smoke else "cpu"
    if device == "cpu" and not args.smoke:
        print("No CUDA device here: the same code runs on the CPU, in small.\n")
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    command = " ".join(["python", "benchmarks/bench_gpu.py", *sys.argv[1:]])
    lines = [
        f"# Training and attacks on {name}\n",
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, torch {torch.__version__}: `{command}`\n",
    ]
    print("\n".join(lines))
    size = FULL if device == "cuda" else SMOKE
    for line in table(size, device, args.only or list(PARTS), args.minutes):
        lines.append(line)
        print(line, flush=True)
        if (
            device == "cuda" and not args.only
        ):  # row by row: a run that is broken off leaves what it measured
            OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
