r"""Model inversion, the baseline that every reconstruction has to beat (Fredrikson et al. 2015).

Candidates of fixed labels y (m,) move over x (m, d) alone, until the output is what was wanted:

    goal "extreme":  loss = -mean_i y_i Phi(theta; x_i)
    goal "value":    loss = mean_i (y_i Phi(theta; x_i) - value)^2

with Phi in units of the margin. The gradient is closed, y_i grad_x Phi = y_i sum_j v_j s_j w_j for
two layers and B_1 W_1 for any depth, with torch's own slopes: there is one derivative, so nothing
has to be relaxed. Haim et al. 2022, appendix, show this baseline beside theirs (restated; see the
paper for the original).

A homogeneous network has no largest output: from most places Phi grows without end along a ray,
and `box` is all that holds a candidate. With "value" = 1 all of {y Phi = 1} is a minimum, a curve
in the plane: training points lie on it, and so does everything else there. Inversion sees what
the network answers, and not which points its weights are made of; so its multipliers `lam` are 0
throughout: no candidate claims a share in theta, and lam = 0 is what the KKT conditions give to a
point that explains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from explorer.engine.attacks.attack import Attack, Leaps, Needs
from explorer.engine.attacks.claims import (
    MARGIN_BAND,
    MERGE_RADIUS,
    Report,
    in_units_of_data,
    merge_candidates,
)
from explorer.engine.attacks.descent import PER_PICTURE, SIGMA_PICTURES, descent_status
from explorer.engine.attacks.target import Target
from explorer.engine.classes import fair_labels
from explorer.engine.deferred_checks import Rare, in_blocks, now
from explorer.engine.gradients import backward_signals, forward_signals
from explorer.engine.kernels.reference import denormals_flushed
from explorer.engine.network import phi
from explorer.engine.optim import Moments, adam_step, half_cosine
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Like, Size
from explorer.engine.status import Status
from explorer.engine.threads import few_threads


@settings
class InversionConfig:
    """Settings of the baseline."""

    # fmt: off
    m: Annotated[int, setting(
        "Half of them per class", title="candidates m", form="sight", place=4, page=(2, 400),
        ge=2, multiple_of=2, why="half the candidates per label",
    )] = 40
    steps: Annotated[int, setting(
        "Length of the attack", title="steps", form="more", place=4, page=(1, 1_000_000), gt=0,
    )] = 500
    goal: Annotated[Literal["extreme", "value"], setting(
        "The largest output y Φ, or a wanted one", title="goal", form="sight", place=1,
        labels=(("largest output", "extreme"), ("a wanted output", "value")),
    )] = "extreme"
    value: Annotated[float, setting(
        "y Φ in units of the margin: 1 is the margin. Used by the goal “a wanted output”",
        title="wanted output", unit="margins", form="sight", place=2, page=(-100, 100),
    )] = 1.0
    lr_x: Annotated[float, setting(
        "Adam's rate, in units of the data", title="rate of x", unit="of the data", form="more",
        place=1, page=(1e-8, 10), gt=0,
    )] = 0.02
    decay: Annotated[float, setting(
        "Last rate as a share of the first", title="last rate", form="more", place=2,
        page=(1e-6, 1), gt=0, le=1, note="Half a cosine; 1 keeps it constant.",
    )] = 0.01
    sigma_x: Annotated[float, setting(
        "Standard deviation of the start", title="noise σ_x", unit="of the data", form="more",
        place=3, page=(0, 5), ge=0,
    )] = 0.7
    box: Annotated[float | None, setting(
        "Half width of the box that candidates stay in; 0: none. Without one the output has no "
        "largest value", title="box", unit="of the data", form="sight", place=3, page=(0, 100),
        gt=0,
    )] = 2.0
    # fmt: on

    def rate(self, t: int) -> float:
        """Return the rate at iteration t: half a cosine from lr_x to decay * lr_x."""
        return self.lr_x * half_cosine(t / self.steps, self.decay)


@dataclass(frozen=True, eq=False)
class InversionState:
    """One iterate, with the loss and the gradient of this very iterate.

    Attributes:
        t: iteration.
        x: candidates (m, d).
        y: their labels (m,), never changed.
        lam: zeros (m,); see the module.
        output: y_i Phi(x_i) in units of the margin (m,).
        loss: see the module, ().
        grad_x: its gradient (m, d).
        moments: of Adam.
        diverged: whether the next step was not finite and was not taken.
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    output: Annotated[Tensor, Size("m")]
    loss: Annotated[Tensor, Size()]
    grad_x: Annotated[Tensor, Size("m d")]
    moments: Annotated[Moments, Like("x")]
    diverged: bool = False

    def numbers(self) -> dict[str, float]:
        """Return the mean output, and how far from the margin the candidates are on average."""
        return {
            "output": float(self.output.mean()),
            "off_margin": float((self.output - 1).abs().mean()),
            "loss": float(self.loss),
        }


