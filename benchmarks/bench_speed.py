"""How fast the engine is against the published formulas, both sides in one run.

    python benchmarks/bench_speed.py            every row but the training (some minutes, one core)
    python benchmarks/bench_speed.py --long     the training with the published settings too
    python benchmarks/bench_speed.py --only deep     one part of it
    python benchmarks/bench_speed.py --plain    blocks of the joint attack without compiled loops

The reference is `benchmarks/reference.py`: plain autograd with a double backward. Both sides flush
denormals, run on one thread in float64 and take turns; each figure is the median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import reference
import torch

from explorer.engine import training
from explorer.engine.attacks import decoreco, kkt
from explorer.engine.attacks.decoreco import DecoRecoConfig
from explorer.engine.attacks.kkt import KKTConfig, Start, loops
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers, labels
from explorer.engine.data import Dataset, preset
from explorer.engine.data.images import Choice, draw
from explorer.engine.exact import maximum_margin
from explorer.engine.kernels.batched import Prepared, gram, through
from explorer.engine.scoring import RADII, score
from explorer.engine.training import TrainConfig
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun

ALPHA = 50.0
Row = tuple[str, float, float, str]  # what, reference s, ours s, asked


def seconds(call: Callable[[], object], times: int) -> float:
    """CPU seconds of one call, the mean of `times`."""
    begun = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begun) / times


def medians(calls: list[tuple[Callable[[], object], int]], repeats: int) -> list[float]:
    """The median CPU seconds of each call; they take turns."""
    for call, _ in calls:
        call()
    rounds = [[seconds(call, times) for call, times in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def published(m: int, **more: object) -> KKTConfig:
    """The published step in our units, at a rate so small that all steps are alike."""
    return KKTConfig(
        m=m, steps=10**6, multipliers="joint", optimizer="sgd", lr_x=1e-7, lr_lam=1e-7, decay=1.0,
        relu_alpha=ALPHA, relu_alpha_start=None, weight_margin=0.0, **more,
    )  # fmt: skip


class Run:
    """One of our runs, stepped in turn with the reference."""

    def __init__(self, target: Target, config: KKTConfig, start: Start | None) -> None:
        self.target, self.config = target, config
        self.state = kkt.init(target, config, torch.Generator().manual_seed(0), start)

    def step(self) -> None:
        """One step."""
        self.state = kkt.step(self.target, self.state, self.config)


def trained(*widths: int, steps: int = 20_000) -> Target:
    """The alternating circle on these widths, at margin 1."""
    data, config = preset("alternating-circle", 20), TrainConfig(widths=widths, steps=steps)
    state = training.init(data, config, torch.Generator().manual_seed(0))
    state = training.advance(data, state, config, steps)
    return Target.of(state.net, state.q_min)


class Blocks:
    """The same steps in blocks, with no state in between."""

    def __init__(self, run: Run, steps: int) -> None:
        net = run.target.prepared_network(run.config.merge_angle, run.config.same_slopes)
        self.run, self.steps = Replay(run.target, run.state, run.config), steps
        if loops.serves(net, run.state):
            self.run = loops.KKTRun(run.target, net, run.state, run.config)

    def step(self) -> None:
        """One block."""
        self.run.advance(self.steps)


def circle_rows(repeats: int) -> Iterator[Row]:
    """2-1000-1, m = 40, on a trained network: the same network, merged, and 25 starts at once."""
    target, m = trained(1000), 40
    _, x, y, lam = reference.problem(2, (1,), m)
    x, lam = 0.7 * x, 2 * lam * target.mass / m
    theirs = reference.Reference(target.net, x, y, lam, ALPHA)
    same, merged = published(m, merge_angle=0.0), published(m, same_slopes=True)
    starts = Start(torch.stack([x] * 25), y)
    runs = [Run(target, same, Start(x, y)), Run(target, merged, Start(x, y))]
    batch = Run(target, merged, starts)
    blocks = [Blocks(run, n) for run, n in zip((*runs, batch), (100, 100, 10), strict=True)]
    calls = [(run.step, 100) for run in (theirs, *runs)] + [(batch.step, 10)]
    times = medians(calls + [(block.step, 1) for block in blocks], repeats)
    a, b, c, d = times[:4]
    e, f, g = (t / block.steps for t, block in zip(times[4:], blocks, strict=True))
    k = target.merged(merged.merge_angle).widths[0]
    nets = target.prepared_network(0.0), target.prepared_network(merged.merge_angle, True)
    whole, less = (through(net, x, ALPHA).fit(lam * y).loss for net in nets)
    off = abs(float(less / whole) - 1)
    yield "attack step, 2-1000-1, m = 40, same network", a, b, "2.5 x"
    yield "the same in blocks", a, e, "2.5 x"
    yield f"merged to {k} neurons (loss differs by {off:.0e}), step by step", a, c, "15 x"
    yield "merged, in blocks", a, f, "15 x"
    yield "25 starts of m = 40 at once, against one after another", 25 * c, d, "6 x"
    yield "25 starts in blocks, against one after another step by step", 25 * c, g, "6 x"
    yield "25 starts in blocks, against one after another in blocks", 25 * f, g, "6 x"
    usual = KKTConfig(m=m, steps=200, multipliers="joint")
    first = kkt.init(target, usual, torch.Generator().manual_seed(0))
    whole = [(lambda n=n: deque(kkt.iterate(target, first, usual, n), 0), 1) for n in (1, 20)]
    yield "200 steps of the usual joint attack, in blocks of 20", *medians(whole, repeats), ""


class Autograd:
    """The same network in torch.nn, cross-entropy and SGD: what a user would write."""

    def __init__(self, config: TrainConfig, data: Dataset) -> None:
        layers, below = [], data.d
        for i, width in enumerate(config.widths):
            biased = i == 0 or config.all_biases
            layers += [torch.nn.Linear(below, width, bias=biased), torch.nn.ReLU()]
            below = width
        last = torch.nn.Linear(below, data.outputs, bias=config.all_biases)
        self.net, self.x = torch.nn.Sequential(*layers, last).double(), data.x
        self.several = data.outputs > 1
        self.wanted = class_numbers(data.y) - 1 if self.several else (data.y + 1) / 2
        decay = config.weight_decay
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=1e-3, weight_decay=decay)

    def step(self) -> None:
        """One step, and its loss as a number."""
        out, losses = self.net(self.x), torch.nn.functional
        if self.several:
            loss = losses.cross_entropy(out, self.wanted)
        else:
            loss = losses.binary_cross_entropy_with_logits(out[:, 0], self.wanted)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        loss.item()


def ten_classes() -> Dataset:
    """100 points of 64 coordinates in ten classes, of the size of the digits, drawn by chance."""
    x = torch.randn(100, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Dataset(0.3 * x, torch.tensor(labels(10)).double().repeat(10))


def step_rows(repeats: int) -> Iterator[Row]:
    """The default training step, in blocks as `train` takes them: 200 of its 20,000 steps."""
    circle, many, three = (
        preset("alternating-circle", 20), preset("blobs", 200), preset("three-blobs"),
    )  # fmt: skip
    decay, biases, ten = {"weight_decay": 1e-3}, {"all_biases": True}, ten_classes()
    cases = [
        (circle, (100,), {}, "50 x"), (circle, (1000,), {}, "5 x"),
        (circle, (100, 100), {}, "3 x"), (circle, (1000, 1000), {}, "1.5 x"),
        (many, (100,), {}, ""), (many, (100, 100), {}, ""),
        (three, (100,), {}, ""), (three, (1000,), {}, ""), (three, (100, 100), {}, ""),
        (ten, (100,), {}, ""), (ten, (500,), {}, ""),
        (circle, (100,), decay, ""), (three, (100,), decay, ""), (circle, (100,), biases, ""),
    ]  # fmt: skip
    for data, widths, more, wanted in cases:
        config = TrainConfig(widths=widths, steps=10**9, **more)
        state = training.init(data, config, torch.Generator().manual_seed(0))
        held, times = [training.advance(data, state, config, 20)], 20 if max(widths) < 1000 else 5
        block = 200 if widths != (1000, 1000) else 50

        def ours(data=data, held=held, config=config, block=block) -> None:
            held[0] = training.advance(data, held[0], config, block)

        a, b = medians([(Autograd(config, data).step, times), (ours, 1)], repeats)
        name = "-".join(map(str, (data.d, *widths, data.outputs)))
        of = "" if data is circle else f", {data.n} points"
        of += ", weight decay" * bool(config.weight_decay) + ", all biases" * config.all_biases
        yield f"training step, {name}{of}, against autograd and SGD", a, b / block, wanted


def default_rows(repeats: int) -> Iterator[Row]:
    """The default attack in blocks of 20, as `attack` takes them, over its first 400 steps."""
    cases = [
        (2, (1000,), 40, "30 x", ""), (2, (1000,), 100, "10 x", ""),
        (2, (100, 100), 100, "2 x", "3 x"), (2, (1000, 1000), 100, "2.5 x", "4 x"),
        (64, (1000, 1000), 200, "2 x", "3 x"),
    ]  # fmt: skip
    for d, widths, m, wanted, wanted32 in cases:
        net, x, y, lam = reference.problem(d, widths, m)
        target = trained(*widths) if d == 2 and sum(widths) <= 1000 else Target(net)
        theirs = reference.Reference(target.net, x, y, lam, ALPHA)
        config, wide = KKTConfig(m=m), sum(widths) > 1000
        first = kkt.init(target, config, torch.Generator().manual_seed(0))
        steps = 20 if wide else 400

        def ours(target=target, first=first, config=config, steps=steps) -> None:
            for state in kkt.iterate(target, first, config, 20):
                if state.t >= steps:
                    return

        a, b = medians([(theirs.step, 2 if wide else 20), (ours, 1)], min(repeats, 5))
        name = "-".join(map(str, (d, *widths, 1)))
        yield f"default attack, {name}, m = {m}, in blocks of 20", a, b / steps, wanted
        if len(widths) > 1:
            single = Target(target.net.to(dtype=torch.float32))
            first = kkt.init(single, config, torch.Generator().manual_seed(0))

            def ours32(single=single, first=first, config=config, steps=steps) -> None:
                ours(single, first, config, steps)

            a, b = medians([(theirs.step, 2 if wide else 20), (ours32, 1)], min(repeats, 5))
            yield f"the same in float32 (reference in float64), m = {m}", a, b / steps, wanted32


def claim_rows(repeats: int) -> Iterator[Row]:
    """Until 18 of 20 circle points are claimed, 2-1000-1, looked at every 20 steps; seeds."""
    truth, config = preset("alternating-circle", 20), KKTConfig()
    train = TrainConfig(widths=(1000,), steps=20_000)
    taken = []
    for seed in range(repeats + 1):  # the first loads the loops
        state = training.init(truth, train, torch.Generator().manual_seed(seed))
        state = training.advance(truth, state, train, train.steps)
        target, spent = Target.of(state.net, state.q_min), -time.process_time()
        found = kkt.init(target, config, torch.Generator().manual_seed(seed))
        for found in kkt.iterate(target, found, config, 20):  # noqa: B020
            spent += time.process_time()
            claims = kkt.report(target, found, config)
            if int(score(truth, claims.x, claims.y).found[RADII.index(0.03)]) >= 18:
                taken.append(spent)
                break
            spent -= time.process_time()
    parts = sorted(taken[1:])
    name = f"18 of 20 claimed, 2-1000-1, default, in {len(parts)} of {repeats} runs"
    yield f"{name}: the quickest", 0.0, parts[0], "0.1 s"
    yield f"{name}: median", 0.0, statistics.median(parts), "0.1 s"
    yield f"{name}: the slowest", 0.0, parts[-1], "0.1 s"


def classes_rows(repeats: int) -> Iterator[Row]:
    """DecoReco in blocks of 20 over its first 400 steps, against its own steps of torch's calls."""
    outputs = {"contribution": "outputs"}
    cases = [
        ("three-blobs", {}, {}), ("three-blobs", {}, {"multipliers": "joint"}), ("pie", {}, {}),
        ("three-blobs", {}, outputs), ("moons", {"weight_decay": 1e-3}, outputs),
    ]  # fmt: skip
    for name, more, settings in cases:
        data, train = preset(name), TrainConfig(widths=(100,), steps=5000, **more)
        state = training.init(data, train, torch.Generator().manual_seed(0))
        state = training.advance(data, state, train, train.steps)
        target, config = Target.of(state.net, state.q_min), DecoRecoConfig(**settings)
        first = decoreco.init(target, config, torch.Generator().manual_seed(0))

        def ours(target=target, first=first, config=config) -> None:
            for state in decoreco.iterate(target, first, config, 20):
                if state.t >= 400:
                    return

        def single(target=target, first=first, config=config) -> None:
            state = first
            for _ in range(10):
                state = decoreco.step(target, state, config)

        a, b = medians([(single, 1), (ours, 1)], repeats)
        of = ", ".join([name, *(f"{v}" for v in settings.values())])
        yield (
            f"DecoReco, 2-100-{data.outputs} on {of}, m = 60, in blocks of 20",
            a / 10,
            b / 400,
            "",
        )


