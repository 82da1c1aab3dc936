"""What a grid of starts asks of the page it is on."""

from __future__ import annotations

from typing import Any, Protocol

from explorer.research.grid import Found, Key, Of


class Host(Protocol):
    """The page of a grid."""

    click: str  # what a click on a cell does

    def empty(self, count: int) -> str:
        """What to do first, for a grid of so many starts."""

    def problem(self) -> Of:
        """What is to be run now. ValueError where nothing can be."""

    def show(self, found: Found, key: Key) -> str:
        """Put the run of a cell, whose states are there, on the page. -> what is seen now."""

    def drawn(self, trails: list[Any]) -> None:
        """Take note of the runs that are known."""

    def tell(self, words: str) -> None:
        """Say what came of it."""
