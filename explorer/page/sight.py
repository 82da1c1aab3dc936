"""What the plane shows: it holds the points that should lie on it."""

from __future__ import annotations

import torch

from explorer.engine.data import Dataset
from explorer.page.frame import Frame
from explorer.page.session import Session
from explorer.research.pictures.axes import Axes, axes_for

WHOLE = 1.05  # times as far from the middle: so marks at the edge are whole; arbitrary


def refit(session: Session) -> None:
    """Let the plane show what stands on it as if it had just been loaded."""
    fit(session, in_view(session.frame, session.axes), loaded=True)
    session.show()


def keep_in_sight(session: Session) -> None:
    """Refit the plane where a point that should lie on it is out of sight, until `come_home`."""
    before = session.axes
    if before.holds(in_view(session.frame, before)):
        return
    refit(session)
    home, widened = session.widened or (before, before)
    session.widened = (home if widened is before else before), session.axes


def come_home(session: Session) -> None:
    """Let the plane show what it showed before `keep_in_sight`, unless it was refitted since."""
    home, widened = session.widened or (session.axes, session.axes)
    if session.axes is widened:
        session.axes = home
    session.widened = None


def in_view(frame: Frame, axes: Axes) -> Dataset:
    """Return what should lie on the plane: the drawn points, in Explain those that can be dragged.

    These stand a little farther out, so that none is cut by the frame.
    """
    drawn = frame.dataset
    if frame.stage != "explain" or frame.explain is None or frame.proof is not None:
        return drawn
    e = frame.explain.present.now
    centre = torch.from_numpy(axes.centre[: drawn.d])
    x = torch.cat([drawn.x.double(), centre + WHOLE * (e.x - centre)])
    return Dataset(x, torch.cat([drawn.y.double(), e.y]))


def fit(session: Session, dataset: Dataset, loaded: bool = False) -> None:
    """Make the plane hold all points; on a line the height gives the label until one is chosen.

    A set that was `loaded` should fill the plane; points drawn by hand do not move the axes.
    """
    flat = session.frame.dataset.d
    if dataset.d != flat:
        session.label = 0 if dataset.d == 1 else 1
    session.axes = axes_for(session.axes, dataset, loaded or dataset.d != flat)
