"""One attack on one network, judged: what a row of a sweep and of the arena holds.

Claims are matched one to one with the points (`scoring`), and with the sets that stand for chance.
`residual` is a yardstick that all attacks share, whatever they minimise themselves: the share
of |theta| that the claims leave unexplained with the best multipliers and free slopes at the kinks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import lru_cache, partial
from itertools import product
from statistics import fmean
from time import perf_counter
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED, Certificate, carries, in_reach
from explorer.engine.classes import margins
from explorer.engine.controls import COUNT, Controls, Origin, control_sets, meeting_counts
from explorer.engine.data import PLANE, Dataset, preset
from explorer.engine.data.highdim import cube
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.others import OtherSet, Rivals, farthest_set
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.network import Network, phi_all
from explorer.engine.private import noise_for
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.roster import DEFAULT, ROSTER, AttackConfig, AttackState, by_key
from explorer.engine.scoring import RADII, score
from explorer.engine.settings import config_of, setting, settings
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.research import runs
from explorer.research.devices import wide_on
from explorer.research.runs import (
    RADIUS,
    certified_points,
    judgement,
    no_watch,
)
from explorer.research.starts import attack_starts
from explorer.research.words import explanations, verdicts


@dataclass(frozen=True, eq=False)
class Victim:
    """A trained network under attack, and what only the judge may see.

    Attributes:
        target: the weights at margin 1.
        truth: the points they were trained on.
        controls: what stands for chance, with where it came from.
        certificate: of the weights on the truth; None for networks that are not homogeneous.
        gamma_bar: normalised margin of the trained network.
    """

    target: Target
    truth: Dataset
    controls: Controls
    certificate: Certificate | None
    gamma_bar: float

    @property
    def in_reach(self) -> Tensor:
        """Return points (n,) bool that leave a trace in the weights; all if that is not known."""
        known = in_reach(self.certificate, self.truth.n)
        return torch.ones(self.truth.n, dtype=torch.bool) if known is None else known


@dataclass(frozen=True, eq=False)
class Ambiguity:
    """Which points are certified (`certified_points`), and what else explains the weights.

    Attributes:
        certified: (n,) bool; None where that was not asked, or nothing can be certified.
        other: another training set that explains the weights as well as the truth, the farthest
            found.
        other_sentence: how far off it is, and what both sets leave.
        distance: mean distance of its mass from the nearest true point, in units of the data.
        in_short: the same in few words.
        numbers: of it, each with its name.
    """

    certified: Tensor | None
    other: Report
    other_sentence: str
    distance: float
    in_short: str
    numbers: tuple[tuple[str, str], ...]


def other_set(
    target: Target, truth: Dataset, made: Certificate, progress: Progress = no_progress,
    plane: float = PLANE,
) -> OtherSet:  # fmt: skip
    """Return the farthest other set within `plane`, or farther out where there is none in sight.

    Raises:
        ValueError: where the true points explain nothing, or `explanations.no_other`.
    """
    why = explanations.no_other(target, truth, made)
    if why:
        raise ValueError(why)
    net = target.merged(MERGE_ANGLE)
    used = carries(made.lam)
    reach = max(float(truth.x.abs().max()), 1.0)

    def search(extent: float, begin: float) -> OtherSet:
        progress(begin)
        rivals = Rivals.of(net, truth.x[used], truth.y[used], extent, made.tau)
        return farthest_set(rivals, part_progress(progress, begin + 0.1, begin + 0.5))

    far = search(max(plane, reach), 0.0)
    return far if far.other else search(2 * reach, 0.5)


def ambiguity(
    victim: Victim, progress: Progress = no_progress, certify: bool = True
) -> Ambiguity | None:
    """Return what the weights leave open (`other_set`), and what not; None if `no_other` says why.

    Args:
        victim: the weights and their points.
        progress: is told the share that is done.
        certify: whether to ask which points are certified, which takes seconds.
    """
    truth, made = victim.truth, victim.certificate
    if made is None or explanations.no_other(victim.target, truth, made):
        return None
    sure, begun = None, 0.0
    if certify and not obstacle(victim.target):
        begun = 0.5
        sure = certified_points(
            victim.target, truth, progress=part_progress(progress, 0.0, begun)
        ).certain
    far = other_set(victim.target, truth, made, part_progress(progress, begun, 1.0))
    words, short = explanations.farthest_set(far), explanations.another(far)
    return Ambiguity(sure, as_claims(far), words, far.distance, short, explanations.numbers(far))


def as_claims(far: OtherSet) -> Report:
    """Return the points of another set as claims."""
    return Report(far.explanation.x, far.explanation.y, far.explanation.lam)


class Refused(ValueError):
    """This attack cannot be used on these weights; the message says why."""


def attack_settings(key: str, given: Mapping[str, Any]) -> AttackConfig:
    """Return the settings of an attack: its defaults, but `given`. ValueError for a wrong one."""
    made: AttackConfig = config_of(by_key(key).config, given, key)
    return made


def run_attack(
    victim: Victim, key: str, given: Mapping[str, Any], seed: int,
    watch: runs.Watch[AttackState] = no_watch, device: str = "cpu", starts: int = 1,
    radii: Sequence[float] = RADII,
) -> dict[str, Any]:  # fmt: skip
    """Run an attack on the victim, and judge its claims; of several starts all that they claim.

    Returns:
        n, reach (points in reach), claims, found and found_reach at each radius, chance (what
        each control scores at each radius), controls (where they came from), beside (chance on
        controls made in other ways, by where they came from), distance (median to
        the nearest claim of the same label), residual, matched (which points were found within
        `RADIUS`), certified (how many points are; on the line, else None), kind, sentence and
        p_value of the verdict, and the claims x, y, lam.

    Raises:
        Refused: where the attack does not fit these weights.
        RunFailed: where it diverged.
    """
    why = by_key(key).refusal(victim.target)
    if by_key(key).own is not None:
        why = "It attacks weights of its own training, not these: see `margin-explorer bilevel`."
    if why:
        raise Refused(why)
    config = attack_settings(key, given)
    target = runs.granted_target(victim.target, victim.truth, config, seed)
    if starts == 1:
        done = runs.attack(target, config, seed, name=key, watch=watch, device=device)
    else:
        seeds = range(seed, seed + starts)
        done = attack_starts(target, config, seeds, name=key, device=device).union
    return {"steps_taken": done.states[-1].t, **judge_claims(victim, done.claims, radii)}


def judge_claims(victim: Victim, claims: Report, radii: Sequence[float] = RADII) -> dict[str, Any]:
    """Return what may be said of claims on the victim; see `run_attack`."""
    truth, reach = victim.truth, victim.in_reach
    within = Dataset(truth.x[reach], truth.y[reach])
    x, y = claims.x, claims.y
    found = judgement(claims, truth, victim.controls, victim.certificate)
    all_of, of_reach = (score(points, x, y, radii) for points in (truth, within))
    chance, *beside = (meeting_counts(way, x, y, radii).tolist() for way in victim.controls.ways)
    others = (way.origin.value for way in victim.controls.beside)
    verdict = found.verdict
    distance = float(all_of.distances.median()) if truth.n else float("inf")
    return {
        "reach": int(reach.sum()), "claims": len(x), "radii": list(radii),
        "found": all_of.found.tolist(), "found_reach": of_reach.found.tolist(), "chance": chance,
        "controls": victim.controls.origin.value, "beside": dict(zip(others, beside, strict=True)),
        "distance": distance if distance < float("inf") else None,
        "residual": _residual(victim.target, claims),
        "certified": _certified_count(victim),
        "matched": (all_of.matches[radii.index(RADIUS)] >= 0).tolist(),
        "kind": verdict.kind.name, "sentence": verdicts.verdict(verdict),
        "p_value": verdict.p_value if verdict.p_value == verdict.p_value else None,
        "x": x.tolist(), "y": y.tolist(), "lam": claims.lam.tolist(),
    }  # fmt: skip


def _certified_count(victim: Victim) -> int | None:
    """Return how many points are certified; None beyond the line, where it takes many seconds."""
    if victim.target.net.d > 1 or obstacle(victim.target) or not victim.truth.n:
        return None
    return int(certified_points(victim.target, victim.truth).certain.sum())


def _residual(target: Target, claims: Report) -> float | None:
    if not target.net.homogeneous:
        return None
    if not len(claims.x):
        return 1.0
    x, y = claims.x.to(target.net.theta), claims.y.to(target.net.theta)
    return fit_multipliers(target.net, x, y, TAU_TRAINED).residual


def flip_labels(data: Dataset, share: float, seed: int) -> Dataset:
    """Return a share of the labels flipped, chosen by the seed.

    The source is kept, for its controls.

    ValueError with more than two classes, where a flip would have to choose; Refused for a share
    that is too small to flip one.
    """
    if not share:
        return data
    count = round(share * data.n)
    if not count:
        raise Refused(
            f"label_noise {share:g} of {data.n} points flips none; take at least {1 / data.n:.3g}, "
            "or 0."
        )
    if data.outputs != 1:
        raise ValueError("label_noise flips between two classes; this set has more")
    chosen = torch.randperm(data.n, generator=torch.Generator().manual_seed(seed))[:count]
    y = data.y.clone()
    y[chosen] = -y[chosen]
    return Dataset(data.x, y, data.source)


# --- One row of a sweep: which points, which training, which defence, which attack; and its run -
# A row is plain data, so that it can be sent to another process or machine, and everything random
# in it comes from its seeds. What a run gives back is plain data too: it is a line of JSON.

OWN = (
    "widths",
    "steps",
    "method",
    "weight_decay",
    "private_noise",
)  # of a row, though settings of a training
CUBE_POINTS = 10  # where a row does not say how many; arbitrary
KEPT_NETWORKS = 4  # per worker; arbitrary: attacks on one network follow each other
KEY_LENGTH = 16  # hex digits: two of a million rows agree by chance once in 10^7 sweeps


@settings
class Experiment:
    """A configuration of a sweep. Numbers stay as they are given: a row is named by them."""

    # fmt: off
    preset: Annotated[str, setting("Points to draw")] = "alternating-circle"
    d: Annotated[int | None, setting(
        "Coordinates of points drawn in the cube [−1, 1]ᵈ instead of a preset", ge=1,
        note="n of them are drawn, 10 if it is None.",
    )] = None
    n: Annotated[int | None, setting("Number of points; None for the preset's own")] = None
    noise: Annotated[int | float | None, setting(
        "Jitter of the points; None for the preset's own",
    )] = None
    seed: Annotated[int, setting(
        "Of points, first weights, flipped labels and first candidates",
    )] = 0
    data_seed: Annotated[int | None, setting("Of the points alone; None takes the seed")] = None
    widths: Annotated[tuple[int, ...], setting(
        "Neurons in each hidden layer", strict=False, unit="neurons",
    )] = TrainConfig.widths
    steps: Annotated[int, setting("Planned training steps")] = TrainConfig.steps
    method: Annotated[Literal["gradient", "ascent", "exact"], setting(
        "Gradient descent, normalised ascent, or the exact solution without training",
    )] = "gradient"
    train: Annotated[Mapping[str, Any], setting(
        "Other settings of the training, by name",
    )] = field(default_factory=dict)
    early_stop: Annotated[int | None, setting(
        "A defence: training ends so many steps after it first separates the points", ge=0,
        note="Both are seen to a hundredth of `steps`.",
    )] = None
    weight_decay: Annotated[int | float, setting(
        "A defence: mu of mean loss + mu/2 |theta|^2",
    )] = 0.0
    label_noise: Annotated[int | float, setting(
        "A defence: share of labels flipped before training", ge=0, lt=1,
    )] = 0.0
    epsilon: Annotated[int | float | None, setting(
        "A defence: the training is (ε, 10⁻⁵)-differentially private; None for not private", gt=0,
        note="Noise is added to gradients that are cut to `private_clip` of the training.",
    )] = None
    attack: Annotated[str, setting("Key of the attack; an empty word trains alone")] = DEFAULT
    attack_config: Annotated[Mapping[str, Any], setting(
        "Settings of the attack other than its defaults, by name",
    )] = field(default_factory=dict)
    starts: Annotated[int, setting(
        "How many starts of the attack, with this seed and those after it; above 1 their claims "
        "are judged together", ge=1,
    )] = 1
    determine: Annotated[bool, setting(
        "Whether to say which points the weights determine",
    )] = False
    data: Annotated[str | None, setting(
        "CSV of points instead of a preset", note="n, noise and data_seed are then of no use.",
    )] = None
    data_digest: Annotated[str, setting(
        "Of that file, where the row was made", note="A row runs on no other content.",
    )] = ""
    device: Annotated[Literal["cpu", "cuda", "mps"], setting(
        "Where to train, and to attack where the attack can",
    )] = "cpu"
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse an attack that there is not."""
        if self.attack and self.attack not in ROSTER:
            raise ValueError(f"no attack {self.attack!r}; there are: {', '.join(ROSTER)}")
        if self.d is not None and self.noise is not None:
            raise ValueError("points in the cube have no jitter; leave noise away")
        if self.data is None:
            return
        drawn = [k for k in ("d", "n", "noise", "data_seed") if getattr(self, k) is not None]
        if drawn:
            raise ValueError(f"data has points of its own; leave {', '.join(drawn)} away")
        if not self.data_digest:
            object.__setattr__(self, "data_digest", runs.fingerprint(self.data))

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Experiment:
        """Return a row from a mapping. ValueError with the fields there are, for an unknown one."""
        widths = row.get("widths")
        one = isinstance(widths, int)  # a table names the width of one layer as a number
        return config_of(cls, {**row, "widths": (widths,)} if one else row, "a row")

    def run_on(self, points: Dataset) -> Run:
        """Return the training of this row as a run on its points. ValueError for a wrong setting.

        The device, the attack and the end of training by `early_stop` stand in the row alone.
        """
        own = [name for name in OWN if name in self.train]
        if own:
            field = own[0].replace("private_noise", "epsilon")
            raise ValueError(f"train.{own[0]} is a field of the row itself: say {field}.")
        said = {
            "widths": self.widths, "steps": self.steps, "weight_decay": self.weight_decay,
            "method": "ascent" if self.method == "ascent" else "gradient",
        }  # fmt: skip
        if self.epsilon is not None:
            said["private_noise"] = noise_for(self.epsilon, self.steps)
        config = config_of(TrainConfig, {**said, **self.train}, "train")
        return Run(points, config, seed=self.seed, exact=self.method == "exact")


