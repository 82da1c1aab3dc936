"""The KKT attack on a GPU: graphs of steps, the share of the peak, the crossover, many starts.

    python benchmarks/bench_gpu.py           needs CUDA; writes benchmarks/gpu.md
    python benchmarks/bench_gpu.py --smoke   the same code on the CPU, in small; writes nothing
    python benchmarks/bench_gpu.py --starts 16,64   on the CPU: starts at once against one by one

Without a GPU it says so, does the smoke run and ends with 0; a table is kept from a GPU alone.
float32, no TF32, no bf16; the sums of the losses are made in float64, and multipliers are solved
for in it. "One by one" is the CPU's usual path in float64, one core.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start
from explorer.engine.attacks.kkt.blocks import BLOCK, Replay
from explorer.engine.attacks.target import Target
from explorer.engine.network import init_network

OUT = Path(__file__).with_name("gpu.md")


@dataclass(frozen=True)
class Size:
    """What is run: a network, candidates, steps, products of a side, widths, starts."""

    d: int
    width: int
    m: int
    steps: int
    product: int
    widths: tuple[int, ...]
    starts: int


FULL = Size(784, 1000, 1000, 50_000, 8192, (10, 30, 100, 300, 1000, 3000, 10_000), 1024)
SMOKE = Size(20, 30, 12, 2 * BLOCK, 128, (10, 30), 8)


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
    """One start of m = 40 on 2-k-1: steps per second on the CPU and on the device."""
    for width in size.widths:
        rates = []
        for where in dict.fromkeys(("cpu", device)):
            replay = Replay(*run(2, (width,), 40, where))
            replay.advance(BLOCK)
            taken = min(seconds(lambda w=replay: w.advance(2 * BLOCK), where) for _ in range(3))
            rates.append(2 * BLOCK / taken)
        both = " and ".join(f"{rate:,.0f}" for rate in rates)
        yield f"| 2-{width}-1, m = 40: steps per second, one core and GPU | {both} |"


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
    )  # fmt: skip
    states = kkt.iterate(target, state, config, BLOCK)
    next(states)
    return BLOCK / min(seconds(lambda: next(states), "cpu") for _ in range(5))


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


def table(size: Size, device: str) -> Iterator[str]:
    """All lines of the table."""
    yield "| what | measured |\n|---|---|"
    off = difference(device)
    if not off < 1e-6:
        raise SystemExit(f"the steps of a block are not those of kkt.step: {off:.1e} apart")
    yield f"| blocks against single steps on the CPU, float64 | {off:.1e} |"
    yield from attack_lines(size, device)
    yield from crossover_lines(size, device)
    yield from starts_lines(size, device)


def main() -> None:
    """Print the table, and keep it where there is a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="on the CPU, in small")
    parser.add_argument("--starts", help="on the CPU: so many starts at once, such as 16,64")
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
        f"# The KKT attack on {name}\n",
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, torch {torch.__version__}: `{command}`\n",
    ]
    print("\n".join(lines))
    for line in table(FULL if device == "cuda" else SMOKE, device):
        lines.append(line)
        print(line, flush=True)
    if device == "cuda":
        OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
