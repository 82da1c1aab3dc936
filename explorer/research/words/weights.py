"""Weights in words: how a run stands, how near to a KKT point it came, what had to be assumed."""

from __future__ import annotations

from explorer.engine.attacks.target import NO_THEOREM, Target
from explorer.engine.certificate import TAU_EXACT, Certificate, Light
from explorer.engine.exact import PROVED, Exact
from explorer.engine.exact.finish import Finished
from explorer.engine.network import Network
from explorer.engine.number_words import per_cent_above, plain, share
from explorer.engine.status import Status

SURE = plain(format(PROVED, "g"))  # as a word
_STATUS = {
    Status.RUNNING: "Running.",
    Status.FINISHED: "Finished: all planned steps are done. Raise the number of steps to go on.",
    Status.COMPLETE: "Finished: the algorithm has come to its end, and nothing is left to do.",
    Status.CONVERGED: "Converged: another step changes less than the set tolerance.",
    Status.DEAD: "Stopped: no neuron is active on any point, so the gradient is zero. "
    "Take a new seed, more neurons, a larger initialisation, or a smaller step size.",
    Status.DIVERGED: "Stopped before a step that would not be finite; the last finite state is "
    "kept. Lower the step size or take the loss-scaled step.",
}
_LIGHT = {
    Light.NOT_SEPARATED: "Not separated yet: there is no margin, so no KKT point to be near to.",
    Light.SEPARATED: "Separated, but far from a KKT point: keep training (with weight decay it "
    "ends elsewhere).",
    Light.APPROACHING: "Approaching a KKT point: part of the weights is explained by the points.",
    Light.NEAR: "Near a KKT point: most of the weights is explained by the points.",
    Light.EXACT: "A KKT point to numerical precision. It need not be the one of largest margin.",
}
TAKEN_AS_RELU = (
    "The weights came from a file that names no activation: the network was taken as ReLU. For "
    "another one nothing that is said here holds."
)


def unit_note(unit: float) -> str:
    """Return that points were divided by their unit, and what follows for lengths."""
    size = f"{unit:,.0f}" if unit > 1 else f"1/{1 / unit:,.0f}"
    return (
        f"These points are far {'larger' if unit > 1 else 'smaller'} than the plane: they were "
        f"divided by {size}, and all places and lengths are in units of {size}."
    )


def status(made: Status) -> str:
    """Return how a run stands, with a remedy where it needs one."""
    return _STATUS[made]


def light(made: Light) -> str:
    """Return how near to a KKT point weights of this light are."""
    return _LIGHT[made]


def certificate(made: Certificate) -> str:
    """Return how near to a KKT point the weights are, with the numbers."""
    n = len(made.q)
    if not n:
        return "No points yet: draw some, of both classes, and train."
    if made.light is Light.NOT_SEPARATED:
        wrong = int((made.q <= 0).sum())
        return f"{light(made.light)} {wrong} of {n} points are not on their side."
    text = (
        f"{light(made.light)} {made.n_support} of {n} points carry it; {share(made.residual)} of "
        f"the norm of the weights is left unexplained, slackness {share(made.slackness)} "
        f"(slopes free at {made.n_kinks} kinks, tau = {made.tau:g})."
    )
    if made.residual_exact is not None:
        text += f" With tau = {TAU_EXACT:g}, {share(made.residual_exact)} is left."
    return text + (" At the edge of the next verdict." if made.at_edge else "")


def optimum(made: Exact) -> str:
    """Return what is known of a network that was solved for."""
    if made.polished:
        return f"The largest margin over all widths, proved up to {SURE} of ‖θ‖²."
    return (
        "The best network found. A larger margin is not ruled out, but at margin 1 no network has "
        f"a ‖θ‖² smaller by more than {per_cent_above(made.shortfall)}."
    )


def end_of_training(made: Finished) -> str:
    """Return what is known of a network that was trained to the end."""
    where = f"over the {made.cells} cells of the trained neurons and their neighbours"
    if made.proved:
        text = f"The best network {where}, to {SURE} of ‖θ‖²."
    else:
        text = (
            f"The best network found {where}: none of them at margin 1 has a ‖θ‖² smaller by "
            f"more than {per_cent_above(made.gap)}."
        )
    return f"{text} A network farther away may have a larger margin: finish again to look for it."


def end_numbers(made: Finished) -> list[tuple[str, str]]:
    """Return the numbers of a network that was trained to the end."""
    sure = SURE if made.proved else per_cent_above(made.gap)
    return [
        ("trained to the end over", f"{made.cells} cells, of the neurons and their neighbours"),
        ("‖θ‖² that a better one there could save", f"{sure} at most"),
    ]


def training_errors(wrong: int, n: int) -> str:
    """Return what weights are worth that are wrong on some training points; "" for none."""
    if not wrong:
        return ""
    verb = "is" if wrong == 1 else "are"
    return (
        f"{wrong} of {n} training images {verb} on the wrong side. No theorem leads such weights "
        "to a KKT point; the median margin of the others stands for the margin."
    )


def note(net: Network) -> str:
    """Return what had to be assumed of weights from a file; "" where nothing was."""
    return TAKEN_AS_RELU if net.assumed_relu else ""


def assumptions(target: Target, given: float | None, known: float | None) -> str:
    """Return what had to be assumed of attacked weights; "" where nothing was.

    Args:
        target: the weights.
        given: the margin that was given, or None.
        known: that of the known points, or None.
    """
    margin = ""
    if known is not None and given is not None:
        margin = f"The margin is that of the points, {known:.3g}."
    if known is None and given is None:
        margin = "The margin is not known and was taken as 1 (--margin)."
    theorem = "" if target.net.homogeneous else NO_THEOREM
    return " ".join(filter(None, (note(target.net), margin, theorem)))
