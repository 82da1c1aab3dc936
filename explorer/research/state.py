"""A run as one line of text: what a browser keeps, a link carries, and a cell or a command reads.

The text is a saved run, packed: `mx1.`, then zlib of the file's bytes in URL-safe base64.

>>> from explorer import Run, TrainConfig, preset
>>> from explorer.research.state import from_text, to_text
>>> text = to_text(Run(preset("moons", n=40), TrainConfig(), stage="train"))
>>> text[:4], len(text) < 2000
('mx1.', True)
>>> from_text(text).dataset.n, from_text(text).stage
(40, 'train')
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

from explorer.engine import store
from explorer.engine.files import MAX_BYTES, reading, safe_name
from explorer.engine.store import Run, StoreError

STAGES = ("", "draw", "train", "attack", "explain", "landscape", "arena")  # of the page; "": none
VERSION = 1  # raise it when an old text can no longer be read
MOST_TEXT = 16 * 2**20  # characters; arbitrary
TOO_LONG = "need more than the {} characters of a text. Save it as a file, or leave states out."
LEAST = 40  # characters: each link has more, and few names of files
REMEDY = "Copy it again, the whole of it."
FORM = re.compile(r"mx(\d{1,9})\.([A-Za-z0-9_-]*)\s*")
# What most texts hold, so that it need not be in them. Every text of version 1 was packed with it:
# it is never changed. What it does not hold, such as a setting made later, is packed without it.
_KNOWN = """\
"source": {"kind": "Source", "fields": {"preset": "moons", "n": 20, "noise": 0.06, "seed": 0}}, \
{"kind": "Run", "fields": {"dataset": {"kind": "Dataset", "fields": {"x": {"tensor": "t0"}, \
"y": {"tensor": "t1"}, "source": null}}, "train_config": {"kind": "TrainConfig", "fields": \
{"widths": [100], "bias": true, "all_biases": false, "loss": "exponential", "method": "gradient", \
"step_rule": "loss-scaled", "lr": null, "momentum": 0.9, "batch": null, "init_scale": 0.1, \
"init": "small", "steps": 10000000, "revive": true, "beta_end": 1000.0, "ascent_steps": 4000, \
"weight_decay": 0.0}}, "train_states": [], "attack_config": {"kind": "KKTConfig", "fields": \
{"m": 100, "steps": 2000, "multipliers": "projected", "optimizer": "adam", "lr_x": 0.02, \
"lr_lam": 0.02, "momentum": 0.9, "decay": 0.01, "sigma_x": 0.7, "relu_alpha": 200.0, \
"relu_alpha_start": 5.0, "lam_start": 2.0, "lam_min": 0.0, "prior": null, "weight_dual": 5.0, \
"weight_prior": 1.0, "weight_margin": 0.4, "merge_angle": 0.02, "same_slopes": false}}, \
"attack_states": [], "seed": 0, "mix": [0.0, 0.0], "versions": {"map": {"margin-explorer": \
"0.1.0", "python": "3.11.7", "torch": "2.13.0+cpu", "numpy": "2.4.6", "scipy": "1.17.1"}}, \
"attack_name": "kkt", "stage": "train", "steps": [0, 0]}}""".replace('"', '\\"')
_DICTIONARY = (
    '{"__metadata__":{"format":"margin-explorer run","run":"'
    f'{_KNOWN}","version":"1"}},"t0":{{"data_offsets":[0,320],"dtype":"F64","shape":[20,2]}},'
    '"t1":{"data_offsets":[320,480],"dtype":"F64","shape":[20]}}'
).encode()


def to_text(run: Run, most: int = MOST_TEXT) -> str:
    """Return the run as one line of at most `most` characters, with its steps in `Run.steps`.

    Raises:
        StoreError: where it needs more.
    """
    if 8 * _weights(run) > most:  # numbers are packed by a tenth at most
        raise StoreError(f"the weights of {len(run.train_states)} states {TOO_LONG.format(most)}")
    text = _pack(store.dump(replace(run, steps=without_states(run).steps)))
    if len(text) > most:
        raise StoreError(
            f"the run has {len(text)} characters as text: they {TOO_LONG.format(most)}"
        )
    return text


def without_states(run: Run) -> Run:
    """Return points and settings of a run, and how many steps were taken: what a link holds."""
    train, attack = run.train_states[-1:], run.attack_states[-1:]
    steps = (train[0].t if train else run.steps[0], attack[0].t if attack else run.steps[1])
    return replace(run, train_states=(), attack_states=(), steps=steps)


def is_text(content: bytes) -> bool:
    """Return whether a file begins as such a text does."""
    return re.match(rb"mx\d+\.", content) is not None


def from_text(text: str) -> Run:
    """Return the run of a text.

    Raises:
        StoreError: in one sentence, for anything else, or a text of a later version.
    """
    if len(text) > MOST_TEXT:
        raise StoreError(
            f"the text has {len(text)} characters; at most {MOST_TEXT} are read. {REMEDY}"
        )
    form = FORM.fullmatch(text)
    if form is None:
        raise StoreError(f"no text of a run: expected mx{VERSION}. and letters. {REMEDY}")
    if int(form[1]) != VERSION:
        raise StoreError(
            f"the text is of version {form[1]}; this Margin Explorer reads version {VERSION}. "
            "Open it with the one that wrote it."
        )
    with reading("the text", REMEDY, StoreError):
        return store.load(bytes_of(form[2], MAX_BYTES, _DICTIONARY))


def _weights(run: Run) -> int:
    """Return how many numbers the training states hold, at least: weights, gradients, velocity."""
    return sum(3 * sum(p.numel() for p in state.net.parameters) for state in run.train_states)


def _pack(data: bytes) -> str:
    """Return the text of a file; its header in one order, so that equal runs have equal texts."""
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # the numbers begin at a multiple of 8
    data = len(head).to_bytes(8, "little") + head + data[end:]
    return f"mx{VERSION}.{letters_of(data, _DICTIONARY)}"


def letters_of(data: bytes, known: bytes = b"") -> str:
    """Return bytes packed into URL-safe letters; `known`: what most such bytes hold."""
    packer = zlib.compressobj(9, zdict=known)
    packed = packer.compress(data) + packer.flush()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def bytes_of(letters: str, most: int, known: bytes = b"") -> bytes:
    """Return the bytes that `letters_of` packed, at most `most`. ValueError for anything else."""
    packed = base64.b64decode(letters + "=" * (-len(letters) % 4), b"-_", validate=True)
    unpacker = zlib.decompressobj(zdict=known)
    data = unpacker.decompress(packed, most)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it ends too early, or is too long")
    return data


# --- Links: the text of a run without states, behind the address of a page ---------------------


def link_of(run: Run, address: str = "") -> str:
    """Return the points, settings, seeds, steps and stage of a run as a link.

    Args:
        run: what to hold; its states are left out.
        address: of a page, such as http://127.0.0.1:8866/; the text alone opens everywhere else.

    Returns:
        The address with the text behind "#", which no browser sends to a server; or the text alone.

    Raises:
        StoreError: where the points alone are too many.

    Example:
        >>> from explorer import Run, TrainConfig, link_of, preset
        >>> link_of(Run(preset("moons"), TrainConfig())).startswith("mx1.")
        True
    """
    text = to_text(without_states(run))
    return f"{address.partition('#')[0]}#{text}" if address else text


def read_link(text: str) -> Run:
    """Return the run that a link holds, without states: `repeat` makes them again.

    Args:
        text: a link, or any text with one in it, such as the address of a page.

    Returns:
        The run: the same points to the last bit, settings, seeds, steps and stage.

    Raises:
        StoreError: where the text holds no link, or one that is damaged, too large, or of an attack
            that is not installed.
        ValueError: a StoreError is one.

    Example:
        >>> from explorer import Run, TrainConfig, link_of, preset, read_link
        >>> run = Run(preset("moons", n=10), TrainConfig(), seed=3, steps=(500, 0))
        >>> read_link("http://localhost/#" + link_of(run)).steps
        (500, 0)
    """
    found = FORM.search(text)
    run = from_text(found[0].strip() if found else text[:60])
    if run.stage not in STAGES:
        raise StoreError(f"the link names a stage {safe_name(repr(run.stage))}. {REMEDY}")
    return run


def is_link(text: str) -> bool:
    """Return whether a word is a link rather than the name of a file."""
    return len(text) > LEAST and FORM.fullmatch(text.rpartition("#")[2].strip()) is not None
