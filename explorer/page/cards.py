"""Where each panel stands beside the plane: a new panel is its file and a row here.

A panel is named by its module in `page.panels` and its class, so that lessons need no widget.
"""

from __future__ import annotations

# In the order in which they stand, by the name that a lesson calls them.
CARDS = {
    "sets": "presets.Presets", "network": "forms.NetworkForm", "curves": "curves.ResidualCurves",
    "margins": "margins.MarginsPanel", "training": "forms.TrainForm",
    "score": "scoreboard.Scoreboard", "attack": "chooser.Chooser", "start": "mixpad.MixPad",
    "line": "own.OwnPanel", "starts": "starts.StartsPanel", "map": "energy.EnergyPanel",
    "explain": "explain.ExplainPanel", "compare": "arena.Arena",
}  # fmt: skip
HALF = ("attack", "start")  # these two stand side by side
# What opens over the side; a title is in sight while one of its panels belongs to the stage.
SHARE = "Share"
FOLDS = {
    "More settings": ("forms.TrainMore", "forms.AttackForm"),
    "More curves": ("curves.MarginCurves", "own.OwnCurve", "curves.LossCurves"),
    "Tune": ("tuner.Tuner",),
    "Another set": ("other.OtherPanel",),
    SHARE: ("share.SharePanel", "game.GamePanel", "files.Files", "keeping.KeptDrawings"),
}


def class_name(panel: str) -> str:
    """Return the class of a panel that is named as here."""
    return panel.rpartition(".")[2]
