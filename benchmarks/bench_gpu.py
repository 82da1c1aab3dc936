"""The joint attack on a GPU: graphs of steps, the share of the peak, the crossover, many starts.

    python benchmarks/bench_gpu.py           needs CUDA; writes benchmarks/gpu.md
    python benchmarks/bench_gpu.py --smoke   the same code on the CPU, in small; writes nothing

Without a GPU it says so, does the smoke run and ends with 0. float32, no TF32, no bf16; the sums of
the losses are made in float64.
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
    dtype: torch.dtype = torch.float32, steps: int = 50_000,
) -> tuple[Target, kkt.KKTState, KKTConfig]:  # fmt: skip
    """A random network with the joint attack on it; `starts` > 0 puts an axis of starts before."""
    generator = torch.Generator().manual_seed(0)
    net = init_network(d, widths, generator=generator, first_scale=d**-0.5)
    target = Target(net.to(dtype=dtype, device=device))
    config = KKTConfig(m=m, steps=steps, multipliers="joint", merge_angle=0.0, lr_x=1e-3)
    shape = (starts, m, d) if starts else (m, d)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).double()
    return target, kkt.init(target, config, generator, Start(x, y)), config


def difference(device: str) -> float:
    """The largest relative difference of a replayed block and the same steps one by one."""
    worst = 0.0
    for widths in ((30,), (20, 20)):
        target, state, config = run(5, widths, 12, device, 2, torch.float64)
        fast = Replay(target, state, config)
        fast.advance(2 * BLOCK)
        for _ in range(2 * BLOCK):
            state = kkt.step(target, state, config)
        worst = max(worst, float((fast.state().x - state.x).norm() / state.x.norm()))
    return worst


def attack_lines(size: Size, device: str) -> Iterator[str]:
    """The large attack: its time, and its arithmetic against that of one large product."""
    torch.backends.cuda.matmul.allow_tf32 = False
    target, state, config = run(size.d, (size.width,) * 2, size.m, device, steps=size.steps)
    replay = Replay(target, state, config)
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
    """Many starts of m = 40 on 2-100-1 at once, against one."""
    rates = []
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    for starts in (1, size.starts):
        replay = Replay(*run(2, (100,), 40, device, starts))
        replay.advance(BLOCK)
        taken = min(seconds(lambda w=replay: w.advance(BLOCK), device) for _ in range(3))
        rates.append(starts * BLOCK / taken)
    yield f"| 2-100-1, m = 40: steps per second, one start | {rates[0]:,.0f} |"
    yield f"| the same, {size.starts} starts at once, sum over starts | {rates[1]:,.0f} |"
    if device == "cuda":
        held = torch.cuda.max_memory_allocated() / size.starts
        yield f"| memory per start | {held / 1e6:.3g} MB |"


def table(size: Size, device: str) -> Iterator[str]:
    """All lines of the table."""
    yield "| what | measured |\n|---|---|"
    off = difference(device)
    if not off < 1e-10:
        raise SystemExit(f"the replayed steps are not those of kkt.step: they differ by {off:.1e}")
    yield f"| replayed block against single steps, float64 | {off:.1e} |"
    yield from attack_lines(size, device)
    yield from crossover_lines(size, device)
    yield from starts_lines(size, device)


def main() -> None:
    """Print the table, and keep it where there is a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="on the CPU, in small")
    parser.add_argument("--out", type=Path, help="keep the table here; with CUDA: gpu.md")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the CPU's side is one core
    device = "cuda" if torch.cuda.is_available() and not args.smoke else "cpu"
    if device == "cpu" and not args.smoke:
        print("No CUDA device here: the same code runs on the CPU, in small.\n")
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    command = " ".join(["python", "benchmarks/bench_gpu.py", *sys.argv[1:]])
    lines = [
        f"# The joint attack on {name}\n",
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, torch {torch.__version__}: `{command}`\n",
    ]
    print("\n".join(lines))
    for line in table(FULL if device == "cuda" else SMOKE, device):
        lines.append(line)
        print(line, flush=True)
    out = args.out or (OUT if device == "cuda" else None)
    if out:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
