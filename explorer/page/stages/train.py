"""Commands of training: begin, jump to the exact solution, certify."""

from __future__ import annotations

import torch

from explorer.engine import training
from explorer.engine.exact import Exact, maximum_margin
from explorer.engine.network import Network
from explorer.engine.status import Status
from explorer.page.frame import certified, numbers
from explorer.page.history import Timeline
from explorer.page.session import Session


def begin(session: Session, net: Network | None = None) -> None:
    """Start training at t = 0 from the session's seed, or from `net`.

    Raises:
        ValueError: with no points drawn.
    """
    dataset = session.frame.dataset
    if not dataset.n:
        raise ValueError("No points yet: click on the plane, or take a preset.")
    generator = torch.Generator().manual_seed(session.seed)
    state = training.init(dataset, session.train_config, generator, net)
    session.branch.train, session.branch.attack = Timeline(), Timeline()
    session.branch.train.append(state, numbers)
    fresh = {"certificate": None, "attacked": None, "target": None, "truth": None}
    session.show(stage="train", train=state, attack=None, scores=None, verdict=None,
                 status=Status.RUNNING, **fresh)  # fmt: skip
    certify(session)


def jump_to_exact(session: Session, exact: Exact | None = None) -> None:
    """Take the exact maximum-margin network (two layers; 1-D and 2-D), solved here or given."""
    dataset = session.frame.dataset
    exact = exact or maximum_margin(dataset.x, dataset.y)
    session.running = False
    begin(session, exact.net)
    if not exact.polished:
        session.message = exact.sentence


def certify(session: Session) -> None:
    """Compute the certificate of the present network, and show it."""
    now = session.frame
    seen = certified(now)
    if seen and now.train is not None:
        made = seen["certificate"]
        row = {"strict": made.residual_strict, "kink_aware": made.residual}
        session.branch.train.note(now.train.t, row)
    session.show(**seen)
