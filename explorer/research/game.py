"""A game of two: one hides points in the weights of a network, the other guesses them.

    made = hide(data, net)              # the challenge to give away, and the reveal to keep
    guess = computer_guess(made.challenge)
    score_guess(opened(made.challenge, made.reveal), guess).points

The challenge holds the weights at margin 1 and a commitment, the SHA-256 of a salt and the points;
the reveal holds both. So the hider cannot change the points once the challenge is out, nobody can
try points out against the commitment, and a guess that was handed over before the reveal cannot be
changed either: each of the three is one line of text.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import struct
from dataclasses import dataclass, replace

import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.controls import control_sets
from explorer.engine.data import PRESETS, Dataset, preset, write_csv
from explorer.engine.data.presets import MAX_POINTS
from explorer.engine.files import FileError, reading
from explorer.engine.margin import q_of
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER, by_key
from explorer.engine.scoring import RADII, Verdict, score
from explorer.engine.store import Run
from explorer.engine.store.weights import from_state_dict
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.runs import RADIUS
from explorer.research.state import bytes_of, letters_of, link_of, read_link

OFF = 0.01  # how far the smallest margin of revealed points may be from 1: rounding, not luck
LONGEST_LINK = 8000  # characters; arbitrary: some programs cut longer ones
MOST_TEXT, MOST_BYTES = 4 * 2**20, 4 * 2**20  # arbitrary: weights of a width of 300-300 fit
CHALLENGE = re.compile(r"mxc1\.([A-Za-z0-9_-]+)")
REVEAL = re.compile(r"mxr1\.([0-9a-f]{32})\.(mx1\.[A-Za-z0-9_-]+)")
HIDDEN = ("alternating-circle", "moons", "xor", "random-circle")  # what the computer draws
TRIES, STEPS = 5, 6000  # arbitrary


class GameError(FileError):
    """A challenge, a guess or a reveal that does not hold; the message says why."""


@dataclass(frozen=True, eq=False)
class Challenge:
    """What is given away: weights and a commitment.

    Attributes:
        net: at margin 1, in float64.
        commitment: SHA-256 of salt and points, 64 hexadecimal digits.
    """

    net: Network
    commitment: str

    @property
    def text(self) -> str:
        """Return one line of text, for an address or a file; `read_challenge` reads it."""
        tensors = dict[str, torch.Tensor]()
        for i, (weight, bias) in enumerate(zip(self.net.weights, self.net.biases, strict=True)):
            tensors[f"{i}.weight"] = weight
            if bias is not None:
                tensors[f"{i}.bias"] = bias
        rows = [[name, list(part.shape)] for name, part in tensors.items()]
        head = json.dumps({"commitment": self.commitment, "rows": rows}).encode()
        numbers = [p.detach().cpu().numpy().astype("<f8").tobytes() for p in tensors.values()]
        data = struct.pack("<I", len(head)) + head + b"".join(numbers)
        return f"mxc1.{letters_of(data)}"


@dataclass(frozen=True, eq=False)
class Hidden:
    """What the hider has: the challenge to give away, and the reveal to keep until the guess."""

    challenge: Challenge
    reveal: str


def commitment_of(data: Dataset, salt: str) -> str:
    """Return the SHA-256 of the salt, a line break, and the points as CSV: anybody can check it."""
    return hashlib.sha256(f"{salt}\n{write_csv(data)}".encode()).hexdigest()


def hide(run: Run, net: Network) -> Hidden:
    """Return the challenge of weights that separate the points of `run`, and its reveal.

    Args:
        run: the points, and how the weights were trained where that is known.
        net: the trained weights.

    Raises:
        GameError: where the weights do not separate the points.
    """
    data = run.dataset
    least = float(q_of(net, data.x, data.y).min()) if data.n else 0.0
    if not least > 0:
        raise GameError("these weights do not separate the points: train on, then hide them.")
    salt = secrets.token_hex(16)
    weights = Target.of(net.to(device="cpu", dtype=torch.float64), least).net
    return Hidden(Challenge(weights, commitment_of(data, salt)), f"mxr1.{salt}.{link_of(run)}")


def is_challenge(text: str) -> bool:
    """Return whether there is a challenge in a text, such as an address."""
    return CHALLENGE.search(text) is not None


def read_challenge(text: str) -> Challenge:
    """Return the challenge in a text; GameError without one, or if damaged or too large."""
    found = CHALLENGE.search(text) if len(text) <= MOST_TEXT else None
    if found is None:
        raise GameError("this is no challenge, which begins with mxc1. Copy it again, whole.")
    with reading("the challenge", "Copy it again, whole.", GameError):
        data = bytes_of(found[1], MOST_BYTES)
        end = 4 + int.from_bytes(data[:4], "little")
        head = json.loads(data[4:end])
        made, at = dict[str, torch.Tensor](), end
        for name, shape in head["rows"]:
            if not 1 <= len(shape) <= 2 or not all(type(s) is int and 0 < s < 2**20 for s in shape):
                raise ValueError("a shape that no weights have")
            size = 8 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            if at + size > len(data) or not isinstance(name, str) or name in made:
                raise ValueError("weights are missing")
            part = bytearray(data[at : at + size])
            made[name], at = torch.frombuffer(part, dtype=torch.float64).reshape(shape), at + size
        commitment = head["commitment"]
        sealed = isinstance(commitment, str) and re.fullmatch("[0-9a-f]{64}", commitment)
        if at != len(data) or not sealed:
            raise ValueError("it has no commitment, or more than weights")
        net = replace(from_state_dict(made), assumed_relu=False)  # as all of our own are
        return Challenge(net, commitment)


def open_reveal(challenge: Challenge, reveal: str) -> Run:
    """Return the run of a reveal, checked against its challenge.

    Raises:
        GameError: where the text is no reveal, the points are not those of the commitment, or the
            weights do not separate them at margin 1.
    """
    found = REVEAL.search(reveal)
    if found is None:
        raise GameError("this is no reveal, which begins with mxr1. Copy it again, whole.")
    run = read_link(found[2])
    data, net = run.dataset, challenge.net
    if commitment_of(data, found[1]) != challenge.commitment:
        raise GameError("these are not the points that the challenge was made of: they changed.")
    if not data.n or data.d != net.d or data.outputs != net.outputs:
        raise GameError("there are no revealed points, or of another dimension or other classes.")
    least = float(q_of(net, data.x, data.y).min())
    if abs(least - 1) > OFF:
        raise GameError(
            f"the weights of the challenge are not at margin 1 on these points, but at {least:.3g}:"
            " they were trained on others."
        )
    return run


@dataclass(frozen=True, eq=False)
class GuessScore:
    """How good a guess is; both players' points.

    Attributes:
        found: how many points were guessed, each by a guess of its own.
        n: how many there are.
        guessed: how many were guessed in all.
        points: of the guesser, from 0 to 100: the mean (F1) of recall and precision.
        kept: of the hider, from 0 to 100: the share of points that were not found.
        verdict: against chance.
    """

    found: int
    n: int
    guessed: int
    points: int
    kept: int
    verdict: Verdict


def score_guess(run: Run, guess: Dataset) -> GuessScore:
    """Score a guess of the points of `run`: within 0.03 of a point, of its class, one to one.

    Raises:
        GameError: for a guess of another dimension.
    """
    truth = run.dataset
    if guess.d != truth.d:
        raise GameError(f"the guess has {guess.d} coordinates, the points have {truth.d}.")
    claims = Report(guess.x, guess.y, torch.ones_like(guess.y))
    found = int(score(truth, guess.x, guess.y).found[RADII.index(RADIUS)])
    made = runs.judgement(claims, truth, control_sets(truth), None, more=True)
    points = round(200 * found / (truth.n + guess.n)) if guess.n else 0
    return GuessScore(
        found, truth.n, guess.n, points, round(100 * (truth.n - found) / truth.n), made.verdict
    )


def guess_text(guess: Dataset) -> str:
    """Return a guess as one line of text; `read_guess` reads it."""
    return link_of(Run(guess, TrainConfig()))


def read_guess(text: str) -> Dataset:
    """Return the points of a guess. StoreError where there are none."""
    return read_link(text).dataset


def as_guess(claims: Report) -> Dataset:
    """Return the claims of an attack as a guess: of many those of the largest multipliers."""
    best = claims.heaviest_first()
    return Dataset(best.x[:MAX_POINTS].double(), best.y[:MAX_POINTS].double())


def computer_guess(challenge: Challenge) -> Dataset:
    """Return what the first attack that suits the weights claims, with its defaults."""
    target = Target.of(challenge.net, 1.0)
    name = next(key for key, row in ROSTER.items() if not row.refusal(target))
    if challenge.net.d == 1 and not by_key("univariate").refusal(target):
        name = "univariate"
    return as_guess(runs.attack(target, by_key(name).config(), seed=0, name=name).claims)


def computer_hides(seed: int) -> Hidden:
    """Return a challenge of the computer: points of a preset with a network trained on them.

    Raises:
        RunFailed: where no network separated its points.
    """
    for k in range(TRIES):
        name = HIDDEN[(seed + k) % len(HIDDEN)]
        row = PRESETS[name]
        n = max(row.n_min, min(row.n_max, 6 + (seed + k) % 7))
        data = preset(name, n, row.noise, seed + k)
        try:
            done = runs.train(Run(data, TrainConfig(widths=(100,), steps=STEPS), seed=seed))
        except runs.RunFailed:
            continue
        taken = (done.states[-1].t, 0)
        return hide(replace(done.run, stage="train", steps=taken), done.net)
    raise runs.RunFailed("the computer found no points that it could hide. Try again.")
