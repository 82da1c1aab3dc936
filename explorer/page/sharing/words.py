"""What the page says when it is shared: links, files, and the game of two."""

from __future__ import annotations

from explorer.engine.data import PRESETS
from explorer.engine.explanations.cone import scope
from explorer.engine.explanations.needed import Needed
from explorer.engine.number_words import count, share
from explorer.engine.scoring import Verdict
from explorer.engine.store import Run
from explorer.engine.training import TrainState
from explorer.research.game import GuessScore
from explorer.research.hall import BUILT_IN, DRAWINGS, HallGuess, HallScore

ANEW = (
    "No link can make these weights again: they came from a file, or points or settings changed "
    "while they were trained. The link begins before the first step; save the run to keep them."
)
WEIGHTS = "These weights came from elsewhere: the link holds points and settings. Save the run too."
ATTACK_ANEW = "This attack was run elsewhere: the link begins it anew."
OPENED = "Opened from a link, trained and attacked as there: the same numbers, to rounding."
OPENED_POINTS = "Opened from a link: the points and settings."


def opening_link(share: float) -> str:
    """Say how far a link is opened."""
    return f"Opening a link: {share:.0%} of its steps are done."


MAKING_PAGE = "The page is being made; it is saved when it is done, in some seconds."
MAKING = "The film is being drawn; it is saved when it is done, in some seconds."
RECORDING = "The video is being recorded at its own pace; it is saved when it is done, in {:.0f} s."
NO_VIDEO = (
    "This browser records no video. Save the GIF; the program ffmpeg makes an MP4 of it: "
    "ffmpeg -i training.gif training.mp4"
)
AS_VIDEO = "The same as MP4, or as WebM where the browser makes no MP4"
# What can be saved: its name, then key, label and tooltip of each kind.
FILES = (
    ("Points", (
        ("csv", "CSV", "A header x1,x2,y and a line a point"),
        ("npz", "NPZ", "Arrays x and y for NumPy"),
    )),
    ("Run", (
        ("run", "Run file", "Points, network, settings and history in one file"),
        ("page", "A page that plays", "One file: the run plays in any browser, without Python"),
        ("report", "Report", "One page to cite: picture, numbers, settings, link and code"),
    )),
    ("Picture", (
        ("pdf", "PDF", "For print: plane and margins, two columns wide"),
        ("svg", "SVG", "The same to edit"),
        ("png", "PNG", "The same at 300 dpi"),
    )),
    ("Training", (
        ("train", "GIF", "A film: the network at 60 steps of its training"),
        ("train-video", "Video", AS_VIDEO),
    )),
    ("Attack", (
        ("attack", "GIF", "A film: the candidates at 60 steps of the attack"),
        ("attack-video", "Video", AS_VIDEO),
    )),
)  # fmt: skip


def size_of(link: str, run: Run) -> str:
    """Say what a link holds."""
    if not link:
        return "Draw points first: a link holds them with the settings."
    steps = "" if not run.steps[0] else f", {run.steps[0]:,} steps of training"
    steps += "" if not run.steps[1] else f" and {run.steps[1]:,} of the attack"
    return f"{count(run.dataset.n, 'point')}, settings and seeds{steps}. No server is told."


ONLY_HERE = "Only this computer opens this link."
BEGIN_HALL = "Let the hall attack"  # the button of hall.js


def only_here(network: str) -> str:
    """Return who opens a link of 127.0.0.1, where the network knows the machine as `network`.

    The browser puts the page's address on the network in the place of {address}.
    """
    if not network:
        return f"{ONLY_HERE} Phones can still join: press {BEGIN_HALL}. {FOR_A_CLASS}"
    return f"{ONLY_HERE} Links of the page at {{address}} open for a class."


# --- The game of two ---------------------------------------------------------------------------

NO_GAME = "Hide your points in a network and give away its weights alone: can somebody guess them?"
HIDER = (
    "Give the challenge away and keep the reveal. It is sealed: nobody can change the points any "
    "more. When you have their guess, paste it here, and send them the reveal."
)
GUESSER = (
    "These weights hide somebody's points. Attack them, or draw what you suspect; then hand it in."
)
WAITING = "Your guess is fixed. Send it to the other player, and paste the reveal that you get."
DONE = "The seal fits: these are the points that were hidden."
COMPUTER_HIDES = "The computer draws points and trains a network on them …"


