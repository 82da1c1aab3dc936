"""The run of the opening, and what is known of it: certified points, and where a point must be.

scripts/opening.py makes its files.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.needed import Needed

RECORDED = Path(__file__).resolve().parents[1] / "opening.safetensors"


def known_of_opening() -> tuple[Certainty, Needed]:
    """Return how certain the points of the opening's run are, and the places that need one."""
    told = json.loads(RECORDED.with_suffix(".json").read_text(encoding="utf-8"))
    radius = torch.tensor(told["certainty"]["radius"], dtype=torch.float64)
    log = np.array(told["needed"]["log"]).reshape(-1, 6)
    made = Certainty(**{**told["certainty"], "radius": radius})
    return made, Needed(**{**told["needed"], "log": log})
