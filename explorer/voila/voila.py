"""Settings for Voila, and three repairs; Voila finds this file through JUPYTER_CONFIG_PATH.

It is read by the stand-alone server and by Voila inside a Jupyter server alike. Nothing of it is
imported by the package.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from voila.app import Voila
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler

c = get_config()  # noqa: F821  (given by traitlets)

# The template that asks no host but this one.
c.VoilaConfiguration.template = "margin-explorer"

# Inside a Jupyter server the page would be told of a CDN for formulas; the app writes none.
c.VoilaConfiguration.page_config_hook = lambda config, **_: {**config, "fullMathjaxUrl": None}

# A page that closes says so and its kernel goes at once; a browser that dies says nothing, and
# its kernel goes when it has been idle and alone this long. Both numbers together, with the ten
# seconds after which a player without a browser pauses, stay under two minutes.
c.MappingKernelManager.cull_idle_timeout = 75
c.MappingKernelManager.cull_interval = 15
c.MappingKernelManager.cull_connected = False

# A kernel restarted behind the page has none of its widgets: let it go, and the page says so.
c.KernelRestarter.restart_limit = 0

# What a cell shows is read for this long after it ended, and without it the page stays blank: four
# seconds are too few where many visitors come at once.
c.NotebookClient.iopub_timeout = 60

# The ports of a kernel are chosen before it starts; where a browser's connection takes one in
# between, the kernel ends at once and its page would wait for ever. Sockets in the kernel's own
# folder cannot be taken, and nobody else on the machine can reach them. Their names are short on
# Linux alone: a name of more than 107 characters cannot be bound. Voila puts them under the
# temporary folder; a Jupyter server's are in a home, which may lie where no socket can be.
_LONGEST = 107 - len("/voila_12345678/kernel-00000000-0000-0000-0000-000000000000-ipc-5")
if sys.platform == "linux" and len(gettempdir()) <= _LONGEST:
    c.KernelManager.transport = "ipc"


def _without_nagle(handler: Any) -> None:
    """Send each frame at once: with Nagle's algorithm a live view stays under 15 frames/s."""
    if getattr(handler, "sends_at_once", False):
        return
    opened = handler.open

    async def open_(self: Any, *args: Any, **kwargs: Any) -> None:
        self.set_nodelay(True)
        await opened(self, *args, **kwargs)

    handler.open = open_
    handler.sends_at_once = True


_without_nagle(KernelWebsocketHandler)

# A closing page can send a beacon but no header, so the stock check refuses its request and the
# kernel stays for ever (voila-dashboards/voila issue 1458). The kernel's id, which the request
# must name, is a random secret of that page.
VoilaShutdownKernelHandler.check_xsrf_cookie = lambda self: None


def _with_further_pages(server: Any) -> None:
    """Serve the notebooks beside the first one too, each at voila/render/<name>.

    Voila serves one notebook at its root, or a whole folder with a listing in its place.
    """
    if getattr(server, "has_further_pages", False):
        return
    made = server.init_handlers

    def init_handlers(self: Any) -> list[Any]:
        handlers = list(made(self))
        if not self.notebook_path:
            return handlers
        first = Path(self.notebook_path)
        _, page, settings = handlers[-1]  # of the first notebook; it takes every address left
        for path in sorted(first.parent.glob("*.ipynb")):
            address = f"{self.server_url.rstrip('/')}/voila/render/{re.escape(path.name)}"
            here = {**settings, "notebook_path": os.path.relpath(path, self.root_dir)}
            handlers.insert(-1, (address, page, here))
        return handlers

    server.init_handlers = init_handlers
    server.has_further_pages = True


_with_further_pages(Voila)


def _end_with_parent() -> None:
    """Wait until the process that started us is gone, then end, and our kernels with us."""
    # Not through sys.stdin: a thread that holds its lock breaks the interpreter's shutdown.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


# Taken out at once: neither a second reading of this file nor a kernel is to see it.
if os.environ.pop("MARGIN_EXPLORER_TIED", ""):
    threading.Thread(target=_end_with_parent, daemon=True).start()
