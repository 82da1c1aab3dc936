"""What the frame of the screen says: stages, keys, what the plane shows, and the opening."""

from __future__ import annotations

from explorer.engine.roster import by_key
from explorer.engine.statement import Action
from explorer.page.frame import Frame, Stage

NO_ENERGY = (
    "with biases beyond the first layer no theorem says that the weights are a sum over points, "
    "so starts have no energy. Choose biases of the first layer only in 2 Train"
)
KEYS = (
    ("F", "present: plane and pictures large, no settings; F or Escape ends it"),
    ("1 to 4", "on the plane: the class of the next points"),
    ("P, M, E", "on the plane: place, move, erase"),
    ("arrows, Enter", "on the plane: move the cursor, act"),
    ("Ctrl+Z, Ctrl+Y", "on the plane: undo, redo"),
)
ASK = "Where must a point be?"
COMPARE = Action("compare", "Compare attacks")
JUMP = "Jump to the exact solution"
QUICK = 40  # points whose exact solution takes a fraction of a second
HELP = (
    "Draw points, train a network on them, and let an attack look for them in its weights alone. "
    "Underlined words say what they mean; Legend, on the plane, says it of each mark."
)


# What stands beside a recording while it plays, by scene: a title, or None for the headline's, and
# words that stand as long as their scene.
PLAYED: dict[str, tuple[str | None, str]] = {
    "draw": ("Points are drawn", "They are what the network is trained on."),
    "train": (None, "The closest calls grow large: they hold the margin."),
    "attack": (None, "The attack sees the weights alone. Filled are the points that it tries."),
}
# Of the run of the opening, where all neighbours differ and all points are found.
RECORDED: dict[str, tuple[str | None, str]] = {
    "draw": ("Points of two classes are drawn", "Each neighbour is of the other class."),
    "train": PLAYED["train"],
    "attack": (None, "Only the weights are kept. The attack moves its candidates onto points."),
}
# The selector of the part, and the words.
MARKS = (
    (".mx-action", "Draw points, or press the filled button: it always leads on."),
    (".mx-tabs", "Six stages, from drawing to comparing attacks. Go back and forth as you like."),
)


def stage_gap(frame: Frame, stage: Stage) -> str:
    """Return why a stage cannot be had yet, or an empty string."""
    state = frame.training.state
    if stage == "draw":
        return ""
    if not frame.dataset.n:
        return "draw points first"
    if stage == "train":
        return ""
    if state is None:
        return "train a network first"
    if not float(state.q.min()) > 0:
        return "the network does not separate the points"
    own = by_key(frame.attack.name).own is not None
    return NO_ENERGY if stage == "landscape" and not (own or state.net.homogeneous) else ""


def stage_tip(frame: Frame, stage: Stage, tip: str) -> str:
    """Return the tooltip of a stage: what it is for, and why it cannot be had yet."""
    gap = stage_gap(frame, stage)
    return f"{tip}. Not yet: {gap}." if gap else tip


def opening_words(name: str, share: float | None = None) -> str:
    """Return what the page says while it trains for an example."""
    return f"Training for the example {name!r}{'' if share is None else f': {share:.0%}'} …"


def exact_action(frame: Frame) -> Action | None:
    """Return the way to the exact network of the points of this training, where it is quick."""
    part, n = frame.training, frame.dataset.n
    if part.state is None or part.given or part.weight_decay or not 0 < n <= QUICK:
        return None
    net, private = part.state.net, part.plan and part.plan.train_config.private_noise
    solved = net.homogeneous and len(net.weights) == 2 and net.d <= 2 and net.outputs == 1
    current = frame.aim is None or frame.newest
    return Action("exact", JUMP) if solved and current and not private else None