def image_rows(repeats: int) -> Iterator[Row]:
    """Steps on genuine images of MNIST, against the product of the candidates by the weights."""
    for widths, n in (((1000,), 20), ((1000,), 80), ((1000,), 250), ((1000, 1000), 20)):
        run = ImageRun(Choice(kind="mnist", n=n), widths, train_steps=1000)
        drawn = draw(run.choice)
        target = image_runs.aim(drawn, run, deque(image_runs.train(drawn, run), 1)[0]).target
        single = replace(target, net=target.net.to(dtype=torch.float32))
        name, m = f"784-{'-'.join(map(str, widths))}-1, m = {run.config.m}", run.config.m
        made = {"default": (target, run.config), "default, float32": (single, run.config)}
        if len(widths) == 1:
            made["joint"] = target, replace(run.config, multipliers="joint")
        calls, block = [(_layer_products(target, m), 2)], 25  # a return into the range of pixels
        for aimed, config in made.values():
            first = kkt.init(aimed, config, torch.Generator().manual_seed(0))
            first = kkt.advance(aimed, first, config, 100)
            calls.append((partial(kkt.advance, aimed, first, config, block), 1))
        product, *steps = medians(calls, min(repeats, 5))
        for kind, taken in zip(made, steps, strict=True):
            yield f"{kind} attack step, {name}: share of one product", product, taken / block, "1/3"


