"""Margin Explorer: draw points, train a ReLU network on them, attack its weights.

from explorer import app; app()                    # the page, in JupyterLab or Voila
from explorer import membership; membership()      # the page on membership inference
from explorer import digits; digits()              # the page on real images
from explorer import lessons; lessons()            # the index of the lessons
from explorer import figure; figure(result)        # a result as a figure of bqplot
from explorer import link; link(a, b, "dataset")   # two pages or widgets with one drawing
from explorer.widgets import DrawingPad; DrawingPad()  # widgets to build with
from explorer import play; play("run.safetensors")  # a run that plays without a kernel
from explorer import preset, maximum_margin        # the engine, without any widget
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.engine import training
    from explorer.engine.attacks import kkt
    from explorer.engine.attacks.kkt import KKTConfig, KKTState, Report, Start
    from explorer.engine.attacks.target import Target
    from explorer.engine.certificate import Certificate, Light, certify
    from explorer.engine.classes import class_labels
    from explorer.engine.controls import Controls, Origin, control_sets
    from explorer.engine.data import (
        PRESETS,
        DataError,
        Dataset,
        Source,
        empty,
        heldout,
        preset,
        read_csv,
        unit_of,
        write_csv,
    )
    from explorer.engine.energy.starts import mix_init
    from explorer.engine.exact import Exact, maximum_margin
    from explorer.engine.margin import normalise, q_of
    from explorer.engine.merging import merge_neurons
    from explorer.engine.network import Network, phi, scaled_network
    from explorer.engine.roster import ROSTER, by_key
    from explorer.engine.scoring import RADII, Kind, Score, Verdict, judge, score
    from explorer.engine.status import Status
    from explorer.engine.store import Run, StoreError, import_weights, load_run, save_run
    from explorer.engine.torch_models import ModelError, network_of
    from explorer.engine.training import TrainConfig, TrainState
    from explorer.page.apps.digits import digits as digits
    from explorer.page.apps.explorer import app as app
    from explorer.page.apps.instrument import link as link
    from explorer.page.apps.lessons import lessons as lessons
    from explorer.page.apps.membership import membership as membership
    from explorer.page.recording.notebook import play as play
    from explorer.page.view.figure import figure as figure
    from explorer.research.audit import audit
    from explorer.research.audit.result import Audit
    from explorer.research.repeat import Repeated, repeat
    from explorer.research.starts import Starts, attack_starts
    from explorer.research.state import link_of, read_link
    from explorer.research.words import sentence

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "RADII",
    "ROSTER",
    "Audit",
    "Certificate",
    "Controls",
    "DataError",
    "Dataset",
    "Exact",
    "KKTConfig",
    "KKTState",
    "Kind",
    "Light",
    "ModelError",
    "Network",
    "Origin",
    "Repeated",
    "Report",
    "Run",
    "Score",
    "Source",
    "Start",
    "Starts",
    "Status",
    "StoreError",
    "Target",
    "TrainConfig",
    "TrainState",
    "Verdict",
    "__version__",
    "attack_starts",
    "audit",
    "by_key",
    "certify",
    "class_labels",
    "control_sets",
    "empty",
    "heldout",
    "import_weights",
    "judge",
    "kkt",
    "link_of",
    "load_run",
    "maximum_margin",
    "merge_neurons",
    "mix_init",
    "network_of",
    "normalise",
    "phi",
    "play",
    "preset",
    "q_of",
    "read_csv",
    "read_link",
    "repeat",
    "save_run",
    "scaled_network",
    "score",
    "sentence",
    "training",
    "unit_of",
    "write_csv",
]

# The public names by the module that holds them. Each is imported at its first use, so that the
# command starts at once and the engine works without a widget library.
_NAMES = {
    "explorer.engine.attacks.kkt": "KKTConfig KKTState Report Start",
    "explorer.engine.attacks.target": "Target",
    "explorer.engine.certificate": "Certificate Light certify",
    "explorer.engine.classes": "class_labels",
    "explorer.engine.controls": "Controls Origin control_sets",
    "explorer.engine.data": (
        "PRESETS DataError Dataset Source empty heldout preset read_csv unit_of write_csv"
    ),
    "explorer.engine.energy.starts": "mix_init",
    "explorer.engine.exact": "Exact maximum_margin",
    "explorer.engine.margin": "normalise q_of",
    "explorer.engine.merging": "merge_neurons",
    "explorer.engine.torch_models": "ModelError network_of",
    "explorer.engine.network": "Network phi scaled_network",
    "explorer.engine.roster": "ROSTER by_key",
    "explorer.engine.scoring": "RADII Kind Score Verdict judge score",
    "explorer.engine.status": "Status",
    "explorer.engine.store": "Run StoreError import_weights load_run save_run",
    "explorer.engine.training": "TrainConfig TrainState",
    "explorer.page.recording.notebook": "play",
    "explorer.research.audit": "audit",
    "explorer.research.audit.result": "Audit",
    "explorer.research.repeat": "Repeated repeat",
    "explorer.research.starts": "Starts attack_starts",
    "explorer.research.state": "link_of read_link",
    "explorer.research.words": "sentence",
}
_MODULES = {"kkt": "explorer.engine.attacks.kkt", "training": "explorer.engine.training",
            "widgets": "explorer.widgets"}  # fmt: skip
_PAGES = {
    "app": "explorer.page.apps.explorer",
    "digits": "explorer.page.apps.digits",
    "figure": "explorer.page.view.figure",
    "lessons": "explorer.page.apps.lessons",
    "link": "explorer.page.apps.instrument",
    "membership": "explorer.page.apps.membership",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()} | _PAGES


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the module's attributes have every type)
    """Return a public name, imported at its first use.

    Raises:
        AttributeError: for a name that is not public.
        ImportError: for a page without its libraries.
    """
    try:
        if name in _MODULES:
            found: Any = import_module(_MODULES[name])
        elif name in _HOMES:
            found = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    except ImportError as error:
        if name not in (*_PAGES, "widgets"):
            raise
        raise ImportError(
            f"{name} needs the libraries of a page ({error}): pip install margin-explorer[app]"
        ) from error
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__, *_PAGES})
