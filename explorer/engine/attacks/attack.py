"""What an attack is: one row of names, settings and functions, which its module ends in.

    ATTACK = Attack(key="sample", title="Sample", ..., config=SampleConfig, state=SampleState,
                    first=init, step=step, terminate=terminate, report=report)

Page, command line, files, arena and sweep know an attack by this row alone. Those of this package
stand in this folder, and those of other packages are found by their entry point: see
`explorer.engine.roster` and docs/write-an-attack.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from explorer.engine.attack_panel import AttackPanel
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.shapes import EMPTY, Shapes
from explorer.engine.attacks.target import NO_THEOREM, Target
from explorer.engine.certificate import TAU_EXACT
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.sizes import Size
from explorer.engine.statement import Judged, Statement
from explorer.engine.status import Status
from explorer.engine.sums import Sum, sum_over

MOST_CURVES = 4  # as many as there are colours on the page
# Of every state, without a declaration of its own.
STATE_SIZES = {
    "x": Size("m d", finite=True), "y": Size("m", finite=True), "lam": Size("m", finite=True),
}  # fmt: skip


class AttackConfig(Protocol):
    """An instance of a class of settings, made by `@settings`: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class AttackState(Protocol):
    """One iterate of an attack: a frozen dataclass of numbers, text, tensors and tuples of these.

    So it can be saved. All that is drawn and judged is read from here. A tensor beside x, y and lam
    has one axis, or its field declares what it is like: see `explorer.engine.sizes`.
    Names in a class attribute `retired` are fields of older files that nothing reads any more.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def t(self) -> int:
        """Return the steps taken, from 0."""

    @property
    def x(self) -> Tensor:
        """Return candidates (m, d)."""

    @property
    def y(self) -> Tensor:
        """Return their labels (m,)."""

    @property
    def lam(self) -> Tensor:
        """Return their multipliers (m,), of the target at margin 1; zeros for none."""

    def numbers(self) -> dict[str, float]:
        """Return what the curves show of it, by column."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: candidates x (m, d) with their fixed labels y (m,) in {-1, +1}.

    Attributes:
        x: candidates (m, d), in units of the data; (b, m, d) are b starts at once.
        y: their labels (m,), or (b, m) with many starts.

    Example:
        >>> import torch
        >>> from explorer import Start
        >>> start = Start(torch.zeros(4, 2), torch.tensor([1.0, 1.0, -1.0, -1.0]))
        >>> len(start.x)
        4
    """

    x: Tensor
    y: Tensor


T = TypeVar("T")
C = TypeVar("C", bound=AttackConfig)
S = TypeVar("S", bound=AttackState)
T_in = TypeVar("T_in", contravariant=True)
C_in = TypeVar("C_in", bound=AttackConfig, contravariant=True)
S_in = TypeVar("S_in", bound=AttackState, contravariant=True)
S_out = TypeVar("S_out", bound=AttackState, covariant=True)


class First(Protocol[T_in, C_in, S_out]):
    """Makes the state at t = 0. It draws from `generator` alone, so that a seed repeats a run."""

    def __call__(
        self, target: T_in, config: C_in, generator: torch.Generator, start: Start | None, /
    ) -> S_out:
        """Return the first state; `start` is None for attacks that take none."""


# --- What an attack may bring beside its four functions ----------------------------------------
@dataclass(frozen=True, eq=False)
class Needs:
    """Which weights an attack can be used on, and where.

    Attributes:
        fits: (target) -> why it cannot be used on these weights, or an empty text.
        several: whether it understands networks with one output per class.
        non_homogeneous: whether it makes sense where the network is not homogeneous.
        anywhere: whether it runs on the device of the weights; else on the CPU alone.
        unseparated: whether it works on weights that do not separate their points yet.
    """

    fits: Callable[[Target], str] = lambda target: ""
    several: bool = False
    non_homogeneous: bool = False
    anywhere: bool = False
    unseparated: bool = False


@dataclass(frozen=True, eq=False)
class MixedStarts(Generic[C]):
    """Given candidates to begin at, so that starts can be mixed.

    The settings then hold `m`, how many, and `sigma_x`, the noise of a start.

    Attributes:
        suit: (config, mix_data) -> settings for a start with this share of held-out data.
    """

    suit: Callable[[C, float], C] = lambda config, mix_data: config


@dataclass(frozen=True, eq=False)
class FileCheck(Generic[T_in, S_in, C_in]):
    """What a file of a run may hold.

    Attributes:
        room: (config, d) -> numbers that a state holds beside its candidates: a file may not ask
            for more than memory has.
        belongs: (target, state, config) -> whether a state can be one on these weights.
    """

    room: Callable[[C_in, int], int] = lambda config, d: 0
    belongs: Callable[[T_in, S_in, C_in], bool] = lambda target, state, config: True


@dataclass(frozen=True, eq=False)
class Leaps(Generic[T, C, S]):
    """Many steps at once, sooner than one by one.

    Attributes:
        advance: (target, state, config, steps) -> the state so many steps on, or the last one where
            the run is over before.
        iterate: (target, state, config, stride) -> those states after `state` whose t the stride
            divides, and the last one; None: by `advance`.
    """

    advance: Callable[[T, S, C, int], S]
    iterate: Callable[[T, S, C, int], Iterator[S]] | None = None


@dataclass(frozen=True, eq=False)
class ManyStarts(Generic[T, C, S]):
    """Many starts that descend as one program, which pays on a device.

    `first` then takes several generators as well, one for each start.

    Attributes:
        apart: (state of many starts) -> the state of each.
        memory: (weights, config, candidates, dtype) -> bytes that one run takes there, about.
    """

    apart: Callable[[S], list[S]]
    memory: Callable[[T, C, int, torch.dtype | None], int]


class OwnModel(Protocol):
    """Weights of an attack's own training, as the plane draws them."""

    @property
    def d(self) -> int:
        """Return the number of coordinates of a point."""

    def outputs(self, x: Tensor) -> Tensor:
        """Return the output at places x (k, d), of which the sign is the class. -> (k,)."""