def _layer_products(target: Target, m: int) -> Callable[[], None]:
    """The product of m rows by the weights of each hidden layer, in float64."""
    weights = [w.T.contiguous() for w in target.net.weights[:-1]]
    rows = [torch.rand(m, len(w), dtype=w.dtype) for w in weights]
    outs = [r @ w for r, w in zip(rows, weights, strict=True)]

    def run() -> None:
        for row, w, out in zip(rows, weights, outs, strict=True):
            torch.mm(row, w, out=out)

    return run


def deep_rows(repeats: int) -> Iterator[Row]:
    """Three layers: against the reference, and against the matrix products alone."""
    for d, m in ((2, 100), (64, 200)):
        net, x, y, lam = reference.problem(d, (1000, 1000), m)
        theirs = reference.Reference(net, x, y, lam, ALPHA)
        ours = Run(Target(net), published(m, merge_angle=0.0), Start(x, y))
        products = _products(Prepared.of(net), x)
        block = Blocks(ours, 3)
        calls = [(theirs.step, 3), (ours.step, 3), (products, 3), (block.step, 1)]
        a, b, c, whole = medians(calls, repeats)
        name = f"attack step, {d}-1000-1000-1, m = {m}"
        yield name, a, b, "2.5 x"
        yield f"{name}: the same in blocks", a, whole / block.steps, "2.5 x"
        yield f"{name}: its matrix products alone, share of the step", c, b, "0.5"


