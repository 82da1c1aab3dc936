"""Settings, declared once: the check, the form, the option, the table and the schema come from it.

A class of settings is a frozen dataclass whose fields carry their declaration:

    @settings
    class KKTConfig:
        lr_x: Annotated[float, setting("Learning rate of the candidates", gt=0)] = 0.02

`setting` gives a `pydantic.Field`, and pydantic checks every instance that is made, strictly: a
text is no number, True is no whole number, a whole number will do for a real one. What depends on
several fields stands in `__post_init__`. Pydantic is imported when the first instance is made, or
the first declaration read, so that importing the package does not wait for it.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Iterable, Mapping
from functools import wraps
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from explorer.engine.files import one_line, safe_name

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.fields import FieldInfo

T = TypeVar("T")
Kind = Literal["real", "whole", "flag", "choice", "word", "wholes", "reals", "table"]
Form = Literal["sight", "more", "none"]

STRICT = {"strict": True, "allow_inf_nan": False, "extra": "forbid"}
WORDS: dict[Kind, str] = {
    "real": "a finite number", "whole": "a whole number", "flag": "True or False",
    "word": "a word", "wholes": "whole numbers such as [100, 100]",
    "reals": "finite numbers such as [-1, 0, 1, 0.5]", "table": "settings by name",
}  # fmt: skip
MOST_UNKNOWN = 30  # characters of a name that no setting has: the list of those there are follows
MOST_INT = 2**63 - 1  # what a seed and a tensor hold
FLAGS = {"true": True, "false": False}
NOTHING = ("none", "null")
ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def setting(
    description: str,
    *,
    title: str | None = None,
    unit: str = "",
    note: str = "",
    form: Form = "none",
    place: int = 0,
    page: tuple[float, float] | None = None,
    step: float = 0,
    labels: tuple[tuple[str, Any], ...] | None = None,
    why: str = "",
    **checks: Any,  # noqa: ANN401 - pydantic's own
) -> Any:  # noqa: ANN401 - pydantic's FieldInfo, which it calls Any too
    """Return the declaration that stands beside the type of a field, in `Annotated`.

    Args:
        description: what it is, in a phrase: tooltip, help and table.
        title: its name on screen; its name with spaces where left out.
        unit: of its values.
        note: more for the table: where the default comes from, and what was measured.
        form: where it stands on the form of the page: in sight, under "More settings", or not.
        place: its order there, the least first; equal ones as they are declared.
        page: bounds on the page, where they are narrower than what is valid.
        step: of a slider on the page; a field where left out.
        labels: (words, value) of each choice on the page, in order.
        why: the reason of a bound, for the message that refuses a value.
        checks: gt, ge, lt, le, multiple_of, min_length, strict: as `pydantic.Field` has them.

    Returns:
        A field of pydantic.

    Example:
        >>> from explorer.engine.settings import setting
        >>> setting("Length of the attack", gt=0).description
        'Length of the attack'
    """
    from pydantic import Field

    given = {"unit": unit, "note": note, "form": form, "place": place, "page": page,
             "step": step, "labels": labels, "why": why}  # fmt: skip
    extra: dict[str, Any] = {k: v for k, v in given.items() if v not in ("", None, 0, "none")}
    return Field(title=title, description=description, json_schema_extra=extra, **checks)


@dataclass_transform(frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Return a class of settings: a frozen dataclass whose instances are checked by pydantic.

    Args:
        cls: a class whose fields are `Annotated` with a `setting`, each with a default.

    Returns:
        The same class.

    Raises:
        ValueError: from making an instance, with the setting, what it must be, and what it is.

    Example:
        >>> from explorer import KKTConfig
        >>> KKTConfig(m=3)
        Traceback (most recent call last):
            ...
        ValueError: m must be even and at least 2 (half the candidates per label); got 3. Try 4.
    """
    made = dataclasses.dataclass(frozen=True)(cls)
    made.__pydantic_config__ = STRICT  # type: ignore[attr-defined]

    @wraps(made.__init__)
    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: ANN401
        from pydantic import ValidationError
        from pydantic_core import ArgsKwargs

        names = (f.name for f in dataclasses.fields(self))
        all_given = {**dict(zip(names, args, strict=False)), **given}
        _refuse_the_largest(all_given)
        validator: Any = _adapter(type(self)).validator
        try:
            validator.validate_python(ArgsKwargs(args, given), self_instance=self)
        except ValidationError as error:
            raise ValueError(_sentence(type(self), error, all_given)) from None

    made.__init__ = __init__  # type: ignore[method-assign]
    return made


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is declared of one setting; see `setting` for what is not said here.

    Attributes:
        name: of the field.
        title: on screen.
        description: what it is.
        note: more of it.
        unit: of its values.
        kind: of its values.
        optional: whether it may be None.
        low: the least value, or None.
        high: the largest, or None.
        open_low: whether `low` itself is refused.
        open_high: whether `high` itself is.
        multiple: of what number it must be, or None.
        choices: (words, value) of each.
        also: words that it takes beside numbers.
        default: the value where none is given; `dataclasses.MISSING` for none.
        form: where it stands on the form.
        place: its order there.
        page: bounds on the page.
        step: of a slider, or 0.
        why: the reason of the bounds.
    """

    name: str
    title: str
    description: str
    kind: Kind
    optional: bool
    low: float | None
    high: float | None
    open_low: bool
    open_high: bool
    multiple: int | None
    choices: tuple[tuple[str, Any], ...]
    also: tuple[str, ...]
    default: Any
    note: str = ""
    unit: str = ""
    form: Form = "none"
    place: int = 0
    page: tuple[float, float] | None = None
    step: float = 0
    why: str = ""

    @property
    def bounds(self) -> str:
        """Return what its values must be, after "must": "be positive"; empty for no bounds."""
        if self.multiple is not None:
            even = "even" if self.multiple == 2 else f"a multiple of {self.multiple}"
            return f"be {even}" + ("" if self.low is None else f" and at least {self.low:g}")
        if self.low is None and self.high is None:
            return ""
        if self.high is None:
            if self.low == 0 and not (self.optional and not self.open_low):
                return "be positive" if self.open_low else "not be negative"
            return f"be {'above' if self.open_low else 'at least'} {self.low:g}"
        above = "above" if self.open_low else "from"
        join = "and" if self.open_low else "to"
        to = f"{join} below" if self.open_high else ("and at most" if self.open_low else "to")
        if self.low is None:
            return f"be {'below' if self.open_high else 'at most'} {self.high:g}"
        return f"be {above} {self.low:g} {to} {self.high:g}"

    @property
    def words(self) -> str:
        """Return what kind of value it takes: "a whole number or None"."""
        if self.kind == "choice":
            text = f"one of {', '.join(str(value) for _, value in self.choices)}"
        else:
            text = ", ".join([WORDS[self.kind], *map(repr, self.also)])
        return f"{text} or None" if self.optional else text

    @property
    def help(self) -> str:
        """Return its name on screen and what it is, for an option of the command line."""
        name = f"{self.title[:1].upper()}{self.title[1:]}. " if len(self.title) > 1 else ""
        return f"{name}{self.description}."


_SCHEMAS: dict[type[Any], tuple[Setting, ...]] = {}  # read once: to resolve hints takes long


def schema(kind: type[Any]) -> tuple[Setting, ...]:
    """Return the settings of a class, in the order of its fields."""
    if kind not in _SCHEMAS:
        hints = get_type_hints(kind, include_extras=True)
        _SCHEMAS[kind] = tuple(_row(f, hints[f.name]) for f in dataclasses.fields(kind) if f.init)
    return _SCHEMAS[kind]


def setting_of(kind: type[Any], name: str, who: str = "") -> Setting:
    """Return the setting of this name. ValueError with the names there are.

    Args:
        kind: the class of settings.
        name: of the field.
        who: whose they are, for the message; the class where left out.
    """
    known = {row.name: row for row in schema(kind)}
    if name not in known:
        raise ValueError(_unknown_setting(who or kind.__name__, name, known))
    return known[name]


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of a class of settings, as pydantic writes it."""
    return _adapter(kind).json_schema()


