"""Settings of the bilevel attack."""

from __future__ import annotations

from explorer.parts.settings import Row, Rows, choice, real, whole


def rows() -> Rows:
    """How the weights were trained in sight, and how the implicit step is taken."""
    shown = [
        Row("model", choice("model", "The network that is trained and attacked: affine, or one "
                            "hidden layer; biases in all layers", ("affine", "affine"),
                            ("one hidden layer", "hidden"))),
        Row("loss", choice("training loss", "Of the lower level: log(1 + exp(−yz)), or half the "
                           "squared error", ("logistic", "logistic"), ("ridge", "ridge"))),
        Row("solver", choice("inverse Hessian", "How H p = θ(x) − θ* is solved",
                             ("exact", "exact"), ("conjugate gradients", "cg"),
                             ("quasi-Newton", "quasi-newton"))),
        Row("lr_x", real("rate of x", "Learning rate of the candidates", 1e-8, 1e3)),
    ]  # fmt: skip
    folded = [
        Row("mu", real("weight decay μ", "Of ‖θ‖²/2 in the training energy", 1e-8, 1e3)),
        Row("width", whole("hidden neurons", "Of the one hidden layer", 1, 200)),
        Row("beta", real("softplus β", "Sharpness of the softplus that stands for ReLU",
                         0.1, 1000)),
        Row("damping", real("damping", "Added to the Hessian in the implicit step", 0, 1e3)),
        Row("restart", whole("restart every", "Steps after which the lower level is solved from "
                             "θ* too; 0: never", 0, 100_000)),
        Row("solver_tol", real("tolerance", "Relative residual at which the two iterative solvers "
                               "stop", 1e-15, 1)),
        Row("solver_steps", whole("most products", "Products with the Hessian after which they "
                                  "stop", 1, 100_000)),
        Row("memory", whole("pairs kept", "Of the quasi-Newton estimate", 1, 1000)),
        Row("optimizer", choice("optimiser", "Heavy ball, or Adam", "momentum", "adam")),
        Row("momentum", real("momentum", "Of either, below 1", 0, 0.999)),
        Row("decay", real("last rate", "Last rate as a share of the first", 1e-6, 1)),
        Row("sigma_x", real("noise σ_x", "Standard deviation of a start from noise", 0, 5)),
        Row("m", whole("candidates m", "Where no start is given; on the page there are as many as "
                       "points", 2, 400)),
        Row("steps", whole("steps", "Length of the attack", 1, 1_000_000)),
    ]  # fmt: skip
    return shown, folded
