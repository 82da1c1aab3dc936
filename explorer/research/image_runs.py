"""Attacks on networks trained on images: train, start, post-process, score, judge.

The attacks are those of the roster, with settings for images. `KNOWS` says what the
attacker knows beside the weights. Results are compared with the truth after the attack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.consensus import consensus
from explorer.engine.data import Dataset
from explorer.engine.data.images import PIXELS, Choice, Draw, Kind
from explorer.engine.images import (
    MEASURES,
    NCC_LEAST,
    ImageScore,
    ImageVerdict,
    Measure,
    Vote,
    correlations,
    image_scores,
    image_verdict,
)
from explorer.engine.known import knowledge_of, known_of
from explorer.engine.margin import q_of, usable_margin
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.network import Network, phi_all
from explorer.engine.roster import DEFAULT, ROSTER, AttackConfig, AttackState, by_key
from explorer.engine.settings import setting, settings
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.research import runs
from explorer.research.devices import target_on, to_cpu, wide_on
from explorer.research.rates import Roc, roc
from explorer.research.runs import Watch, no_watch

Start = Literal["noise", "partition", "truth"]
STARTS: dict[Start, str] = {
    "noise": "noise",
    "partition": "other images of the same kind",
    "truth": "the training images",
}
VOTES: dict[Vote, str] = {
    "min": "the nearest candidate",
    "mean": "the mean of all nearly as near",
    "median": "the median of all nearly as near",
}
NETWORKS: dict[str, tuple[int, ...]] = {
    "1000": (1000,), "300-300": (300, 300), "100": (100,), "100-100": (100, 100),
}  # fmt: skip
KNOWS = "the weights, the margin, the mean image, and that pixels lie in [0, 1]"
FIRST_SCALES = (0.8, 0.24)  # of the first layer, times 1/√d: of two layers, of more
# Of the training: images of MNIST leave under 5% of the squared norm then. On 8 x 8 pixels training
# as long finds fewer of them; CIFAR-10 leaves 4% to 8% (docs/measured/images-of-mnist.md).
STEPS_PER_IMAGE, FIRST_STEPS = 10, {"digits": 100, "mnist": 1000, "cifar": 1000}
DEEP_STEPS = 100  # an image, where there are more layers: three take longer
GRANTED = ("nothing", "components")  # of the images themselves
ATTACK_TYPE = torch.float32  # of attacks that have a choice; docs/measured/images-of-mnist.md


def usual_scale(widths: tuple[int, ...], kind: Kind) -> float:
    """Return the scale of the first layer where none is given, to three digits."""
    return float(f"{FIRST_SCALES[len(widths) > 1] * PIXELS[kind] ** -0.5:.3g}")


def usual_steps(n: int, kind: Kind, widths: tuple[int, ...] = (1000,)) -> int:
    """Return the training steps where none are given: n images take more to explain the weights."""
    steps = FIRST_STEPS[kind] + STEPS_PER_IMAGE * n
    return max(steps, DEEP_STEPS * n) if len(widths) > 1 and kind != "digits" else steps


def picture_attacks() -> list[str]:
    """Return keys of the attacks that have settings for images."""
    return [key for key, entry in ROSTER.items() if entry.pictures is not None]


def attack_labels() -> tuple[tuple[str, str], ...]:
    """Return title and key of each of them."""
    return tuple((by_key(key).title, key) for key in picture_attacks())


@settings
class ImageRun:
    """One attack on one network trained on images."""

    # fmt: off
    choice: Annotated[Choice, setting("The images")] = field(default_factory=Choice)
    widths: Annotated[tuple[int, ...], setting(
        "Widths of the hidden layers", title="hidden layers", strict=False, unit="neurons",
        form="sight",
    )] = (1000,)
    train_steps: Annotated[int | None, setting(
        "Training steps, of loss-scaled gradient descent", title="steps", ge=1,
        note=f"With momentum 0.99. None takes {STEPS_PER_IMAGE} an image and "
        f"{FIRST_STEPS['mnist']} more, {FIRST_STEPS['digits']} of 8×8 digits; of more layers at "
        f"least {DEEP_STEPS} an image, but of 8×8 digits.",
        form="sight", page=(1, 100_000),
    )] = None
    init_scale: Annotated[float | None, setting(
        "Standard deviation of the first layer before training: the smaller, the fewer different "
        "neurons are left, and the less the weights can tell", title="first scale", form="sight",
        page=(1e-4, 1), step=10**0.5,
        note="None takes 0.8/√d for d pixels, or 0.24/√d for more layers.",
    )] = None
    attack: Annotated[str, setting(
        "KKT and DecoReco see the weights; bilevel trains its own; inversion is the baseline",
        form="sight",
        labels=attack_labels(),
    )] = DEFAULT
    start: Annotated[Start, setting(
        "Noise is what an attacker has; other images of the kind, or the training images "
        "themselves, show what the start alone is worth", title="start from", form="sight",
        labels=tuple((words, start) for start, words in STARTS.items()),
    )] = "noise"
    starts: Annotated[int, setting(
        "Starts from noise, each of candidates of its own: those on which several agree can be "
        "chosen without the truth", title="starts", ge=1, form="sight", page=(1, 10),
    )] = 1
    steps: Annotated[int | None, setting(
        "Steps of the attack", title="attack steps", ge=1, form="sight", page=(1, 100_000),
        note="None takes as many as it needs on images.",
    )] = None
    measure: Annotated[Measure, setting(
        "When a training image counts as found, named before the run; the others stand beside it",
        title="found if", form="sight",
        labels=tuple((words, measure) for measure, words in MEASURES.items()),
    )] = "rank"
    seed: Annotated[int, setting(
        "Of the draw, the weights and the candidates", form="sight", page=(0, 2**31 - 1),
    )] = 0
    vote: Annotated[Vote, setting(
        "Which picture stands for a training image: of candidates within 1.1 of the nearest's "
        "distance", title="picture", form="sight",
        labels=tuple((words, vote) for vote, words in VOTES.items()),
    )] = "min"
    errors: Annotated[bool, setting(
        "Attack weights too that are wrong on some training images",
        note="No theorem leads them to a KKT point. The median margin of the other images takes "
        "the place of the margin.",
    )] = False
    train_settings: Annotated[dict[str, Any], setting(
        "Other settings of the training, by name",
    )] = field(default_factory=dict)
    attack_settings: Annotated[dict[str, Any], setting(
        "Other settings of the attack, by name", note="prior=1 is the wide box of other attackers.",
    )] = field(default_factory=dict)
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse combinations that cannot run."""
        keys = picture_attacks()
        if self.attack not in keys:
            raise ValueError(f"attack must be one of {', '.join(keys)}; got {self.attack!r}")
        entry = by_key(self.attack)
        if self.start != "noise" and not entry.takes_start:
            raise ValueError(f"{entry.title} takes no start; got {self.start!r}. Take 'noise'.")
        if self.starts > 1 and self.start != "noise":
            raise ValueError(
                f"several starts differ by their noise; got starts={self.starts} from "
                f"{self.start!r}. Take starts=1, or start='noise'."
            )
        if self.choice.task == "ten" and not entry.needs.several:
            able = " or ".join(repr(key) for key in keys if by_key(key).needs.several)
            raise ValueError(f"{entry.title} knows two classes; for ten take attack={able}")
        if self.knows not in GRANTED:
            raise ValueError(
                f"of images an attacker is granted one of {', '.join(GRANTED)}, beside the range "
                f"of pixels; got {self.knows!r}. Take 'nothing'."
            )

    @property
    def knows(self) -> str:
        """What the attacker is granted of the images, beside the range of pixels."""
        return knowledge_of(self.config) or "nothing"

    @property
    def first_scale(self) -> float:
        """Standard deviation of the first layer at the start."""
        usual = usual_scale(self.widths, self.choice.kind)
        return usual if self.init_scale is None else self.init_scale

    @property
    def training_steps(self) -> int:
        """Number of training steps."""
        return self.train_steps or usual_steps(self.choice.n, self.choice.kind, self.widths)

    def run_on(self, images: Draw) -> Run:
        """Return the run on these images; its training is by loss-scaled gradient descent."""
        said = {"widths": self.widths, "steps": self.training_steps, "init_scale": self.first_scale}
        config = TrainConfig(**{**said, **self.train_settings})
        return Run(
            images.trained,
            config,
            seed=self.seed,
            attack_name=self.attack,
            attack_config=self.config,
        )

    @property
    def config(self) -> AttackConfig:
        """Settings of the attack."""
        entry = by_key(self.attack)
        assert entry.pictures is not None  # else it was refused
        outputs = 1 if self.choice.task == "two" else 10
        made: AttackConfig = entry.pictures(self.choice.n, outputs, self.steps)
        return replace(made, **self.attack_settings)

    @property
    def step_count(self) -> int:
        """Return the number of steps of the attack."""
        return by_key(self.attack).step_count(self.config, 1)


