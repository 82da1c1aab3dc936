"""What a training run is asked to do."""

from __future__ import annotations

from typing import Annotated, Literal

from explorer.engine.margin import Loss
from explorer.engine.settings import setting, settings

Method = Literal["gradient", "ascent"]
StepRule = Literal["constant", "loss-scaled"]
Init = Literal["small", "standard"]

# What `lr=None` stands for. The two rules measure a step in different units.
RATES: dict[StepRule, float] = {
    "loss-scaled": 1.0,  # the inverse of the curvature bound
    "constant": 0.01,  # Haim et al. 2022, appendix B
}


@settings
class TrainConfig:
    """A training run; the defaults reach the margin on every preset within seconds."""

    # fmt: off
    widths: Annotated[tuple[Annotated[int, setting("Of one layer", ge=1)], ...], setting(
        "Neurons in each hidden layer", title="width", unit="neurons", form="sight", place=1,
        page=(1, 2000), strict=False, min_length=1, note="First layer first. On the page all "
        "layers have one width, and **hidden layers** says how many there are.",
    )] = (100,)
    bias: Annotated[bool, setting("Whether the first layer has a bias")] = True
    all_biases: Annotated[bool, setting(
        "In every layer the network is no longer homogeneous: the theorems do not apply",
        title="biases", form="more", place=10,
        labels=(("first layer", False), ("every layer", True)),
        note="Margins have no limit theorem then, and the constant or loss-scaled gradient alone "
        "trains the network.",
    )] = False
    loss: Annotated[Loss, setting(
        "exp(−q) or log(1 + exp(−q)) of the margins q", title="loss", form="more", place=1,
    )] = "exponential"
    method: Annotated[Method, setting(
        "Gradient descent, or normalised ascent of the smoothed margin: it goes to the limit in "
        "about a second", title="method", form="sight", place=2,
        labels=(("gradient descent", "gradient"), ("normalised ascent", "ascent")),
        note="The ascent always takes the loss-scaled step.",
    )] = "gradient"
    step_rule: Annotated[StepRule, setting(
        "Constant, or divided by the loss, so that the direction keeps moving", title="step rule",
        form="more", place=2,
    )] = "loss-scaled"
    lr: Annotated[float | None, setting(
        "Rate in the units of the step rule; 0: the rule's own", title="step size", form="sight",
        place=3, page=(0, 100), gt=0, unit="of the step rule",
        note="None takes 1 (loss-scaled: the inverse of the curvature bound) or 0.01 (constant, on "
        "the mean loss).",
    )] = None
    momentum: Annotated[float, setting(
        "Heavy-ball momentum, below 1", title="momentum", form="more", place=3, page=(0, 0.999),
        ge=0, lt=1, note="0.99 separates and levels the margins several times sooner than 0.9 "
        "(`python benchmarks/bench_training.py`).",
    )] = 0.99
    batch: Annotated[int | None, setting(
        "Points per step; 0: all of them", title="mini-batch", unit="points", form="more", place=4,
        page=(0, 200), ge=1, note="None takes all.",
    )] = None
    init_scale: Annotated[float, setting(
        "Standard deviation of the first layer at t = 0; Haim et al.: 0.0001, with a long plateau",
        title="init scale", form="more", place=8, page=(1e-8, 10), ge=0,
        note="Of weights and biases. 0.1 starts to move at once; the 1e-4 of Haim et al. gives "
        "fewer neuron directions and, with the constant rule, a plateau of many thousand steps.",
    )] = 0.1
    init: Annotated[Init, setting(
        "Small in the first layer, or torch's default in every layer", title="first weights",
        form="more", place=9, labels=(("small first layer", "small"), ("standard", "standard")),
    )] = "small"
    steps: Annotated[int, setting(
        "Planned steps: the run ends there", title="steps", form="more", place=5,
        page=(1, 10_000_000), ge=0, note="Raise it to go on.",
    )] = 20_000
    revive: Annotated[bool, setting(
        "Whether neurons that are off on every point are drawn anew where the points are not "
        "separated", note="Without it a trained network often cannot learn a new point.",
    )] = True
    beta_end: Annotated[float, setting(
        "Inverse temperature of the ascent at its end", ge=1,
        note="1e3 leaves the margins of support points within 1% of each other.",
    )] = 1e3
    ascent_steps: Annotated[int, setting(
        "Steps in which the ascent goes to its limit", title="ascent steps", form="more", place=6,
        page=(1, 1_000_000), ge=1, note="Measured: 4000 level all presets.",
    )] = 4000
    weight_decay: Annotated[float, setting(
        "mu of mean loss + mu/2 |theta|^2, a defence: the norm stays finite; gradient descent "
        "only", title="weight decay", form="more", place=7, page=(0, 100), ge=0,
        note="0 for none. With it training ends at a stationary point.",
    )] = 0.0
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        if self.all_biases and (self.method == "ascent" or not self.bias):
            raise ValueError(
                "all_biases needs method='gradient', as the ascent scales homogeneous weights, and "
                f"bias=True; got method={self.method!r} and bias={self.bias}"
            )
        if self.weight_decay and self.method == "ascent":
            raise ValueError(
                "the ascent follows the direction of the weights, which a decay of their norm does "
                f"not change; got weight_decay={self.weight_decay}. Take method='gradient'."
            )

    @property
    def rule(self) -> StepRule:
        """The step rule in force: the ascent has only one."""
        return "loss-scaled" if self.method == "ascent" else self.step_rule

    @property
    def rate(self) -> float:
        """The rate in force: `lr`, or the default of the rule."""
        return RATES[self.rule] if self.lr is None else self.lr