@few_threads()
def init(
    target: Target, config: InversionConfig, generator: torch.Generator, start: object = None
) -> InversionState:
    """Return the first iterate: x ~ N(0, sigma_x^2) cut to the box, half of each label."""
    if start is not None:
        raise ValueError("inversion begins at noise; leave `start` away")
    noise = torch.randn(config.m, target.net.d, generator=generator, dtype=torch.float64)
    x = _clamped_to_box((config.sigma_x * noise).to(target.net.weights[0]), config)
    return _evaluate(target, config, 0, x, fair_labels(config.m, 1).to(x), Moments.zero((x,)))


@few_threads()
def step(target: Target, state: InversionState, config: InversionConfig) -> InversionState:
    """Return one step of Adam on x, cut to the box; not taken where it would not be finite."""
    return _step(target, state, config, now)


def _step(
    target: Target, state: InversionState, config: InversionConfig, rare: Rare
) -> InversionState:
    grads = (state.grad_x * len(state.x),)  # each candidate's own, whatever their number
    (x,), moments = adam_step((state.x,), state.moments, grads, config.rate(state.t))
    after = _evaluate(target, config, state.t + 1, _clamped_to_box(x, config), state.y, moments)
    finite = torch.isfinite(after.grad_x).all() & torch.isfinite(after.x).all()
    if rare(~(finite & torch.isfinite(after.loss))):
        return replace(state, diverged=True)
    return after


@few_threads()
def advance(
    target: Target, state: InversionState, config: InversionConfig, steps: int
) -> InversionState:
    """Return the state so many steps on; a device is read after a block (`deferred_checks`)."""
    return in_blocks(
        lambda at, rare: _step(target, at, config, rare), lambda at: terminate(at, config),
        lambda at: (at.grad_x,), state, min(steps, config.steps - state.t),
    )  # fmt: skip


def terminate(state: InversionState, config: InversionConfig) -> Status:
    """Return how the run stands."""
    return descent_status(state, config.steps, state.grad_x)


@in_units_of_data
def report(target: Target, state: InversionState, config: InversionConfig) -> Report:
    """Return candidates within `MERGE_RADIUS` made one; kept on their side, or at the wanted value.

    Their multipliers are 0: the baseline knows of none.
    """
    merged = merge_candidates(state.x, state.y, torch.ones_like(state.lam), MERGE_RADIUS)
    output = merged.y * phi(target.net, merged.x) / target.level
    kept = output > 0
    if config.goal == "value":
        kept = (output - config.value).abs() <= MARGIN_BAND
    return Report(merged.x[kept], merged.y[kept], torch.zeros_like(merged.lam[kept]))


def _clamped_to_box(x: Tensor, config: InversionConfig) -> Tensor:
    return x if config.box is None else x.clamp(-config.box, config.box)


@torch.no_grad()
@denormals_flushed()
def _evaluate(
    target: Target, config: InversionConfig, t: int, x: Tensor, y: Tensor, moments: Moments
) -> InversionState:
    """Return the state at these candidates: outputs, loss and gradient."""
    _, values, slopes = forward_signals(target.net, x)
    back = backward_signals(target.net, slopes, len(x))
    output = y * values[-1].squeeze(-1) / target.level
    along = (y / target.level)[:, None] * (back[0] @ target.net.weights[0])
    if config.goal == "value":
        off = output - config.value
        loss, weight = off.square().mean(), 2 * off / len(x)
    else:
        loss, weight = -output.mean(), torch.full_like(output, -1 / len(x))
    grad_x = weight[:, None] * along
    return InversionState(t, x, y, torch.zeros_like(y), output, loss, grad_x, moments)


def pictures(n: int, outputs: int, steps: int | None) -> InversionConfig:
    """Return settings for n training images; `steps` None takes 300."""
    return InversionConfig(m=PER_PICTURE * n, steps=steps or 300, sigma_x=SIGMA_PICTURES, box=1.0)


ATTACK = Attack(
    place=1, key="inversion", title="Model inversion", paper="Fredrikson et al. 2015",
    sentence="Looks for inputs of the largest output. The baseline: it sees no multipliers, and "
    "can ask for another output as well.",
    config=InversionConfig, state=InversionState,
    first=init, step=step, terminate=terminate, report=report,
    curves=(("output", "output y Φ"), ("off_margin", "off the margin")),
    pictures=pictures, leaps=Leaps(advance),
    needs=Needs(anywhere=True, non_homogeneous=True),  # outputs are all it needs
)  # fmt: skip
