"""The distribution's own name for `explorer`: the same public names, and `python -m`.

from margin_explorer import preset, maximum_margin, app
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import explorer

if TYPE_CHECKING:
    from explorer import *  # noqa: F403 (every public name, for who reads types)

__version__ = explorer.__version__
__all__ = explorer.__all__


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the module's attributes have every type)
    """What `explorer` has under this name. AttributeError where it has none."""
    return getattr(explorer, name)


def __dir__() -> list[str]:
    """The public names of `explorer`."""
    return dir(explorer)
