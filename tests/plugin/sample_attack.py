"""An attack of another package: candidates step onto the margin by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from explorer.engine.attack_panel import AttackPanel, PanelContent
from explorer.engine.attacks.attack import Attack, Start
from explorer.engine.attacks.claims import Report, merge_candidates
from explorer.engine.attacks.shapes import Shapes, places
from explorer.engine.attacks.target import Target
from explorer.engine.charts import Axis, Chart, Series
from explorer.engine.network import phi
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Size
from explorer.engine.statement import Judged, Statement
from explorer.engine.status import Status


@settings
class SampleConfig:
    m: Annotated[int, setting("Number of candidates", form="sight", page=(2, 400), ge=2)] = 20
    steps: Annotated[int, setting("Length of the attack", form="more", page=(1, 1000), gt=0)] = 30
    pace: Annotated[float, setting("Share of Newton's step", form="sight", ge=0.01, le=1)] = 0.5


@dataclass(frozen=True, eq=False)
class SampleState:
    t: int
    x: Tensor  # candidates (m, d)
    y: Tensor  # their labels (m,)
    lam: Tensor  # their multipliers (m,), all 0: the sample finds none
    off: Annotated[Tensor, Size("m")]  # |y Phi - 1| of each
    before: Annotated[Tensor, Size("m d")]  # where each was a step ago

    def numbers(self) -> dict[str, float]:
        return {"off": float(self.off.mean())}


def init(target: Target, config: SampleConfig, generator: torch.Generator,
         start: Start | None) -> SampleState:  # fmt: skip
    x = torch.randn(config.m, target.net.d, generator=generator).to(target.net.dtype)
    return _at(target, 0, x, phi(target.net, x).sign(), x)


def step(target: Target, state: SampleState, config: SampleConfig) -> SampleState:
    x = state.x.clone().requires_grad_()
    output = state.y * phi(target.net, x) / target.level
    (slope,) = torch.autograd.grad(output.sum(), x)
    length = (1 - output) / slope.square().sum(1).clamp_min(1e-12)
    after = (x + config.pace * length[:, None] * slope).detach()
    return _at(target, state.t + 1, after, state.y, state.x)


def terminate(state: SampleState, config: SampleConfig) -> Status:
    return Status.FINISHED if state.t >= config.steps else Status.RUNNING


def report(target: Target, state: SampleState, config: SampleConfig) -> Report:
    near = state.off < 0.1
    return merge_candidates(state.x[near], state.y[near], state.lam[near], radius=0.1)


def shapes(target: Target, state: SampleState) -> Shapes:
    return Shapes(dots=places(target, state.before), rings=places(target, state.x[state.off < 0.1]))


def headline(state: SampleState, known: Judged) -> Statement:
    there = int((state.off < 0.1).sum())
    return Statement(
        f"{there} of {len(state.x)} candidates hold the margin",
        f"They recover {known.found} of {known.n} points, no more than places of the margin would.",
    )


def show(target: Target, state: SampleState, config: SampleConfig,
         across: tuple[float, float]) -> PanelContent:  # fmt: skip
    off = state.off.sort().values.numpy()
    x, y = Axis(0, len(off), short="candidate"), Axis(0, max(1, off.max()), short="|y Φ − 1|")
    series = [Series(range(len(off)), off, "off the margin", "dots")]
    return PanelContent(Chart(series, x, y), note=f"{len(off)} candidates, sorted")


def _at(target: Target, t: int, x: Tensor, y: Tensor, before: Tensor) -> SampleState:
    off = (y * phi(target.net, x) / target.level - 1).abs()
    return SampleState(t, x, y, torch.zeros_like(y), off, before)


ATTACK = Attack(
    key="sample", title="Sample", paper="docs/write-an-attack.md", config=SampleConfig,
    sentence="Candidates step onto the margin; the sample of a package of its own.",
    state=SampleState, first=init, step=step, terminate=terminate, report=report, shapes=shapes,
    curves=(("off", "off the margin"),), headline=headline,
    panel=AttackPanel(show, "Off the margin"),
)  # fmt: skip
