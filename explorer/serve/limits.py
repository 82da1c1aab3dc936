"""How many files this process may open, and for how many visitors they and the memory suffice."""

from __future__ import annotations

from contextlib import suppress

MOST_FILES = 65536  # arbitrary
RESERVE = 150  # files of the server itself; some 60 were counted
FILES_OF_A_KERNEL = 25  # 18 to 25 were counted
FILES_OF_A_PAGE = 10  # connections of one browser
MEMORY_OF_A_KERNEL = 2**29  # bytes; what docs/serve.md plans where kernels cannot be forked
LEAST_PLACES = 2  # a page that is opened again has two for a moment


def raise_files() -> None:
    """Allow this process as many open files as it may allow itself."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def files() -> int:
    """Return how many files this process may open."""
    try:
        import resource
    except ImportError:
        return MOST_FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def places() -> int:
    """Return for how many visitors memory and files suffice."""
    import psutil

    by_memory = psutil.virtual_memory().total // MEMORY_OF_A_KERNEL
    by_files = (files() - RESERVE) // (FILES_OF_A_KERNEL + FILES_OF_A_PAGE)
    return max(LEAST_PLACES, min(by_memory, by_files))