def _products(net: Prepared, x: torch.Tensor) -> Callable[[], None]:
    """The products of one step that are not of a vector, and nothing else."""
    m, k, d = len(x), len(net.blocks[1]), x.shape[1]
    a, first, w = torch.rand(k, m).double(), net.weights[0], net.weights[1]
    a0, square = torch.rand(d, m).double(), torch.rand(m, m).double()
    out, out0, turned = torch.empty(k, m).double(), torch.empty(d, m).double(), net.transposes

    def run() -> None:
        for each in (w, turned[1], w, turned[1]):  # forward, back, up, down
            torch.mm(each, a, out=out)
        for _ in range(2):  # the Gram form of the second layer
            gram(a)
            torch.mm(a, square, out=out)
        for _ in range(2):  # forward, the first layer's residual, and down
            torch.mm(first, a0, out=out)
            torch.mm(turned[0], a, out=out0)
        torch.mm(a, a0.T)

    return run


def exact_rows(repeats: int) -> Iterator[Row]:
    """Median seconds of exact networks on random labels."""
    for d, n in ((1, 15), (2, 12)):
        taken = []
        for seed in range(max(20, repeats)):
            generator = torch.Generator().manual_seed(seed)
            x = 1.5 * torch.randn(n, d, generator=generator, dtype=torch.float64)
            y = 2.0 * torch.randint(2, (n,), generator=generator).double() - 1
            taken.append(seconds(lambda x=x, y=y: maximum_margin(x, y), 1))
        yield f"exact network, {d}-D, n = {n}", statistics.median(taken), 0.0, "under 0.5 s"


