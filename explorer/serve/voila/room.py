"""How many visitors have a kernel, and which kernels nobody wants any more.

voila.py loads this file by its path and names its kernel manager to Voila.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import zmq
from jupyter_server._tz import utcnow
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.ioloop import PeriodicCallback
from traitlets import Float, Int, default

from explorer.serve import limits

LOOK_MS = 1000


@dataclass(eq=False)
class Visit:
    """One opened page: where from, its kernel once there is one, and when it was last heard of."""

    address: str
    kernel: str = ""
    opening: bool = True
    met: bool = False  # a socket of the page was open once
    heard: float = field(default_factory=time.monotonic)


VISIT: ContextVar[Visit | None] = ContextVar("VISIT", default=None)


class Room(AsyncMappingKernelManager):
    """Kernels of visitors: at most so many, and none that its page never asked for."""

    most = Int(config=True, help="How many visitors may have a kernel.")
    most_each = Int(0, config=True, help="How many of them from one address; 0: no limit.")
    unmet_s = Float(10.0, config=True, help="Seconds after which a kernel that no page met ends.")

    def __init__(self, **kwargs: Any) -> None:
        """Begin to look for kernels that nobody met."""
        super().__init__(**kwargs)
        self.context.set(zmq.MAX_SOCKETS, 0xFFFF)  # its most; the stock 1023 are a hundred pages
        self._here: list[Visit] = []
        self._looking = PeriodicCallback(self._end_unmet, LOOK_MS)

    @default("most")
    def _as_many_as_it_bears(self) -> int:
        return limits.places()

    def full(self, address: str) -> str:
        """Return a sentence on why a visitor from there must wait, or an empty string."""
        self._here = [visit for visit in self._here if visit.opening or visit.kernel in self]
        if len(self._here) >= self.most:
            return f"All {self.most} places are taken."
        if self.most_each and not _loopback(address):
            own = sum(visit.address == address for visit in self._here)
            if own >= self.most_each:
                return f"Your address has {own} pages open, as many as it may. Close one of them."
        return ""

    @contextlib.contextmanager
    def visit(self, address: str) -> Iterator[None]:
        """Hold a place while a page is made; then it is the kernel's."""
        visit = Visit(address)
        self._here.append(visit)
        VISIT.set(visit)
        try:
            yield
        finally:
            visit.opening = False
            visit.heard = time.monotonic()  # from now on the page can ask

    async def _async_start_kernel(self, **kwargs: Any) -> str:  # type: ignore[override]
        """Start the kernel of the visit that is being opened."""
        kernel = await super()._async_start_kernel(**kwargs)
        visit = VISIT.get()
        if visit is not None:
            visit.kernel = kernel
        if not self._looking.is_running():
            self._looking.start()
        return kernel

    start_kernel = _async_start_kernel

    def _of(self, kernel: str) -> Iterator[Visit]:
        """The visit of a kernel, if it has one."""
        return (visit for visit in self._here if visit.kernel == kernel)

    def kernel_model(self, kernel_id: str) -> dict[str, Any]:
        """Tell of a kernel; its page asks now and then, also while it still loads."""
        for visit in self._of(kernel_id):
            visit.heard = time.monotonic()
        return super().kernel_model(kernel_id)

    def notify_connect(self, kernel_id: str) -> None:
        """Note that the page is there."""
        super().notify_connect(kernel_id)
        for visit in self._of(kernel_id):
            visit.met = True

    async def _end_unmet(self) -> None:
        """End the kernels whose page was made, and never came."""
        late = time.monotonic() - self.unmet_s
        left = [v.kernel for v in self._here if not v.opening and not v.met and v.heard < late]
        for kernel in left:
            if kernel in self:
                with contextlib.suppress(Exception):  # it may be gone by now
                    await self.shutdown_kernel(kernel, now=True)

    def start_watching_activity(self, kernel_id: str) -> None:
        """Watch whether a kernel works, which its status tells; nothing else is received for it."""
        super().start_watching_activity(kernel_id)
        kernel = self._kernels[kernel_id]
        stream = kernel._activity_stream
        stream.socket.unsubscribe(b"")
        stream.socket.subscribe(b"kernel.")
        stream.on_recv(lambda message: self._note_status(kernel, message))

    def _note_status(self, kernel: Any, message: list[bytes]) -> None:
        """Note what a kernel does and when: as Jupyter does, without reading dates and contents."""
        _, (_, header, parent, _, content, *_) = kernel.session.feed_identities(message)
        if kernel.session.unpack(header)["msg_type"] != "status":
            return
        asked = self.track_message_type(kernel.session.unpack(parent).get("msg_type"))
        if asked or kernel.execution_state == "busy":
            self.last_kernel_activity = kernel.last_activity = utcnow()
        state = kernel.session.unpack(content)["execution_state"]
        if asked:
            kernel.execution_state = state
        elif kernel.execution_state == "starting" != state:
            kernel.execution_state = "idle"


def _loopback(address: str) -> bool:
    """Return whether this is the machine itself, or a proxy on it: many come from there."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
