"""What a page gives away: its present moment as a run without states, for a link and for code."""

from __future__ import annotations

from explorer.engine.store import Run
from explorer.engine.training import TrainState
from explorer.page.frame import Frame, Recipe
from explorer.page.session import Session
from explorer.page.words.share import ANEW, ATTACK_ANEW, WEIGHTS


def described(session: Session) -> Run:
    """Return what this page can be made again from: points, settings, seeds, steps and stage.

    Weights that nothing can make again, as the points changed while they were trained, are left
    out: the run then stands before its first step; `gap` says so.
    """
    now = session.frame
    known, state = recipe(now), now.training.state
    if known is None:
        return Run(
            now.dataset, session.train_config, attack_name=now.attack.name,
            attack_config=session.attack_config, seed=session.seed, mix=session.mix, stage="draw",
        )  # fmt: skip
    attacked = now.attack.state if now.newest and now.attack.seed is not None else None
    mix = session.mix if attacked is None else now.attack.mix
    other = None if attacked is None or now.attack.seed == known.seed else now.attack.seed
    return Run(
        now.dataset, known.config, attack_name=now.attack.name,
        attack_config=session.attack_config, seed=known.seed, mix=mix, stage=now.stage,
        steps=(_t(state), 0 if attacked is None else attacked.t), attack_seed=other,
        exact=known.exact, finish=known.finish,
    )  # fmt: skip


def recipe(now: Frame) -> Recipe | None:
    """Return how the present weights can be made again; None where they cannot."""
    known, state = now.training.recipe, now.training.state
    if state is None or known is None or known.dataset is not now.dataset:
        return None
    return known


def gap(session: Session) -> str:
    """Return what a link cannot hold of this page, as a sentence, or an empty string."""
    now = session.frame
    if now.training.state is None:
        return ""
    if recipe(now) is None:
        return WEIGHTS if now.training.given else ANEW
    loaded = now.newest and now.attack.state is not None and now.attack.seed is None
    return ATTACK_ANEW if loaded else ""


def _t(state: TrainState | None) -> int:
    return 0 if state is None else state.t
