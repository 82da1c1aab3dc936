"""What pages of a class send to the server: small JSON objects over a socket, tokens and names."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from tornado.websocket import WebSocketClosedError, WebSocketHandler

REST_S = 0.1  # between two messages of one page; arbitrary
MOST_NAME = 20  # letters of a name
TOKEN = re.compile(r"[0-9a-f]{32}")  # drawn by a page: who sends is known by it alone


def checked_name(name: str) -> str | None:
    """Return a name as it is shown, or None for one too long or with letters that do not print."""
    name = " ".join(name.split())
    return name if len(name) <= MOST_NAME and (name.isprintable() or not name) else None


def is_loopback(name: str) -> bool:
    """Return whether a host or an address is the machine itself, or a proxy on it."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


class SmallSocket(WebSocketHandler):
    """A socket that reads small JSON objects alone, and closes on anything else."""

    room: Any
    most_bytes = 8000  # of one message
    feeding = False

    def initialize(self, room: Any) -> None:  # noqa: ANN401 - of its page
        """Keep the room."""
        self.room = room

    def tell(self, words: str) -> None:
        """Send words; one that is closing, which is in the room until it has closed, is passed."""
        with suppress(WebSocketClosedError):
            sent = self.write_message(words)
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())

    def feed(self) -> None:
        """Tell what is new, once all said before is on its way: a page may sleep."""
        if not self.feeding:
            self.feeding = True
            self.task = asyncio.ensure_future(self._feed())

    async def _feed(self) -> None:
        with suppress(WebSocketClosedError):  # it comes back, and is told all
            while (words := await self.news()) is not None:
                await self.write_message(words)
        self.feeding = False

    async def news(self) -> str | None:
        """Return what it has not been told yet; None where it knows all."""
        raise NotImplementedError

    async def on_message(self, message: str | bytes) -> None:
        """Take a message, or close; the next is read after a rest."""
        try:
            found = json.loads(message) if len(message) <= self.most_bytes else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not self.take(found):
            self.close(1007, "Not as this page sends it.")
        await asyncio.sleep(REST_S)

    def take(self, found: dict[str, Any]) -> bool:
        """Do what a message says; return whether it made sense."""
        raise NotImplementedError
