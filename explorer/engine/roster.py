"""Every attack there is, as one row: what it is called, which paper it restates, who runs it.

An attack is a module that speaks the four words of the engine and reports its claims:

    init(target, config, generator, start=None) -> state      step(target, state, config) -> state
    terminate(state, config) -> Status                        iterate(target, state, config)
    report(target, state, config) -> Report                   fits(target) -> str, optional

A state holds t, x (m, d), y (m,), lam (m,) and `numbers()`, what the curves show of it. Page,
command line, files and arena take their attacks from here; a new one is a row and two names in
the unions below, which say what a saved run may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from explorer.engine.attacks import bilevel, decoreco, hinge, inversion, kkt, pooled, univariate
from explorer.engine.attacks.bilevel import BilevelConfig, BilevelState, victim
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.decoreco import DecoRecoConfig, DecoRecoState
from explorer.engine.attacks.hinge import HingeConfig, HingeState
from explorer.engine.attacks.inversion import InversionConfig, InversionState
from explorer.engine.attacks.kkt import KKTConfig, KKTState
from explorer.engine.attacks.pooled import PooledConfig, PooledState
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateConfig, UnivariateState
from explorer.engine.status import Status

AttackConfig = (
    KKTConfig
    | InversionConfig
    | UnivariateConfig
    | DecoRecoConfig
    | BilevelConfig
    | HingeConfig
    | PooledConfig
)
AttackState = (
    KKTState
    | InversionState
    | UnivariateState
    | DecoRecoState
    | BilevelState
    | HingeState
    | PooledState
)


class Engine(Protocol):
    """The module behind a row."""

    init: Any
    step: Any
    terminate: Any
    iterate: Any
    report: Any


@dataclass(frozen=True, eq=False)
class Entry:
    """One attack.

    Attributes:
        key: its name in files, options and this table.
        title: its name on screen.
        paper: whose it is.
        sentence: what it does, for a tooltip.
        engine: the module.
        config: its class of settings; `config()` are the defaults.
        curves: columns of `state.numbers()` with their names on screen, at most four.
        takes_start: whether it begins at given candidates, so that starts can be mixed.
        several: whether it understands networks with one output per class.
        victim: (x, y, config, generator) -> weights of its own training that it attacks in place
            of the page's; None for attacks on any weights.
    """

    key: str
    title: str
    paper: str
    sentence: str
    engine: Engine
    config: type[AttackConfig]
    curves: tuple[tuple[str, str], ...]
    takes_start: bool = False
    several: bool = False
    victim: Callable[[Tensor, Tensor, Any, torch.Generator], Any] | None = None

    def refusal(self, target: Target) -> str:
        """Why this attack cannot be used on these weights, or an empty string."""
        if target.net.outputs > 1 and not self.several:
            return (
                f"{self.title} knows networks with one output, for two classes; this one has "
                f"{target.net.outputs}, one per class. Choose {ROSTER['decoreco'].title} for them."
            )
        if target.caveat and not getattr(self.engine, "NON_HOMOGENEOUS", False):
            return f"{self.title} rests on homogeneity. {target.caveat}"
        asked = getattr(self.engine, "fits", None)
        return "" if asked is None else str(asked(target))

    def aimed(
        self, target: Target | None, x: Tensor, y: Tensor, config: AttackConfig, seed: int
    ) -> Any:  # noqa: ANN401
        """What `init` takes as its target: `target`, or weights that it trains on x and y."""
        if self.victim is None or (target is not None and self.refusal(target)):
            return target
        return self.victim(x, y, config, torch.Generator().manual_seed(seed))

    def init(
        self,
        target: Any,  # noqa: ANN401 - of `aimed`
        config: AttackConfig,
        generator: torch.Generator,
        start: tuple[Tensor, Tensor] | None = None,
    ) -> AttackState:
        """The first state; `start` is x (m, d), y (m,), for attacks that take one."""
        why = self.refusal(target) if isinstance(target, Target) else ""
        if why:
            raise ValueError(why)
        given = kkt.Start(*start) if start is not None and self.takes_start else None
        state: AttackState = self.engine.init(target, config, generator, given)
        return state

    def step(self, target: Target, state: AttackState, config: AttackConfig) -> AttackState:
        """The next state."""
        following: AttackState = self.engine.step(target, state, config)
        return following

    @property
    def anywhere(self) -> bool:
        """Whether the attack runs on the device of the weights; else on the CPU alone."""
        return bool(getattr(self.engine, "ANYWHERE", False))

    def stride(self, config: AttackConfig, wanted: int) -> int:
        """`wanted` where this attack goes faster when states between are left out, else 1."""
        asked = getattr(self.engine, "in_blocks", None)
        return wanted if asked is not None and asked(config) else 1

    def iterate(
        self, target: Target, state: AttackState, config: AttackConfig, stride: int = 1
    ) -> Iterator[AttackState]:
        """The states after `state`, to the end of the run.

        With a stride, from the method of this name, only those whose t it divides, and the last.
        """
        if stride == 1:
            return iter(self.engine.iterate(target, state, config))
        return iter(self.engine.iterate(target, state, config, stride))

    def terminate(self, state: AttackState, config: AttackConfig) -> Status:
        """How the run stands."""
        status: Status = self.engine.terminate(state, config)
        return status

    def report(self, target: Target, state: AttackState, config: AttackConfig) -> Report:
        """What the attacker claims."""
        claimed: Report = self.engine.report(target, state, config)
        return claimed


_ROWS = (
    Entry(
        "kkt", "KKT reconstruction", "Haim et al. 2022",
        "Candidates and multipliers that explain the weights as a KKT point, by descent.",
        kkt, KKTConfig,
        (("l_stationary", "stationarity"), ("l_margin", "margin"), ("l_dual", "λ floor"),
         ("l_prior", "prior box")),
        takes_start=True,
    ),
    Entry(
        "inversion", "Model inversion", "Fredrikson et al. 2015",
        "The baseline: inputs of the largest output, or of a wanted one. It sees no multipliers.",
        inversion, InversionConfig,
        (("output", "output y Φ"), ("off_margin", "off the margin")),
    ),
    Entry(
        "univariate", "Provable, on the line", "Smorodinsky, Vardi and Safran 2024",
        "Walks over the intervals of the graph of Φ and names places of which some must be "
        "training points; then single ones: proven where the weights are an exact KKT point, "
        "likely where they were trained.",
        univariate, UnivariateConfig, (),
    ),
    Entry(
        "decoreco", "DecoReco", "Buzaglo et al. 2023",
        "KKT reconstruction for several classes, by the margin to the rival classes, and for "
        "networks trained with weight decay.",
        decoreco, DecoRecoConfig,
        (("l_stationary", "stationarity"), ("l_margin", "margin"), ("l_dual", "λ floor"),
         ("l_prior", "prior box")),
        takes_start=True, several=True,
    ),
    Entry(
        "bilevel", "Bilevel", "Runkel et al. 2024",
        "Trains on its candidates and moves them until the weights agree. It knows how the weights "
        "were trained, and attacks a model of its own training on the same points.",
        bilevel, BilevelConfig,
        (("l_upper", "½‖θ(x) − θ*‖²"), ("surrogate", "surrogate ‖∇E‖²")),
        takes_start=True, victim=victim,
    ),
    Entry(
        "hinge", "Hinges", "own",
        "Crossings of the kinks and the margin as candidates, fitted by a convex program; claims "
        "the places that no other explanation can do without.",
        hinge, HingeConfig, (("residual", "unexplained share"),),
    ),
    Entry(
        "pooled", "Pooled", "own",
        "Claims of several KKT reconstructions and crossings in one explanation; claims the "
        "places that no other explanation can do without.",
        pooled, PooledConfig, (("residual", "unexplained share"),),
    ),
)  # fmt: skip

ROSTER: dict[str, Entry] = {row.key: row for row in _ROWS}


def by_key(key: str) -> Entry:
    """The attack of this key. ValueError with the keys there are."""
    if key not in ROSTER:
        raise ValueError(f"no attack {key!r}; there are: {', '.join(ROSTER)}")
    return ROSTER[key]
