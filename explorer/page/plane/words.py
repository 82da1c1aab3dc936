"""What is said of the plane: how to work on it, and what each glyph on it means."""

from __future__ import annotations

from explorer.engine.number_words import share

KEYS = (
    "Click to place, drag to spray. Keyboard: arrows move the cursor (Shift: further), Enter acts, "
    "Delete erases, 1 to 4 choose the class, P place, M move, E erase, Ctrl+Z undo, Ctrl+Y redo."
)
FOLDED_KEYS = "The pencil edits the points. Keyboard: Ctrl+Z undo, Ctrl+Y redo."
FIRST = "Click to place a point, drag to spray, or take a set."
FIRST_ALONE = "Click to place a point, drag to spray."  # where no sets are offered
FIRST_ON_LINE = "Click above the axis to place a ● point, below it to place a ▲."
LINE = "This is a line. Two coordinates: Draw on the plane."
EXPLAIN_KEYS = (
    "Click a point with ◉ and drag it along the thick line; with Shift, anywhere. Keyboard: Tab "
    "chooses a point, arrows drag it (Shift: further), Enter lets go, F frees the drag, M merges, "
    "Ctrl+Z undo, Ctrl+Y redo."
)
LANDSCAPE_KEYS = (
    "Click a point to see the map of its energy; drag any point to move it. Keyboard: Tab chooses "
    "a point, arrows move it (Shift: further), Ctrl+Z undo, Ctrl+Y redo."
)
PROOF_KEYS = (
    "Press or drag: no point may be in the disc. The wheel, + and − change its size. Keyboard: "
    "arrows move it (Shift: further), Delete lifts it."
)
CURVE_KEYS = (
    "Press, drag along the curve that the attacker knows, and let go. Keyboard: arrows move the "
    "cursor (Shift: further), Space adds a corner, Backspace takes one back, Enter ends, Escape "
    "cancels."
)
CURVE_HELP = "Drag along it, or Space at each corner, then Enter."
CURVE_KNOWN = "The attacker knows this curve."
FIRST_OF_CURVE = "Draw the curve that the attacker knows."
# Of each glyph its name in the legend, and one sentence.
ROWS: dict[str, tuple[str, str]] = {
    "point": ("training point", "A training point, of one class or another."),
    "weighted": ("training point", "A training point: larger carries more of the weights."),
    "held": ("training point", "A training point: large if it holds the margin, as counted."),
    "truth": ("training point", "A training point of the attacked weights."),
    "traceless": ("leaves no trace", "A training point that leaves no trace in the weights."),
    "candidate": ("candidate", "A candidate of the attack: larger carries more of the weights."),
    "unused": ("not claimed", "A candidate that is no part of a claim."),
    "wrong": ("wrong claim", "A wrong claim: no training point of its class is near."),
    "found": (
        "recovered",
        "Recovered: a training point of its class is within the distance that counts.",
    ),
    "hit": (
        "recovered, perhaps by chance",
        "A training point of its class is within the distance that counts; chance may do as much.",
    ),
    "certified": (
        "certified",
        "Certified: any set as good, within the limits under Numbers, has a point here.",
    ),
    "likely": ("likely", "Likely to hold a training point, by a threshold: it can be wrong."),
    "beside": (
        "second claim",
        "A second claim of a point that is recovered already: it counts as not right.",
    ),
    "unknown": ("claim", "A claim: no training points are known, so it may be right or wrong."),
    "splits": (
        "can become two",
        "It can become two on its line, and the two explain the same weights.",
    ),
    "fixed": (
        "cannot be split",
        "It cannot become two; another set may do without it all the same.",
    ),
    "other": ("another set", "A point of another set that explains the weights, too."),
    "cross": ("looked at", "A place that the attack looks at, or has looked at."),
    "ring": ("chosen place", "A place that the attack on screen has chosen; its words say why."),
    "diamond": ("explains most", "Of all places looked at, a point here explains most."),
    "place": ("place of a point", "Somewhere in this square a training point of its colour lies."),
    "disc": ("forbidden", "The region in which no point may be: the others explain what they can."),
    "hand": ("in hand", "The point in hand, or under the pointer in a chart."),
    "links": ("claim and point", "Joins a claim to the training point that it recovers."),
    "trail": ("way so far", "Where a candidate has been."),
    "graph": ("output", "The output of the network over the line, in margins."),
    "breakpoints": ("kink", "A neuron switches on or off at this place of the line."),
    "neurons": ("kink", "A neuron switches on or off here, and the network bends."),
    "lines": ("line", "Joins what belongs together."),
    "strong": ("thick line", "A path that the words beside the plane speak of."),
    "curve": ("known curve", "The curve that is to hold the points: the attacker is granted it."),
    "area": ("region", "A region that the words beside the plane speak of."),
    "spans": ("interval", "An interval that the words beside the plane speak of."),
    "map": ("class", "The class that the network gives here: paler is less sure."),
    "boundary": ("boundary", "The network’s answer changes here from one class to another."),
    "margins": ("margin", "A class leads by the smallest margin here."),
}

# --- the band of weights ------------------------------------------------------------------------
BAND = ("Weights", "The weights as needles, one a neuron, and how the points add up to them")
NO_SUM = "Biases beyond the first layer: no theorem makes these weights a sum over points."
SEVERAL_SUM = "With several outputs a point pulls at a pair of them: its pull is not drawn here."
HIDDEN_SUM = "The truth is hidden, and so is what its points add up to."
NO_POINTS = "The training points are not known, so nothing is known to add up."


def band_title(n: int, many: bool, of: int = 0) -> str:
    """Return what stands above n needles: of neurons, or of directions where they are `many`.

    `of`: how many neurons there are before parallel ones are merged.
    """
    if many or of > n:
        return f"θ in {n} directions"
    return f"θ of {n} neurons" if n > 1 else "θ of one neuron"


def left_words(left: float, t: int = -1, by: str = "") -> str:
    """Return which share of the weights is unexplained: what glows in the band.

    `t`: the step that it is of, where it is an earlier one. `by`: whose sum leaves it over, where
    it is not that of the training points.
    """
    when, whose = f" at step {t:,}" if t >= 0 else "", f" by {by}" if by else ""
    return f"unexplained{whose} {share(left)}{when}"


def points_leave(left: float) -> str:
    """Return what the points leave, after what candidates do that explain more: no better ones."""
    return f", less than the training points’ {share(left)}"


def band_label(k: int) -> str:
    """Return what a screen reader says of the band of k neurons."""
    return (
        f"Weights of {k} neurons as needles, sorted by direction. Arrows go from one to the next "
        "and light its line on the plane; Escape ends that."
    )
