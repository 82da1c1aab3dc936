"""The processes of a server."""

from __future__ import annotations

import psutil


def kernels_of(server: int) -> list[psutil.Process]:
    """Return the kernels: children of the server, or of the warm process that it forks from."""
    children = psutil.Process(server).children()
    warm = [child for child in children if "explorer.serve.warm" in child.cmdline()]
    forked = [kernel for process in warm for kernel in process.children()]
    return [*(child for child in children if child not in warm), *forked]
