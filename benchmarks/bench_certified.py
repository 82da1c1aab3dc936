"""The certified radius on random sets: exact, trained, changed and stored networks.

    python benchmarks/bench_certified.py                  line: 40 exact sets, 20 trained each way
    python benchmarks/bench_certified.py --exact 5 --trained 2 --plane 0
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 3
    python benchmarks/bench_certified.py --exact 0 --trained 24 --plane 0 --unchanged
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --kinds 20
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --deep 60
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --changed 12
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --boxes 60
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --decay 60
    python benchmarks/bench_certified.py --exact 0 --trained 0 --plane 0 --classes 60

On the line set s has n of 3 to 10 points, uniform on [-2, 2], labels at random with both classes
there; s seeds n, the points, the labels and the first weights. Each network is also moved along a
normal direction by a share of its norm, stored in fewer bits, and attacked with a margin off by up
to 10%, which the attack is told. In the plane: alternating circles of 10 points, width 50; with
--kinds six kinds of sets in turns, of which the attack alone is asked, of the weights as made,
moved by one of 1e-4, 1e-3, 1e-2 and stored in float16 or bfloat16. With --deep networks of three
layers on five kinds of sets of the line in turns, of widths 20, 50 and 100, by descent and ascent,
changed as those of --kinds. With --changed networks of the line (5000 steps) whose balance was
restored or never told: neurons pruned, merged, weights moved and balanced anew, stored; and three
layers trained with weight decay: the attack alone is asked, without being told. With --boxes
networks of the plane: whether a point on the margin lies beyond the box (`extent`). With --decay
networks of the line of width 30, trained with weight decay of 1e-3, 3e-3 or 1e-2 and the logistic
loss by a rate that falls in three stages, points with errors among them; support has a multiplier
above 0.1% of the largest. With --classes networks of three or four classes on the line, width 100.

Assumptions and threshold are found from the weights (`assumed_cone`, `threshold`). A place is
certified where its radius exceeds the residual of the truth under the same assumptions, and claimed
where it exceeds the threshold; it is false where no point of its label is within it and the reach.
All places of half width 0.03 (0.05 in the plane) that overlap by half are looked at on the line, in
the plane those around support points and as many around other places. Support points lie within 1%
of the margin of the network at hand. Claims are those of the attack with its defaults. Well trained
is a network of which the truth leaves 5% at most.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import torch

from explorer.engine import training
from explorer.engine.attacks import certified as attack
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.assumptions import assumed_cone, extent, threshold
from explorer.engine.margin import normalise, q_of
from explorer.engine.merging import merge_neurons
from explorer.engine.network import Network
from explorer.engine.training import TrainConfig

SUPPORT = 0.01  # of the margin
OTHERWISE = 2e-4  # left by an explanation that is as good as that of the points; arbitrary
WELL = 0.05  # the most that the points of well-trained weights leave of them
METHODS = ("gradient", "ascent")
MOVED = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2)
STORED = (torch.float32, torch.float16, torch.bfloat16)


def drawn(seed, most=10):
    """Return n points, uniform on [-2, 2], labels at random with both classes there."""
    g = torch.Generator().manual_seed(seed)
    n = int(torch.randint(3, most + 1, (), generator=g))
    x = 4 * torch.rand(n, 1, generator=g, dtype=torch.float64) - 2
    y = torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0).double()
    y[0], y[1] = 1.0, -1.0
    return Dataset(x, y)


def trained(data, seed, method, steps, *widths):
    """Return the trained weights, separated or not."""
    config = TrainConfig(method=method, steps=steps, widths=widths)
    state = training.init(data, config, torch.Generator().manual_seed(seed))
    for following in training.iterate(data, state, config):
        state = following
    return state.net


def changes(net, seed):
    """Yield (name, network, error of the margin) for the network as it is, and changed."""
    g = torch.Generator().manual_seed(seed)
    yield "as made", net, 0.0
    for share in MOVED:
        step = torch.randn(net.theta.shape, generator=g, dtype=torch.float64)
        yield (
            f"moved by {share:g}",
            net.with_theta(net.theta + step * share * net.rho / step.norm()),
            0.0,
        )
    for kind in STORED:
        stored = [p.to(kind).double() for p in net.parameters]
        yield f"stored in {str(kind).split('.')[1]}", net.with_parameters(stored), 0.0
    yield "margin off by 10%", net, 0.1


def planar(seed):
    """Return (kind, data, width): six kinds of sets of the plane in turns."""
    g, turn = torch.Generator().manual_seed(seed), seed // 6
    n, k = (6, 8, 10)[turn % 3], torch.arange(9)
    label = torch.where(k % 2 == 0, 1.0, -1.0).double()
    drawn_x = torch.rand(n, 2, generator=g, dtype=torch.float64)
    width = (50, 100, 300)[turn % 3]
    grid = 0.8 * torch.stack([k % 3 - 1, k // 3 - 1], 1).double()
    halves = torch.cat([drawn_x[: n // 2] / 2 - 0.8, drawn_x[n // 2 :] / 2 + 0.3])
    sides = torch.cat([torch.ones(n // 2), -torch.ones(n // 2)]).double()
    return (
        ("circle", preset("alternating-circle", n=(8, 14, 20)[turn % 3]), width),
        ("random circle", preset("random-circle", n=8), 100),
        ("xor", preset("xor", n=8), 100),
        ("uniform", Dataset(2 * drawn_x - 1, label[torch.arange(n) % 2]), width),
        ("clusters", Dataset(halves, sides), 100),
        ("grid", Dataset(grid, label), 100),
    )[seed % 6]


def linear(seed):
    """Return (kind, data): five kinds of sets of the line in turns."""
    g, turn = torch.Generator().manual_seed(seed), seed // 5
    n = 4 + turn % 5
    some = torch.rand(n, 1, generator=g, dtype=torch.float64)
    label = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    centre = torch.where(torch.arange(n) < n // 2, -1.0, 1.0).double()[:, None]
    return (
        ("random labels", drawn(seed)),
        ("alternating line", preset("alternating-line", n=n)),
        ("alternating, uneven", Dataset((4 * some - 2).sort(dim=0).values, label)),
        ("clusters", Dataset(centre + 0.6 * (some - 0.5), centre[:, 0])),
        ("pairs", Dataset(torch.arange(n)[:, None] // 2 + 0.3 * label[:, None] - n / 4, label)),
    )[seed % 5]


def some_changes(net, seed):
    """Return (name, network) as made, moved by one share and stored in one kind, by the seed."""
    made = {name: other for name, other, _ in changes(net, seed)}
    shares, kinds = (1e-4, 1e-3, 1e-2), ("float16", "bfloat16")
    names = ("as made", f"moved by {shares[seed % 3]:g}", f"stored in {kinds[seed % 2]}")
    return [(name.split(" by ")[0].split(" in ")[0], made[name]) for name in names]


def of_three_layers(seed, counts):
    """Add to `counts` what is certified and claimed of three layers on a set of the line."""
    kind, data = linear(seed)
    width, method = (20, 50, 100)[seed % 3], METHODS[seed % 2]
    net = trained(data, seed, method, 10_000, width, width)
    for name, other in some_changes(net, seed):
        looked_at(data, other, 0.0, seed, 0.03, counts[f"three layers, {kind}, {name}"])


def of_the_plane(seed, counts):
    """Add to `counts` what the attack claims on a set of the plane, its weights changed and not."""
    kind, data, width = planar(seed)
    for name, net in some_changes(trained(data, seed, "gradient", 20_000, width), seed):
        count = counts[f"{kind}, {name}"]
        if not float(q_of(net, data.x, data.y).min()) > 0:
            count["not separated"] += 1
            continue
        count["sets"], count["points"] = count["sets"] + 1, count["points"] + data.n
        searched(data, Target(normalise(net, data.x, data.y)[0]), 0.0, count)


def pruned(net, share):
    """Return the network with the first and last weights of its smallest neurons set to 0."""
    w, v = net.weights
    path = v.abs().sum(0) * torch.cat([w, net.biases[0][:, None]], 1).norm(dim=1)
    out = path.argsort()[: int(share * len(path))]
    kept = torch.ones(len(path), dtype=w.dtype)
    kept[out] = 0
    return Network((w * kept[:, None], v * kept), (net.biases[0] * kept, None))


def balanced(net):
    """Return the network with each neuron scaled so that |v| = |(w, b)|: the function stays."""
    w, v = net.weights
    size = torch.cat([w, net.biases[0][:, None]], 1).norm(dim=1)
    by = (v[0].abs() / size.clamp_min(1e-300)).sqrt().clamp_min(1e-300)
    return Network((w * by[:, None], v / by), (net.biases[0] * by, None))


def moved(net, share, seed):
    """Return the network moved by a share of its norm."""
    g = torch.Generator().manual_seed(seed)
    step = torch.randn(net.theta.shape, generator=g, dtype=torch.float64)
    return net.with_theta(net.theta + step * share * net.rho / step.norm())


def of_changed(seed, counts):
    """Add to `counts` what the attack claims of weights changed in ways that leave no imbalance."""
    data = linear(seed)[1]
    net = trained(data, seed, METHODS[seed % 2], 5000, 100)
    config = TrainConfig(method="gradient", steps=5000, widths=(40, 40), weight_decay=1e-3)
    state = training.init(data, config, torch.Generator().manual_seed(seed))
    for following in training.iterate(data, state, config):
        state = following
    made = [("as made", net), ("three layers, weight decay", state.net)]
    made += [(f"pruned {s:.0%}", pruned(net, s)) for s in (0.2, 0.5, 0.7)]
    made += [(f"merged {t}", merge_neurons(net, t).net) for t in (0.02, 0.1)]
    made += [(f"moved {s} and balanced", balanced(moved(net, s, seed))) for s in (1e-3, 1e-2)]
    half = net.with_parameters([p.half().double() for p in net.parameters])
    made += [("float16", half), ("balanced, float16", balanced(half))]
    for name, other in made:
        count = counts[f"changed, {name}"]
        if not float(q_of(other, data.x, data.y).min()) > 0:
            count["not separated"] += 1
            continue
        count["sets"], count["points"] = count["sets"] + 1, count["points"] + data.n
        searched(data, Target(normalise(other, data.x, data.y)[0]), 0.0, count)


def of_boxes(seed, count):
    """Add to `count` whether a point on the margin lies beyond the box of a plane network."""
    _, data, width = planar(seed)
    net = trained(data, seed, "gradient", 5000, width)
    q = q_of(net, data.x, data.y)
    if not float(q.min()) > 0:
        count["not separated"] += 1
        return
    far = data.x.abs().amax(1)[q <= (1 + SUPPORT) * q.min()]
    box = extent(normalise(net, data.x, data.y)[0]).box
    count["sets"], count["points"] = count["sets"] + 1, count["points"] + len(far)
    count["networks with a point outside"] += bool((far > box).any())
    count["points outside"] += int((far > box).sum())


def places(cone, data, support, half, rng):
    """Return (centre, label) of all places on the line, or of some in the plane."""
    box = cone.assumptions.box
    if data.x.shape[1] == 1:
        known = data.y.unique().tolist()
        return [(np.array([c]), y) for y in known for c in np.arange(-box, box, half)]
    chosen = [(data.x[i].numpy(), float(data.y[i])) for i in support]
    rows = rng.permutation(len(cone.places.y))[: len(chosen)]
    return chosen + [(cone.places.pieces[i].mean(0), float(cone.places.y[i])) for i in rows]


def of_several_classes(seed, counts):
    """Add to `counts` what is certified and claimed of three or four classes on the line."""
    g, classes = torch.Generator().manual_seed(seed), 3 + seed % 2
    n = int(torch.randint(classes, 11, (), generator=g))
    x = 4 * torch.rand(n, 1, generator=g, dtype=torch.float64) - 2
    number = torch.cat([torch.arange(classes), torch.randint(classes, (n - classes,), generator=g)])
    data = Dataset(x, torch.tensor([1.0, -1.0, 3.0, 4.0]).double()[number])
    for name, net in some_changes(trained(data, seed, "gradient", 20_000, 100), seed):
        looked_at(data, net, 0.0, seed, 0.03, counts[f"{classes} classes, {name}"])


def of_decay(seed, counts):
    """Add to `counts` what is certified of a network of the line trained with weight decay."""
    data, mu, state, steps = drawn(seed), (1e-3, 3e-3, 1e-2)[seed % 3], None, 0
    for rate, more in ((0.3, 10_000), (0.03, 5000), (0.003, 5000)):
        steps += more
        config = TrainConfig(
            steps=steps, widths=(30,), weight_decay=mu, loss="logistic", momentum=0.9,
            step_rule="constant", lr=rate,
        )  # fmt: skip
        state = state or training.init(data, config, torch.Generator().manual_seed(seed))
        for following in training.iterate(data, state, config):
            state = following
    net, least = state.net, float(q_of(state.net, data.x, data.y).min())
    kind = "separated" if least > 0 else "with errors"
    looked_at(data, net, 0.0, seed, 0.03, counts[f"decay {mu:g}, {kind}"], mu)


def looked_at(data, net, error, seed, half, count, decay=0.0):
    """Add to `count` what is certified and claimed on one network."""
    least = float(q_of(net, data.x, data.y).min())
    if not (least > 0 or decay):
        count["not separated"] += 1
        return
    pull = torch.sigmoid(-q_of(net, data.x, data.y)).numpy()
    target = Target.of(net, least, decay)
    rng, net = np.random.default_rng(seed), target.net
    net = net.with_theta(net.theta * (1 + error * rng.uniform(-1, 1)) ** 0.5)
    target = replace(target, net=net)
    began = time.process_time()
    cone = assumed_cone(net, error, decay=target.decay)
    made, least = cone.assumptions, cone.least.high
    count["seconds to build"] += time.process_time() - began
    x, y, q = data.x.numpy(), data.y.numpy(), q_of(net, data.x, data.y).numpy()
    support = np.flatnonzero(q < (1 + SUPPORT) * q.min())
    if decay:
        support = np.flatnonzero(pull > 1e-3 * pull.max())
    low, high = made.levels
    inside = (q >= low) & (q <= high) & (np.abs(x) <= made.box).all(1)
    truth = cone.bound_near(x[inside], y[inside], made.reach).high if inside.any() else 1.0
    limit = threshold(cone)
    count["sets"] += 1
    count["support"] += len(support)
    count["support out of reach"] += int((~inside[support]).sum())
    count["truth over 5%"] += truth > 0.05

    def radius(at, label):
        nonlocal began
        began = time.process_time()
        found = cone.radius(at - half, at + half, label, min(truth, limit)).low
        count["seconds"] += time.process_time() - began
        count["places"] += 1
        return found

    radii = [radius(x[i], float(y[i])) for i in support]
    count["support certified"] += sum(r > truth for r in radii)
    count["support claimed"] += sum(r > limit for r in radii)
    if decay:
        wide = [cone.radius(x[i] - 0.12, x[i] + 0.12, float(y[i]), truth) for i in support]
        count["support certified within 0.12"] += sum(r.low > truth for r in wide)
        count["explained without a point within 0.12"] += sum(r.high <= OTHERWISE for r in wide)
    if truth <= WELL:
        count["well trained"] += 1
        count["support, well trained"] += len(support)
        count["support certified, well trained"] += sum(r > truth for r in radii)
        count["support claimed, well trained"] += sum(r > limit for r in radii)
    for at, label in places(cone, data, support, half, rng):
        near = (np.abs(x - at).max(1) <= half + made.reach + 1e-9) & (y == label)
        found = radius(at, label)
        count["certified"] += found > truth
        count["false certified"] += found > truth and not near.any()
        count["claimed"] += found > limit
        count["false claimed"] += found > limit and not near.any()
    count["largest least"] = max(count["largest least"], round(least, 3))
    if x.shape[1] == 1:
        searched(data, target, error, count)


def searched(data, target, error, count):
    """Add what the attack claims with its defaults."""
    config = attack.CertifiedConfig(margin_error=error)
    if attack.ATTACK.refusal(target):
        count["refused"] += 1
        return
    began = time.process_time()
    state = attack.init(target, config, torch.Generator())
    while not attack.terminate(state, config).over:
        state = attack.step(target, state, config)
    count["seconds of the attack"] += time.process_time() - began
    apart = (state.x[:, None] - data.x[None]).abs().amax(2)
    near = (apart <= state.half[:, None] + state.reach + 1e-9) & (state.y[:, None] == data.y)
    count["claims"] += len(near)
    count["points in a claim"] += int(near.any(0).sum())
    count["false claims"] += int((~near.any(1)).sum())


def main():
    """Print one block of counts for each kind of network, then their sum."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--exact", type=int, default=40)
    parser.add_argument("--trained", type=int, default=20)
    parser.add_argument("--plane", type=int, default=1)
    parser.add_argument("--kinds", type=int, default=0)
    parser.add_argument("--deep", type=int, default=0)
    parser.add_argument("--changed", type=int, default=0)
    parser.add_argument("--boxes", type=int, default=0)
    parser.add_argument("--decay", type=int, default=0)
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--unchanged", action="store_true", help="networks as made alone")
    options = parser.parse_args()
    counts = defaultdict(Counter)

    def changed(kind, data, net, seed, half=0.03):
        for name, other, error in changes(net, seed):
            if options.unchanged and name != "as made":
                continue
            looked_at(data, other, error, seed, half, counts[f"{kind}, {name}"])

    for seed in range(options.start, options.start + options.exact):
        data = drawn(seed)
        changed("exact", data, maximum_margin(data.x, data.y).net, seed)
    for seed in range(options.start, options.start + options.trained):
        data = drawn(seed)
        for method in METHODS:
            changed(method, data, trained(data, seed, method, 20_000, 100), seed)
    for seed in range(options.start, options.start + options.plane):
        data = preset("alternating-circle", n=10)
        net = trained(data, seed, "gradient", 20_000, 50)
        looked_at(data, net, 0.0, seed, 0.05, counts["plane, circle of 10"])
    for seed in range(options.start, options.start + options.kinds):
        of_the_plane(seed, counts)
    for seed in range(options.start, options.start + options.deep):
        of_three_layers(seed, counts)
    for seed in range(options.start, options.start + options.changed):
        of_changed(seed, counts)
    for seed in range(options.start, options.start + options.boxes):
        of_boxes(seed, counts["boxes of the plane"])
    for seed in range(options.start, options.start + options.decay):
        of_decay(seed, counts)
    for seed in range(options.start, options.start + options.classes):
        of_several_classes(seed, counts)
    total = Counter()
    for kind, count in counts.items():
        total.update({k: v for k, v in count.items() if k != "largest least"})
        print(f"{kind}: " + shown(count), flush=True)
    print("all: " + shown(total))


def shown(count):
    """Return counts as one line."""
    return ", ".join(f"{k} {round(v, 2)}" for k, v in sorted(count.items()))


if __name__ == "__main__":
    main()
