r"""Tuning the KKT attack by what an attacker can compute: the weights, and never the truth.

Two searches, each a generator that yields after every trial, so that a page or a terminal can
pace, show and cancel it:

- "random": the published search over the four knobs of Haim et al. 2022, sigma_x log-U(1e-6, 0.1),
  rate log-U(1e-5, 1), lam_min U(0.01, 0.5), alpha U(10, 500), in the published code's units.
  There it was scored with the training set, which an attacker does not have; here by the residual.
- "auto": a tree-structured Parzen estimator (Bergstra et al. 2011; Optuna) over knobs of
  `KKTConfig`, for two goals at once: a small stationarity residual, and much agreement of
  independent restarts (`explorer.engine.attacks.claims`). Its first trial are the defaults.

Trial k depends on the seed and the trials before it alone, so that a search resumed from its file
(`explorer.research.tuning`) goes on as if it had never stopped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from explorer.engine.attacks import kkt
from explorer.engine.attacks.claims import agreement
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.config import PUBLISHED, Knobs
from explorer.engine.attacks.target import Target
from explorer.engine.extras import library
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.settings import setting, settings
from explorer.engine.status import Status
from explorer.engine.store.codec import decode
from explorer.research.devices import DeviceError, last_states
from explorer.research.records import RowKind
from explorer.research.words import weights

if TYPE_CHECKING:
    import optuna

TUNED = kkt.ATTACK
READY = tuple(PUBLISHED)  # published runs whose settings can be taken
Search = Literal["auto", "random"]

# The defaults of KKTConfig, as a point of the space of "auto".
USUAL = {
    "lr_x": KKTConfig.lr_x, "relu_alpha": KKTConfig.relu_alpha, "annealing": 40.0,
    "lam_min": KKTConfig.lam_min, "weight_margin": KKTConfig.weight_margin,
    "sigma_x": KKTConfig.sigma_x,
}  # fmt: skip

BLOCK = 50  # steps of an attack in one go; arbitrary: a tenth of a second at most
SEEDS = 1000  # of noise that a search has for itself; arbitrary, above the restarts one takes


@settings
class TuneConfig:
    """A search."""

    # fmt: off
    search: Annotated[Search, setting(
        "For two goals at once over our knobs, or the published random draws over Haim's four",
        labels=(("auto-tune", "auto"), ("published draws", "random")),
    )] = "auto"
    trials: Annotated[int, setting("How many settings are tried", ge=1, page=(1, 500))] = 25
    restarts: Annotated[int, setting(
        "Attacks per trial, each from noise of its own", ge=2, le=SEEDS - 2,
        why="agreement is theirs",
    )] = 3
    m: Annotated[int, setting(
        "Candidates of each attack", title="candidates m", ge=2, multiple_of=2,
        why="half the candidates per label",
    )] = 60
    steps: Annotated[int, setting(
        "Steps of each attack", ge=1,
        note="A quarter of the usual ones, as schedules keep their shape.",
    )] = 500
    seed: Annotated[int, setting("Of the search and of the noise", ge=0)] = 0
    # fmt: on


@dataclass(frozen=True, eq=False)
class Trial:
    """One row of a search.

    Attributes:
        number: 0, 1, ...
        params: where in the space of the search.
        config: the attack's settings, as tried.
        residual: share of ||theta||^2 left unexplained, mean over the restarts; inf if it failed.
        agreement: of the restarts.
        claims: how many, mean over the restarts.
        failure: why it failed, or "".
    """

    number: int
    params: dict[str, float]
    config: KKTConfig
    residual: float
    agreement: float
    claims: float
    failure: str = ""


def tune(
    target: Target,
    config: TuneConfig,
    done: Sequence[Trial] = (),
    progress: Progress = no_progress,
    device: str = "cpu",
) -> Iterator[Trial]:
    """Yield the trials after `done`, to the planned number; nothing runs between two of them.

    `progress` is told the share of the planned trials that is done. On a `device` all restarts of a
    trial descend at once.

    Raises:
        ImportError: without the extra `tune`.
        DeviceError: where the device is not there, or its memory is used up.
    """
    optuna = _optuna()
    study = optuna.create_study(directions=["minimize", "maximize"])
    for trial in done:
        study.add_trial(_as_optuna(trial, config.search))
    for number in range(len(done), config.trials):
        study.sampler = _sampler(config, number)
        if number == 0 and config.search == "auto":
            study.enqueue_trial(USUAL)
        asked = study.ask(_space(config.search))
        here = part_progress(progress, number / config.trials, (number + 1) / config.trials)
        trial = attempt(target, config, number, dict(asked.params), here, device)
        if trial.failure:
            study.tell(asked, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(asked, [trial.residual, trial.agreement])
        yield trial


def fresh_seed(config: TuneConfig) -> int:
    """Return the seed of a noise that no trial of this search uses."""
    return SEEDS * config.seed + SEEDS - 1


def attempt(
    target: Target, config: TuneConfig, number: int, params: dict[str, float],
    progress: Progress = no_progress, device: str = "cpu",
) -> Trial:  # fmt: skip
    """Attack `restarts` times with one set of parameters; a failure is a row too.

    Raises:
        DeviceError: where the device is not there, or its memory is used up.
    """
    settings = settings_of(target, config, params)
    seeds = [SEEDS * config.seed + restart + 1 for restart in range(config.restarts)]
    try:
        ends = []
        for end in last_states(target, TUNED, settings, seeds, device, None, BLOCK, progress):
            if kkt.terminate(end, settings) is Status.DIVERGED:
                raise ValueError(weights.status(Status.DIVERGED))
            ends.append(end)
    except DeviceError:
        raise
    except ValueError as error:
        return Trial(number, params, settings, math.inf, 0.0, 0.0, str(error))
    reports = [kkt.report(target, end, settings) for end in ends]
    claims = sum(len(r.x) for r in reports) / len(reports)
    mean = sum(float(end.l_stationary) for end in ends) / len(ends)
    return Trial(number, params, settings, mean, agreement(reports), claims)


def settings_of(target: Target, config: TuneConfig, params: dict[str, float]) -> KKTConfig:
    """Return the attack's settings at one place of the search's space."""
    if config.search == "random":
        knobs = Knobs(params["sigma_x"], params["rate_x"], params["lam_min"], params["relu_alpha"])
        return KKTConfig.from_paper(target, knobs, config.m, config.steps)
    given = {name: value for name, value in params.items() if name != "annealing"}
    start = params["relu_alpha"] / params["annealing"]
    return KKTConfig(m=config.m, steps=config.steps, relu_alpha_start=start, **given)  # type: ignore[arg-type]


def front(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials that no other beats in both goals, smallest residual first."""
    good = sorted((t for t in trials if not t.failure), key=lambda t: (t.residual, -t.agreement))
    kept: list[Trial] = []
    for trial in good:
        if not kept or trial.agreement > kept[-1].agreement:
            kept.append(trial)
    return kept