def score_row(mine: str, made: GuessScore) -> list[str]:
    """Return a row of the scores: who, points, and how."""
    wrong = made.guessed - made.found
    return [mine, str(made.points), f"{made.found} of {made.n} points found, {wrong} wrong"]


def hider_row(who: str, made: GuessScore) -> list[str]:
    """Return the hider's row."""
    return [who, str(made.kept), f"{made.n - made.found} of {made.n} points stayed hidden"]


# --- The hall attacks --------------------------------------------------------------------------

HALL = "The class taps on phones where it believes the points are; then the machine answers."
NOT_SERVED = (
    "Phones need an address to come to: start the page with margin-explorer serve "
    "--host 0.0.0.0, and open it at the address that the command prints."
)
FOR_A_CLASS = "For a class: margin-explorer serve --host 0.0.0.0 --class 30"
NO_PHONES = f"Only this computer opens this address. {FOR_A_CLASS}"
LATER = "The answer to the question is computed …"
OTHER = "The hall gets another network."
NO_OWN = f"This page has no network of two classes on the plane. {OTHER}"
SEEN = f"The class has seen the points of this page. {OTHER}"
NO_WEIGHTS = "draw points and train a network on them; then let the hall attack it."
CLAIMING, PROVING = "The machine attacks …", "The proof runs …"
TRAINING = "Another network is trained; phones go on with it by themselves …"
PAGE, OWN = "page", "This page's network"
# What a round can be of, beside the next set.
HALL_SETS = {"": "A new drawing"} | {name: PRESETS[name].title for name in BUILT_IN}
# What a phone can answer; the round carries these names to phones and projector.
HALL_ANSWERS = {"more": "More", "same": "As many", "fewer": "Fewer"}
HALL_SEALED = "The points are sealed: nobody can change them any more."
HALL_OPENED = "The seal fits these points: each phone can check it."


def hall_tapping(n: int) -> str:
    """Return what the hall is asked, on projector and phones."""
    return f"Where are the {n} points?" if n > 1 else "Where is the point?"


def hall_network(number: int, state: TrainState) -> str:
    """Return which round this is, and of what network: nothing of its points."""
    neurons = count(sum(state.net.widths), "neuron")
    how = f"{state.t:,} steps" if state.t else "solved exactly"
    return f"Round {number}: {neurons}, {how}"


OWN_POINTS = "the points of this page"


def hall_points(number: int, name: str, n: int) -> str:
    """Return which points a round was of, once they are shown: of a set, or "" of this page."""
    which = name.capitalize() if name in DRAWINGS else PRESETS[name].title if name else OWN_POINTS
    return f"Round {number}: {which}, ○ △ {count(n, 'point')}"


def hall_within(made: HallScore) -> str:
    """Return to a phone what machine and chance did."""
    machine = made.machine
    return f"{_machine_words(machine)}, chance {made.chance:.1f}."


def hall_rule(radius: float) -> str:
    """Return what a tap is and which counts, on projector and phones, in all acts."""
    within = f"It counts within {radius:g} of one: green at the end."
    return f"A tap guesses a point of the colour below it. {within}"


def hall_closing(beside: tuple[float, float] | None) -> str:
    """Return where points of a round stand, for the next one; "" without a boundary.

    `beside`: the quartiles of their distance from it.
    """
    if beside is None:
        return ""
    low, high = (f"{distance:.2f}" for distance in beside)
    far = low if low == high else f"{low} to {high}"
    return f"Half of the points stand {far} from the boundary: tap there next round."


def hall_title(places: Needed | None, claimed: int, n: int, proven: bool, revealed: bool) -> str:
    """Return what a round shows, in a title.

    Args:
        places: where a point must be; None where nothing can be proven.
        claimed: claims of the machine, as far as they are shown; 0 before.
        n: how many points there are.
        proven: whether the places are shown.
        revealed: whether the points are.
    """
    if revealed:
        return "These are the points"
    if proven:
        many = 0 if places is None else len(places.rows)
        return f"▢ {count(many, 'place')} must hold a point" if many else NO_PLACE
    return f"{count(claimed, 'claim')} of the machine" if claimed else hall_tapping(n)


def hall_claims(n: int, beyond: int = 0) -> str:
    """Return what the claims are made from.

    `beyond`: how many of them lie outside of the plane.
    """
    there = f"There are {n} points" if n > 1 else "There is 1 point"
    outside = f" {beyond} {'lies' if beyond == 1 else 'lie'} outside this plane." if beyond else ""
    return f"From the weights alone. {there}.{outside}"


