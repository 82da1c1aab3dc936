"""How often claims that know no single point pass for a find, by the control that judges them.

    python benchmarks/bench_control.py [--sets 100]

Claims are a fresh draw of the very law that the points came from: they know the kind and no point.
A sound control rejects chance (p <= 0.05) for a twentieth of them at most. Controls: those of a set
drawn by hand, which know the points alone (`data.heldout`), and true draws of the law. "Half found"
counts the same for claims of which half lie on training points: what a control must still see.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from explorer.engine.controls import COUNT, Controls, Origin, control_sets
from explorer.engine.data import PLANE, Dataset, preset
from explorer.engine.scoring import LEVEL, RADII, Verdict, judge

RADIUS = RADII[1]
Law = Callable[[int], Dataset]


def clicks(spread: float) -> Law:
    """Four groups of three clicks, by hand."""
    centres = torch.tensor([[1, 1], [-1, -1], [1, -1], [-1, 1]], dtype=torch.float64)
    y = torch.tensor([1, 1, -1, -1], dtype=torch.float64).repeat(3)

    def draw(seed: int) -> Dataset:
        noise = torch.randn(12, 2, generator=torch.Generator().manual_seed(seed)).double()
        return Dataset(centres.repeat(3, 1) + spread * noise, y)

    return draw


def everywhere(seed: int) -> Dataset:
    """Twenty points anywhere on the inner plane, labels in turn."""
    x = torch.rand(20, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Dataset((2 * x - 1) * 0.75 * PLANE, torch.tensor([1.0, -1.0]).double().repeat(10))


def of_preset(name: str, noise: float) -> Law:
    """A preset whose source is forgotten."""

    def draw(seed: int) -> Dataset:
        data = preset(name, 20, noise, seed)
        return Dataset(data.x, data.y)

    return draw


LAWS: dict[str, Law] = {
    "groups of clicks 0.02 wide": clicks(0.02),
    "groups of clicks 0.1 wide": clicks(0.1),
    "anywhere": everywhere,
    "moons": of_preset("moons", 0.06),
    "circles": of_preset("circles", 0.02),
    "blobs 0.35 wide": of_preset("blobs", 0.35),
}


def outcome(truth: Dataset, controls: Controls, claims: tuple[Tensor, Tensor]) -> str:
    """One of "ruled out", "not" and "cannot know"."""
    made: Verdict = judge(truth, controls, *claims, RADIUS)
    if made.p_value != made.p_value:
        return "cannot know"
    return "ruled out" if made.p_value <= LEVEL else "not"


def row(law: Law, sets: int) -> list[str]:
    """Shares of so many sets where chance is ruled out, see the head of this file."""
    counts = dict.fromkeys(("drawn", "unknown", "true", "half"), 0)
    for seed in range(sets):
        truth, other = law(seed), law(10_000 + seed)
        own, first = control_sets(truth), 20_000 + 2 * COUNT * seed
        true = Controls(tuple(law(first + k) for k in range(COUNT)), Origin.HELD_OUT)
        said = outcome(truth, own, (other.x, other.y))
        counts["drawn"] += said == "ruled out"
        counts["unknown"] += said == "cannot know"
        counts["true"] += outcome(truth, true, (other.x, other.y)) == "ruled out"
        x = other.x.clone()
        x[::2] = truth.x[::2] + 0.005  # pairs of equal labels: every second claim is right
        counts["half"] += outcome(truth, own, (x, truth.y)) == "ruled out"
    return [f"{counts[name] / sets:.0%}" for name in ("drawn", "unknown", "true", "half")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    args = parser.parse_args()
    print("| law | find by chance | cannot know | find by chance, true draws | half found |")
    print("|---|---|---|---|---|")
    for name, law in LAWS.items():
        print(f"| {name} | {' | '.join(row(law, args.sets))} |", flush=True)


if __name__ == "__main__":
    main()