def best(trials: Sequence[Trial], search: Search = "auto") -> Trial | None:
    """Return the largest agreement, then the smallest residual; of "random" the smallest residual.

    None where every trial failed.
    """
    good = [t for t in trials if not t.failure]
    if search == "random":
        return min(good, key=lambda t: t.residual, default=None)
    return min(good, key=lambda t: (-t.agreement, t.residual), default=None)


def full_length(trial: Trial, m: int = KKTConfig.m, steps: int = KKTConfig.steps) -> KKTConfig:
    """Return the settings of a trial for an attack of the usual size."""
    return replace(trial.config, m=m, steps=steps)


def ready(target: Target, run: str, now: KKTConfig) -> KKTConfig:
    """Return the settings of a published run on these weights, of as many candidates as `now`.

    Args:
        target: the attacked weights.
        run: one of `READY`; "" for the defaults.
        now: how many candidates and steps.
    """
    return KKTConfig.from_paper(target, run, now.m, now.steps) if run else KKTConfig()


# --- Optuna -------------------------------------------------------------------------------------
def _optuna() -> Any:  # noqa: ANN401 - the module
    optuna = library("optuna", "tuning needs Optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _space(search: Search) -> dict[str, optuna.distributions.BaseDistribution]:
    real = _optuna().distributions.FloatDistribution
    if search == "random":  # Haim et al. 2022, as in their code
        return {
            "sigma_x": real(1e-6, 0.1, log=True), "rate_x": real(1e-5, 1.0, log=True),
            "lam_min": real(0.01, 0.5), "relu_alpha": real(10.0, 500.0),
        }  # fmt: skip
    return {  # arbitrary: one to two decades around the defaults
        "lr_x": real(1e-3, 0.3, log=True), "relu_alpha": real(10.0, 1000.0, log=True),
        "annealing": real(1.0, 100.0, log=True), "lam_min": real(0.0, 0.3),
        "weight_margin": real(0.01, 10.0, log=True), "sigma_x": real(0.2, 1.2),
    }  # fmt: skip


def _sampler(config: TuneConfig, number: int) -> optuna.samplers.BaseSampler:
    """Return a sampler seeded by the trial's number: a resumed search draws as an unbroken one."""
    samplers, seed = _optuna().samplers, 100_003 * config.seed + number
    if config.search == "random":
        return samplers.RandomSampler(seed=seed)  # type: ignore[no-any-return]
    return samplers.TPESampler(seed=seed, n_startup_trials=8)  # type: ignore[no-any-return]


def _as_optuna(trial: Trial, search: Search) -> optuna.trial.FrozenTrial:
    optuna = _optuna()
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(  # type: ignore[no-any-return]
        params=trial.params, distributions=_space(search),
        values=None if trial.failure else [trial.residual, trial.agreement],
        state=states.FAIL if trial.failure else states.COMPLETE,
    )  # fmt: skip


# --- The file of a search: a line about it, then one per trial; it can be taken up again ---------

FORMAT = 1
FIELDS = ("number", "params", "config", "residual", "agreement", "claims", "failure")


def fingerprint(target: Target) -> str:
    """Return a digest of the attacked weights: a search is resumed on the same ones only."""
    return hashlib.sha256(target.net.theta.double().cpu().numpy().tobytes()).hexdigest()[:16]


def search_rows(target: Target, config: TuneConfig) -> RowKind:
    """Return what the file of this search on these weights holds."""
    return RowKind(
        "search", FIELDS, _check, key=lambda row: str(row["number"]), start=b'{"number":',
        head={"format": FORMAT, "weights": fingerprint(target), **asdict(config)},
        free=("trials",),
    )  # fmt: skip


def row_of(trial: Trial) -> dict[str, Any]:
    """Return a trial as a line of the file."""
    return {
        **asdict(trial), "residual": trial.residual if math.isfinite(trial.residual) else None
    }  # fmt: skip


def trial_of(row: dict[str, Any]) -> Trial:
    """Return the trial of a line. ValueError, KeyError or TypeError for another."""
    if row["residual"] is None:
        row = {**row, "residual": {"float": "inf"}}
    config = {"kind": "KKTConfig", "fields": row["config"]}
    given = {**row, "params": {"map": row["params"]}, "config": config}
    trial: Trial = decode({"kind": "Trial", "fields": given}, {}, Trial)
    if not all(map(math.isfinite, (*trial.params.values(), trial.agreement, trial.claims))):
        raise ValueError(f"numbers of trial {trial.number} are not finite")
    return trial


def _check(row: dict[str, Any]) -> dict[str, Any]:
    trial_of(row)
    return row
