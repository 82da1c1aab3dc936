"""Words that a newcomer does not know, each in one plain sentence: the page explains them in place.

A word is told from the text by a pattern that Python and the browser read alike. Longer ones come
first, so that "KKT point" is not read as two.
"""

from __future__ import annotations

import json
import re

# A pattern, and below it the sentence. A letter alone is a word only where a number follows, or as
# a name.
WORDS = r"""
KKT(?: point)?s?
    A KKT point (Karush, Kuhn, Tucker) is where training comes to rest: the weights are then a
    weighted sum over the training points, and that sum is what an attack reads.

(?:[Mm]ultipliers?|λ(?! ?[₁₂]))
    A point’s multiplier λ is how strongly it carries the weights: 0 leaves no trace in them.

[Ee]nerg(?:y|ies)
    The energy of candidates is how much of the weights they leave unexplained, as a share of ‖θ‖²:
    0 leaves nothing.

[Ss]lackness
    Slackness is how much of the weights is carried by points off the margin: 0 at a KKT point.

[Uu]nexplained
    The share of the weights that these points do not add up to. Until training has ended, the
    training points leave some, too, and other points may leave less.

(?:[Ss]tationarity )?[Rr]esiduals?
    The residual is the share of the weights that the points do not explain: 0 at a KKT point.

[Nn]ormalised margins?
    The smallest margin divided by the size of the weights, so that two networks compare.

[Mm]argin error
    How far the points are off the margin on which they should lie, at most.

[Mm]argins?(?! price)
    The margin of a point is how clearly the network puts it on the side of its class; the
    margin of the network is the smallest of them.

[Cc]ertificates?
    A certificate is a calculation that shows how near the weights are to a KKT point.

[Cc]ertified
    A training point is certified if no set that explains the weights as well does without a
    point there, proven within the limits under Numbers.

NCC
    NCC says how alike two images are: 1 where their pixels rise and fall together, 0 where they
    have nothing to do with each other.

ρ(?= [=<])
    By proof the output at an unseen point is at most ρ margins: below ½ none is taken for a
    training point.

[Cc]andidates?
    A candidate is a point that the attack moves about until all of them explain the weights.

[Cc]ensus(?:es)?
    A census lets many starts roll straight down the energy, and counts where they end.

[Cc]laims?
    A claim is a place where the attack says that a training point lies.

[Uu]nseen (?:points?|sets?)
    Unseen points are of the same kind as yours, but the network never saw them: what an attack
    finds among them is chance.

[Pp](?= [=<])|^p$
    p is how often chance alone finds as much: below 0.05 it is hardly luck.

[Kk]inks?
    A kink is a line on which a neuron switches on or off, and the network bends.

^tau$
    Tau is how near to a neuron’s kink a point must be for its slope there to be free.

^chance$|^by chance$
    The number of points that the same claims would recover among unseen sets, on average.
"""


def _row(block: str) -> tuple[str, str]:
    """Return a pattern and its sentence from the lines of a word."""
    pattern, *lines = block.splitlines()
    return pattern, " ".join(line.strip() for line in lines)


GLOSSARY = tuple(map(_row, WORDS.strip().split("\n\n")))


# What a word lights in plane, band and chart while it is looked at, by a key of theirs.
LIGHTS = {
    "lambda": "λ", "margin": "margin", "kink": "kink", "candidate": "candidate", "claim": "claim",
    "unseen": "unseen points", "left": "unexplained", "certified": "certified",
}  # fmt: skip


def light_of(pattern: str) -> str:
    """Return what a word of the glossary lights, or an empty string."""
    return next((key for key, word in LIGHTS.items() if re.fullmatch(pattern, word)), "")


def script() -> str:
    """Return the glossary as the browser's half of the page reads it."""
    rows = [[pattern, sentence, light_of(pattern)] for pattern, sentence in GLOSSARY]
    return f"const GLOSSARY = {json.dumps(rows, ensure_ascii=False)};"