@dataclass(frozen=True, eq=False)
class OwnVictim(Generic[T, C, S]):
    """Weights of its own training, which an attack attacks in place of the page's.

    Attributes:
        train: (x (n, d), y (n,), config, generator) -> the weights.
        energy: (weights, x, y) -> which share of these weights training on the candidates x (m, d)
            with labels y (m,) misses.
        model: (state) -> the weights that the run attacks.
    """

    train: Callable[[Tensor, Tensor, C, torch.Generator], T]
    energy: Callable[[T, Tensor, Tensor], float]
    model: Callable[[S], OwnModel]


def clarke_sum(target: Any, state: AttackState, config: AttackConfig) -> Sum:  # noqa: ANN401 - a Target, or what an attack made of one
    """Return the weights as the sum over the candidates that leaves least, slopes free at kinks."""
    net = target.net
    return sum_over(net, state.x, state.y, fit_multipliers(net, state.x, state.y, TAU_EXACT))


@dataclass(frozen=True, eq=False, kw_only=True)
class Attack(Generic[T, C, S]):
    """One attack.

    Attributes:
        key: its name in files, options and the roster.
        title: its name on screen.
        paper: whose it is; "own" for one of this project.
        sentence: what it does, for a tooltip. Its first sentence stands alone where attacks are
            compared: it is short, and needs no term of the field.
        config: its class of settings, by `@settings`; `config()` are the defaults. Where it has a
            setting `steps`, that is the length of a run; `m`, the number of candidates.
        state: its class of states.
        first: (target, config, generator, start) -> the state at t = 0.
        step: (target, state, config) -> the next state.
        terminate: (state, config) -> how the run stands.
        report: (target, state, config) -> what the attacker claims.
        curves: columns of `state.numbers()` with their names on screen, at most four.
        shapes: (the weights on screen, state) -> what the plane shows beside points and candidates.
        sum_over: (target, state, config) -> the weights, of one output, as the sum over its
            candidates that leaves least.
        words: (state, config) -> what the last step did, in a sentence.
        headline: (state, what is known of the run) -> what is said of its end; None: the page's own
            words.
        panel: what it shows of itself beside its stage; None: nothing.
        needs: which weights it can be used on.
        starts: that it begins at given candidates; None for noise of its own.
        file: what a file of a run may hold.
        pictures: (n, outputs, steps) -> settings that suit n training images and so many outputs of
            the network; steps None takes as many as they need. None: not offered on images.
        leaps: many steps at once; None: one after another.
        many: many starts at once; None: one after another.
        own: weights of its own training that it attacks; None for attacks on any weights.
        heavy: whether a single step may take a second; a page then takes its steps in a thread.
        place: its order on the page, the least first.

    Raises:
        ValueError: where the key is no word, or there are too many curves.

    Example:
        >>> from explorer import by_key
        >>> attack = by_key("kkt")
        >>> attack.title, attack.step_count(attack.config(steps=300), usual=0)
        ('KKT reconstruction', 300)
    """

    key: str
    title: str
    paper: str
    sentence: str
    config: type[C]
    state: type[S]
    first: First[T, C, S]
    step: Callable[[T, S, C], S]
    terminate: Callable[[S, C], Status]
    report: Callable[[T, S, C], Report]
    curves: tuple[tuple[str, str], ...] = ()
    shapes: Callable[[Target, S], Shapes] = lambda target, state: EMPTY
    sum_over: Callable[[T, S, C], Sum] = clarke_sum
    words: Callable[[S, C], str] = lambda state, config: ""
    headline: Callable[[S, Judged], Statement | None] = lambda state, known: None
    panel: AttackPanel | None = None
    needs: Needs = Needs()
    starts: MixedStarts[C] | None = None
    file: FileCheck[T, S, C] = FileCheck()
    pictures: Callable[[int, int, int | None], C] | None = None
    leaps: Leaps[T, C, S] | None = None
    many: ManyStarts[T, C, S] | None = None
    own: OwnVictim[T, C, S] | None = None
    heavy: bool = False
    place: int = 100

    def __post_init__(self) -> None:
        """Refuse what the page or a file could not show."""
        if not self.key.isidentifier():
            raise ValueError(f"the key of an attack must be a word of letters; got {self.key!r}")
        if len(self.curves) > MOST_CURVES:
            raise ValueError(f"at most {MOST_CURVES} curves are drawn; got {len(self.curves)}")

    @property
    def in_short(self) -> str:
        """Return the first sentence of what it does."""
        return f"{self.sentence.partition('. ')[0].rstrip('.')}."

    @property
    def takes_start(self) -> bool:
        """Return whether it begins at given candidates."""
        return self.starts is not None

    def suit(self, config: C, mix_data: float) -> C:
        """Return the settings for a start with this share of held-out data.

        Args:
            config: the settings.
            mix_data: the share; 0 for noise alone.

        Returns:
            Settings; those given where the attack takes no start.
        """
        return config if self.starts is None else self.starts.suit(config, mix_data)

    def refusal(self, target: Target) -> str:
        """Return why this attack cannot be used on these weights, or an empty text.

        Args:
            target: the attacked weights.

        Returns:
            A sentence that says what to do, or "".
        """
        if target.net.outputs > 1 and not self.needs.several:
            return (
                f"{self.title} knows networks with one output, for two classes; this one has "
                f"{target.net.outputs}, one per class. Choose an attack on several classes."
            )
        if not (target.separated or self.needs.unseparated):
            return (
                f"{self.title} needs a margin, and the points are not separated yet. "
                "Choose Two snapshots, or train on."
            )
        if not (target.net.homogeneous or self.needs.non_homogeneous):
            return f"{self.title} rests on homogeneity. {NO_THEOREM}"
        return self.needs.fits(target)

    def target_for(
        self, target: Target | None, x: Tensor, y: Tensor, config: C, seed: int
    ) -> T | Target | None:
        """Return what `init` takes as its target: given weights, or weights of the attack's own.

        Args:
            target: the weights of the page; None where there are none.
            x: the training points (n, d), for an attack that trains its own weights on them.
            y: their labels (n,).
            config: the settings.
            seed: of that training.

        Returns:
            The target, or None where there are no weights.
        """
        if self.own is None or (target is not None and self.refusal(target)):
            return target
        return self.own.train(x, y, config, torch.Generator().manual_seed(seed))

    def init(
        self, target: T, config: C, generator: torch.Generator,
        start: tuple[Tensor, Tensor] | None = None,
    ) -> S:  # fmt: skip
        """Return the first state of a run.

        Args:
            target: the attacked weights; see `aimed`.
            config: the settings.
            generator: all that is drawn is drawn from it, so that a seed repeats a run.
            start: candidates x (m, d) and labels y (m,) to begin at, for attacks that take them.

        Returns:
            The state at t = 0.

        Raises:
            ValueError: where the attack cannot be used on these weights.
        """
        why = self.refusal(target) if isinstance(target, Target) else ""
        if why:
            raise ValueError(why)
        given = Start(*start) if start is not None and self.takes_start else None
        return self.first(target, config, generator, given)

    def advance(self, target: T, state: S, config: C, steps: int) -> S:
        """Return the state after so many steps, or the last one where the run is over before.

        Args:
            target: the attacked weights.
            state: the state to go on from.
            config: the settings.
            steps: how many, 1 or more.

        Returns:
            The state.
        """
        if self.leaps is not None and not self.terminate(state, config).over:
            return self.leaps.advance(target, state, config, steps)
        for _ in range(steps):
            if self.terminate(state, config).over:
                break
            state = self.step(target, state, config)
        return state

    def iterate(self, target: T, state: S, config: C, stride: int = 1) -> Iterator[S]:
        """Yield the states after `state`, to the end of the run.

        Args:
            target: the attacked weights.
            state: the state to go on from.
            config: the settings.
            stride: above 1, only the states whose t it divides, and the last one.

        Yields:
            States; steps are taken when the next one is asked for.
        """
        if self.leaps is not None and self.leaps.iterate is not None:
            yield from self.leaps.iterate(target, state, config, stride)
            return
        while not self.terminate(state, config).over:
            state = self.advance(target, state, config, stride - state.t % stride)
            yield state

    def states(
        self, target: T, config: C, generator: torch.Generator,
        start: tuple[Tensor, Tensor] | None = None, stride: int = 1,
    ) -> Iterator[S]:  # fmt: skip
        """Yield a whole run: the state of `init`, then those of `iterate`.

        Args:
            target: the attacked weights; see `aimed`.
            config: the settings.
            generator: all that is drawn is drawn from it, so that a seed repeats a run.
            start: candidates x (m, d) and labels y (m,) to begin at, for attacks that take them.
            stride: as in `iterate`.

        Yields:
            States.

        Raises:
            ValueError: where the attack cannot be used on these weights.
        """
        first = self.init(target, config, generator, start)
        yield first
        yield from self.iterate(target, first, config, stride)

    def step_count(self, config: C, usual: int) -> int:
        """Return the number of steps of a whole run.

        Args:
            config: the settings.
            usual: the number for attacks that plan none.

        Returns:
            The setting `steps`, or `usual`.
        """
        return int(getattr(config, "steps", usual))

    def numbers(self, config: C, d: int) -> int:
        """Return how many numbers these settings ask for.

        Args:
            config: the settings.
            d: coordinates of a point.

        Returns:
            The largest count of numbers in one tensor of a state, about.
        """
        return max(self.candidate_count(config) * d, self.file.room(config, d))

    def candidate_count(self, config: C) -> int:
        """Return how many candidates these settings ask for.

        Args:
            config: the settings.

        Returns:
            The setting `m`, or 0.
        """
        return int(getattr(config, "m", 0))
