"""How many visitors have a kernel, and which kernels nobody wants any more.

voila.py loads this file by its path and names its kernel manager to Voila.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import zmq
from jupyter_server._tz import utcnow
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.ioloop import PeriodicCallback
from traitlets import Bool, Float, Int, default

from explorer.serve import limits
from explorer.serve.sockets import is_loopback

LOOK_MS = 1000
MOST_SOCKETS = 8  # of the page of one kernel, which has one; arbitrary
MOST_WAITING = 24_000_000  # bytes on the way to one kernel: two messages; arbitrary
MOST_MESSAGES = 5000  # likewise; arbitrary
PACE = 500.0  # messages a second for one kernel; arbitrary, a page that plays sends under 100
BYTES_A_SECOND = 10_000_000.0  # likewise
BURST_S = 1.0  # so much at once is within the pace
MOST_KEPT = 10_000_000  # bytes for a page whose connection is lost; arbitrary
WAITS_S = 15.0  # three times of who asks again by themselves; then they are taken to have left


@dataclass(eq=False)
class Visit:
    """One opened page: where from, its kernel once there is one, and when it was last heard of."""

    address: str
    kernel: str = ""
    opening: bool = True
    met: bool = False  # a socket of the page was open once
    heard: float = field(default_factory=time.monotonic)


class Traffic:
    """What pages send to one kernel: how fast, and how much of it the kernel has not begun with."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.sockets: set[Any] = set()
        self.waiting: dict[str, int] = {}
        self.bytes = 0  # of all that waits
        self.paid = 0.0  # the time up to which all that came is within the pace

    def comes(self, socket: Any) -> bool:
        """Count a socket; return whether there may be one more."""
        if len(self.sockets) < MOST_SOCKETS:
            self.sockets.add(socket)
        return socket in self.sockets

    def goes(self, socket: Any) -> None:
        """Count it no more."""
        self.sockets.discard(socket)

    def takes(self, name: str, size: int) -> bool:
        """Note a message that is sent on; return whether it is not too much."""
        if self.bytes + size > MOST_WAITING or len(self.waiting) >= MOST_MESSAGES:
            return False
        self.waiting[name] = self.waiting.get(name, 0) + size
        self.bytes += size
        return True

    def begins(self, name: str) -> None:
        """Note that the kernel has begun with it."""
        self.bytes -= self.waiting.pop(name, 0)

    def rest(self, size: int) -> float:
        """Return the seconds until the next message may be read."""
        now = time.monotonic()
        self.paid = max(self.paid, now - BURST_S) + max(1 / PACE, size / BYTES_A_SECOND)
        return self.paid - now


VISIT: ContextVar[Visit | None] = ContextVar("VISIT", default=None)


class Buffer(list[Any]):
    """Messages up to so many bytes; further ones are lost."""

    bytes = 0

    def append(self, item: tuple[str, list[bytes]]) -> None:
        """Keep one, if there is room."""
        self.bytes += sum(len(part) for part in item[1])
        if self.bytes <= MOST_KEPT:
            super().append(item)


class Room(AsyncMappingKernelManager):
    """Kernels of visitors: at most so many, and none that its page never asked for."""

    most = Int(config=True, help="How many visitors may have a kernel.")
    most_each = Int(0, config=True, help="How many of them from one address; 0: no limit.")
    behind_proxy = Bool(False, config=True, help="Believe X-Forwarded-For, its last address.")
    unmet_s = Float(10.0, config=True, help="Seconds after which a kernel that no page met ends.")

    def __init__(self, **kwargs: Any) -> None:
        """Begin to look for kernels that nobody met."""
        super().__init__(**kwargs)
        self.context.set(zmq.MAX_SOCKETS, 0xFFFF)  # its most; the stock 1023 are a hundred pages
        self._here: list[Visit] = []
        self._wait: dict[str, tuple[float, float]] = {}  # since when, and when last asked
        self._looking = PeriodicCallback(self._end_unmet, LOOK_MS)

    @default("most")
    def _as_many_as_it_bears(self) -> int:
        return limits.places()

    def address_of(self, request: Any) -> str:
        """Return where a visitor comes from; a proxy's word is taken where the operator says so."""
        named = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return named if self.behind_proxy and named else request.remote_ip

    def full(self, address: str) -> str:
        """Return a sentence on why a visitor from there must wait, or an empty string.

        Of addresses that wait, the one with the fewest places comes first, then who waits longest.
        """
        now = time.monotonic()
        self._here = [visit for visit in self._here if visit.opening or visit.kernel in self]
        self._wait = {a: (t, last) for a, (t, last) in self._wait.items() if last > now - WAITS_S}
        own = Counter(visit.address for visit in self._here)
        if self.most_each and own[address] >= self.most_each and not is_loopback(address):
            taken = own[address]
            return f"Your address has {taken} pages open, as many as it may. Close one of them."
        since, _ = self._wait.pop(address, (now, now))
        before = sum((own[a], t) < (own[address], since) for a, (t, _) in self._wait.items())
        free = self.most - len(self._here)
        if free > before:
            return ""
        self._wait[address] = since, now
        if free > 0:
            return "The free places are for others, who have fewer or wait longer."
        return f"All {self.most} places are taken."

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
        """Return the visit of a kernel, if it has one."""
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

    def start_buffering(self, kernel_id: str, session_key: str, channels: Any) -> None:
        """Keep what a kernel says while its page is away: not all."""
        super().start_buffering(kernel_id, session_key, channels)
        self._kernel_buffers[kernel_id]["buffer"] = Buffer()

    def start_watching_activity(self, kernel_id: str) -> None:
        """Watch whether a kernel works, which its status tells; nothing else is received for it."""
        super().start_watching_activity(kernel_id)
        kernel = self._kernels[kernel_id]
        kernel.traffic = Traffic()
        stream = kernel._activity_stream
        stream.socket.unsubscribe(b"")
        stream.socket.subscribe(b"kernel.")
        stream.on_recv(lambda message: self._note_status(kernel, message))

    def _note_status(self, kernel: Any, message: list[bytes]) -> None:
        """Note what a kernel does and when: as Jupyter does, without reading dates and contents."""
        _, (_, header, parent, _, content, *_) = kernel.session.feed_identities(message)
        if kernel.session.unpack(header)["msg_type"] != "status":
            return
        began = kernel.session.unpack(parent)
        kernel.traffic.begins(began.get("msg_id", ""))
        asked = self.track_message_type(began.get("msg_type"))
        if asked or kernel.execution_state == "busy":
            self.last_kernel_activity = kernel.last_activity = utcnow()
        state = kernel.session.unpack(content)["execution_state"]
        if asked:
            kernel.execution_state = state
        elif kernel.execution_state == "starting" != state:
            kernel.execution_state = "idle"
