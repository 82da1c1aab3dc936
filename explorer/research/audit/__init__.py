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
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from explorer.engine.attacks.claims import Report, claims
from explorer.engine.attacks.descent import DescentConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED, Certificate, certify, in_reach
from explorer.engine.classes import fair_labels
from explorer.engine.controls import Controls
from explorer.engine.data import Dataset
from explorer.engine.data.drawings import generator_of
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.images import image_scores, image_verdict
from explorer.engine.margin import q_of, usable_margin
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network
from explorer.engine.ranks import FEW_COORDINATES, judge_by_ranks
from explorer.engine.roster import AnyAttack, AnyConfig, AttackConfig, by_key
from explorer.engine.scoring import Verdict, judge
from explorer.engine.settings import schema
from explorer.engine.threads import few_threads
from explorer.engine.torch_models import ModelError, Reading, read_model
from explorer.engine.weight_decay import fitted_decay
from explorer.research import runs
from explorer.research.audit.inputs import (
    AuditData,
    Coordinates,
    Given,
    audit_data,
    controls_for,
    known_coordinates,
    points_like,
    shape_of,
)
from explorer.research.audit.result import Audit, AuditAttack
from explorer.research.determined import Determination, determination
from explorer.research.devices import check_device
from explorer.research.runs import RADIUS, RunFailed

SEARCHES = ("certified_places",)  # attacks that search as long as they find
BY_MARGIN = "univariate"  # takes points off the margin for none
UNSETTLED = (
    "no weight decay is stationary at these weights and points: their errors weigh too much."
)
KEYS = ("kkt", "decoreco", "univariate", "certified_places")  # those that fit the weights run
NEAREST = 1 / 3  # arbitrary: of the median distance between nearest training points
SECONDS = 30.0  # arbitrary: of the search of places, which has no end in sight
LARGE = 2000  # arbitrary: points times outputs; the certificate of more takes minutes
PIXELS = 0.3  # standard deviation of a pixel of the 8 x 8 digits, from 0 to 1, less their mean
DIGITS = 8  # arbitrary: far below what an attack can see, far above rounding
BETTER = 0.8  # arbitrary: later coordinates are taken where they leave this share of the residual


