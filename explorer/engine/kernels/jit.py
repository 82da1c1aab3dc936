"""What all compiled loops share: numba's settings, and the folder that keeps what it compiles.

The folder is named by a digest of every source that loops are made of. So all of them are compiled
anew when one file changes, constants and loops taken from other files included; numba itself looks
at the file of a loop alone. What earlier versions left is never read.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numba
from numba import types
from numba.misc import appdirs

# Sums in any order, and no branch for a division by zero, are what lets loops take whole vectors;
# nan and infinity keep their meaning.
FAST: Any = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
}
# What other loops alone call needs no way in from Python, which takes long to compile.
INNER: Any = FAST | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_CONFIG: Any = numba.config
SOURCES = ("jit.py", "steps.py", "compiled*.py")  # beside this file


@cache
def folder() -> Path:
    """Return the folder of these sources' loops.

    It lies in NUMBA_CACHE_DIR where that is set, else beside the sources, else in numba's folder of
    the user. RuntimeError where it cannot be written.
    """
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in here.glob(name)):
        digest.update(path.read_bytes())
    users: Any = appdirs.user_cache_dir  # type: ignore[attr-defined, unused-ignore]
    asked = _CONFIG.CACHE_DIR
    own = [here / "__pycache__", Path(users("numba", False))]
    for place in [Path(asked)] if asked else own:
        made = place / f"margin-explorer-{digest.hexdigest()[:16]}"
        try:
            made.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=made).close()
        except OSError:
            continue
        return made
    raise RuntimeError("no folder can be written to keep compiled loops in; set NUMBA_CACHE_DIR")


def compile_inner(loop: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's own type
    """Compile the loop for others that call it: once for all numbers, not for each constant again.

    Numba would compile it for the constant 0 even where that is but the first value of a variable.
    """
    made: Any = numba.njit(**INNER)(loop)
    template_of, plain = made.get_call_template, cast("Any", types.unliteral)

    def of_types(args: Sequence[Any], kws: dict[str, Any]) -> Any:  # noqa: ANN401
        named = {name: plain(kind) for name, kind in kws.items()}
        return template_of(tuple(plain(kind) for kind in args), named)

    made.get_call_template = of_types
    return made


def keep_compiled(loop: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's own type
    """Compile the loop when it is first called, and keep it in `folder` for all processes."""
    before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, str(folder())
    try:
        return numba.njit(cache=True, **FAST)(loop)
    finally:
        _CONFIG.CACHE_DIR = before
