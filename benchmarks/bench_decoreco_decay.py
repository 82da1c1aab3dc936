"""DecoReco from the truth of multiclass networks trained with weight decay: do candidates stay?

    python benchmarks/bench_decoreco_decay.py            seeds 0 to 2
    python benchmarks/bench_decoreco_decay.py --quick    seed 0 alone

Cross-entropy + (mu/2) |theta|^2 on the presets of three and four classes and on three 8x8 digits of
three classes, until the gradient is below 1e-10; the widest network of 4, 3 or 2 neurons that gets
there and separates the points. Its weights are the sum of the points' gradients, exactly and at any
margin. The attack starts at the training points, and as a control at as many held-out points with
the same labels; 500 steps, nothing but the stationarity loss (the weights of margin, box and floor
are 0), candidates that carry weight (a tenth of the mean multiplier). "margin" has non-negative
multipliers of all rivals, "outputs" multipliers of any sign. Rates: "default" lr_x 0.02, Adam,
alpha 200; "steep" the same with alpha 10,000; "sgd" the default ones with the published optimiser.
`first`, `last`: share of |theta|^2 left unexplained; `kink`: the least |z| before a ReLU at the
training points, to be compared with 1/alpha.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from contextlib import suppress

import torch

from explorer.engine.attacks import decoreco
from explorer.engine.attacks.decoreco import DecoRecoConfig, Start
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers, margins
from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.data.images import Choice, draw
from explorer.engine.kernels.reference import values_at
from explorer.engine.network import phi_all
from explorer.engine.weight_decay import DecayConfig, settle

POINTS = ("three-blobs", "spiral-arms", "four-blobs", "pie", "digits 1, 2, 3")
WIDTHS = (4, 3, 2)
RATES = {
    "default": {},
    "steep": {"relu_alpha": 1e4},
    "sgd": {"optimizer": "sgd"},
}
STAYED, CARRIES = 0.01, 0.1


def sets(name, seed):
    """The training set and a held-out one."""
    if not name.startswith("digits"):
        truth = preset(name, seed=seed)
        return truth, heldout(truth, seed)
    drawn = draw(Choice(task="ten", n=10, seed=seed))
    return tuple(
        Dataset(s.x[class_numbers(s.y) <= 3], s.y[class_numbers(s.y) <= 3])
        for s in (drawn.train, drawn.controls[0])
    )


def run(net, data, config):
    """Columns of one run."""
    target = Target(net)
    first = decoreco.init(target, config, torch.Generator().manual_seed(0), Start(data.x, data.y))
    last = (deque(decoreco.iterate(target, first, config), maxlen=1) or [first]).pop()
    carries = last.lam > CARRIES * last.lam.mean()
    far = (last.x - data.x).norm(dim=1)[carries]
    within = f"{int((far < STAYED).sum())}/{len(far)}"
    losses = f"{float(first.l_stationary):>9.0e}{float(last.l_stationary):>9.0e}"
    return f"{float(far.max()):>10.1e}{within:>8}{losses}"


def trained(truth, classes, seed):
    """The widest network that settles and separates the points, and its width; None if none."""
    for width in WIDTHS:
        generator = torch.Generator().manual_seed(seed)
        with suppress(ValueError):
            config = DecayConfig(widths=(width,))
            done = settle(truth.x, truth.y, config, generator, classes)
            if float(margins(phi_all(done.net, truth.x), truth.y).min()) > 0:
                return done, width
    return None


def network(name, seed, steps):
    """All rows of one network."""
    truth, other = sets(name, seed)
    made = trained(truth, int(class_numbers(truth.y).max()), seed)
    if made is None:
        print(f"{name:15}{seed:>5}  none of widths {WIDTHS} settled and separated", flush=True)
        return
    done, width = made
    kink = min(
        float(z.abs().min())
        for z in values_at(done.net, truth.x, RATES["steep"]["relu_alpha"]).values[:-1]
    )
    head = f"{name:15}{seed:>5}{width:>6}{kink:>8.0e}"
    for contribution in ("margin", "outputs"):
        for rates, given in RATES.items():
            config = DecoRecoConfig(
                contribution=contribution, steps=steps, relu_alpha_start=None, weight_margin=0.0,
                **given,
            )  # fmt: skip
            cells = (run(done.net, data, config) for data in (truth, other))
            print(
                f"{head}{done.gradient_norm:>9.0e}  {contribution:9}{rates:8}", *cells, flush=True
            )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--points", nargs="+", default=POINTS)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="seed 0 alone")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.process_time()
    head = f"{'moved':>10}{'stay':>8}{'first':>9}{'last':>9}"
    print(
        f"{'points':15}{'seed':>5}{'width':>6}{'kink':>8}{'gradient':>9}  {'contrib.':9}rates   ",
        end="",
    )
    print(f" {head} {head}\n{'':61}{'from the truth':^37}{'from held-out points':^37}")
    for name in args.points:
        for seed in [0] if args.quick else args.seeds:
            network(name, seed, args.steps)
    print(f"{time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
