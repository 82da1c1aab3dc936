"""How many connections the server takes, and how much it reads of what nobody asked for.

voila.py loads this file by its path.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from explorer.serve.limits import FILES_OF_A_KERNEL, RESERVE, files

MOST_CONNECTIONS = 2000  # arbitrary; a browser holds up to eight
OF_A_PLACE = 20  # arbitrary: with those of a page that is opened again
MOST_BODY = 64_000  # bytes; a phone's taps alone are read, 2 kB of them (hall.py)
MOST_BUFFER = 12_000_000  # bytes that wait to be read; a message of a socket has 10 MB at most
MOST_UNREAD = 32_000_000  # bytes that a visitor has not read yet; arbitrary
IDLE_S = 60.0  # until a connection that asks nothing is closed; arbitrary
BODY_S = 20.0  # for a body to arrive; arbitrary


def most_connections(places: int) -> int:
    """Return how many connections there may be, so that files are left for so many kernels."""
    left = files() - RESERVE - FILES_OF_A_KERNEL * places
    return max(min(left, max(MOST_CONNECTIONS, OF_A_PLACE * places)), files() // 4)


class Listener(HTTPServer):
    """Takes so many connections in all, and half of them from one address.

    A second one of this process, for phones, counts with the first.

    One more is closed unread: where a process has no file left, none can be accepted, and the
    server would be told of it without end.
    """

    streams: ClassVar[dict[IOStream, str]] = {}  # of all listeners: with their addresses

    def initialize(self, *args: Any, places: int = 0, one_address: bool = False, **kw: Any) -> None:
        """Take the numbers. `one_address`: all come through a proxy, so from its address."""
        super().initialize(
            *args, **kw, max_body_size=MOST_BODY, max_buffer_size=MOST_BUFFER,
            idle_connection_timeout=IDLE_S, body_timeout=BODY_S,
        )  # fmt: skip
        self.most = most_connections(places)
        self.most_each = self.most if one_address else self.most // 2

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a connection, or close it."""
        for gone in [each for each in self.streams if each.closed()]:
            del self.streams[gone]
        own = Counter(self.streams.values())[address[0]]
        if len(self.streams) >= self.most or own >= self.most_each:
            stream.close()
            return
        self.streams[stream] = address[0]
        stream.max_write_buffer_size = MOST_UNREAD
        super().handle_stream(stream, address)
