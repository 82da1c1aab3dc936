"""Sample splitting (Shen et al. 2026) in the KKT reconstruction, at equal budgets.

    python benchmarks/bench_splitting.py                 on the plane, seeds 0 to 9
    python benchmarks/bench_splitting.py --images mnist  on images, seeds 0 to 2

Every 100 steps the candidates whose own part of the curvature of the loss is most negative are
split along that direction, lambda shared; the copies take the places of candidates whose multiplier
is next to nothing, so that their number, the steps and the rates are those of the plain attack.
The curvature is of what is left, with the slopes of the modified ReLU of that step:

    H_i = -2 lam_i y_i hess_x <r, grad Phi(x_i)> / ||theta||^2
    r = theta - sum_i lam_i y_i grad Phi(x_i)

With hard slopes H_i is 0 within a cell, and splitting there is that of Refael et al.: it leaves the
loss as it is. Beside it stand the same splits along random directions. "Left" is the unexplained
share of ||theta||^2 in the end. Shen et al.: arXiv 2602.08723, restated; no code of theirs.
"""

from __future__ import annotations

import argparse
from collections import deque
from statistics import mean

import torch

from explorer.engine import training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.descent import steepness
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.loss import evaluate
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.data.images import Choice, draw
from explorer.engine.margin import q_of
from explorer.engine.optim import Moments
from explorer.engine.scoring import score
from explorer.engine.training import TrainConfig
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun
from explorer.research.runs import RADIUS

EVERY, MOST, UNTIL = 100, 5, 0.8  # steps between splits, splits at once, share of the run
APART = 0.05  # of a copy from where it was, in units of the data; on images of sigma_x
DEAD = 0.05  # of the largest multiplier
ROUNDS = 30  # of the power iteration
SETS = (
    ("alternating-circle", 20, (100,)), ("random-circle", 20, (100,)), ("moons", 20, (100,)),
    ("random-circle", 40, (1000,)),
)  # fmt: skip


def curvature(target, config, state):
    """The least eigenvalue of H_i of each candidate (m,), and its direction (m, d)."""
    net, alpha = target.merged(config.merge_angle), config.alpha(state.t, steepness(target, config))
    x, c = state.x, state.y * state.lam
    rows, bias, out = net.weights[0], net.biases[0], net.weights[1][0]
    z = x @ rows.T + (0 if bias is None else bias)
    s = torch.sigmoid(alpha * z)
    left = rows - (c[:, None] * s).T @ x * out[:, None]
    along = x @ left.T + (0 if bias is None else bias - (c[:, None] * s).sum(0) * out)
    first, second = alpha * s * (1 - s), alpha**2 * s * (1 - s) * (1 - 2 * s)
    scale = (-2 * c / net.theta.square().sum())[:, None]

    def apply(u):
        w, r = u @ rows.T, u @ left.T
        terms = (out * (second * along * w + first * r)) @ rows + (out * first * w) @ left
        return scale * terms

    u = torch.nn.functional.normalize(torch.randn(x.shape, dtype=x.dtype), dim=1)
    for shift in (0.0, 1.0):  # the largest in size, then the least
        size = (u * apply(u)).sum(1, keepdim=True).abs() * shift
        for _ in range(ROUNDS):
            u = torch.nn.functional.normalize(apply(u) - size * u, dim=1)
    return (u * apply(u)).sum(1), u


def split(target, config, state, random, apart):
    """The state with some candidates split in two."""
    low, u = curvature(target, config, state)
    if random:
        u = torch.nn.functional.normalize(torch.randn(u.shape, dtype=u.dtype), dim=1)
    dead = (state.lam <= DEAD * state.lam.max()).nonzero()[:, 0]
    from_ = low.argsort()[: min(MOST, len(dead), int((low < 0).sum()))]
    to = [k for k in dead.tolist() if k not in set(from_.tolist())][: len(from_)]
    from_ = from_[: len(to)]
    x, y, lam = state.x.clone(), state.y.clone(), state.lam.clone()
    x[to], x[from_] = x[from_] - apart * u[from_], x[from_] + apart * u[from_]
    y[to], lam[from_] = y[from_], lam[from_] / 2
    lam[to] = lam[from_]
    moved = [*to, *from_.tolist()]

    def begin(tensors):
        tensors = tuple(v.clone() for v in tensors)
        for v in tensors:
            v[moved] = 0
        return tensors

    old = state.moments
    moments = Moments(old.t, begin(old.mean), begin(old.square))
    return evaluate(target, config, state.t, x, y, lam, moments)


def attack(target, config, seed, how, apart=APART):
    """The last state; how: plain, curvature or random."""
    torch.manual_seed(seed)
    state = kkt.init(target, config, torch.Generator().manual_seed(seed))
    while not kkt.terminate(state, config).over:
        state = kkt.advance(target, state, config, EVERY)
        if how != "plain" and state.t < UNTIL * config.steps:
            state = split(target, config, state, how == "random", apart)
    return state


def plane_counts(name, n, widths, seed, m):
    """Found and left of each way, on one network; None where it separates nothing."""
    truth, steps = preset(name, n=n, seed=seed), 6000
    train = TrainConfig(widths=widths, steps=steps)
    first = training.init(truth, train, torch.Generator().manual_seed(seed))
    net = training.advance(truth, first, train, steps).net
    q, config, made = float(q_of(net, truth.x, truth.y).min()), KKTConfig(m=m), {}
    if q <= 0:
        return None
    target = Target.of(net, q)
    for how in ("plain", "curvature", "random"):
        state = attack(target, config, seed, how)
        claims = kkt.report(target, state, config)
        found = score(truth, claims.x, claims.y, (RADIUS,)).found
        made[how] = float(found[0]), float(state.l_stationary)
    return made


def image_counts(kind, n, seed):
    """NCC above 0.9 and left of each way, on one network."""
    run = ImageRun(Choice(kind, n=n, seed=seed), seed=seed)
    drawn, made = draw(run.choice), {}
    trained = deque(image_runs.train(drawn, run), maxlen=1).pop()  # no other state is kept
    aimed = image_runs.aim(drawn, run, trained)
    for how in ("plain", "curvature", "random"):
        state = attack(aimed.target, run.config, seed, how, run.config.sigma_x)
        found = image_runs.assess(drawn, aimed, [state])
        made[how] = found.verdicts["ncc"].found, float(state.l_stationary)
    return made


def line(name, rows):
    cells = [f"{mean(r[how][k] for r in rows):.3g}" for k in (0, 1) for how in rows[0]]
    return f"| {name} | {len(rows)} | " + " | ".join(cells) + " |"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--images", choices=("digits", "mnist"), help="images in place of the plane"
    )
    parser.add_argument("--seeds", type=int, help="how many, from 0; else 10, or 3 of images")
    parser.add_argument("--m", type=int, nargs="*", default=(100, 40), help="candidates, plane")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| what | networks | found: plain | curvature | random | left: plain | curvature | random |"
    )
    print("|---" * 8 + "|")
    seeds = range(asked.seeds or (3 if asked.images else 10))
    if asked.images:
        for n in (20, 50):
            rows = [image_counts(asked.images, n, seed) for seed in seeds]
            print(line(f"{asked.images}, n = {n}, NCC above 0.9", rows), flush=True)
        return
    for m in asked.m:
        for name, n, widths in SETS:
            made = [plane_counts(name, n, widths, seed, m) for seed in seeds]
            rows = [one for one in made if one]
            print(line(f"{name}, n = {n}, 2-{widths[0]}-1, m = {m}", rows), flush=True)


if __name__ == "__main__":
    main()
