"""Settings for Voila, and its repairs; Voila finds this file through JUPYTER_CONFIG_PATH.

The stand-alone server reads it, and so does Voila inside a Jupyter server. The package imports
nothing of it.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64encode
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType
from typing import Any

import voila.app
import voila.server_extension
from jupyter_server.auth.logout import LogoutHandler
from jupyter_server.base.handlers import JupyterHandler
from tornado.httpserver import HTTPServer
from tornado.web import Application
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.static_file_handler import TemplateStaticFileHandler
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

from explorer.serve import TEACHER, hall, warm
from explorer.serve.network import Door
from explorer.serve.sockets import is_loopback

c = get_config()  # noqa: F821  (given by traitlets)


def _load(name: str) -> ModuleType:
    """Return a file beside this one.

    This folder must not be searched: voila.py would hide Voila.
    """
    key = f"margin_explorer_{name}"
    if key not in sys.modules:
        spec = spec_from_file_location(key, Path(__file__).with_name(f"{name}.py"))
        sys.modules[key] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


guard, fork, room = _load("guard"), _load("fork"), _load("room")
classroom, listener, story = _load("classroom"), _load("listener"), _load("story")

# Our own server forks its kernels; a Jupyter server, and any other's, starts them as ever.
if warm.current is not None:
    fork.register()
    c.KernelProvisionerFactory.default_provisioner_name = fork.NAME

# The template that asks no host but this one, whatever a query says. Of themes a query may choose
# light or dark: guard.py forgets any other.
c.VoilaConfiguration.template = "margin-explorer"
c.VoilaConfiguration.allow_template_override = "NO"
c.VoilaConfiguration.allow_theme_override = "YES"

# What pages show while their kernel starts: their look; and on the first one the plane's own code.
_PACKAGE = Path(__file__).resolve().parents[2]
_OPENING = Path(__file__).parent / "nbconvert" / "templates" / "margin-explorer" / "opening.js"
_VIEW = _PACKAGE / "page" / "view"
_PLAYER = _PACKAGE / "page" / "recording" / "player.js"
_SCRIPTS = (_VIEW / "dom.js", _VIEW / "base.js", _VIEW / "plane.js", _PLAYER, _OPENING)
_TEACHER = os.environ.pop(TEACHER, "")  # the key, not for kernels to read
c.VoilaConfiguration.resources = {
    "opening": {
        "css": (_PACKAGE / "page.css").read_text(encoding="utf-8"),
        "dom": (_VIEW / "dom.js").read_text(encoding="utf-8"),
        "digits": b64encode(
            _OPENING.with_name("static").joinpath("digits.png").read_bytes()
        ).decode(),
        "script": "\n".join(path.read_text(encoding="utf-8") for path in _SCRIPTS),
    },
    "classroom": _TEACHER and _OPENING.with_name("classroom.js").read_text(encoding="utf-8"),
}

# What fails shows no path of this machine: neither in a cell nor, later, on the page's socket.
c.VoilaConfiguration.show_tracebacks = False
c.VoilaConfiguration.strip_sources = True
c.VoilaExecutor.cell_error_instruction = "The server's log says why."
c.MappingKernelManager.allow_tracebacks = False
c.MappingKernelManager.traceback_replacement_message = "The server's log says why."

# Sockets that read nothing but well-formed messages, in either server.
c.Voila.kernel_websocket_connection_class = guard.CheckedConnection
c.ServerApp.kernel_websocket_connection_class = guard.CheckedConnection

# Pages with our headers and plain errors, in either server.
for _server in (voila.app, voila.server_extension):
    _server.TornadoVoilaHandler = guard.GuardedPage
    _server.TornadoVoilaTreeHandler = guard.GuardedTree

# At most so many kernels as the operator says, and none that its page never met.
c.VoilaConfiguration.multi_kernel_manager_class = room.Room

# A page that closes says so and its kernel goes at once; a browser that dies says nothing, and
# its kernel goes when it has been idle and alone this long. Both numbers together, with the ten
# seconds after which a player without a browser pauses, stay under two minutes.
c.MappingKernelManager.cull_idle_timeout = 75
c.MappingKernelManager.cull_interval = 15
c.MappingKernelManager.cull_connected = False
c.MappingKernelManager.cull_busy = True  # also while it works: nobody is there to see it end

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


# A closing page can send a beacon but no header, so the stock check refuses its request and the
# kernel stays for ever (voila-dashboards/voila issue 1458). The kernel's id, which the request
# must name, is a random secret of that page.
VoilaShutdownKernelHandler.check_xsrf_cookie = lambda self: None


def _guard(server: Any) -> None:
    """Put our rules before Voila's, in the stand-alone server.

    Also serve the notebooks beside the first one, each at voila/render/<name>: Voila serves one
    notebook at its root, or a whole folder with a listing in its place.
    """
    if getattr(server, "is_guarded", False):
        return
    made = server.init_handlers

    def init_handlers(self: Any) -> list[Any]:
        rooms = self.kernel_manager
        HTTPServer.configure(listener.Listener, places=rooms.most, one_address=rooms.behind_proxy)
        self.app.add_transform(guard.Headers)
        JupyterHandler.write_error = guard.say_plainly  # the stock one fails without its files
        # A page names a folder of this machine only where `serve` says that its user visits.
        os.environ.setdefault("MARGIN_EXPLORER_FOLDERS", "0")
        named = os.environ.pop("MARGIN_EXPLORER_HOSTS", "").split(",")
        here = guard.OtherHost(self.ip, named)
        base = f"{self.server_url.rstrip('/')}/"
        sign = os.environ.get("MARGIN_EXPLORER_CLASS", "")
        network = os.environ.get("MARGIN_EXPLORER_NETWORK", "")
        own = (re.escape(base), _TEACHER, sign, rooms, network)
        halls = hall.Hall(rooms, base, network)
        if is_loopback(self.ip) and not any(named) and not rooms.behind_proxy:
            halls.door = Door(lambda address: _phones_alone(halls, address), self.port)
        our_pages = classroom.handlers(*own, halls) if _TEACHER else []
        our_pages += hall.handlers(re.escape(base), halls)
        our_pages.append((f"{re.escape(base)}story/?", story.Story))
        pages = _further_pages(self, _repair(made(self)))
        return [(here, guard.WrongHost), (guard.NoFile(), guard.Nothing), *our_pages, *pages]

    server.init_handlers = init_handlers
    server.is_guarded = True


def _phones_alone(halls: hall.Hall, address: str) -> HTTPServer:
    """Return a server for one address of this machine that knows the phones' page alone."""
    here = (guard.OtherHost(address, ()), guard.WrongHost)
    application = Application(
        [here, *hall.phone_handlers("/", halls)],
        default_handler_class=guard.Nothing, log_function=lambda _: None,
    )  # fmt: skip
    application.add_transform(guard.Headers)
    return HTTPServer(application)  # a Listener, as is the server's own


def _repair(handlers: list[Any]) -> list[Any]:
    """Return Voila's handlers with ours in the place of three."""
    ours = {
        TemplateStaticFileHandler: guard.TemplateFiles,
        LogoutHandler: guard.Nothing,  # nobody logs in
        VoilaKernelWebsocketHandler: guard.PageSocket,
    }
    return [(address, ours.get(handler, handler), *rest) for address, handler, *rest in handlers]


def _further_pages(server: Any, handlers: list[Any]) -> list[Any]:
    """Return the handlers, and before the last one those of the notebooks beside the first."""
    if not server.notebook_path:
        return handlers
    first = Path(server.notebook_path)
    _, page, settings = handlers[-1]  # of the first notebook; it takes every address left
    for path in sorted(first.parent.glob("*.ipynb")):
        address = f"{server.server_url.rstrip('/')}/voila/render/{re.escape(path.name)}"
        here = {**settings, "notebook_path": os.path.relpath(path, server.root_dir)}
        handlers.insert(-1, (address, page, here))
    return handlers


_guard(voila.app.Voila)
