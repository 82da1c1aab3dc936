"""Every attack there is, by its key: those of this package, and those that other packages bring.

Each is an `Attack`, in which its module ends. A package brings one by an entry point:

    [project.entry-points."explorer.attacks"]
    sample = "sample_attack:ATTACK"

A new one of this package is a file or a folder in `explorer/engine/attacks`, and nothing else.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

from explorer.engine import attacks
from explorer.engine.attacks.attack import Attack
from explorer.engine.attacks.attack import AttackConfig as AttackConfig
from explorer.engine.attacks.attack import AttackState as AttackState
from explorer.engine.files import safe_name

GROUP = "explorer.attacks"
DEFAULT = "kkt"  # where none is named: on a fresh page, and in files that name none

AnyAttack = Attack[Any, Any, Any]  # which targets, settings and states it takes, its row says
AnyTarget = Any  # a `Target`, or weights of an attack's own training
AnyConfig = Any  # settings of an attack


class Roster(MutableMapping[str, AnyAttack]):
    """The attacks by key, in the order of the page. They are looked up when it is first read.

    One that is put in stays until the process ends: a way to try an attack in a notebook.

    Example:
        >>> from explorer import ROSTER
        >>> list(ROSTER)[0], ROSTER["kkt"].title
        ('kkt', 'KKT reconstruction')
    """

    def __init__(self) -> None:
        self._rows: dict[str, AnyAttack] = {}
        self._reading = threading.RLock()

    def __getitem__(self, key: str) -> AnyAttack:
        return self._loaded_rows()[key]

    def __setitem__(self, key: str, made: AnyAttack) -> None:
        if key != made.key:
            raise ValueError(f"the attack {made.key!r} stands at its own key; got {key!r}")
        self._loaded_rows()[key] = made

    def __delitem__(self, key: str) -> None:
        del self._loaded_rows()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded_rows())

    def __len__(self) -> int:
        return len(self._loaded_rows())

    def _loaded_rows(self) -> dict[str, AnyAttack]:
        with self._reading:
            if not self._rows:
                self._rows = {made.key: made for made in _built_in()}
                for point in sorted(entry_points(group=GROUP)):
                    self._take(point)
                self._rows = dict(sorted(self._rows.items(), key=lambda row: row[1].place))
        return self._rows

    def _take(self, point: EntryPoint) -> None:
        """Add the attack of another package, or warn in a sentence why it is left out."""
        try:
            made = point.load()
            if not isinstance(made, Attack):
                raise TypeError(f"expected an Attack; got a {type(made).__name__}")
            if made.key in self._rows:
                raise ValueError(f"there is an attack {made.key!r} already")
        except KeyboardInterrupt:  # a hand that stops the program
            raise
        except BaseException as error:  # an `exit()` of it must not end every verb
            told = str(error) if isinstance(error, Exception) else ""
            what = told or f"it raises {type(error).__name__}"
            warnings.warn(
                f"The attack {point.name!r} of {point.value!r} is left out: {what}. Mend or "
                "uninstall its package.",
                stacklevel=2,
            )
            return
        self._rows[made.key] = made


def _built_in() -> list[AnyAttack]:
    """Return the attacks of this package: the `ATTACK` of each module in the folder of attacks."""
    names = [f"{attacks.__name__}.{m.name}" for m in iter_modules(attacks.__path__)]
    rows = [vars(import_module(name)).get("ATTACK") for name in names]
    return [row for row in rows if row is not None]


ROSTER = Roster()


def by_key(key: str) -> AnyAttack:
    """Return the attack of a key.

    Args:
        key: a key of `ROSTER`, such as "kkt".

    Returns:
        The attack; see `Attack`.

    Raises:
        ValueError: where there is none; the message lists the keys.

    Example:
        >>> from explorer import by_key
        >>> by_key("kkt").paper
        'Haim et al. 2022'
    """
    if key not in ROSTER:
        raise ValueError(f"no attack {safe_name(repr(key))}; there are: {', '.join(ROSTER)}")
    return ROSTER[key]
