"""How often claims that know no single point pass for a find, by the control that judges them.

    python benchmarks/bench_control.py [--sets 200] [--laws ring star] [--null]

Claims are a fresh draw of the very law that the points came from: they know the shape and no point.
A sound control rules chance out (p <= 0.05) for a twentieth of them at most. The sets are judged as
drawings, whose source nobody knows (`control_sets`), and the presets also with it. "Resampled" is
the same by the first of the six ways alone. Power: claims are the points themselves, each about
0.007 off; "half": of such claims every second is one of another draw.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.engine.controls import control_sets
from explorer.engine.data import PLANE, PRESETS, Dataset, heldout, preset
from explorer.engine.scoring import LEVEL, RADII, judge

RADIUS = RADII[1]
NEAR = 0.007  # arbitrary: what good attacks reach
Law = Callable[[torch.Generator], Dataset]


def uniform(generator: torch.Generator, *shape: int) -> Tensor:
    """Numbers in [0, 1)."""
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def hand(generator: torch.Generator, x: Tensor, jitter: float) -> Tensor:
    """The points as a hand places them."""
    return x + jitter * torch.randn(x.shape, generator=generator, dtype=torch.float64)


def in_turn(n: int, run: int = 1) -> Tensor:
    """Labels +1 and -1 in runs of so many. (n,)."""
    return 1 - 2 * (torch.arange(n) // run % 2).double()


def around(generator: torch.Generator, n: int, uneven: float = 0.0) -> Tensor:
    """Directions (n, 2) in equal steps, at any phase; `uneven`: jitter in steps."""
    steps = torch.arange(n).double() + n * uniform(generator, 1)
    steps = steps + uneven * torch.randn(n, generator=generator, dtype=torch.float64)
    angle = 2 * math.pi * steps / n
    return torch.stack([angle.cos(), angle.sin()], 1)


def ring(jitter: float, run: int = 1, uneven: float = 0.0) -> Law:
    """Twenty points on a circle, labels in turn."""
    return lambda g: Dataset(hand(g, around(g, 20, uneven), jitter), in_turn(20, run))


def star(jitter: float) -> Law:
    """Five points out, five in."""
    radius = torch.tensor([1.2, 0.5]).double().repeat(5)[:, None]
    return lambda g: Dataset(hand(g, radius * around(g, 10), jitter), in_turn(10))


def clusters(spread: float) -> Law:
    """Four groups of three clicks."""
    centres = torch.tensor([[1, 1], [-1, -1], [1, -1], [-1, 1]]).double().repeat(3, 1)
    y = torch.tensor([1, 1, -1, -1]).double().repeat(3)
    return lambda g: Dataset(hand(g, centres, spread), y)


def grid(jitter: float, chequered: bool = True) -> Law:
    """Five by four points 0.5 apart, anywhere within a period of the pattern."""
    i, k = (v.flatten() for v in torch.meshgrid(torch.arange(5), torch.arange(4), indexing="ij"))
    x = 0.5 * torch.stack([i, k], 1) - torch.tensor([1.0, 0.75]).double()
    y = 1 - 2 * ((i + k) % 2).double() if chequered else torch.where(i < 3, 1.0, -1.0).double()
    period = 1.0 if chequered else 0.5
    return lambda g: Dataset(hand(g, x + period * (uniform(g, 1, 2) - 0.5), jitter), y)


STROKES = {  # from corner to corner; the pen is lifted between the lists
    "letter A": [[(-1, -1), (0, 1), (1, -1)], [(-0.5, 0), (0.5, 0)]],
    "letter I": [[(0, -1), (0, 1)]],
    "letter M": [[(-1, -1), (-1, 1), (0, 0), (1, 1), (1, -1)]],
    "letter T": [[(-1, 1), (1, 1)], [(0, 1), (0, -1)]],
    "letter X": [[(-1, -1), (1, 1)], [(-1, 1), (1, -1)]],
    "letter Z": [[(-1, 1), (1, 1), (-1, -1), (1, -1)]],
}


Curve = Callable[[Tensor], Tensor]  # places (n, 2) at shares (n,) of the way


def strokes(*corners: list[tuple[float, float]]) -> Curve:
    """Straight strokes from corner to corner."""
    lines = [torch.tensor(stroke).double() for stroke in corners]
    begin = torch.cat([line[:-1] for line in lines])
    way = torch.cat([line[1:] - line[:-1] for line in lines])
    ends = way.norm(dim=1).cumsum(0)

    def at(share: Tensor) -> Tensor:
        far = ends[-1] * share
        part = torch.searchsorted(ends, far).clamp_max(len(ends) - 1)
        return begin[part] + (1 - (ends[part] - far) / way[part].norm(dim=1))[:, None] * way[part]

    return at


def polygons(corners: int) -> Curve:
    """Two polygons, one in the other."""
    angle = 2 * math.pi * torch.arange(corners + 1) / corners
    one = torch.stack([angle.cos(), angle.sin()], 1)
    return strokes(*[[(x, y) for x, y in (r * one).tolist()] for r in (1.2, 0.6)])


def line_of(x: Callable[[Tensor], Tensor], y: Callable[[Tensor], Tensor], turns: float) -> Curve:
    """A curve of two functions of an angle, in steps of equal length."""
    angle = 2 * math.pi * turns * torch.linspace(0, 1, 2001).double()
    return strokes(list(zip(x(angle).tolist(), y(angle).tolist(), strict=True)))


def arms(share: Tensor) -> Tensor:
    """Two arms of a spiral, one after the other."""
    along = 2 * share % 1
    angle = 2 * math.pi * along + math.pi * (share >= 0.5)
    return (0.3 + along)[:, None] * torch.stack([angle.cos(), angle.sin()], 1)


def clicks(
    curve: Curve, how: str, jitter: float = 0.01, n: int = 20, shuffled: bool = False
) -> Law:
    """Points on a curve, labels in turn: in even steps, one anywhere in each nth, or anywhere.

    Even steps begin at any share of a step. `shuffled`: their order is lost.
    """

    def draw(g: torch.Generator) -> Dataset:
        share = (torch.arange(n).double() + uniform(g, 1 if how == "even" else n)) / n
        if how == "random":
            share = uniform(g, n).sort().values
        x, y = hand(g, curve(share), jitter), in_turn(n)
        order = torch.randperm(n, generator=g) if shuffled else torch.arange(n)
        return Dataset(x[order], y[order])

    return draw


def anywhere(g: torch.Generator) -> Dataset:
    """Twenty points anywhere on the inner plane, labels in turn."""
    return Dataset((2 * uniform(g, 20, 2) - 1) * 0.75 * PLANE, in_turn(20))


def of_preset(name: str) -> Law:
    """A preset whose source is forgotten. Regular ones come at any phase: see `ring`."""

    def draw(g: torch.Generator) -> Dataset:
        data = preset(name, 20, None, int(torch.randint(2**31, (), generator=g)))
        return Dataset(data.x, data.y)

    return draw


CURVES: dict[str, Curve] = {
    "sine": line_of(lambda a: a / math.pi - 1.5, lambda a: 0.8 * a.sin(), 1.5),
    "figure eight": line_of(lambda a: 1.3 * a.sin(), lambda a: 0.8 * (2 * a).sin(), 1.0),
    "smile": line_of(lambda a: -1.2 * a.cos(), lambda a: -1.2 * a.sin(), 0.5),
    "two arms": arms,
    "squares": polygons(4),
    "hexagons": polygons(6),
    "rings": polygons(360),
}
REGULAR = {name for name, row in PRESETS.items() if row.d == 1 or name.endswith("-circle")}
LAWS: dict[str, Law] = {
    "ring, exact": ring(0.0),
    "ring": ring(0.01),
    "ring, pairs": ring(0.01, run=2),
    "ring, uneven": ring(0.01, uneven=0.25),
    "star, exact": star(0.0),
    "star": star(0.01),
    "clusters 0.02 wide": clusters(0.02),
    "clusters 0.1 wide": clusters(0.1),
    "grid, exact": grid(0.0),
    "grid": grid(0.01),
    "grid of halves": grid(0.01, chequered=False),
    "letter A": clicks(strokes(*STROKES["letter A"]), "each"),
    "letter I": clicks(strokes(*STROKES["letter I"]), "each", n=12),
    "letter X": clicks(strokes(*STROKES["letter X"]), "each", 0.0),
    **{
        f"letter {name}, {how}": clicks(
            strokes(*STROKES[f"letter {name}"]),
            how.replace("exact", "even"),
            0.01 * (how != "exact"),
        )
        for name in "TMZA"
        for how in ("even", "random", "exact")
    },
    **{f"{name}, even": clicks(curve, "even") for name, curve in CURVES.items()},
    **{
        f"{name}, shuffled": clicks(CURVES[name], "even", shuffled=True)
        for name in ("sine", "figure eight", "two arms")
    },
    "uniform": anywhere,
    **{name: of_preset(name) for name in PRESETS if name not in REGULAR},
}


@dataclass
class Counts:
    """Of how many sets chance is ruled out, see the head of this file."""

    null: int = 0
    resampled: int = 0
    unknown: int = 0
    power: int = 0
    half: int = 0


def ruled_out(p_value: float) -> bool:
    """Whether chance is; it is not where nothing can be known."""
    return p_value <= LEVEL


def counts(law: Law, sets: int, more: bool = False, power: bool = True) -> Counts:
    """Counts over so many draws of a law; `more`: with the sequential test.

    Without `power` those of claims that know nothing, by all ways, alone.
    """
    made = Counts()
    for seed in range(sets):
        g = torch.Generator().manual_seed(seed)
        truth, other = law(g), law(g)
        controls = control_sets(truth)
        null = judge(truth, controls, other.x, other.y, RADIUS, more=more).p_value
        made.null += ruled_out(null)
        made.unknown += null != null
        if not power:
            continue
        alone = judge(truth, replace(controls, beside=()), other.x, other.y, RADIUS).p_value
        made.resampled += ruled_out(alone)
        near = hand(g, truth.x, NEAR)
        made.power += ruled_out(judge(truth, controls, near, truth.y, RADIUS, more=more).p_value)
        half = torch.where((torch.arange(truth.n) % 4 < 2)[:, None], near, other.x)
        made.half += ruled_out(judge(truth, controls, half, truth.y, RADIUS, more=more).p_value)
    return made


def known(name: str, sets: int) -> int:
    """Of how many draws of a preset chance is ruled out for claims that are another draw of it."""
    out = 0
    for seed in range(sets):
        truth = preset(name, seed=seed)
        other = heldout(truth, 10**6 + seed)
        out += ruled_out(judge(truth, control_sets(truth), other.x, other.y, RADIUS).p_value)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--laws", nargs="*", choices=LAWS, help="these alone, and no preset")
    parser.add_argument("--more", action="store_true", help="the sequential test")
    parser.add_argument("--null", action="store_true", help="only how often it finds by chance")
    args = parser.parse_args()
    print("| drawing | find by chance | resampled alone | cannot know | power | half |")
    print("|---|---|---|---|---|---|")
    for name in args.laws or LAWS:
        row = counts(LAWS[name], args.sets, args.more, not args.null)
        shares = (row.null, row.resampled, row.unknown, row.power, row.half)
        cells = [f"{v / args.sets:.1%}" for v in shares]
        if args.null:
            cells = [cells[0], "", cells[2], "", ""]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if args.laws:
        return
    print("\n| preset, its source known | find by chance |\n|---|---|")
    for name in PRESETS:
        if name != "two-points":  # fewer points than a verdict needs
            print(f"| {name} | {known(name, args.sets) / args.sets:.1%} |", flush=True)


if __name__ == "__main__":
    main()
