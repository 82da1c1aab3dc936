"""Commands of the arena: draw the claims of one of its runs on the plane."""

from __future__ import annotations

from explorer.page.frame import Shown
from explorer.page.session import Session


def show_claims(session: Session, shown: Shown) -> None:
    """Draw claims on the plane, with their sentence on top of the page."""
    session.show(arena=shown)