@few_threads()
def audit(
    model: nn.Module | Mapping[str, Any] | Network,
    x: Given, y: Given = None, heldout: Given = None, *, classes: Sequence[Any] | None = None,
    attacks: Sequence[str] | None = None, radius: float | None = None, seed: int = 0,
    steps: int | None = None, pixels: tuple[int, int, int] | None = None,
    weight_decay: float | None = None, watch: runs.Watch[Any] = runs.no_watch, device: str = "cpu",
) -> Audit:  # fmt: skip
    """Return what the weights of a trained model give away of its training points.

    Args:
        model: a PyTorch module of Linear layers and ReLU, its state_dict, or a `Network`.
        x: the training points (n, d) as the model takes them: NumPy, torch, pandas; or a `Dataset`.
        y: their classes (n,) of any kind; see `class_labels`. Or the name of a column of x.
        heldout: points of the same source that the model was not trained on, as (x, y); points
            alone get the classes that the model gives them. Columns of pandas go by their names.
            None makes controls from the points.
        classes: all classes in the order of the model: with one output first the one where it is
            negative. None takes the order of `class_labels`.
        attacks: keys of the roster; None takes those of `KEYS` that fit, and says as well what the
            weights determine, where that is known how to say.
        radius: distance within which a point counts as found, as a share of the spread and not in
            units of the data. None takes 0.03, or in more than three coordinates a third of the
            distance between nearest points; there it counts without held-out points alone, else
            ranks do (`engine.ranks`).
        seed: of all that is drawn.
        steps: of the attacks by descent; None takes their own number.
        pixels: channels, height and width, where the points are images; None takes what the shape
            of x says. The range of a pixel, from the least to the largest value given, is then
            known to attacks, and with held-out images a training image counts as found where it is,
            of all of both, the nearest to a candidate (`engine.images`).
        weight_decay: mu of mean loss + mu/2 |theta|^2 that is known to have trained the model by
            gradient descent on the logistic loss: `weight_decay` of torch.optim.SGD, not of AdamW.
            None asks for none where all points are on their side, and else takes the only mu at
            which points and weights can be stationary (`fitted_decay`).
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
    if seed < 0:
        raise ValueError(f"seed must be 0 or more; got {seed}")
    if weight_decay is not None and not (weight_decay > 0 and math.isfinite(weight_decay)):
        raise ValueError(f"weight_decay must be positive and finite; got {weight_decay}")
    if radius is not None and not radius > 0:
        raise ValueError(f"radius must be positive, a share of the spread; got {radius}")
    names = (attacks,) if isinstance(attacks, str) else attacks
    wanted = None if names is None else [by_key(key) for key in names]
    pixels = pixels or shape_of(x)
    read = read_model(model, points_like(x, y) if isinstance(model, nn.Module) else None)
    # Which unit of length a training used is asked below, of every model alike.
    read = replace(read, net=replace(read.net, unit=1.0).to(dtype=torch.float64, device="cpu"))
    if not all(bool(p.isfinite().all()) for p in read.net.parameters):
        raise ModelError(
            "the model's weights are not all finite: its training diverged, and what it was "
            "trained on is lost. Train with smaller steps, and audit finite weights."
        )
    given = audit_data(read, x, y, heldout, classes)
    net, data = read.net, given.data
    q = q_of(net, data.x, data.y)
    coordinates, made = _frame(read, data, 0.0 if weight_decay else float(q.min()))
    z = Dataset(coordinates.inside(data.x), data.y)
    mu = weight_decay or 0.0
    if not (mu or float(q.min()) > 0):
        mu = fitted_decay(coordinates.net(net), z.x, z.y)
    spread = _round(float((z.x - z.x.mean(0)).square().sum(1).mean().sqrt()))
    if not spread > 0:
        raise ValueError("all training points are equal, so there is no unit of length")
    share = _share(z, spread) if radius is None else radius
    other = given.unseen
    if other is not None:
        other = Dataset(coordinates.inside(other.x), other.y)
    controls = controls_for(z, other, seed)
    unseen = None
    if given.unseen is not None and other is not None and z.d > FEW_COORDINATES:
        right = q_of(net, given.unseen.x, given.unseen.y) >= q.min()  # as the points themselves
        unseen = Dataset(other.x[right], other.y[right])
    tried: tuple[AuditAttack, ...] = ()
    told: Determination | None = None
    why = ""
    if bool((q > 0).any()):
        one = Target.of(coordinates.net(net), _round(usable_margin(q)))
        target = replace(one, net=one.net.with_theta(_round_all(one.net.theta)))
        told_of = replace(target, separated=float(q.min()) > 0)
        if mu > 0:
            told_of = Target.of(coordinates.net(net), float(q.min()), mu)
        seen = None if pixels is None else _Pixels.of(pixels, given, coordinates)
        if seen is not None:
            target = replace(target, pixels=seen.box)
        case = _Case(
            target, z, unseen, controls, made, spread, share, coordinates, seed, steps, watch,
            device, seen,
        )  # fmt: skip
        priced = replace(case, target=told_of)
        tried = tuple(
            (priced if entry.key in SEARCHES else case).attack(entry)
            for entry in wanted or _entries(target, told_of)
        )
        why = obstacle(told_of) if mu >= 0 else UNSETTLED
        if attacks is None and not why:
            told = determination(told_of, z, share * spread)
    return Audit(
        net, data, given.classes, coordinates, spread, share, q, made, tried, controls, told,
        given.names, read.folded, given.shared, why, given.kept, given.given - data.n, max(mu, 0.0),
    )  # fmt: skip


def _entries(target: Target, told_of: Target) -> list[AnyAttack]:
    """Return the attacks that fit. DecoReco where KKT knows no several classes.

    With weight decay, of which `told_of` knows, none goes by the margin alone.

    With biases beyond the first layer both rest on no theorem (`assumptions`), and run all the
    same.
    """
    rows = [by_key(key) for key in KEYS if told_of.decay is None or key != BY_MARGIN]
    if target.net.outputs == 1:
        rows = [row for row in rows if row.key != "decoreco"]
    rows = [
        replace(row, needs=replace(row.needs, non_homogeneous=True)) if row.needs.several else row
        for row in rows
    ]
    return [row for row in rows if not row.refusal(told_of if row.key in SEARCHES else target)]


def _frame(read: Reading, data: Dataset, q_min: float) -> tuple[Coordinates, Certificate | None]:
    """Return the coordinates where points explain the weights best, and the certificate there."""
    net, known = read.net, known_coordinates(read, data.x)
    if not q_min > 0 or data.n * net.outputs > LARGE:
        return replace(known[0], compared=False), None
    best, least = known[0], math.inf
    for coordinates in known:
        target = Target.of(coordinates.net(net), q_min)
        left = fit_multipliers(target.net, coordinates.inside(data.x), data.y, TAU_TRAINED).residual
        if left < BETTER * least:
            best, least = coordinates, left
    if not net.homogeneous:
        return best, None
    return best, certify(best.net(net), best.inside(data.x), data.y)


def _round(value: float) -> float:
    """Return a number to as many digits as `DIGITS`."""
    return float(f"{value:.{DIGITS}g}")


def _round_all(values: Tensor) -> Tensor:
    """Return numbers (...) to as many digits of the largest.

    Else the last digit would tell which unit of length was given, and a descent of thousands of
    steps may make much of it.
    """
    largest = float(values.abs().max())
    unit = 10.0 ** (math.floor(math.log10(largest)) + 1 - DIGITS) if largest > 0 else 1.0
    return (values / unit).round() * unit


def _share(z: Dataset, spread: float) -> float:
    """Return the radius within which a point counts as found, as a share of the spread."""
    if z.d <= FEW_COORDINATES or z.n < 2:
        return RADIUS
    apart = torch.cdist(z.x, z.x).fill_diagonal_(torch.inf).amin(1)
    return NEAREST * float(apart.median()) / spread


@dataclass(frozen=True, eq=False)
class _Pixels:
    """How points are images: their shape, the range of a pixel, and that range in coordinates."""

    shape: tuple[int, int, int]
    low: float
    high: float
    box: tuple[Tensor, Tensor]

    @staticmethod
    def of(shape: tuple[int, int, int], given: AuditData, coordinates: Coordinates) -> _Pixels:
        """Return it of the points given. ValueError where the shape does not fit."""
        data = given.data
        if math.prod(shape) != data.d:
            raise ValueError(
                f"pixels {shape} are {math.prod(shape)} numbers, and the points have {data.d}. "
                "Give channels, height and width."
            )
        ends = [f(s.x) for s in (data, given.unseen or data) for f in (torch.min, torch.max)]
        low, high = float(min(ends)), float(max(ends))
        box = (coordinates.inside(torch.full_like(data.x[0], end)) for end in (low, high))
        return _Pixels(shape, low, high, (next(box), next(box)))

    def of_points(self, x: Tensor) -> Tensor:
        """Return points (n, d), in units of the data, as images of pixels in [0, 1]."""
        return ((x - self.low) / (self.high - self.low)).reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False)
class _Case:
    """What all attacks of an audit share."""

    target: Target
    z: Dataset
    unseen: Dataset | None
    controls: Controls
    certificate: Certificate | None
    spread: float
    share: float
    coordinates: Coordinates
    seed: int
    steps: int | None
    watch: runs.Watch[Any]
    device: str
    pixels: _Pixels | None

    def attack(self, entry: AnyAttack) -> AuditAttack:
        """Run one attack to its end, and judge what it claims."""
        begun = perf_counter()
        config = self._config(entry)
        late: list[bool] = []
        try:
            done = runs.attack(
                self.target, config, self.seed, name=entry, start=self._start(entry, config),
                keep=2, watch=self._time_limit(entry, late), device=self.device,
            )  # fmt: skip
            made = done.claims
            if isinstance(config, DescentConfig):
                state = done.states[-1]
                made = claims(
                    self.target, state.x, state.y, state.lam, radius=self.share * self.spread
                )
            verdict = self._verdict(made)
        except (RunFailed, ValueError) as error:
            nothing = Report(self.z.x[:0], self.z.y[:0], self.z.y[:0])
            return AuditAttack(
                entry.key, entry.title, nothing, None, perf_counter() - begun, str(error)
            )
        outside = replace(made, x=self.coordinates.outside(made.x))
        seconds = perf_counter() - begun
        return AuditAttack(entry.key, entry.title, outside, verdict, seconds, ended=bool(late))

    def _verdict(self, made: Report) -> Verdict:
        """Return the verdict on claims: by ranks in many coordinates, else by those that match."""
        if self.unseen is not None:
            ranks = judge_by_ranks(self.z, self.unseen, made.x, made.y, self.seed)
            known = self.pixels is not None and ranks.why_not is None
            return self._image_verdict(made.x) if known else ranks
        return judge(
            self.z, self.controls, made.x, made.y, self.share * self.spread,
            in_reach(self.certificate, self.z.n), more=True,
        )  # fmt: skip

    def _image_verdict(self, x: Tensor) -> Verdict:
        """Return the verdict on candidates as images: which are the nearest of all to one."""
        assert self.pixels is not None and self.unseen is not None
        truth, unseen, found = (
            self.pixels.of_points(self.coordinates.outside(v)) for v in (self.z.x, self.unseen.x, x)
        )
        mine, other = image_scores([truth, unseen], found, [self.z.y, self.unseen.y])
        return replace(image_verdict(mine, [other]), claims=len(x))

    def _config(self, entry: AnyAttack) -> AttackConfig:
        """Return the defaults of an attack, its lengths in units of the data."""
        default, n = entry.config(), self.z.n
        unit = self.spread * math.sqrt(2 / self.z.d)  # they are made for a circle of radius 1
        if self.z.d > FEW_COORDINATES and entry.pictures is not None:  # and these for pixels
            default = entry.pictures(n, self.target.net.outputs, None)
            unit = self.spread / math.sqrt(self.z.d) / PIXELS
        changed: dict[str, Any] = {}
        for row in schema(entry.config):
            value = getattr(default, row.name)
            length = row.unit == "of the data" or row.name == "lr_x"
            if isinstance(value, float) and length:
                changed[row.name] = value * unit
            if value is not None and row.name in ("relu_alpha", "relu_alpha_start"):
                changed[row.name] = value / math.sqrt(unit)
        if isinstance(default, DescentConfig):
            prior = None if self.pixels is None else "pixels"
            changed |= {"prior": prior, "m": max(default.m, 4 * n)}
            if self.steps is not None:
                changed["steps"] = self.steps
        made: AttackConfig = replace(default, **changed)
        return made

    def _start(self, entry: AnyAttack, config: AnyConfig) -> tuple[Tensor, Tensor] | None:
        """Return noise around the centre of the points; None for attacks that take no start.

        With ranks it is that of the held-out points as well, or it would be nearer to the others.
        """
        if not entry.takes_start:
            return None
        generator = generator_of(self.seed, config.m, 6)
        noise = torch.randn(config.m, self.z.d, generator=generator, dtype=torch.float64)
        y = fair_labels(config.m, self.target.net.outputs)
        near = self.z.x if self.unseen is None else torch.cat([self.z.x, self.unseen.x])
        return _round_all(near.mean(0) + config.sigma_x * noise), y

    def _time_limit(self, entry: AnyAttack, late: list[bool]) -> runs.Watch[Any]:
        """Return the watch, which ends a search without an end in sight."""
        if "steps" in {row.name for row in schema(entry.config)} and entry.key not in SEARCHES:
            return self.watch

        def until_late(states: Iterable[Any], total: int, label: str) -> Iterator[Any]:
            begun = perf_counter()
            for state in self.watch(states, total, label):
                yield state
                if perf_counter() - begun > SECONDS:
                    late.append(True)
                    return

        return until_late
