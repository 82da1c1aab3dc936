"""Print how often chance alone passes, in trials on images that no network was trained on.

    python benchmarks/bench_images_null.py --images mnist    # minutes of one core
    python benchmarks/bench_images_null.py --trials 100 --seeds 1
    python benchmarks/bench_images_null.py --images mnist --mean --seeds 10

An attack is made as `margin-explorer digits` makes it. The training images are then put away. In
each trial as many unseen images, half of each class, are drawn to stand in their place, and the
other unseen ones are the controls: the candidates cannot know which were drawn, so p is to be 0.05
or less in at most 5% of the trials, by each measure.

With --mean the weights are of other images than those that are looked for, whose mean image the
attacker is granted all the same: what it finds of them, the mean alone tells.
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

import torch

from explorer.engine.data.images import Choice, draw
from explorer.engine.images import MEASURES, ImageScore, image_scores, image_verdict
from explorer.engine.scoring import LEVEL
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun


def part(score: ImageScore, rows: torch.Tensor) -> ImageScore:
    """The score of these images alone."""
    return replace(score, **{f.name: getattr(score, f.name)[rows] for f in fields(score)})


def passes(drawn, found, trials, seed):
    """By measure, in how many trials p is at most 0.05."""
    unseen = (drawn.other, *drawn.controls)
    x, y = torch.cat([s.x for s in unseen]), torch.cat([s.y for s in unseen])
    score = image_scores([drawn.pictures(x)], found, [y])[0]
    generator = torch.Generator().manual_seed(seed)
    counts = dict.fromkeys(MEASURES, 0)
    for _ in range(trials):
        mine = torch.zeros(len(y), dtype=torch.bool)
        for label in y.unique():
            rows = (y == label).nonzero()[:, 0]
            n = int((drawn.train.y == label).sum())
            mine[rows[torch.randperm(len(rows), generator=generator)[:n]]] = True
        mine, rest = mine.nonzero()[:, 0], (~mine).nonzero()[:, 0]
        for name in MEASURES:
            made = image_verdict(part(score, mine), [part(score, rest)], name)
            counts[name] += made.p_value <= LEVEL
    return counts


def by_mean(run):
    """What an attack on weights of other images finds of those whose mean it is granted."""
    drawn = draw(run.choice)
    others = replace(drawn, train=drawn.other, other=drawn.controls[0], controls=drawn.controls[1:])
    found, net = image_runs.train_and_attack(others, run)
    verdicts = image_runs.score_pictures(replace(others, train=drawn.train), net, found.found)
    return [
        f"{v.share:.0%}, unseen {v.of_controls:.1%}, p = {v.p_value:.2g}"
        for v in verdicts.verdicts.values()
    ]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", choices=("digits", "mnist"), default="digits")
    parser.add_argument("--n", type=int, default=20, help="training images")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--trials", type=int, default=1000, help="of each seed")
    parser.add_argument("--mean", action="store_true", help="weights of other images")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| seed | " + " | ".join(MEASURES.values()) + " |\n|---" + "|---" * len(MEASURES) + "|")
    for seed in range(asked.seeds):
        run = ImageRun(Choice(asked.images, n=asked.n, seed=seed), seed=seed)
        if asked.mean:
            print(f"| {seed} | " + " | ".join(by_mean(run)) + " |", flush=True)
            continue
        drawn = draw(run.choice)
        found, _ = image_runs.train_and_attack(drawn, run)
        shares = [
            count / asked.trials
            for count in passes(drawn, found.found, asked.trials, seed).values()
        ]
        print(f"| {seed} | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
