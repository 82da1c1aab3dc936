"""What an attacker may see: trained weights, brought to margin 1, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from explorer.engine.kernels.batched import Prepared
from explorer.engine.known import Known
from explorer.engine.margin import Loss
from explorer.engine.merging import Merged, merge_neurons
from explorer.engine.network import Network, scaled_network

T = TypeVar("T")
FOLD = 1e-6  # measured on a trained 2-1000-1: 154 neurons are left, Phi moves by 6e-4 at most
NO_THEOREM = (
    "With biases beyond its first layer the network is not homogeneous: no theorem leads it to a "
    "KKT point, no factor brings it to margin 1, and the sum of the multipliers is not known."
)


def same_shapes(a: Network, b: Network) -> bool:
    """Return whether two networks have layers of the same widths, and biases in the same layers."""
    return [p.shape for p in a.parameters] == [p.shape for p in b.parameters]


class WeightDecay(NamedTuple):
    """What is known of a training with weight decay.

    Attributes:
        mu: of mean loss + mu/2 |theta|^2.
        margin: the smallest margin of the weights as they were trained; 0 or less of points that
            are not all on their side.
        loss: of the training.
    """

    mu: float
    margin: float
    loss: Loss = "logistic"


@dataclass(frozen=True, eq=False)
class Target:
    """The attacked network at margin 1; no attack is given more than this.

    A network with biases everywhere is not homogeneous and is taken as it is: see `NO_THEOREM`.

    Attributes:
        net: weights with min_i y_i Phi(theta; x_i) = level on the unseen training data.
        level: 1 for homogeneous weights, else their own margin.
        decay: the weight decay that is known to have trained them, or None. Points at any margin
            leave a trace then.
        unit: of a network that was trained on points of another size (`Network.unit`): `net`, and
            every place of a state of an attack, is of points divided by it. What an attack begins
            at and what it claims are in units of the data.
        pixels: the least and the largest value of each coordinate (d,), in units of the data, where
            the attacker is granted them, such as [0, 1] less the mean image; else None. Attacks
            that are granted them leave out coordinates that are 0 in all points.
        known: what else the attacker is granted of the points, in units of the data, or None.
        before: earlier weights of the same network, from which training led to these, at the same
            scale; None where none were seen.
        separated: whether `net` separates its points, so that it has a margin. Where it does not,
            the weights are as they were trained, and an attack makes sense that asks for no margin.

    Raises:
        ValueError: where the weights are not finite or all zero, `level` is not the margin that
            such weights can have, `pixels` are no ranges of d coordinates, or `before` is a network
            of other shapes.

    Example:
        >>> import torch
        >>> from explorer import Target, maximum_margin
        >>> x, y = torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([-1.0, 1.0]).double()
        >>> target = Target.of(maximum_margin(x, y).net, 1.0)
        >>> target.level, round(target.mass, 4)  # two multipliers of 1 / sqrt(2)
        (1.0, 1.4142)
    """

    net: Network
    level: float = 1.0
    decay: WeightDecay | None = None
    unit: float = 1.0
    pixels: tuple[Tensor, Tensor] | None = None
    known: Known | None = None
    before: Network | None = None
    separated: bool = True
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse weights that no attack could explain."""
        if self.before is not None:
            if not same_shapes(self.before, self.net):
                raise ValueError(
                    f"the earlier weights must be of the same network; got {self.before} before "
                    f"{self.net}. Give two snapshots of one training."
                )
            before = self.before.in_unit().to(dtype=self.net.dtype, device=self.net.device)
            object.__setattr__(self, "before", before)
        if self.net.unit != 1:
            object.__setattr__(self, "unit", self.unit * self.net.unit)
            object.__setattr__(self, "net", self.net.in_unit())
        rho = float(self.net.rho)
        if not (math.isfinite(rho) and rho > 0):
            raise ValueError(f"the weights must be finite and not all zero; got norm {rho}")
        if not (math.isfinite(self.level) and self.level > 0):
            raise ValueError(f"level must be positive and finite; got {self.level}")
        if self.net.homogeneous and self.level != 1:
            raise ValueError(
                f"homogeneous weights are attacked at margin 1; got level={self.level}. "
                "Take Target.of(net, margin)."
            )
        if self.pixels is not None:
            shapes, d = [tuple(end.shape) for end in self.pixels], self.net.d
            if shapes != [(d,), (d,)] or not bool((self.pixels[0] <= self.pixels[1]).all()):
                raise ValueError(
                    f"pixels must be the least and the largest value of {d} coordinates, two "
                    f"tensors ({d},), the first nowhere larger; got shapes {shapes}."
                )

    @classmethod
    def of(
        cls, net: Network, margin: float, decay: float = 0.0, before: Network | None = None,
        loss: Loss = "logistic",
    ) -> Target:  # fmt: skip
        """Return the target of a network: margin^(-1/order) theta, which has margin 1.

        Where a bias beyond the first layer breaks homogeneity, no factor does that: the weights
        stay as they are, and `level` is the margin.

        Args:
            net: the trained network.
            margin: its smallest margin q_min on the training data, in units of Phi.
            decay: mu of the weight decay that is known to have trained it, of mean loss + mu/2
                |theta|^2; 0 for none.
            before: earlier weights of the same network, if any were seen. With these or a decay a
                margin of 0 or less is allowed, and gives a target that is not `separated`.
            loss: of the training, which matters with decay alone.

        Returns:
            The target.

        Raises:
            ValueError: where `margin` is not a positive number, so that the data are not separated,
                and there are neither earlier weights nor a decay.

        Source: Lyu and Li 2020, section 2 (homogeneity).
        """
        decayed = WeightDecay(decay, margin, loss) if decay else None
        if (before is not None or decayed) and math.isfinite(margin) and margin <= 0:
            return cls(net, decay=decayed, before=before, separated=False)
        if not (math.isfinite(margin) and margin > 0):
            raise ValueError(
                f"the margin must be positive and finite; got {margin}. "
                "Train until every point is on its side."
            )
        if not net.homogeneous:
            return cls(net, float(margin), decayed, before=before)
        factor = margin ** (-1 / net.order)
        before = None if before is None else scaled_network(before, factor)
        return cls(scaled_network(net, factor), decay=decayed, before=before)

    def put_back(self, x: Tensor) -> Tensor:
        """Return candidates put back into the range of each coordinate, see `pixels`.

        Args:
            x: candidates (..., d), in the unit of `net`.

        Returns:
            The nearest points there (..., d); what lies within stays exactly as it is.

        Raises:
            ValueError: where the target has no such ranges.

        Source: own; the projection onto a box.
        """
        low, high = self.pixel_range(x)
        return x.clamp(low, high)

    def put_back_to_known(self, x: Tensor, y: Tensor) -> Tensor:
        """Return candidates put back to what is known of the points.

        Args:
            x: candidates (..., m, d), in the unit of `net`.
            y: their labels (..., m).

        Returns:
            The candidates (..., m, d); see `known`.

        Raises:
            ValueError: where nothing is granted.
        """
        if self.known is None:
            raise ValueError(
                "this attacker is granted nothing of the points, and its settings say otherwise. "
                "Take knows='nothing', or replace(target, known=known_of(...))."
            )
        return self.known.put_back(x * self.unit, y) / self.unit

    def pixel_range(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return `pixels` in the unit of `net`.

        Args:
            like: a tensor (..., d) of the device and the type that are wanted.

        Returns:
            The least and the largest value of each coordinate (d,).

        Raises:
            ValueError: where the target has none.
        """
        if self.pixels is None:
            raise ValueError(
                "prior 'pixels' needs the range of each coordinate, which this target does not "
                "grant. Take replace(target, pixels=(low, high)), or another prior."
            )
        low, high = self.pixels
        made: tuple[Tensor, Tensor] = self.kept(
            ("pixels", like.device, like.dtype),
            lambda: ((low / self.unit).to(like), (high / self.unit).to(like)),
        )
        return made

    @cached_property
    def columns(self) -> Tensor | None:
        """Return the coordinates (d',) that `pixels` leave room for; None where that is all of d.

        The others are 0 in every point, as a pixel is whose mean image is 0.
        """
        if self.pixels is None:
            return None
        low, high = self.pixels
        free = ((low != 0) | (high != 0)).nonzero()[:, 0].to(self.net.device)
        return free if 0 < len(free) < self.net.d else None

    @cached_property
    def narrow(self) -> Target:
        """Return the target whose points have the coordinates `columns` alone; itself without.

        The other weights of the first layer are left out: no point reaches them.
        """
        if self.columns is None:
            return self
        assert self.pixels is not None  # else there are no columns
        low, high = (end[self.columns.to(end.device)] for end in self.pixels)
        before = None if self.before is None else _of_columns(self.before, self.columns)
        net = _of_columns(self.net, self.columns)
        return replace(self, net=net, before=before, pixels=(low, high))

    @property
    def inside(self) -> Target:
        """Return the same weights where places are not brought back into units of the data."""
        return self if self.unit == 1 else replace(self, unit=1.0)

    @cached_property
    def mass(self) -> float:
        """Return the sum of the multipliers at any exact KKT point, rho^2 / order (norm identity).

        Without homogeneity there is no such identity, and rho^2 / (layers * level) is no more than
        a unit in which multipliers are counted, and the scale of the first ones.

        Source: own; it follows from stationarity (Lyu and Li 2020) and Euler's theorem.
        """
        return float(self.net.rho) ** 2 / (len(self.net.weights) * self.level)

    @cached_property
    def row_length(self) -> float:
        """Return the length of a hidden neuron's (w, b).

        The root mean square in a layer; the geometric mean over layers.
        """
        pairs = list(zip(self.net.weights, self.net.biases, strict=True))[:-1]
        squares = [
            float(w.square().sum() + (0.0 if b is None else b.square().sum())) / len(w)
            for w, b in pairs
        ]
        return math.prod(squares) ** (0.5 / len(squares))

    def merged(self, angle: float) -> Network:
        """Return the network with its parallel neurons merged.

        It is kept once made. An attacker may merge: that needs the weights alone.

        Args:
            angle: largest angle of two neurons that become one, in radians; 0 merges nothing.

        Returns:
            The merged network; see `merging`.
        """
        return self.net if angle == 0 else self._merge(angle).net

    def prepared_network(self, angle: float, same_slopes: bool = False) -> Prepared:
        """Return the merged network as the batched loss wants it.

        It is kept once made.

        Args:
            angle: as in `merged`, in radians.
            same_slopes: whether its neurons keep the mean slope of those that they stand for; see
                `merging`.

        Returns:
            The network with what the loss needs of it.
        """
        slopes = self._merge(angle).slopes if same_slopes and angle else None
        made: Prepared = self.kept(
            ("prepared", angle, slopes is None), lambda: Prepared.of(self.merged(angle), slopes)
        )
        return made

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it makes
        """Return what `make()` returns, made once for each `key`: what an attack reads off weights.

        Args:
            key: names what is made; another attack needs another key.
            make: a function without arguments, called for the first use of `key` only.

        Returns:
            What `make` returned then.
        """
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def latest(self, key: Hashable, of: object, make: Callable[[], T]) -> T:
        """Return what `make()` returns, made anew where it is wanted of another object than before.

        Args:
            key: names what is made; another attack needs another key.
            of: what it is made of; the very same object, and not an equal one, is the same.
            make: a function without arguments.

        Returns:
            What `make` returned for this object.
        """
        held = self._kept.get(key)
        if held is None or held[0] is not of:
            self._kept[key] = held = (of, make())
        made: T = held[1]
        return made

    def _merge(self, angle: float) -> Merged:
        made: Merged = self.kept(("merged", angle), lambda: _merge_on_cpu(self.net, angle))
        return made


def _of_columns(net: Network, columns: Tensor) -> Network:
    """Return the network that reads these coordinates alone."""
    first, *others = net.weights
    return replace(net, weights=(first[:, columns].contiguous(), *others))


def _merge_on_cpu(net: Network, angle: float) -> Merged:
    made = merge_neurons(net.to(device="cpu"), angle, drop=0.0, fold=FOLD)  # neuron by neuron
    slopes = tuple(slope.to(net.device) for slope in made.slopes)
    return replace(made, net=made.net.to(device=net.device), slopes=slopes)
