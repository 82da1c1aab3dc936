"""Values out of a pickle without an unpickler: a pickle is a program, and none is run here.

`Pickle` understands the instructions that build containers, numbers and words. What the file names
is never looked up: a subclass says what the few calls and references that it knows stand for. So
neither time nor memory can exceed what the file itself has room for.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from explorer.engine.files import FileError, safe_name

MOST_STEPS = 200_000  # arbitrary: instructions; a layer of a state_dict takes about 60
Values = list[Any]


@dataclass(frozen=True)
class Name:
    """Something that the file names, as "module.name"."""

    words: str


class _Mark:
    """Where a group of values begins on the stack."""


class Pickle:
    """Reads pickles of one kind.

    Attributes:
        kind: the error of whoever reads.
        remedy: what it advises.
    """

    kind: type[FileError] = FileError
    remedy = "Write the file again."

    def call(self, name: str, given: tuple[Any, ...]) -> object:
        """Return what the call of `name` with `given` stands for; else `refuse` it."""
        self.refuse(name)

    def reference(self, given: object) -> object:
        """Return what a reference to something outside of the pickle stands for."""
        self.refuse("a reference to something outside")

    def build(self, held: object, state: object) -> object:
        """Return `held` once it was given a state; most have none that matters."""
        return held

    def refuse(self, what: object) -> NoReturn:
        """Say that the file holds something that is not read."""
        raise self.kind(
            f"the file holds {safe_name(what)}, and code in files is never run. {self.remedy}"
        )

    def refuse_damage(self, why: str) -> NoReturn:
        """Say that the instructions make no sense."""
        raise self.kind(f"the file is damaged: {why}. {self.remedy}")

    def value(self, stream: io.BytesIO) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value of the pickle that begins here. FileError for anything else."""
        stack, memo = Values(), dict[int, Any]()
        for count, step in enumerate(pickletools.genops(stream)):
            code, arg = step[0], cast(Any, step[1])
            if count > MOST_STEPS:
                self.refuse_damage(f"more than {MOST_STEPS} instructions")
            if code.name == "STOP":
                return self._pop(stack, 1)[0]
            if code.name in _CONSTANTS:
                stack.append(_CONSTANTS[code.name]())
            elif code.name in _GIVEN:
                stack.append(arg)
            elif code.name in _BYTES:
                stack.append(arg if isinstance(arg, bytes) else arg.encode("latin-1"))
            elif code.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
                memo[len(memo) if arg is None else arg] = stack[-1]
            elif code.name in ("BINGET", "LONG_BINGET"):
                stack.append(memo[arg])
            elif code.name == "GLOBAL":
                stack.append(Name(arg.replace(" ", ".", 1)))
            elif code.name in _STEPS:
                _STEPS[code.name](self, stack)
            elif code.name not in ("PROTO", "FRAME"):
                self.refuse(f"the instruction {code.name}")
        self.refuse_damage("it has no end")

    def _pop(self, stack: Values, count: int) -> Values:
        """Return the `count` values on top."""
        taken = stack[-count:]
        if len(taken) < count or any(isinstance(value, _Mark) for value in taken):
            self.refuse_damage("a value is missing")
        del stack[-count:]
        return taken

    def _group(self, stack: Values) -> Values:
        """Return what was put on the stack since the last mark."""
        taken = Values()
        while stack and not isinstance(stack[-1], _Mark):
            taken.append(stack.pop())
        if not stack:
            self.refuse_damage("a group without a beginning")
        stack.pop()
        return taken[::-1]

    def _set(self, stack: Values, pairs: Values) -> None:
        """Put pairs into the table on top. Keys are plain: a nest of tuples takes ages to hash."""
        table = stack[-1]
        if not isinstance(table, dict) or len(pairs) % 2:
            self.refuse_damage("names without values")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str | bytes | int):
                self.refuse_damage(f"a {type(key).__name__} in place of a name")
            table[key] = value

    def _append(self, stack: Values, values: Values) -> None:
        if not isinstance(stack[-1], list):
            self.refuse_damage("values without a list")
        stack[-1].extend(values)

    def _call(self, stack: Values) -> None:
        what, given = self._pop(stack, 2)
        if not isinstance(what, Name) or not isinstance(given, tuple):
            self.refuse_damage("a call of nothing")
        stack.append(self.call(what.words, given))

    def _refer(self, stack: Values) -> None:
        stack.append(self.reference(self._pop(stack, 1)[0]))

    def _build(self, stack: Values) -> None:
        held, state = self._pop(stack, 2)
        stack.append(self.build(held, state))

    def _name(self, stack: Values) -> None:
        stack.append(Name(".".join(map(str, self._pop(stack, 2)))))


def _tuple(count: int) -> Callable[[Pickle, Values], None]:
    return lambda pickle, stack: stack.append(tuple(pickle._pop(stack, count)))


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "MARK": _Mark, "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple,
}  # fmt: skip
_GIVEN = (
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8",
)  # fmt: skip
_BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINSTRING", "SHORT_BINSTRING")
_STEPS: dict[str, Callable[[Pickle, Values], None]] = {
    "TUPLE": lambda pickle, stack: stack.append(tuple(pickle._group(stack))),
    "TUPLE1": _tuple(1), "TUPLE2": _tuple(2), "TUPLE3": _tuple(3),
    "SETITEM": lambda pickle, stack: pickle._set(stack, pickle._pop(stack, 2)),
    "SETITEMS": lambda pickle, stack: pickle._set(stack, pickle._group(stack)),
    "APPEND": lambda pickle, stack: pickle._append(stack, pickle._pop(stack, 1)),
    "APPENDS": lambda pickle, stack: pickle._append(stack, pickle._group(stack)),
    "REDUCE": Pickle._call, "BINPERSID": Pickle._refer, "BUILD": Pickle._build,
    "STACK_GLOBAL": Pickle._name,
}  # fmt: skip
