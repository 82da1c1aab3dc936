"""What an attacker may see: trained weights, brought to margin 1, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

from explorer.engine.network import Network, rescaled


@dataclass(frozen=True, eq=False)
class Target:
    """The attacked network at margin 1; no attack is given more than this.

    Attributes:
        net: homogeneous weights with min_i y_i Phi(theta; x_i) = 1 on the unseen training data.
    """

    net: Network

    def __post_init__(self) -> None:
        """Refuse networks to which the KKT conditions do not apply."""
        if self.net.order < 1 or not math.isfinite(float(self.net.rho)):
            raise ValueError(f"the weights must be finite; got norm {float(self.net.rho)}")

    @classmethod
    def of(cls, net: Network, margin: float) -> Target:
        """The network divided by margin^(1/order), so that its margin is 1 (theory of homogeneity).

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
