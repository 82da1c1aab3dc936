"""This machine on its network: its address there, and a door for phones alone.

The door is a second listening socket, for a server that else listens on this machine only. It knows
two addresses, the phones' page and where taps go: no page with a kernel, no socket, no file.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any


def address_on_network() -> str:
    """Return this machine's address on its network, or "" where it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # of RFC 5737: nobody's; the system only chooses a route
        return str(probe.getsockname()[0])
    return ""


class Door:
    """Shut until a teacher opens it; then open until the server ends.

    Attributes:
        url: where phones find it, ending in a slash; "" while it is shut.
    """

    def __init__(self, serve: Callable[[str], Any], port: int) -> None:
        """Take what makes a server (tornado's) for an address, and the port wanted for it."""
        self._serve, self._port, self.url = serve, port, ""

    def can_open(self) -> bool:
        """Return whether it is shut, and there is a network to open it to."""
        return not self.url and bool(address_on_network())

    def open(self) -> None:
        """Listen on the network, at the wanted port or another; stay shut where nothing may."""
        from tornado.netutil import bind_sockets  # the command line does without tornado

        address = address_on_network()
        for port in (self._port, 0) if self.can_open() else ():
            with contextlib.suppress(OSError):
                sockets = bind_sockets(port, address, socket.AF_INET)
                self._serve(address).add_sockets(sockets)
                self.url = f"http://{address}:{sockets[0].getsockname()[1]}/"
                return
