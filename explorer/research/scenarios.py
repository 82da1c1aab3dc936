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
    """One row: its key in `SCENARIOS`, what it shows, and the run without states to make.

    `fails`: whether it shows an attack that is meant to fail.
    """

    name: str
    sentence: str
    run: Run
    fails: bool = False


_LEVEL = TrainConfig(steps=12_000)  # measured: levels the margins of every row below


def _row(
    name: str, sentence: str, points: Source, train: TrainConfig = _LEVEL,
    attack: AttackConfig | None = None, key: str = DEFAULT, stage: str = "train",
    freeze: int | None = None, exact: bool = False, fails: bool = False,
) -> Scenario:  # fmt: skip
    """Return a row that trains all its planned steps, unless it freezes before or is exact."""
    steps = 0 if exact else train.steps if freeze is None else freeze
    data = preset(points.preset, points.n, points.noise, points.seed)
    hit = attack or KKTConfig()
    return Scenario(name, sentence, Run(
        data, train, attack_name=key, attack_config=hit, stage=stage, steps=(steps, 0), exact=exact,
    ), fails)  # fmt: skip


_ROWS = (
    _row("alternating circle", "Two classes in turn: every point leaves a trace.",
         Source("alternating-circle", 20, 0.0, 0)),
    _row("random circle", "Labels at random, three layers.", Source("random-circle", 20, 0.0, 1),
         TrainConfig(widths=(100, 100), steps=12_000)),
    _row("moons", "Few points hold the margin.", Source("moons", 20, 0.06, 0)),
    _row("moons, too early", "Trained for 100 steps only.", Source("moons", 20, 0.06, 0),
         stage="attack", freeze=100, fails=True),
    _row("xor", "Few neurons, and few points that they betray.", Source("xor", 20, 0.05, 0)),
    _row("alternating line", "The graph breaks on all but the outer points.",
         Source("alternating-line", 8, 0.0, 0), _LEVEL, KKTConfig(m=40)),
    _row("two points", "The smallest case, with a closed form.",
         Source("two-points", 2, 0.0, 0), TrainConfig(steps=4000), KKTConfig(m=10)),
    _row("inversion", "It goes where the output is largest.",
         Source("alternating-circle", 20, 0.0, 0), _LEVEL, InversionConfig(),
         "inversion", "attack", fails=True),
    _row("biases everywhere", "No theorem speaks of this network.",
         Source("alternating-circle", 20, 0.0, 0), TrainConfig(all_biases=True, steps=12_000)),
    _row("proof on the line", "An exact network: step, and see points proven.",
         Source("alternating-line", 5, 0.0, 0), _LEVEL, UnivariateConfig(), "univariate",
         stage="attack", exact=True),
    _row("hinges", "Points are where lines of neurons cross.",
         Source("alternating-circle", 14, 0.0, 0),
         TrainConfig(init_scale=1e-3, steps=12_000), HingeConfig(), "hinge", stage="attack"),
    _row("other explanations", "One point becomes two; the weights do not notice.",
         Source("moons", 20, 0.06, 0),
         TrainConfig(method="ascent", beta_end=1e5, steps=8000), stage="explain"),
    _row("arena", "Every attack that fits, on the same weights.",
         Source("random-circle", 12, 0.0, 0), _LEVEL, KKTConfig(m=50, steps=1000), stage="arena"),
    _row("three classes", "Three classes in turn: each has two rivals.",
         Source("three-circle", 9, 0.0, 0), _LEVEL, DecoRecoConfig(), "decoreco", "attack"),
    _row("three blobs", "Other points explain the weights as well.",
         Source("three-blobs", 18, 0.25, 0), _LEVEL, DecoRecoConfig(), "decoreco", "attack",
         fails=True),
    _row("four classes", "Many points leave no trace.", Source("pie", 24, 0.0, 0), _LEVEL,
         DecoRecoConfig(), "decoreco", "attack", fails=True),
    _row("bilevel", "The weights agree, but the candidates are elsewhere.",
         Source("blobs", 12, 0.35, 0), _LEVEL, BilevelConfig(lr_x=0.03), "bilevel", "attack",
         fails=True),
    _row("energy maps", "Drag a point: where else could it be?", Source("moons", 10, 0.06, 0),
         stage="landscape"),
    _row("grid of starts", "One attack from 21 starts: where does each end?",
         Source("moons", 12, 0.06, 0), stage="landscape"),
)  # fmt: skip

SCENARIOS: dict[str, Scenario] = {row.name: row for row in _ROWS}
# What each is about, in the order of a menu.
TOPICS: dict[str, tuple[str, ...]] = {
    "Points in the plane": ("alternating circle", "random circle", "moons", "moons, too early",
                            "xor", "biases everywhere"),
    "Points on a line": ("alternating line", "two points", "proof on the line"),
    "More than two classes": ("three classes", "three blobs", "four classes"),
    "Attacks": ("arena", "inversion", "hinges", "bilevel"),
    "Could it be other points?": ("grid of starts", "energy maps", "other explanations"),
}  # fmt: skip


def failing_example(points: Source | None, steps: int, attack: str) -> Scenario | None:
    """Return the row meant to fail that has these points, steps of training and attack, if any."""
    for row in SCENARIOS.values():
        made = row.run
        if row.fails and made.dataset.source == points:
            if (made.steps[0], made.attack_name) == (steps, attack):
                return row
    return None


def by_name(name: str) -> Scenario:
    """Return the row of this name. ValueError with the names there are."""
    if name not in SCENARIOS:
        raise ValueError(f"no scenario {name!r}; there are: {'; '.join(SCENARIOS)}")
    return SCENARIOS[name]