@dataclass(frozen=True, eq=False)
class ImageTarget:
    """The target of an attack, and the network whose outputs are shown."""

    target: Any  # Target, or BilevelTarget
    net: Network


@dataclass(frozen=True, eq=False)
class Selection:
    """Reconstructions in the order in which they are believed without the truth.

    Attributes:
        images: of each cluster of candidates, the largest agreement first (k, c, h, w).
        agreement: see `engine.consensus` (k,).
        ncc: the largest correlation with a training image (k,).
        of: that training image (k,); those of one's own come last.
    """

    images: Tensor
    agreement: Tensor
    ncc: Tensor
    of: Tensor

    @property
    def right(self) -> Tensor:
        """Return which are of a training image: their NCC is above the line (k,), bool."""
        return self.ncc > NCC_LEAST

    def precision(self, k: int, knowing: bool = False) -> float:
        """Return the share of the best k that are of training images.

        Best by agreement; with the truth (`knowing`) those of training images come first.
        """
        order = self.ncc.argsort(descending=True) if knowing else torch.arange(len(self.ncc))
        return float(self.right[order[:k]].double().mean())


@dataclass(frozen=True, eq=False)
class ImageComparison:
    """A state of an attack, compared with the truth.

    Attributes:
        truth: against the training images.
        other: against the images that "partition" starts from.
        controls: against the held-out sets.
        verdicts: on the share matched, by each measure.
        outputs: the output for each training image, in units of the margin (n,): the
            margin q_i / q_min of several classes, Phi / q_min of two.
        found: the candidates as pictures (m, c, h, w).
        vote: which picture was taken for each image.
        measure: the one that was named before the run.
        own: against images of one's own, where there are any.
        selection: what would be chosen without the truth, of several starts; else None.
    """

    truth: ImageScore
    other: ImageScore
    controls: tuple[ImageScore, ...]
    verdicts: dict[Measure, ImageVerdict]
    outputs: Tensor
    found: Tensor
    vote: Vote
    measure: Measure
    own: ImageScore | None = None
    selection: Selection | None = None

    @property
    def verdict(self) -> ImageVerdict:
        """Return the verdict by the measure that was named before the run."""
        return self.verdicts[self.measure]

    @property
    def matched(self) -> Tensor:
        """Return which training images are matched (n,), bool."""
        return self.truth.matched(self.measure)

    @property
    def clear(self) -> Tensor:
        """Return which of the matched are alike to the eye (n,), bool: not by their rank alone."""
        return self.matched & (self.truth.ncc > NCC_LEAST) if self.by_rank else self.matched

    @property
    def by_rank(self) -> bool:
        """Return whether an image is matched by its rank among all images."""
        return self.measure == "rank"

    @property
    def order(self) -> Tensor:
        """Return the training images (n,): first those matched, each part by `scores`."""
        best = self.scores.argsort(descending=True, stable=True)
        return best[self.matched[best].logical_not().argsort(stable=True)]

    @property
    def scores(self) -> Tensor:
        """Return the best score of each training image (n,): SSIM if that was named, else NCC."""
        return self.truth.ssim if self.measure == "ssim" else self.truth.ncc

    @property
    def score_name(self) -> str:
        """Return what `scores` are, "SSIM" or "NCC"."""
        return "SSIM" if self.measure == "ssim" else "NCC"

    @property
    def chance(self) -> float:
        """Return the share of held-out images matched."""
        return self.verdict.of_controls

    @property
    def start_share(self) -> float:
        """Return the share matched of the images that "partition" starts from."""
        return float(self.other.matched(self.measure).double().mean())

    @property
    def diversity(self) -> float:
        """Return how many different training images are named, over the candidates."""
        return float(self.truth.named.sum()) / len(self.found)

    @property
    def roc(self) -> Roc:
        """Return the rates of true and false matches at every threshold of NCC."""
        unseen = torch.cat([c.ncc for c in self.controls])
        return roc(self.truth.ncc.clamp_min(0), unseen.clamp_min(0))