# Fields that came after the first files of rows: at these values they are no part of a key.
LATER = {
    "data": None,
    "data_digest": "",
    "device": "cpu",
    "csv": False,
    "starts": 1,
    "d": None,
    "epsilon": None,
}


def key_of(row: Any) -> str:  # noqa: ANN401 - a frozen dataclass of plain data
    """Return the name of a configuration: the same on every machine, another for other values."""
    if not is_dataclass(row) or isinstance(row, type):
        raise TypeError(f"a row must be a dataclass or a mapping; got {type(row).__name__}")
    try:
        named = {k: v for k, v in asdict(row).items() if k not in LATER or v != LATER[k]}
        text = json.dumps(named, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"a row is made of words, finite numbers, and lists and tables of them ({error}); "
            f"got {row}"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def experiments(table: Mapping[str, Any]) -> Iterator[Experiment]:
    """Yield every combination of a table: a list is an axis, anything else is the same in all rows.

    Attacks vary fastest, so that they meet the same network.

    Args:
        table: values by the fields of `Experiment`. `widths` takes a list of widths or of lists of
            widths. The settings in `train` and `attack_config` may be lists too.

    Yields:
        Configurations.

    Raises:
        ValueError: for a field that there is not, a value of a wrong type, or an empty axis.

    Example:
        >>> from explorer.research.sweep import experiments
        >>> [(t.preset, t.seed) for t in experiments({"preset": "moons", "seed": [0, 1]})]
        [('moons', 0), ('moons', 1)]
    """
    for k in ("train", "attack_config"):
        if not isinstance(table.get(k, {}), Mapping):
            raise ValueError(f"{k} must be settings by name, such as {k}.steps; got {table[k]!r}")
    flat = [(k, v) for k, v in table.items() if k not in ("train", "attack_config", "attack")]
    nested = [((k, n), v) for k in ("train", "attack_config") for n, v in table.get(k, {}).items()]
    axes: list[tuple[Any, Any]] = [*flat, *nested]
    if "attack" in table:
        axes.append(("attack", table["attack"]))
    names = [name for name, _ in axes]
    for name, values in axes:
        if values == []:
            raise ValueError(
                f"the axis {'.'.join(name) if isinstance(name, tuple) else name} is empty. Give it "
                "a value, or leave it away."
            )
    for values in product(*(v if isinstance(v, list) else [v] for _, v in axes)):
        row: dict[str, Any] = {}
        for name, value in zip(names, values, strict=True):
            if isinstance(name, tuple):
                row.setdefault(name[0], {})[name[1]] = value
            else:
                row[name] = value
        yield Experiment.of(row)


def run_experiment(row: Experiment) -> dict[str, Any]:
    """Train, attack and judge. -> the result of the row; see `run_attack`.

    Raises:
        Refused: where the attack or a defence does not fit.
        RunFailed: where training or attack fails.
    """
    _check_defences(row)
    begun = perf_counter()
    victim = victim_of(row)
    trained_s = perf_counter() - begun
    net, merged = victim.target.net, victim.target.merged(MERGE_ANGLE)
    result: dict[str, Any] = {
        "d": victim.truth.d, "n": victim.truth.n, "gamma_bar": victim.gamma_bar,
        "accuracy": _accuracy(net, victim.truth), "fresh_accuracy": _fresh_accuracy(victim),
        "parameters": len(net.theta), "merged_parameters": len(merged.theta),
        "train_residual": None if victim.certificate is None else victim.certificate.residual,
    }  # fmt: skip
    seconds = {"train": trained_s}
    if row.attack:
        begun = perf_counter()
        result |= run_attack(
            victim, row.attack, row.attack_config, row.seed, device=row.device, starts=row.starts
        )
        seconds["attack"] = perf_counter() - begun
    if row.determine:
        result |= _determination(_training(row))
    return {**result, "seconds": seconds}


def _accuracy(net: Network, points: Dataset) -> float:
    """Return the share of points that the network puts on the side of their class."""
    here = points.to(dtype=net.dtype, device=net.device)
    return float((margins(phi_all(net, here.x), here.y) > 0).double().mean())


def _fresh_accuracy(victim: Victim) -> float | None:
    """Return the same of points of the control sets; None where they are no draws of the source."""
    if victim.controls.origin is not Origin.HELD_OUT:
        return None
    return fmean(_accuracy(victim.target.net, one) for one in victim.controls.sets)


def _check_defences(row: Experiment) -> None:
    """Refused for a defence that the row's method would pass over."""
    given = {"early_stop": row.early_stop is not None, "weight_decay": row.weight_decay != 0,
             "epsilon": row.epsilon is not None}  # fmt: skip
    if row.early_stop is not None and row.epsilon is not None:
        raise Refused(
            "early_stop looks at the points to end a training, which epsilon does not cover. Take "
            "fewer steps, or leave one of them away."
        )
    named = [name for name, there in given.items() if there]
    if row.method == "exact" and named:
        raise Refused(
            f"{' and '.join(named)} change a training, and method='exact' trains nothing. Take "
            "method='gradient', or leave them away."
        )


def victim_of(row: Experiment) -> Victim:
    """Return the trained network of a row with its truth and controls; other attacks share it."""
    return _victim(_training(row))


def _training(row: Experiment) -> str:
    """Return a row without its attack, as text: rows of one text have one network."""
    return json.dumps(asdict(replace(row, attack="", attack_config={}, starts=1)), sort_keys=True)


@lru_cache(maxsize=KEPT_NETWORKS)
def _victim(text: str) -> Victim:
    """Return the trained network of a row, with its truth and its controls."""
    row = Experiment.of(json.loads(text))
    seed = row.seed if row.data_seed is None else row.data_seed
    clean, controls = _points_of(row, seed)
    truth = flip_labels(clean, row.label_noise, row.seed)
    done = runs.train(
        row.run_on(truth), watch=partial(_ended_early, row.early_stop), device=row.device,
        dtype=wide_on(row.device), separated=False,  # an attack that needs it says so
    )  # fmt: skip
    if row.label_noise:
        share = row.label_noise
        controls = controls.with_change(lambda one, k: flip_labels(one, share, row.seed + k))
    return Victim(done.target, truth, controls, done.certificate, done.states[-1].gamma_bar)


def _points_of(row: Experiment, seed: int) -> tuple[Dataset, Controls]:
    """Return the points of a row as they were drawn, and their control sets."""
    if row.d is not None:
        n = CUBE_POINTS if row.n is None else row.n
        fresh = tuple(cube(row.d, n, seed, k) for k in range(1, COUNT + 1))
        return cube(row.d, n, seed), Controls(fresh, Origin.HELD_OUT)
    if row.data is not None:
        clean = runs.points_in(row.data, row.data_digest)
    else:
        clean = preset(row.preset, row.n, row.noise, seed)
    return clean, control_sets(clean)


@lru_cache(maxsize=KEPT_NETWORKS)
def _determination(text: str) -> dict[str, Any]:
    """Return which points of a row's network are certified, and another set; None where unknown."""
    victim = _victim(text)
    found = ambiguity(victim)
    if found is None:
        return {"determined": None, "other": None}
    other = {
        "x": found.other.x.tolist(), "y": found.other.y.tolist(),
        "truth_x": victim.truth.x.tolist(), "truth_y": victim.truth.y.tolist(),
        "sentence": found.other_sentence, "distance": found.distance,
    }  # fmt: skip
    sure = found.certified
    return {"determined": None if sure is None else sure.tolist(), "other": other}


def _ended_early(
    later: int | None, states: Iterable[TrainState], total: int, label: str
) -> Iterator[TrainState]:
    """Watch a training: it ends so many steps after a seen state first separates the points."""
    end = None
    for state in states:
        yield state
        if later is not None and end is None and state.q_min > 0:
            end = state.t + later
        if end is not None and state.t >= end:
            return


def seeds_of(text: str) -> list[int]:
    """Return seeds from words such as "0-4" or "0,3,7-9"; ValueError for other words, or none."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"seeds are numbers and ranges such as 0-4 or 0,3,7-9; got {text!r}")
        if int(high or low) < int(low):
            raise ValueError(f"a range of seeds rises, such as 0-4; got {part.strip()!r}")
        found += range(int(low), int(high or low) + 1)
    return found