def changed_settings(config: Any) -> dict[str, Any]:  # noqa: ANN401 - settings of any class
    """Return the settings by name that differ from the defaults."""
    usual = type(config)()
    names = (field.name for field in dataclasses.fields(config))
    return {k: getattr(config, k) for k in names if getattr(config, k) != getattr(usual, k)}


def config_of(kind: type[T], given: Mapping[str, Any], who: str = "") -> T:
    """Return settings of this class from values by name; those left out are the defaults.

    Raises:
        ValueError: with the setting, what it must be, and what it is.
    """
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise ValueError(_unknown_setting(who or kind.__name__, name, known))
    return kind(**given)


def is_number(given: object) -> TypeGuard[float]:
    """Return whether something is a finite number, as a browser or a file gives it.

    >>> is_number(2), is_number(float("nan")), is_number(True), is_number("2")
    (True, False, False, False)
    """
    return type(given) in (int, float) and math.isfinite(cast(float, given))


def value_of(row: Setting, text: str) -> Any:  # noqa: ANN401
    """Return the value that a text writes, as people write it on a command line.

    None is `None` or `null`, True is `True` or `true`; numbers stand in a list with or without
    brackets. Whether a number is within its bounds, its class says.

    Raises:
        ValueError: with the setting, what it must be, and the text.
    """
    word = text.strip()
    if row.optional and word.lower() in NOTHING:
        return None
    if word.strip("'\"") in row.also:
        return word.strip("'\"")
    if row.kind in ("choice", "word"):
        quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
        return word[1:-1] if quoted else word
    try:
        if row.kind == "flag":
            return FLAGS[word.lower()]
        if row.kind == "whole":
            return int(word)
        if row.kind == "wholes":
            return tuple(int(part) for part in word.strip("[]()").rstrip(",").split(","))
        if row.kind == "reals":
            parts = [part for part in word.strip("[]()").split(",") if part.strip()]
            return tuple(float(part) for part in parts)
        if row.kind == "real" and math.isfinite(float(word)):
            return float(word)
    except (ValueError, KeyError):
        pass
    raise ValueError(f"{row.name} must be {row.words}; got {_short(word)}")


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what checks instances of this class, built when the first is made."""
    from pydantic import TypeAdapter

    if kind not in ADAPTERS:
        ADAPTERS[kind] = TypeAdapter(kind)
    return ADAPTERS[kind]


def _row(field: dataclasses.Field[Any], hint: Any) -> Setting:  # noqa: ANN401
    base, info = _declaration(hint)
    union = get_origin(base) in (Union, UnionType)
    optional = union and NoneType in get_args(base)
    parts = [part for part in get_args(base) if part is not NoneType] if union else [base]
    options = [part for part in parts if get_origin(part) is not Literal] or parts
    also = get_args(parts[-1]) if len(options) < len(parts) else ()
    plain, inner = _declaration(options[0]) if len(options) == 1 else (float, None)
    bounds = _bounds([m for one in (info, inner) if one is not None for m in one.metadata])
    extra: Any = {} if info is None else info.json_schema_extra or {}
    kind = _kind(plain)
    choices = extra.get("labels") or tuple((str(v), v) for v in get_args(plain) if kind == "choice")
    return Setting(
        name=field.name,
        title=(info and info.title) or field.name.replace("_", " "),
        description=(info and info.description) or "",
        kind=kind, optional=optional, choices=tuple(choices), also=also,
        default=field.default,
        low=bounds.get("gt", bounds.get("ge")), high=bounds.get("lt", bounds.get("le")),
        open_low="gt" in bounds, open_high="lt" in bounds, multiple=bounds.get("multiple_of"),
        **{name: value for name, value in extra.items() if name != "labels"},
    )  # fmt: skip


def _declaration(hint: Any) -> tuple[Any, FieldInfo | None]:  # noqa: ANN401
    """Return the type of a field, and the declaration beside it."""
    from pydantic.fields import FieldInfo

    if get_origin(hint) is not Annotated:
        return hint, None
    base, *beside = get_args(hint)
    return base, next((part for part in beside if isinstance(part, FieldInfo)), None)


def _bounds(metadata: Iterable[object]) -> dict[str, Any]:
    names = ("gt", "ge", "lt", "le", "multiple_of")
    return {name: getattr(m, name) for m in metadata for name in names if hasattr(m, name)}


def _kind(hint: Any) -> Kind:  # noqa: ANN401
    origin = get_origin(hint)
    if origin is Literal:
        return "choice"
    if origin is tuple:
        return "reals" if get_args(hint)[0] is float else "wholes"
    plain: dict[Any, Kind] = {bool: "flag", int: "whole", float: "real", str: "word"}
    return plain.get(hint, "table")


def _refuse_the_largest(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, int) and abs(part) > MOST_INT:
                raise ValueError(f"{name} must be within 64 bits; got {_short(part)}")


def _short(value: Any) -> str:  # noqa: ANN401 - anything
    """Return a value as it can stand in a sentence; Python writes no number of any length."""
    if isinstance(value, int) and abs(value) > MOST_INT:
        return f"one of {value.bit_length()} bits"
    return safe_name(reprlib.repr(value) if isinstance(value, dict | list | tuple) else repr(value))


def _unknown_setting(who: str, name: str, known: Iterable[str]) -> str:
    said = one_line(repr(name), MOST_UNKNOWN)
    return f"{who} has no setting {said}; it has: {', '.join(known)}"


def _sentence(kind: type[Any], error: ValidationError, given: Mapping[str, Any]) -> str:
    """Return the first problem: the setting, what it must be, what was given, a way out."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "value_error":  # of __post_init__
        return str(first["ctx"]["error"])
    name, known = str(first["loc"][0]), {row.name: row for row in schema(kind)}
    if name not in known or name not in given:
        if first["type"] == "unexpected_keyword_argument":
            return _unknown_setting(kind.__name__, name, known)
        return f"{kind.__name__} cannot be made of {_short(dict(given))}: {first['msg']}"
    row, value = known[name], given[name]
    if not first["type"].startswith(("greater", "less", "multiple", "too_short")):
        return f"{name} must be {row.words}; got {_short(value)}"
    if row.kind == "wholes":
        return f"{name} must hold at least one number, each at least 1; got {_short(value)}"
    why = f" ({row.why})" if row.why else ""
    none = ", or None" if row.optional else ""
    return f"{name} must {row.bounds}{why}{none}; got {_short(value)}{_remedy(row, value)}"


def _remedy(row: Setting, value: Any) -> str:  # noqa: ANN401
    """Return a value that is allowed: the next multiple, or the default."""
    if row.multiple is not None:
        least = max(value, row.low or 0)
        return f". Try {math.ceil(least / row.multiple) * row.multiple:g}."
    return "" if row.default in (None, dataclasses.MISSING) else f". Try {row.default}."
