"""A socket for small JSON objects, as the pages of a class hold it to the server."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from tornado.websocket import WebSocketClosedError, WebSocketHandler

REST_S = 0.1  # between two messages of one page; arbitrary


class SmallSocket(WebSocketHandler):
    """A socket that reads small JSON objects alone, and closes on anything else."""

    room: Any
    most_bytes = 8000  # of one message

    def initialize(self, room: Any) -> None:  # noqa: ANN401 - of its page
        """Keep the room."""
        self.room = room

    def tell(self, words: str) -> None:
        """Send words; one that is closing, which is in the room until it has closed, is passed."""
        with suppress(WebSocketClosedError):
            sent = self.write_message(words)
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())

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
