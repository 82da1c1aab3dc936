"""The server that tests of different sides share, as a start takes some seconds of a processor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer.serve import server as serve

TELLS = """
import builtins, os, random, sys
import ipywidgets, numpy, torch
print('forked:', b'explorer.serve.warm' in open('/proc/self/cmdline', 'rb').read())
print('numbers:', random.random(), numpy.random.rand(), torch.rand(1).item())
print('seen:', (getattr(builtins, 'left_here', None), os.environ.get('LEFT_HERE')))
builtins.left_here = os.environ['LEFT_HERE'] = 'mine'
print('threads:', torch.get_num_threads())
"""
CELLS = (TELLS, "ipywidgets.Button(description='Hello')")


@pytest.fixture(scope="package")
def plain_server() -> Iterator[serve.Server]:
    """A server as it starts by itself, with a page that tells of its kernel."""
    with serve.start(port=0, cells=CELLS) as running:
        yield running
