"""DecoReco from the truth of multiclass networks trained with weight decay: do candidates stay?

    python benchmarks/bench_decoreco_decay.py            seeds 0 to 2
    python benchmarks/bench_decoreco_decay.py --quick    seed 0 alone

Cross-entropy + (mu/2) |theta|^2 on the presets of three and four classes and on three 8x8 digits of
three classes, until the gradient is below 1e-10; the widest network of 4, 3 or 2 neurons that gets
there. Its weights are the sum of the points' gradients, exactly and at any margin. The attack
starts at the training points, and as a control at as many held-out points with the same labels; 500
steps, nothing but the stationarity loss (the weights of margin, box and floor are 0), candidates
that carry weight (a tenth of the mean multiplier). "margin" has non-negative multipliers of all
rivals, "outputs" multipliers of any sign. Rates: "default" lr_x 0.02, Adam, alpha 200; "steep" the
same with alpha 10,000; "sgd" the default ones with the published optimiser. `first`, `last`: share
of |theta|^2 left unexplained.
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
from explorer.engine.classes import class_numbers
from explorer.engine.data import Dataset, heldout, preset
from explorer.engine.weight_decay import DecayConfig, settle
from explorer.images import Choice, draw

POINTS = ("three-blobs", "spiral-arms", "four-blobs", "pie", "digits 1, 2, 3")
WIDTHS = (4, 3, 2)  # the first that settles is taken
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
    """The widest network that settles, and its width; None where none does."""
    for width in WIDTHS:
        generator = torch.Generator().manual_seed(seed)
        with suppress(ValueError):
            config = DecayConfig(widths=(width,))
            return settle(truth.x, truth.y, config, generator, classes), width
    return None


def network(name, seed, steps):
    """All rows of one network."""
    truth, other = sets(name, seed)
    made = trained(truth, int(class_numbers(truth.y).max()), seed)
    if made is None:
        print(f"{name:15}{seed:>5}  none of widths {WIDTHS} settled", flush=True)
        return
    done, width = made
    head = f"{name:15}{seed:>5}{width:>6}"
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
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="seed 0 alone")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.process_time()
    head = f"{'moved':>10}{'stay':>8}{'first':>9}{'last':>9}"
    print(f"{'points':15}{'seed':>5}{'width':>6}{'gradient':>9}  {'contrib.':9}{'rates':8}", end="")
    print(f" {head} {head}\n{'':53}{'from the truth':^37}{'from held-out points':^37}")
    for name in POINTS:
        for seed in [0] if args.quick else args.seeds:
            network(name, seed, args.steps)
    print(f"{time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
