"""The attack's step as published, in plain autograd with a double backward, to hold ours against.

Written from the formulas of Haim et al. 2022 (eq. 5 and section 5.1) alone: the network is run with
a ReLU whose derivative is sigmoid(alpha z), sum_i lam_i y_i Phi(x_i) is differentiated on theta
with a graph, and the loss is differentiated once more. `python benchmarks/reference.py` checks that
loss and gradients equal those of `explorer.engine.kernels.reference` to 1e-10.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.kernels.reference import signals_at, stationarity
from explorer.engine.network import Network, init_network


class _Relu(torch.autograd.Function):
    """relu(z) forward, sigmoid(alpha z) backward, with a live second derivative."""

    @staticmethod
    def forward(ctx, z: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.alpha = alpha
        return z.clamp_min(0)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        (z,) = ctx.saved_tensors
        return grad * torch.sigmoid(ctx.alpha * z), None


def forward(parameters: list[Tensor], net: Network, x: Tensor, alpha: float) -> Tensor:
    """Phi (m,) with the given parameters, in the order of `net.parameters`."""
    left = iter(parameters)
    a = x
    for layer, bias in enumerate(net.biases):
        w = next(left)
        z = a @ w.T if bias is None else a @ w.T + next(left)
        a = _Relu.apply(z, alpha) if layer < len(net.weights) - 1 else z
    return a[:, 0]


def loss_of(
    parameters: list[Tensor], net: Network, x: Tensor, y: Tensor, lam: Tensor, alpha: float
) -> Tensor:
    """|| theta - sum_i lam_i y_i grad Phi(x_i) ||^2, ()."""
    total = (lam * y * forward(parameters, net, x, alpha)).sum()
    grads = torch.autograd.grad(total, parameters, create_graph=True)
    return sum((p.detach() - g).square().sum() for p, g in zip(parameters, grads, strict=True))


@dataclass
class Reference:
    """Candidates, multipliers and their momentum, stepped in place by SGD as published."""

    net: Network
    x: Tensor
    y: Tensor
    lam: Tensor
    alpha: float
    lr: float = 1e-6  # small, so that all steps are alike
    momentum: float = 0.9

    def __post_init__(self) -> None:
        self.parameters = [p.detach().clone().requires_grad_() for p in self.net.parameters]
        self.x = self.x.clone().requires_grad_()
        self.lam = self.lam.clone().requires_grad_()
        self.v = [torch.zeros_like(self.x), torch.zeros_like(self.lam)]

    def step(self) -> float:
        """One full-batch step; the loss before it."""
        for p in (*self.parameters, self.x, self.lam):
            p.grad = None
        loss = loss_of(self.parameters, self.net, self.x, self.y, self.lam, self.alpha)
        loss.backward()
        with torch.no_grad():
            for p, v in zip((self.x, self.lam), self.v, strict=True):
                v.mul_(self.momentum).add_(p.grad)
                p.sub_(self.lr * v)
        return float(loss.detach())


def problem(
    d: int, widths: tuple[int, ...], m: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Network, Tensor, Tensor, Tensor]:
    """A random network at norm 1 per layer with candidates x (m, d), y (m,), lam (m,)."""
    generator = torch.Generator().manual_seed(seed)
    net = init_network(d, widths, generator=generator, first_scale=d**-0.5, dtype=dtype)
    x = torch.randn(m, d, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).to(dtype)
    lam = torch.rand(m, generator=generator, dtype=torch.float64).to(dtype)
    return net, x, y, lam


def largest_difference(d: int, widths: tuple[int, ...], m: int, alpha: float = 50.0) -> float:
    """The largest relative difference of loss and gradients between the reference and ours."""
    net, x, y, lam = problem(d, widths, m)
    theirs = Reference(net, x, y, lam, alpha)
    loss = loss_of(theirs.parameters, net, theirs.x, y, theirs.lam, alpha)
    loss.backward()
    ours = stationarity(net, signals_at(net, x, alpha), y, lam, alpha)
    pairs = ((loss, ours.loss), (theirs.x.grad, ours.grad_x), (theirs.lam.grad, ours.grad_lam))
    return max(float((a - b).norm() / a.norm()) for a, b in pairs)


def published_training(points: Tensor, y: Tensor, width: int, seed: int, within: float) -> int:
    """Full-batch SGD as published (Haim et al.): epochs until all margins lie within `within`.

    First layer and its bias N(0, 1e-8), the output at torch's default, mean BCE with logits, rate
    0.01; plain autograd. Looks at the margins every 1000 epochs.
    """
    generator = torch.Generator().manual_seed(seed)
    net = init_network(points.shape[1], (width,), generator=generator, first_scale=1e-4)
    parameters = [p.clone().requires_grad_() for p in net.parameters]
    wanted = (y + 1) / 2
    for epoch in range(1, 2_000_001):
        hidden = (points @ parameters[0].T + parameters[1]).relu()
        out = (hidden @ parameters[2].T)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, wanted)
        grads = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, g in zip(parameters, grads, strict=True):
                p -= 0.01 * g
            if epoch % 1000 == 0:
                q = y * out
                if float(q.min()) > 0 and float(q.max()) <= (1 + within) * float(q.min()):
                    return epoch
    raise RuntimeError("the published settings did not get there in 2,000,000 epochs")


def main() -> None:
    for d, widths, m in ((2, (1000,), 40), (2, (300, 300), 60), (64, (200, 200, 100), 50)):
        difference = largest_difference(d, widths, m)
        print(f"{d}-{'-'.join(map(str, widths))}-1, m = {m}: largest difference {difference:.1e}")
        if difference > 1e-10:
            raise SystemExit("the reference and the engine differ")


if __name__ == "__main__":
    main()