def train(draw: Draw, run: ImageRun) -> Iterator[TrainState]:
    """Return the states of the training, the first included."""
    return runs.training_states(run.run_on(draw))


def aim(draw: Draw, run: ImageRun, state: TrainState | None) -> ImageTarget:
    """Return what the attack sees: the trained weights at margin 1, or weights of its own training.

    Raises:
        ValueError: where the training has not separated the images, and `run.errors` is off, or
            no image is on its side.
    """
    entry = by_key(run.attack)
    if entry.own is not None:
        made: Any = entry.target_for(None, draw.train.x, draw.train.y, run.config, run.seed)
        return ImageTarget(made, made.net)
    if state is None or not bool((state.q > 0).any()) or (state.q_min <= 0 and not run.errors):
        raise ValueError(
            "the images are not separated yet. Train for more steps, or attack all the same: "
            "errors=True, --errors on the command line."
        )
    target = replace(Target.of(state.net, usable_margin(state.q)), pixels=draw.pixel_range)
    if run.knows == "components":
        known = known_of("components", draw.train.x, draw.train.y, draw.public,
                         components=vars(run.config)["components"])  # fmt: skip
        target = replace(target, known=known)
    return ImageTarget(target, target.net)


def start_of(draw: Draw, run: ImageRun, outputs: int) -> tuple[Tensor, Tensor] | None:
    """Return candidates (m, d) and their labels (m,) to begin at.

    None where the attack draws its own.
    """
    if run.start == "truth":
        return draw.train.x, draw.train.y
    if run.start == "partition":
        return draw.other.x, draw.other.y
    if not by_key(run.attack).needs.several:
        return None
    config: Any = run.config
    generator = torch.Generator().manual_seed(run.seed)
    noise = torch.randn(config.m, draw.train.d, generator=generator, dtype=torch.float64)
    return config.sigma_x * noise, fair_labels(config.m, outputs)


