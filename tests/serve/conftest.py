"""The server that tests of different sides share, as a start takes some seconds of a processor."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from explorer.serve import server as serve

# Looked for and not imported: a worker that runs none of these tests needs a second less.
collect_ignore_glob = [] if find_spec("voila") and find_spec("websocket") else ["test_*.py"]
# Each print is of one string: a stream may be cut between two arguments, and the page then
# shows them apart.
FORKED = (
    "forked = b'explorer.serve.warm' in open('/proc/self/cmdline', 'rb').read()\n"
    "print(f'forked: {forked}')"
)
TELLS = f"""
import builtins, os, random, sys
import ipywidgets, numpy, torch
{FORKED}
print(f'numbers: {{random.random()}} {{numpy.random.rand()}} {{torch.rand(1).item()}}')
print('seen: ' + str((getattr(builtins, 'left_here', None), os.environ.get('LEFT_HERE'))))
builtins.left_here = os.environ['LEFT_HERE'] = 'mine'
print(f'threads: {{torch.get_num_threads()}}')
"""
FOLDERS = f"import os; print('folders: ' + str(os.environ.get('{serve.FOLDERS}')))"
# A picture is sent to the page as a buffer beside the message: the older layout, in bytes.
IMAGE = ("import ipywidgets", "ipywidgets.Image(value=b'GIF89a' + bytes(1000))")
CELLS = (TELLS, FOLDERS, *IMAGE, "ipywidgets.Button(description='Hello')")


@pytest.fixture(scope="package", autouse=True)
def own_environment() -> Iterator[None]:
    """What the user of this machine says of folders is not told to these servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(serve.FOLDERS, raising=False)
        yield


@pytest.fixture(scope="package")
def plain_server(own_environment: None) -> Iterator[serve.Server]:
    """A server as it starts by itself, with a page that tells of its kernel."""
    with serve.start(port=0, cells=CELLS) as running:
        yield running


BUTTON = ("import ipywidgets", "ipywidgets.Button(description='Hello')")
# A page with a picture of a megabyte, whose kernel works for ten minutes when it is told to.
WORKS = (
    *BUTTON,
    "import ipykernel.comm, time, comm",
    "ipywidgets.Image(value=bytes(10**6))",
    "comm.get_comm_manager().register_target('work', lambda *_: time.sleep(600))",
)
CULL_AFTER_S, CULL_EVERY_S = 3, 1


@pytest.fixture(scope="package")
def server() -> Iterator[serve.Server]:
    """A server that soon ends kernels without a page."""
    with serve.start(
        port=0, cells=WORKS, cull_after_s=CULL_AFTER_S, cull_every_s=CULL_EVERY_S
    ) as running:
        yield running