def training_rows(repeats: int) -> Iterator[Row]:
    """Until all 20 points lie within 10% of the margin, 2-1000-1, CPU seconds."""
    data = preset("alternating-circle", 20)

    def ours() -> None:
        # chosen on this set; the default rate 1, made for every set, takes 1.5 times the steps
        config = TrainConfig(widths=(1000,), steps=20_000, lr=3.0)
        state = training.init(data, config, torch.Generator().manual_seed(0))
        for state in training.iterate(data, state, config, 10):  # noqa: B020
            if 0 < float(state.q.max()) <= 1.1 * state.q_min:
                return

    fast = statistics.median(seconds(ours, 1) for _ in range(repeats))
    begun = time.process_time()
    epochs = reference.published_training(data.x, data.y, 1000, 0, 0.1)
    slow = time.process_time() - begun
    yield f"training to 10%, 2-1000-1, against {epochs:,} published epochs", slow, fast, "300 x"


PARTS = {
    "step": step_rows, "default": default_rows, "circle": circle_rows, "deep": deep_rows,
    "images": image_rows, "claims": claim_rows, "classes": classes_rows, "exact": exact_rows,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--long", action="store_true", help="the published training too")
    parser.add_argument("--plain", action="store_true", help="blocks without compiled loops")
    parser.add_argument("--only", choices=[*PARTS, "training"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if args.plain:
        loops.compiled_module = lambda _: None
    way = "compiled loops" if loops.compiled_module(loops.TWO_INPUTS) else "torch's own calls"
    print(f"Blocks on two inputs descend in {way}.")
    reference.main()
    parts = PARTS | ({"training": training_rows} if args.long or args.only == "training" else {})
    print("| work, float64, one core | reference | ours | ratio | asked |\n|---|---|---|---|---|")
    for name, part in parts.items():
        if args.only in (None, name):
            for what, theirs, ours, asked in part(args.repeats):
                ratio = f"{theirs / ours:.2f}" if ours and theirs else "–"
                both = f"{1e3 * theirs:.3g} ms | {1e3 * ours:.3g} ms"
                print(f"| {what} | {both} | {ratio} | {asked} |", flush=True)


if __name__ == "__main__":
    main()