def runs_of(run: ImageRun) -> list[ImageRun]:
    """Return a run of one start for each start: they differ by the seed of the noise."""
    return [replace(run, starts=1, seed=run.seed + k) for k in range(run.starts)]


def attack(draw: Draw, run: ImageRun, aimed: ImageTarget) -> Iterator[AttackState]:
    """Return the states of the attack, the first included; in `ATTACK_TYPE`, if it has a choice."""
    start = start_of(draw, run, aimed.net.outputs)
    generator, entry = torch.Generator().manual_seed(run.seed), by_key(run.attack)
    target = target_on(aimed.target, entry, "cpu", ATTACK_TYPE)
    states: Iterator[AttackState] = entry.states(target, run.config, generator, start)
    return states


def train_and_attack(
    draw: Draw, run: ImageRun, watch: Watch[Any] = no_watch, device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> tuple[ImageComparison, Network]:  # fmt: skip
    """Train, attack, score; with the attacked weights. `dtype` is the attack's, if not the usual.

    Raises:
        RunFailed: where the images are not separated, or the attack diverges.
    """
    state = None
    if by_key(run.attack).own is None:
        trained = runs.train(
            run.run_on(draw), keep=1, watch=watch, device=device, dtype=wide_on(device),
            separated=not run.errors,
        )  # fmt: skip
        state = to_cpu(trained.states[-1])
    aimed = aim(draw, run, state)
    states = []
    for each in runs_of(run):
        start = start_of(draw, each, aimed.net.outputs)
        done = runs.attack(
            aimed.target, run.config, each.seed, name=run.attack, start=start, keep=1, watch=watch,
            device=device, dtype=dtype or ATTACK_TYPE,
        )  # fmt: skip
        states.append(done.states[-1])
    return assess(draw, aimed, states, run.vote, run.measure), aimed.net


def assess(
    draw: Draw, aimed: ImageTarget, states: Sequence[AttackState], vote: Vote = "min",
    measure: Measure = "rank",
) -> ImageComparison:  # fmt: skip
    """Post-process the candidates of each start and compare them all with all sets."""
    starts = [draw.pictures(state.x.detach().double()) for state in states]
    found = score_pictures(draw, aimed.net, torch.cat(starts), vote, measure)
    return replace(found, selection=selection(draw, starts) if len(starts) > 1 else None)


def score_pictures(
    draw: Draw, net: Network, found: Tensor, vote: Vote = "min", measure: Measure = "rank"
) -> ImageComparison:
    """Compare pictures (m, c, h, w), of any source, with all sets: the control votes too."""
    sets = (draw.train, draw.other, *draw.controls, *(() if draw.own is None else (draw.own,)))
    truth, other, *controls = image_scores(
        [draw.pictures(s.x) for s in sets], found, [s.y for s in sets], vote
    )
    own = None if draw.own is None else controls.pop()
    x, y = draw.train.x.to(net.dtype), draw.train.y.to(net.dtype)
    q = q_of(net, x, y)
    values = q if net.outputs > 1 else phi_all(net, x)[:, 0]
    unit = q.min() if bool(q.min() > 0) else q.abs().max().clamp_min(1e-12)
    return ImageComparison(
        truth,
        other,
        tuple(controls),
        {name: image_verdict(truth, controls, name) for name in MEASURES},
        values / unit,
        found,
        vote,
        measure,
        own,
    )


def selection(draw: Draw, starts: Sequence[Tensor]) -> Selection:
    """Return the candidates of several starts (m, c, h, w) as they are believed, and what of."""
    made = consensus(starts)
    best, which = correlations(draw.pictures(draw.trained.x), made.images).max(0)
    return Selection(made.images, made.agreement, best, which)


def accuracy(net: Network, sets: Sequence[Dataset]) -> float:
    """Return the share of the images of these sets that are on their side."""
    q = torch.cat([q_of(net, s.x.to(net.dtype), s.y.to(net.dtype)) for s in sets])
    return float((q > 0).double().mean())


def carried_numbers(net: Network) -> int:
    """Return how many numbers the weights hold once parallel neurons are merged.

    For two layers k (d + 1), the cell moments of which a KKT point is made; deeper, all weights of
    the merged network. A count, and no theorem: fewer than the n d numbers of
    the images say that the images are not determined, more do not say that they are.
    """
    if not net.homogeneous:
        return int(net.theta.numel())
    merged = Target.of(net, 1.0).merged(MERGE_ANGLE)
    if merged.depth == 2:
        return merged.widths[0] * (merged.d + (merged.biases[0] is not None))
    return int(merged.theta.numel())