def hall_places(made: Needed | None) -> str:
    """Return what is proven, and against what."""
    if made is None:
        return "Nothing can be proven of these weights."
    if not len(made.rows):
        return "Wherever a point may be, some set that explains the weights as well has none there."
    where = "each square" if len(made.rows) > 1 else "the square"
    return f"Any set that explains the weights as well has a point of its colour in {where}."


def hall_scope(made: Needed | None) -> str:
    """Return of which sets that is proven, for who asks; "" where nothing is."""
    if made is None or not len(made.rows):
        return ""
    return (
        f"Without one, more than {share(made.limit)} of the weights would stay unexplained. Proven "
        f"for all sets with {scope(made.box, made.top)}."
    )


def _machine_words(made: Verdict) -> str:
    """Return how many points the machine recovered."""
    return f"The machine recovered {made.found} of {count(made.n, 'point')}"


MACHINE, HALL_ROW, PROOF = "● ▲ The machine", "+ The hall", "▢ The proof"
CHANCE, BLIND = "Chance", "as many taps at random along the margin line"
NO_PLACE = "No place must hold a point"


def _guess_words(made: HallGuess) -> str:
    """Return how taps became the places of the hall."""
    if made.places.n < made.taps:
        return f"{made.places.n} most tapped places"
    return f"{count(made.phones, 'phone')}, {count(made.taps, 'tap')}"


def hall_open_rows(n: int, claimed: int, guess: HallGuess) -> list[list[str]]:
    """Return the rows of a round whose points are hidden: who, of how many points, and no share.

    Small print stands after a bar.
    """
    made = [(MACHINE, count(claimed, "claim")), (HALL_ROW, _guess_words(guess))]
    return [[f"{who}|{which}", f"? of {n}|", "0%"] for who, which in made]


def hall_rows(made: HallScore, again: int, places: int = 0, right: int = 0) -> list[list[str]]:
    """Return the rows of machine, hall, chance and proof: who, of how many points, which share.

    Small print stands after a bar. `again`: claims that hit a point once more; `places` are proven,
    and `right` of them hold a point.
    """
    n = made.machine.n
    rows = [
        [f"{who}|{which}", f"{many} of {n}|", f"{found / n:.0%}"]
        for who, which, many, found in (
            (MACHINE, _claims_words(made.machine, again), made.machine.found, made.machine.found),
            (HALL_ROW, _guess_words(made.guess), made.hall, made.hall),
            (CHANCE, BLIND, f"{made.chance:.1f}", made.chance),
        )
    ]
    if places:
        which = "" if places == right else f"{count(places, 'place')}, "
        rows.append([f"{PROOF}|{which}proven to be there", f"{right} of {n}|", f"{right / n:.0%}"])
    return rows


def _claims_words(made: Verdict, again: int) -> str:
    """Return how many claims there are, and what became of those that recovered no point."""
    wrong = made.claims - made.found - again
    rest = [f"{many} {what}" for many, what in ((again, "repeated"), (wrong, "wrong")) if many]
    return ", ".join([count(made.claims, "claim"), *rest])


def hall_missed(missed: int, traceless: int | None, off: int) -> str:
    """Return why the machine missed points; "" where it missed none, or no reason is known.

    Args:
        missed: points that no claim recovered.
        traceless: how many of them leave no trace in the weights; None where that is not known.
        off: how many of them do not hold the margin.
    """
    if not missed:
        return ""
    them = "it leaves" if missed == 1 else "they leave"
    if traceless == missed:
        return f"The machine missed {missed}: {them} no trace in the weights."
    if traceless:
        leave = "leaves" if traceless == 1 else "leave"
        return f"The machine missed {missed}; {traceless} of them {leave} no trace in the weights."
    if traceless is None and off == missed:
        lie = "it lies" if missed == 1 else "they lie"
        return f"The machine missed {missed}: {lie} off the margin."
    return ""


def hall_question() -> str:
    """Return the question beside the taps."""
    return "Trained twice as long: would the machine recover more points?"


def hall_later(before: int, after: int) -> str:
    """Return the right answer to it, as a phone names it."""
    return "more" if after > before else "fewer" if after < before else "same"


def hall_answer(before: int, after: int) -> str:
    """Return its answer in words."""
    instead = f" instead of {before}" if after != before else " again"
    return f"Trained twice as long: {count(after, 'point')}{instead}."
