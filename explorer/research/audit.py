"""One call: a trained model and its data in, what its weights give away of the data out.

    found = audit(model, x, y, heldout=(x_test, y_test))
    print(found)                 # the verdict, in sentences
    found.table                  # one row per training point
    found.save("report.html")

What is measured in lengths (radii, starts, steps, priors) is in units of the data: their spread is
the root of the mean square distance to their centre. The KKT conditions are not the same in all
coordinates, since a bias has none. So the weights are looked at in the coordinates of the given
points and in a few others that a training may have used (`known_coordinates`), and the attacks run
where the points explain the weights best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from explorer.engine.attacks.certified import fits
from explorer.engine.attacks.claims import Report, claims
from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED, Certificate, certify, in_reach
from explorer.engine.classes import class_labels, fair_labels, label_of
from explorer.engine.controls import MOST, Controls, Origin, control_sets
from explorer.engine.data import Dataset
from explorer.engine.data.dataset import points_of
from explorer.engine.data.drawings import generator_of
from explorer.engine.margin import q_of
from explorer.engine.modules import ModelError, network_of
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, phi_all, scaled_network
from explorer.engine.roster import AnyAttack, AttackConfig, by_key
from explorer.engine.scoring import Verdict, judge
from explorer.engine.settings import schema
from explorer.research import audit_report, runs
from explorer.research.determined import Determination, determined
from explorer.research.devices import check_device
from explorer.research.runs import RADIUS, RunFailed
from explorer.research.words.audit import audited

SEARCHES = ("certified_places",)  # attacks that search as long as they find
KEYS = ("kkt", "decoreco", "univariate", "certified_places")  # those that fit the weights run
FEW = 3  # coordinates: in more, near points are far apart, and the radius is measured by that
NEAREST = 1 / 3  # arbitrary: of the median distance between nearest training points
SECONDS = 30.0  # arbitrary: of the search of places, which has no end in sight
LARGE = 2000  # arbitrary: points times outputs; the certificate of more takes minutes
PIXELS = 0.3  # standard deviation of a pixel of the 8 x 8 digits, from 0 to 1, less their mean
DIGITS = 8  # arbitrary: far below what an attack can see, far above rounding
SAME = 1e-4  # arbitrary: relative difference of model and network that rounding may make
BETTER = 0.8  # arbitrary: later coordinates are taken where they leave this share of the residual


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates z of points x = centre + scale z.

    Attributes:
        name: of the coordinates, for the sentence.
        centre: (d,), in units of the data.
        scale: (d,), in units of the data.
    """

    name: str
    centre: Tensor
    scale: Tensor

    def inside(self, x: Tensor) -> Tensor:
        """Return points (n, d) in these coordinates."""
        return (x - self.centre) / self.scale

    def outside(self, z: Tensor) -> Tensor:
        """Return points (n, d) in units of the data."""
        return self.centre + self.scale * z

    def net(self, net: Network) -> Network:
        """Return the same function of z."""
        w, b = net.weights[0], net.biases[0]
        moved = w @ self.centre
        first = (w * self.scale, *net.weights[1:])
        if b is None and not bool(moved.any()):
            return replace(net, weights=first)
        bias = moved if b is None else b + moved
        return replace(net, weights=first, biases=(bias, *net.biases[1:]))


