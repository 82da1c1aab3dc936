"""What the band under the plane shows of a frame: weights, and the points that add up to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.engine.network import Network
from explorer.engine.roster import by_key
from explorer.engine.sums import OnePerPoint, Sum, sum_of, sum_over
from explorer.page.frame import Frame
from explorer.page.plane import words
from explorer.page.plane.scene import network

NONE = torch.zeros(0)


@dataclass(frozen=True, eq=False)
class BandContent:
    """What the band shows of a frame.

    Attributes:
        net: the weights.
        x: points that tell which neurons are dead, (n, d); of none (0, d).
        y: labels (n,) of the points that add up.
        made: the weights as a sum over points, or None.
        left: which share of the weights they leave unexplained, in words; "" where it is not known.
        why: a sentence on why nothing adds up, or "".
    """

    net: Network
    x: Tensor
    y: Tensor
    made: Sum | None = None
    left: str = ""
    why: str = ""


def shown_of(frame: Frame, config: Any, truth_shown: bool = True) -> BandContent | None:  # noqa: ANN401 - of its attack
    """Return what the band shows of a frame; None where it has no weights to show.

    In the attack its candidates add up; `config` are its settings.
    """
    net = can_show(frame)
    if net is None:
        return None
    if not frame.is_aimed:
        return _of_points(frame, net)
    assert frame.aim is not None  # a network is attacked
    truth, known = frame.aim.truth, frame.aim.certificate
    hidden = "" if truth.n and truth_shown else words.HIDDEN_SUM if truth.n else words.NO_POINTS
    points = NONE.reshape(0, net.d) if hidden else truth.x
    tried = _of_candidates(frame, frame.aim.target, config)
    why = _why_none(net) or (hidden if tried is None else "")
    if why:
        return BandContent(net, points, NONE, why=why)
    if tried is not None:
        assert frame.attack.state is not None  # its candidates add up
        # At their start they were not moved to explain anything: no share is told of that.
        left = words.left_words(tried.left, by="candidates") if frame.attack.state.t else ""
        if left and known is not None and not hidden and tried.left < known.residual:
            left += words.points_leave(known.residual)
        return BandContent(tried.net, points, frame.attack.state.y, tried, left)
    if known is None:
        return BandContent(net, truth.x, NONE)
    left = words.left_words(known.residual, by="the training points")
    if frame.stage == "explain" and frame.explain is not None:
        held = frame.explain.present
        now = held.now
        made = sum_over(held.net, now.x, now.y, OnePerPoint(now.lam, now.slopes))
        if now is not held.truth:
            left = words.left_words(made.left, by="this set")
        return BandContent(held.net, truth.x, now.y, made, left)
    made = sum_of(frame.aim.net, truth.x, truth.y, known.fit)
    return BandContent(net, truth.x, truth.y, made, left)


def _of_candidates(frame: Frame, target: Target, config: Any) -> Sum | None:  # noqa: ANN401 - of its attack
    """Return the sum over the candidates of the attack on screen; None of none.

    Of the network that it sums on, where parallel neurons may be merged.
    """
    state = frame.attack.state
    if frame.stage != "attack" or state is None or target.net.outputs > 1:
        return None
    return by_key(frame.attack.name).sum_over(target, state, config)


def _of_points(frame: Frame, net: Network) -> BandContent:
    part = frame.training
    late = -1 if part.certified is None or part.certified is part.state else part.certified.t
    return shown_with(net, frame.dataset, part.certificate, late)


def shown_with(net: Network, data: Dataset, made: Certificate | None, t: int = -1) -> BandContent:
    """Return the weights of a network with what its points add up to, by their certificate.

    `t`: the step that the certificate is of, where it is of an earlier one.
    """
    why = _why_none(net)
    if data.d != net.d:
        return BandContent(net, NONE.reshape(0, net.d), NONE, why=why)
    if why or made is None or len(made.lam) != data.n:
        return BandContent(net, data.x, NONE, why=why)
    left = words.left_words(made.residual, t)
    return BandContent(net, data.x, data.y, sum_of(net, data.x, data.y, made.fit), left)


def _why_none(net: Network) -> str:
    """Return why the gradients of points do not add up to these weights, or an empty string."""
    if not net.homogeneous:
        return words.NO_SUM
    return words.SEVERAL_SUM if net.outputs > 1 else ""


def can_show(frame: Frame) -> Network | None:
    """Return the weights on screen, if the band can show them."""
    net, _ = network(frame)
    fits = isinstance(net, Network) and net.d <= 2 and len(net.weights) > 1
    return net if fits else None  # type: ignore[return-value]
