"""Ready runs as data: which points, which network, which attack, where to freeze.

A lesson is a row here and its text; the page and `margin-explorer demo` can open with a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.engine.attacks.bilevel import BilevelConfig
from explorer.engine.attacks.decoreco import DecoRecoConfig
from explorer.engine.attacks.hinge import HingeConfig
from explorer.engine.attacks.inversion import InversionConfig
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.univariate.config import UnivariateConfig
from explorer.engine.data import Source, preset
from explorer.engine.roster import DEFAULT, AttackConfig
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig


@dataclass(frozen=True)
class Scenario:
    """One row: its key in `SCENARIOS`, what it shows, and the run without states to make."""

    name: str
    sentence: str
    run: Run


_LEVEL = TrainConfig(steps=12_000)  # measured: levels the margins of every row below


def _row(
    name: str, sentence: str, points: Source, train: TrainConfig = _LEVEL,
    attack: AttackConfig | None = None, key: str = DEFAULT, stage: str = "train",
    freeze: int | None = None, exact: bool = False,
) -> Scenario:  # fmt: skip
    """Return a row that trains all its planned steps, unless it freezes before or is exact."""
    steps = 0 if exact else train.steps if freeze is None else freeze
    data = preset(points.preset, points.n, points.noise, points.seed)
    hit = attack or KKTConfig()
    return Scenario(name, sentence, Run(
        data, train, attack_name=key, attack_config=hit, stage=stage, steps=(steps, 0), exact=exact,
    ))  # fmt: skip


_ROWS = (
    _row("alternating circle", "Each neighbour is of the other class, so every point leaves a "
         "trace in the weights.", Source("alternating-circle", 20, 0.0, 0)),
    _row("random circle", "The toy of Haim et al. (2022), narrower: three layers, 20 points, "
         "labels at random.", Source("random-circle", 20, 0.0, 1),
         TrainConfig(widths=(100, 100), steps=12_000)),
    _row("moons", "Few points hold the margin; until training converges, others carry part of the "
         "weights, too.", Source("moons", 20, 0.06, 0)),
    _row("moons, too early", "The same after 100 steps: separated, but far from a KKT point, and "
         "the attack is lost.", Source("moons", 20, 0.06, 0), freeze=100),
    _row("xor", "Four clouds, two classes: a handful of neurons, and few points that they betray.",
         Source("xor", 20, 0.05, 0)),
    _row("alternating line", "One dimension: the graph of the network breaks on the points, all "
         "but the first and the last.", Source("alternating-line", 8, 0.0, 0), _LEVEL,
         KKTConfig(m=40)),
    _row("two points", "The smallest case, with a closed form: both points are breakpoints of the "
         "graph.", Source("two-points", 2, 0.0, 0), TrainConfig(steps=4000), KKTConfig(m=10)),
    _row("inversion", "The baseline: candidates go where the output is largest, which is not "
         "where points are.", Source("alternating-circle", 20, 0.0, 0), _LEVEL, InversionConfig(),
         "inversion", "attack"),
    _row("biases everywhere", "Biases in every layer: the network is not homogeneous and no "
         "theorem speaks of it.", Source("alternating-circle", 20, 0.0, 0),
         TrainConfig(all_biases=True, steps=12_000)),
    _row("proof on the line", "An exact network: its graph breaks at most twice between two "
         "support points. Step, and see points proven.",
         Source("alternating-line", 5, 0.0, 0), _LEVEL, UnivariateConfig(), "univariate",
         stage="attack", exact=True),
    _row("hinges", "Lines of neurons pass through the points: crossings on the margin, and which "
         "are needed.", Source("alternating-circle", 14, 0.0, 0),
         TrainConfig(init_scale=1e-3, steps=12_000), HingeConfig(), "hinge", stage="attack"),
    _row("other explanations", "Drag a point along its line: it becomes two, and the weights do "
         "not notice.", Source("moons", 20, 0.06, 0),
         TrainConfig(method="ascent", beta_end=1e5, steps=8000), stage="explain"),
    _row("arena", "Every attack that fits meets the same weights: who finds most, and who only "
         "claims most.", Source("random-circle", 12, 0.0, 0), _LEVEL, KKTConfig(m=50, steps=1000),
         stage="arena"),
    _row("three classes", "Every class has two rivals; the attack gives each rival a multiplier "
         "of its own.", Source("three-blobs", 18, 0.25, 0), _LEVEL, DecoRecoConfig(), "decoreco",
         "attack"),
    _row("four classes", "Four quarters of a pie: the weights are explained by points at the "
         "inner corners.", Source("pie", 24, 0.0, 0), _LEVEL, DecoRecoConfig(), "decoreco",
         "attack"),
    _row("bilevel", "Train on candidates, move them until the weights agree: they soon do, and "
         "are elsewhere.", Source("blobs", 12, 0.35, 0), _LEVEL, BilevelConfig(lr_x=0.03),
         "bilevel", "attack"),
    _row("energy maps", "Drag a point of moons and watch where else it could be: at one place, in "
         "a region, anywhere.", Source("moons", 10, 0.06, 0), stage="landscape"),
    _row("grid of starts", "One attack from 21 mixtures of truth, held-out points and noise: see "
         "where each ends.", Source("moons", 12, 0.06, 0), stage="landscape"),
)  # fmt: skip

SCENARIOS: dict[str, Scenario] = {row.name: row for row in _ROWS}
# What each is about, in the order of a menu.
TOPICS: dict[str, tuple[str, ...]] = {
    "Points in the plane": ("alternating circle", "random circle", "moons", "moons, too early",
                            "xor", "biases everywhere"),
    "Points on a line": ("alternating line", "two points", "proof on the line"),
    "More than two classes": ("three classes", "four classes"),
    "Attacks": ("arena", "inversion", "hinges", "bilevel"),
    "Could it be other points?": ("grid of starts", "energy maps", "other explanations"),
}  # fmt: skip


def by_name(name: str) -> Scenario:
    """Return the row of this name. ValueError with the names there are."""
    if name not in SCENARIOS:
        raise ValueError(f"no scenario {name!r}; there are: {'; '.join(SCENARIOS)}")
    return SCENARIOS[name]