@dataclass(frozen=True, eq=False)
class Tried:
    """One attack of an audit.

    Attributes:
        key: of the attack in the roster.
        title: its name.
        claims: in units of the data; none where it failed.
        verdict: against the controls, at the radius of the audit; None where it failed.
        seconds: that it took.
        message: why it failed; "" where it did not.
        ended: whether it was ended before it came to its end.
    """

    key: str
    title: str
    claims: Report
    verdict: Verdict | None
    seconds: float
    message: str = ""
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Audit:
    """What the weights of a model give away of its training points.

    Attributes:
        net: the network that the model computes, in units of the data.
        data: the training points, in units of the data.
        classes: the classes of the model in their order.
        coordinates: the coordinates in which the points explain the weights best.
        spread: root of the mean square distance to the centre, in units of the data.
        radius: distance within which a point counts as found, as a share of the spread.
        q: margins (n,) of the points.
        certificate: how near to a KKT point the weights are in these coordinates; None where there
            is none.
        tried: the attacks that ran.
        controls: what stood for chance.
        determined: what the weights determine of the points, over all explanations; lengths are
            those of `coordinates`. None where it was not asked for, or cannot be said.

    Example:
        >>> from explorer import audit, maximum_margin, preset
        >>> data = preset("alternating-circle", n=6)
        >>> found = audit(maximum_margin(data.x, data.y).net, data.x, data.y, attacks=("kkt",))
        >>> found.certificate.light.value
        'exact'
    """

    net: Network
    data: Dataset
    classes: tuple[Any, ...]
    coordinates: Coordinates
    spread: float
    radius: float
    q: Tensor
    certificate: Certificate | None
    tried: tuple[Tried, ...]
    controls: Controls
    determined: Determination | None = None

    @property
    def best(self) -> Tried | None:
        """The attack of the smallest p-value, and of those the one that finds most."""
        ran = [one for one in self.tried if one.verdict is not None]

        def order(one: Tried) -> tuple[float, int]:
            made = one.verdict
            assert made is not None
            return (made.p_value if made.p_value == made.p_value else 2.0, -made.found)

        return min(ran, key=order, default=None)

    @property
    def p_value(self) -> float:
        """The p-value of the best attack, times the number of attacks (Bonferroni); or nan."""
        best = self.best
        if best is None or best.verdict is None:
            return math.nan
        ran = sum(one.verdict is not None for one in self.tried)
        return min(1.0, best.verdict.p_value * ran)

    @property
    def found(self) -> list[bool]:
        """Which points the best attack found."""
        return audit_report.found_points(self)

    @cached_property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        return audited(self)

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"Audit({self.net!r}, {self.data.n} points: {self.sentence})"

    def _repr_html_(self) -> str:
        return self.to_html(whole=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table as plain rows."""
        return audit_report.rows(self)

    @property
    def table(self) -> Any:  # noqa: ANN401 - pandas is untyped and optional
        """One row per training point, as a pandas DataFrame.

        Raises:
            ImportError: without pandas; `rows` needs none.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    def plot(self, ax: Any = None) -> Any:  # noqa: ANN401 - matplotlib is untyped
        """Draw the points and the claims of the best attack.

        Points on a line or in the plane are drawn where they are; of others, the distance to the
        nearest claim.

        Args:
            ax: matplotlib axes to draw on; None makes a figure.

        Returns:
            The axes.
        """
        return audit_report.draw(self, ax)

    def to_html(self, whole: bool = True) -> str:
        """Return the audit as HTML: the verdict, what it rests on, tables and the picture.

        Args:
            whole: a page of its own, else a part of one.

        Returns:
            HTML that needs no other file.
        """
        return audit_report.html(self, whole)

    def save(self, path: str | Path) -> Path:
        """Write the audit to a file.

        Args:
            path: where; its ending says what: .html, .json, .csv (the table), or .svg, .pdf, .png
                (the picture).

        Returns:
            The path.

        Raises:
            ValueError: for another ending.
        """
        return audit_report.save(self, Path(path))


def audit(
    model: nn.Module | Mapping[str, Any] | Network,
    x: Any,  # noqa: ANN401 - arrays of any kind
    y: Any = None,  # noqa: ANN401
    heldout: Any = None,  # noqa: ANN401
    *,
    attacks: Sequence[str] | None = None,
    radius: float | None = None,
    seed: int = 0,
    steps: int | None = None,
    watch: runs.Watch[Any] = runs.no_watch,
    device: str = "cpu",
) -> Audit:
    """Return what the weights of a trained model give away of its training points.

    Args:
        model: a PyTorch module of Linear layers and ReLU, its state_dict, or a `Network`.
        x: the training points (n, d) as the model takes them: NumPy, torch, pandas; or a `Dataset`.
        y: their classes (n,) of any kind; see `class_labels`.
        heldout: points of the same source that the model was not trained on, as (x, y); points
            alone get the classes that the model gives them. None makes controls from the points.
        attacks: keys of the roster; None takes those of `KEYS` that fit, and says as well what the
            weights determine, where that is known how to say.
        radius: distance within which a point counts as found, as a share of the spread and not in
            units of the data. None takes 0.03, or in more than three coordinates a third of the
            distance between nearest points.
        seed: of all that is drawn.
        steps: of the attacks by descent; None takes their own number.
        watch: sees every state of an attack go by.
        device: where to attack, where the attack can: cpu, cuda or mps.

    Returns:
        The audit.

    Raises:
        ModelError: for a model that is not a fully connected ReLU network.
        ValueError: where points and model do not fit one another, or the device is not there.

    Source: Haim et al. 2022 and Lyu and Li 2020 for the conditions; the choice of coordinates and
        the pooled permutation test are our own.

    Example:
        >>> from explorer import audit, maximum_margin, preset
        >>> data = preset("alternating-circle", n=6)
        >>> found = audit(maximum_margin(data.x, data.y).net, data, attacks=("kkt",), steps=200)
        >>> list(found.rows[0])[:3]
        ['point', 'class', 'margin']
    """
    check_device(device)
    net = network_of(model).to(dtype=torch.float64, device="cpu")
    data, classes = _labelled(x, y, net)
    _check(model, net, data)
    q = q_of(net, data.x, data.y)
    coordinates, made = _frame(net, data, float(q.min()))
    z = Dataset(coordinates.inside(data.x), data.y)
    spread = _rounded(float((z.x - z.x.mean(0)).square().sum(1).mean().sqrt()))
    if not spread > 0:
        raise ValueError("all training points are equal, so there is no unit of length")
    share = _share(z, spread) if radius is None else radius
    controls = controls_for(z, _others(heldout, net, classes, coordinates), seed)
    tried: tuple[Tried, ...] = ()
    told: Determination | None = None
    if float(q.min()) > 0:
        one = Target.of(coordinates.net(net), float(q.min()))
        target = replace(one, net=one.net.with_theta(_round_all(one.net.theta)))
        case = _Case(
            target, z, controls, made, spread, share, coordinates, seed, steps, watch, device
        )
        tried = tuple(case.attacked(entry) for entry in _entries(attacks, target))
        if attacks is None and not fits(target):
            told = determined(target, z, share * spread)
    return Audit(net, data, classes, coordinates, spread, share, q, made, tried, controls, told)


def _entries(attacks: Sequence[str] | None, target: Target) -> list[AnyAttack]:
    """The attacks asked for, or those that fit. DecoReco where KKT knows no several classes."""
    if attacks is not None:
        return [by_key(key) for key in attacks]
    rows = [by_key(key) for key in KEYS]
    if target.net.outputs == 1:
        rows = [row for row in rows if row.key != "decoreco"]
    return [row for row in rows if not row.refusal(target)]


def _labelled(x: Any, y: Any, net: Network) -> tuple[Dataset, tuple[Any, ...]]:  # noqa: ANN401
    """The points with the labels of the engine, and the classes in the order of the outputs."""
    if isinstance(x, Dataset):
        known = (-1, 1) if net.outputs == 1 else tuple(label_of(k) for k in range(net.outputs))
        return x.to(dtype=torch.float64, device="cpu"), known
    if y is None:
        raise ValueError("the classes of the training points are missing: audit(model, x, y)")
    labels, classes = class_labels(y, net.outputs)
    return Dataset(points_of(x), labels), classes


def _check(model: Any, net: Network, data: Dataset) -> None:  # noqa: ANN401
    """Raise where the points do not fit, or the network does not compute what the model does."""
    if net.depth < 2:
        raise ModelError("the model has no hidden layer; the attacks here need one of ReLU.")
    if data.d != net.d:
        raise ValueError(f"the points have {data.d} coordinates; the model takes {net.d}")
    if not data.n:
        raise ValueError("there are no training points; at least one is needed")
    if data.outputs > max(net.outputs, 2):
        raise ValueError(f"the points have {data.outputs} classes; the model has {net.outputs}")
    if not isinstance(model, nn.Module):
        return
    first = next(model.parameters())
    training = model.training
    with torch.no_grad():
        says = model.eval()(data.x.to(first)).detach().cpu().double()
    model.train(training)
    own = phi_all(net, data.x)
    for made in (
        own,
        own.sigmoid(),
        own.softmax(1),
        own.log_softmax(1),
        (-own).exp().log1p().neg(),
    ):
        if float((says.reshape(made.shape) - made).abs().max()) <= SAME * (
            1 + float(own.abs().max())
        ):
            return
    raise ModelError("the network read from the model does not compute what the model does.")


def known_coordinates(net: Network, x: Tensor) -> list[Coordinates]:
    """Coordinates that a training may have used: rescaled, as given, standardised, in [0, 1].

    Rescaled: training keeps the incoming weights of a layer as large as the outgoing ones (Du et
    al. 2018), so that the weights themselves say in which unit of length they were trained.
    """
    one, zero = torch.ones(net.d, dtype=x.dtype), torch.zeros(net.d, dtype=x.dtype)
    low, high, deviation = x.amin(0), x.amax(0), x.std(0, correction=0)
    made = []
    bias = 0.0 if net.biases[0] is None else float(net.biases[0].square().sum())
    square = (float(net.weights[1].square().sum()) - bias) / float(net.weights[0].square().sum())
    if square > 0:
        made.append(Coordinates("rescaled", zero, one * square**0.5))
    made.append(Coordinates("as given", zero, one))
    if net.biases[0] is not None:  # without, no other centre can have been
        flat = deviation == 0
        made.append(Coordinates("standardised", x.mean(0), torch.where(flat, one, deviation)))
        made.append(Coordinates("from 0 to 1", low, torch.where(flat, one, high - low)))
    return made


def _frame(net: Network, data: Dataset, q_min: float) -> tuple[Coordinates, Certificate | None]:
    """The coordinates in which the points explain the weights best, and the certificate there."""
    known = known_coordinates(net, data.x)
    if not (q_min > 0 and net.homogeneous) or data.n * net.outputs > LARGE:
        return next(f for f in known if f.name == "as given"), None
    best, least = known[0], math.inf
    for coordinates in known:
        one = scaled_network(coordinates.net(net), q_min ** (-1 / net.order))
        left = fit_multipliers(one, coordinates.inside(data.x), data.y, TAU_TRAINED).residual
        if left < BETTER * least:
            best, least = coordinates, left
    return best, certify(best.net(net), best.inside(data.x), data.y)


def _rounded(value: float) -> float:
    """A number to as many digits as `DIGITS`."""
    return float(f"{value:.{DIGITS}g}")


def _round_all(values: Tensor) -> Tensor:
    """Numbers (...) to as many digits of the largest.

    Else the last digit would tell which unit of length was given, and a descent of thousands of
    steps may make much of it.
    """
    largest = float(values.abs().max())
    unit = 10.0 ** (math.floor(math.log10(largest)) + 1 - DIGITS) if largest > 0 else 1.0
    return (values / unit).round() * unit


def _share(z: Dataset, spread: float) -> float:
    """The radius within which a point counts as found, as a share of the spread."""
    if z.d <= FEW or z.n < 2:
        return RADIUS
    apart = torch.cdist(z.x, z.x).fill_diagonal_(torch.inf).amin(1)
    return NEAREST * float(apart.median()) / spread


def _others(
    heldout: Any,  # noqa: ANN401
    net: Network,
    classes: tuple[Any, ...],
    coordinates: Coordinates,
) -> Dataset | None:
    """The held-out points; those without classes get the model's own."""
    if heldout is None:
        return None
    if isinstance(heldout, Dataset):
        data = heldout.to(dtype=torch.float64, device="cpu")
        return Dataset(coordinates.inside(data.x), data.y)
    x, y = heldout if isinstance(heldout, tuple) else (heldout, None)
    points = points_of(x)
    if points.shape[1] != net.d:
        raise ValueError(f"held-out points have {points.shape[1]} coordinates, not {net.d}")
    if y is not None:
        labels = class_labels(y, net.outputs, classes)[0]
    elif net.outputs == 1:
        labels = torch.where(net(points) > 0, 1.0, -1.0).double()
    else:
        best = phi_all(net, points).argmax(1).tolist()
        labels = torch.tensor([label_of(k) for k in best], dtype=torch.float64)
    return Dataset(coordinates.inside(points), labels)


def controls_for(z: Dataset, others: Dataset | None, seed: int) -> Controls:
    """Sets as large as the training set, class by class, of training and held-out points together.

    If claims know nothing of the training points, each such set is as likely as these: the test is
    then exact, also where there are few held-out points. Without any, `control_sets`.
    """
    if others is None:
        return control_sets(z)
    x, y = torch.cat([z.x, others.x]), torch.cat([z.y, others.y])
    generator = generator_of(seed, z.n, 5)
    sets = []
    for _ in range(MOST):
        order = torch.randperm(len(y), generator=generator)
        kept = [order[y[order] == label][: int((z.y == label).sum())] for label in z.y.unique()]
        sets.append(Dataset(x[torch.cat(kept)], y[torch.cat(kept)]))
    return Controls(tuple(sets), Origin.POOLED)


@dataclass(frozen=True, eq=False)
class _Case:
    """What all attacks of an audit share."""

    target: Target
    z: Dataset
    controls: Controls
    certificate: Certificate | None
    spread: float
    share: float
    coordinates: Coordinates
    seed: int
    steps: int | None
    watch: runs.Watch[Any]
    device: str

    def attacked(self, entry: AnyAttack) -> Tried:
        """Run one attack to its end, and judge what it claims."""
        begun = perf_counter()
        config = self._config(entry)
        late: list[bool] = []
        try:
            done = runs.attack(
                self.target, config, self.seed, name=entry, start=self._start(entry, config),
                keep=2, watch=self._within(entry, late), device=self.device,
            )  # fmt: skip
            made = done.claims
            if isinstance(config, DescentConfig):
                state = done.states[-1]
                made = claims(
                    self.target, state.x, state.y, state.lam, radius=self.share * self.spread
                )
            verdict = judge(
                self.z, self.controls, made.x, made.y, self.share * self.spread,
                in_reach(self.certificate, self.z.n), more=True,
            )  # fmt: skip
        except (RunFailed, ValueError) as error:
            nothing = Report(self.z.x[:0], self.z.y[:0], self.z.y[:0])
            return Tried(entry.key, entry.title, nothing, None, perf_counter() - begun, str(error))
        outside = replace(made, x=self.coordinates.outside(made.x))
        seconds = perf_counter() - begun
        return Tried(entry.key, entry.title, outside, verdict, seconds, ended=bool(late))

    def _config(self, entry: AnyAttack) -> AttackConfig:
        """The defaults of an attack, its lengths in units of the data."""
        default, n = entry.config(), self.z.n
        unit = self.spread * math.sqrt(2 / self.z.d)  # they are made for a circle of radius 1
        if self.z.d > FEW and entry.pictures is not None:  # and these for pixels
            default = entry.pictures(n, self.target.net.outputs, None)
            unit = self.spread / math.sqrt(self.z.d) / PIXELS
        changed: dict[str, Any] = {}
        for row in schema(entry.config):
            value = getattr(default, row.name)
            if value is not None and (row.unit == "of the data" or row.name == "lr_x"):
                changed[row.name] = value * unit
            if value is not None and row.name in ("relu_alpha", "relu_alpha_start"):
                changed[row.name] = value / math.sqrt(unit)
        if isinstance(default, DescentConfig):
            changed |= {"prior": None, "m": max(default.m, 4 * n)}
            if self.steps is not None:
                changed["steps"] = self.steps
        made: AttackConfig = replace(default, **changed)
        return made

    def _start(self, entry: AnyAttack, config: Any) -> tuple[Tensor, Tensor] | None:  # noqa: ANN401
        """Noise around the centre of the points; None for attacks that take no start."""
        if not entry.takes_start:
            return None
        generator = generator_of(self.seed, config.m, 6)
        noise = torch.randn(config.m, self.z.d, generator=generator, dtype=torch.float64)
        y = fair_labels(config.m, self.target.net.outputs)
        return _round_all(self.z.x.mean(0) + config.sigma_x * noise), y

    def _within(self, entry: AnyAttack, late: list[bool]) -> runs.Watch[Any]:
        """The watch, which ends a search without an end in sight."""
        if "steps" in {row.name for row in schema(entry.config)} and entry.key not in SEARCHES:
            return self.watch

        def limited(states: Iterable[Any], total: int, label: str) -> Iterator[Any]:
            begun = perf_counter()
            for state in self.watch(states, total, label):
                yield state
                if perf_counter() - begun > SECONDS:
                    late.append(True)
                    return

        return limited
