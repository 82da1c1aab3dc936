"""The numbers of a step by name, for torch's calls and compiled loops alike."""

from __future__ import annotations

from typing import NamedTuple

# Columns of the table of `descent.step_table`.
RATE_X, RATE_LAM, SECOND, RATE, ALPHA, MARGIN = range(6)


class DescentRule(NamedTuple):
    """How a descent moves.

    Attributes:
        adam: whether by Adam; else by the heavy ball.
        momentum: of either.
        beta: Adam's decay of the mean square.
        eps: added to Adam's root.
    """

    adam: bool
    momentum: float
    beta: float
    eps: float


class LossTerms(NamedTuple):
    """What the losses of `kkt` and `decoreco` are made with.

    Attributes:
        square: ||theta||^2.
        level: margin of the target.
        lam_min: floor of a multiplier over its mean.
        weight_dual: of the floor.
        prior: half width of the box, or infinity.
        weight_prior: of the box.
    """

    square: float
    level: float
    lam_min: float
    weight_dual: float
    prior: float
    weight_prior: float


class Multipliers(NamedTuple):
    """What the multipliers are, and how they are solved for.

    Attributes:
        signed: whether of any sign, without a floor.
        projected: whether they are solved for.
        runner_up: whether they belong to the runner-up alone.
        mean: the mean multiplier.
        ridge: of their equations, a share of the trace.
        rounding: share of each diagonal entry that is added to it.
        least_gain: share of the largest gain that is rounding.
        fine: share of ||theta||^2 below which the solution is improved.
        least_loss: loss at which, and below, its gradient is rounding.
    """

    signed: bool
    projected: bool
    runner_up: bool
    mean: float
    ridge: float
    rounding: float
    least_gain: float
    fine: float
    least_loss: float


class TrainRule(NamedTuple):
    """How training moves; see `training`.

    Attributes:
        ascent: whether the scale runs ahead of the gradient.
        constant: whether by the constant rule; else by the loss-scaled one.
        logistic: whether the loss is logistic; else exponential.
        rate: in the units of the rule.
        momentum: heavy ball.
        weight_decay: mu.
        log_beta: log of the ascent's last inverse temperature.
        ascent_steps: steps in which the ascent goes there.
        trust: the largest way of a step with all that follow it, over the norm.
        norm_range: the carried norm lies between this and its inverse; infinity where it may not be
            scaled.
        max_exponent: largest exponent of the rate.
        max_decay: largest exponent of the decay.
        max_gain: largest log of the gain.
    """

    ascent: bool
    constant: bool
    logistic: bool
    rate: float
    momentum: float
    weight_decay: float
    log_beta: float
    ascent_steps: float
    trust: float
    norm_range: float
    max_exponent: float
    max_decay: float
    max_gain: float
