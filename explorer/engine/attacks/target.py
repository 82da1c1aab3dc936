"""What an attacker may see: trained weights, brought to margin 1, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from explorer.engine.merging import merge_neurons
from explorer.engine.network import Network, rescaled


@dataclass(frozen=True, eq=False)
class Target:
    """The attacked network at margin 1; no attack is given more than this.

    Attributes:
        net: homogeneous weights with min_i y_i Phi(theta; x_i) = 1 on the unseen training data.
    """

    net: Network
    _merged: dict[float, Network] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse networks to which the KKT conditions do not apply."""
        rho = float(self.net.rho)
        if self.net.order < 1 or not (math.isfinite(rho) and rho > 0):
            raise ValueError(f"the weights must be finite and not all zero; got norm {rho}")

    @classmethod
    def of(cls, net: Network, margin: float) -> Target:
        """The network with `margin` divided out: margin^(-1/order) theta has margin 1.

        Raises:
            ValueError: where `margin` is not a positive number (the data are not separated), or
                where a bias beyond the first layer breaks homogeneity.
        """
        if not (math.isfinite(margin) and margin > 0):
            raise ValueError(
                f"the margin must be positive and finite; got {margin}. "
                "Train until every point is on its side."
            )
        return cls(rescaled(net, margin ** (-1 / net.order)))

    @property
    def mass(self) -> float:
        """The sum of the multipliers at any exact KKT point, rho^2 / order (norm identity)."""
        return float(self.net.rho) ** 2 / self.net.order

    def merged(self, angle: float) -> Network:
        """The network with its parallel neurons merged, kept once made; angle 0 merges nothing.

        An attacker may do so: it needs the weights alone. `angle` in radians, see `merging`.
        """
        if angle == 0:
            return self.net
        if angle not in self._merged:
            self._merged[angle] = merge_neurons(self.net, angle).net
        return self._merged[angle]
