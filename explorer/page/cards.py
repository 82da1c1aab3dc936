"""Where each panel stands beside the plane: a new panel is its file and a row here.

A panel is named by its module below `page` and its class, so that lessons need no widget.
"""

from __future__ import annotations

# In the order in which they stand, by the name that a lesson calls them.
CARDS = {
    "sets": "stages.draw.presets.Presets",
    "network": "stages.draw.form.NetworkForm",
    "curves": "stages.train.curves.ResidualCurves",
    "margins": "stages.train.margins.MarginsPanel",
    "training": "stages.train.form.TrainForm",
    "score": "stages.attack.scoreboard.Scoreboard",
    "attack": "stages.attack.chooser.Chooser",
    "start": "panels.mixpad.MixPad",
    "line": "stages.attack.own.OwnPanel",
    "starts": "stages.landscape.starts.StartsPanel",
    "map": "stages.landscape.energy.EnergyPanel",
    "proof": "stages.proof.panel.ProofPanel",
    "explain": "stages.explain.panel.ExplainPanel",
    "compare": "stages.attack.arena.Arena",
}
HALF = ("attack", "start")  # these two stand side by side
# What opens over the side; a title is in sight while one of its panels belongs to the stage. The
# head opens Share.
SHARE = "Share"
FOLDS = {
    "More settings": (
        "stages.train.form.TrainMore",
        "stages.train.private.PrivatePanel",
        "stages.attack.form.AttackForm",
    ),
    "More curves": (
        "stages.train.curves.MarginCurves",
        "stages.attack.own.OwnCurve",
        "stages.train.curves.LossCurves",
    ),
    "Tune": ("stages.attack.tuner.Tuner",),
    "Another set": ("stages.attack.other.OtherPanel",),
    SHARE: (
        "sharing.hall_panel.HallPanel",
        "sharing.panel.SharePanel",
        "sharing.files_panel.Files",
        "keeping.panel.KeptDrawings",
        "sharing.game_panel.GamePanel",
    ),
}


def class_name(panel: str) -> str:
    """Return the class of a panel that is named as here."""
    return panel.rpartition(".")[2]
