"""A trained model of PyTorch as a `Network`: its forward is followed step by step, never guessed.

Linear layers with ReLU between them are understood, in a Sequential or in a forward of one's own.
What does nothing when a model is used (Dropout, Identity, Flatten) is left out, and so is a sigmoid
or softmax at the end: margins are those of what goes into it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from explorer.engine.network import Network
from explorer.engine.store.weights import from_state_dict

KNOWN = "Margin Explorer knows fully connected networks: Linear layers with ReLU between them."
_RELU = (nn.ReLU, F.relu, torch.relu, "relu", "relu_")
_NOTHING = (
    nn.Identity, nn.Flatten, nn.Dropout, nn.AlphaDropout, F.dropout, torch.flatten, torch.squeeze,
    "flatten", "view", "reshape", "squeeze", "float", "double", "contiguous",
)  # fmt: skip
_ASIDE = ("size", "dim", getattr, operator.getitem)  # of a shape, that a view then takes
_LAST = (
    nn.Sigmoid, nn.Softmax, nn.LogSoftmax, nn.LogSigmoid, torch.sigmoid, torch.softmax, F.softmax,
    F.log_softmax, F.sigmoid, F.logsigmoid, torch.log_softmax, "sigmoid", "softmax", "log_softmax",
)  # fmt: skip
_WRAPPERS = ("_orig_mod", "module")  # of torch.compile and of DataParallel


class ModelError(ValueError):
    """A model that is not a fully connected ReLU network; the message says where it differs.

    Example:
        >>> from torch import nn
        >>> from explorer import network_of
        >>> network_of(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))
        Traceback (most recent call last):
            ...
        explorer.engine.modules.ModelError: the model has the step Tanh. ...
    """


def network_of(model: nn.Module | Mapping[str, Any] | Network) -> Network:
    """Return the network that a trained model computes.

    Args:
        model: a module of Linear layers with ReLU between them, its state_dict, or a network. A
            state_dict names no activation: ReLU is then assumed, and `assumed_relu` says so.

    Returns:
        The network, in the floating type of the model.

    Raises:
        ModelError: for another activation, another kind of layer, or a forward that cannot be
            followed.
        StoreError: for a state_dict of other layers than linear ones.

    Example:
        >>> from torch import nn
        >>> from explorer import network_of
        >>> network_of(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1, bias=False)))
        Network(2-8-1, order 2, 1 output, float32)
    """
    if isinstance(model, Network):
        return model
    if isinstance(model, Mapping):
        return from_state_dict(model)
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"expected a module, a state_dict or a Network; got {type(model).__name__}"
        )
    return _of_module(model)


def _of_module(model: nn.Module) -> Network:
    for name in _WRAPPERS:
        inner = getattr(model, name, None)
        if isinstance(inner, nn.Module):
            return _of_module(inner)
    if fx.Tracer().is_leaf_module(model, ""):
        model = nn.Sequential(model)
    try:
        graph = fx.Tracer().trace(model)
    except Exception as error:  # whatever the forward raises when it is followed
        raise ModelError(
            f"the forward of {type(model).__name__} cannot be followed ({type(error).__name__}). "
            f"Pass its layers as nn.Sequential, or its state_dict. {KNOWN}"
        ) from error
    return _of_steps(model, [node for node in graph.nodes if node.op != "output"])


def _of_steps(model: nn.Module, steps: list[fx.Node]) -> Network:
    """The network of the steps of a forward, each of which takes what the one before made."""
    layers: list[nn.Linear] = []
    carrier, shapes, last = steps[0], set[fx.Node](), ""  # the last of Linear, ReLU and the end
    for node in steps[1:]:
        what = model.get_submodule(str(node.target)) if node.op == "call_module" else node.target
        kind = type(what) if isinstance(what, nn.Module) else what
        name = getattr(kind, "__name__", str(kind))
        whose = node.args[0] if node.args else None
        if kind in _ASIDE and (whose in shapes or (kind is not operator.getitem)):
            shapes.add(node)
            continue
        if whose is not carrier or not shapes.issuperset(set(node.all_input_nodes) - {carrier}):
            raise ModelError(f"the model branches at its step {name}. {KNOWN}")
        carrier = node
        if kind in _NOTHING:
            continue
        layer = isinstance(what, nn.Linear)
        if not layer and kind not in (*_RELU, *_LAST):
            raise ModelError(f"the model has the step {name}. {KNOWN}")
        if last == ("Linear" if layer else "ReLU") or last == "end" or not (last or layer):
            raise ModelError(f"the step {name} of the model comes after {last or 'none'}. {KNOWN}")
        if isinstance(what, nn.Linear):
            layers.append(what)
        last = "Linear" if layer else "ReLU" if kind in _RELU else "end"
    if not layers or last == "ReLU":
        raise ModelError(f"the model must end in a Linear layer. {KNOWN}")
    weights = tuple(layer.weight.detach().cpu().clone() for layer in layers)
    biases = (None if of.bias is None else of.bias.detach().cpu().clone() for of in layers)
    return Network(weights, tuple(biases))
