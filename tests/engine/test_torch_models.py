"""Models of PyTorch as networks, and classes of any kind as labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from explorer.engine.classes import class_labels
from explorer.engine.data import Dataset
from explorer.engine.network import phi_all
from explorer.engine.store import StoreError
from explorer.engine.torch_models import ModelError, network_of, read_model


class Written(nn.Module):
    """A forward of one's own."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3, bias=False)
        self.drop = nn.Dropout()

    def forward(self, x):
        x = x.view(x.size(0), -1)
        return self.last(self.drop(F.relu(self.first(x))))


class Skipping(Written):
    def forward(self, x):
        h = F.relu(self.first(x))
        return self.last(h + h)


class Branching(Written):
    def forward(self, x):
        return self.last(F.relu(self.first(x)) + F.relu(self.first(-x)))


class Dead(Written):
    """A step that leads nowhere, a check of shapes, an option, and outputs under a name."""

    def forward(self, x, hidden=False):
        assert x.shape[1] == 4
        h = F.relu(self.first(x))
        self.last(h.tanh())
        return (self.last(h), h) if hidden else {"logits": self.last(h)}


class Cutting(Written):
    def forward(self, x):
        return self.last(F.relu(self.first(x[:, [0, 1, 1, 2]])))


class Named(Written):
    """A module of its own in an attribute called `module`, which does not do all."""

    def __init__(self):
        super().__init__()
        self.module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.module(x / 2)


class Products(nn.Module):
    """Parameters and functions in place of layers."""

    def __init__(self):
        super().__init__()
        self.w, self.c = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.randn(8))
        self.v = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return F.relu(x @ self.w.T + self.c) @ self.v


class Standardised(Written):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([9000.0, -3.0, 0.0, 1.0]))
        self.register_buffer("deviation", torch.tensor([2.0, 0.1, 1.0, 3.0]))

    def forward(self, x):
        return self.last(F.relu(self.first((x - self.mean) / self.deviation)))


class Several(Written):
    def forward(self, x):
        h = F.relu(self.first(x))
        return self.last(h), h


class Deciding(Written):
    def forward(self, x):
        return self.last(F.relu(self.first(x))) if x.sum() > 0 else self.last(self.first(x))


class By(nn.Module):
    """A forward with a function between its layers."""

    def __init__(self, function):
        super().__init__()
        self.first, self.last, self.function = nn.Linear(4, 8), nn.Linear(8, 1), function

    def forward(self, x):
        return self.last(self.function(self.first(x)))


def chain(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers)


def used(model):
    """Batch normalisation as after some training."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    return model


MODELS = {
    "sequential": lambda: chain(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1, bias=False)),
    "nested": lambda: chain(
        nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 3)
    ),
    "written": Written,
    "three layers": lambda: chain(
        nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8, bias=False), nn.ReLU(), nn.Linear(8, 1)
    ),
    "parallel": lambda: nn.DataParallel(Written()),
    "compiled": lambda: torch.compile(Written()),
    "dead": Dead,
    "named": Named,
    "products": Products,
    "torch.relu": lambda: By(torch.relu),
    "in place": lambda: By(lambda h: h.relu_()),
    "clamp": lambda: By(lambda h: h.clamp(min=0)),
    "clamp_min": lambda: By(lambda h: h.clamp_min(0)),
    "maximum": lambda: By(lambda h: torch.maximum(h, torch.zeros_like(h))),
    "threshold": lambda: By(lambda h: F.threshold(h, 0, 0)),
    "twice": lambda: By(lambda h: h.relu().relu()),
    "scripted": lambda: torch.jit.script(MODELS["sequential"]()),
    "frozen": lambda: torch.jit.freeze(torch.jit.script(MODELS["sequential"]().eval())),
    "half": lambda: MODELS["sequential"]().half(),
    "bfloat16": lambda: MODELS["sequential"]().bfloat16(),
    "images": lambda: chain(nn.Flatten(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)),
}

# What becomes part of the weights though training moved other numbers.
FOLDED = {
    "batch normalisation": lambda: used(
        chain(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
    ),
    "weights that are made of other numbers": lambda: chain(
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 1)
    ),
    "Linear layers without ReLU between them": lambda: chain(
        nn.Linear(4, 3), nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)
    ),
    "a scaling between layers": lambda: By(lambda h: 1 - 2 * (h / 3).relu() * torch.arange(8.0)),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile's own
@pytest.mark.parametrize("name", MODELS)
def test_a_model_and_its_network_say_the_same(name):
    torch.manual_seed(1)
    model = MODELS[name]()
    x = torch.randn(7, 2, 2) if name == "images" else torch.randn(7, 4)
    net = read_model(model, x).net
    written = next(m for m in model.modules() if "Optimized" not in type(m).__name__).eval()
    like = next(iter(written.parameters()), x)
    says = written(x.to(like))
    says = (says["logits"] if isinstance(says, dict) else says).float()
    exact = 1e-6 if like.dtype == torch.float32 else 0.1
    own = phi_all(net, x.flatten(1).to(net.dtype)).float()
    assert torch.allclose(own, says.reshape(7, -1), atol=exact) and not net.assumed_relu
    if list(model.parameters()):  # else nothing tells what it takes
        assert torch.equal(network_of(model).theta, net.theta)
    before = [p.clone() for p in net.parameters]
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters, strict=True))  # a copy


@pytest.mark.parametrize("what", FOLDED)
def test_what_is_affine_between_two_relus_becomes_a_layer_and_is_said(what):
    torch.manual_seed(1)
    model = FOLDED[what]().eval()
    read, x = read_model(model), torch.randn(7, 4)
    assert read.folded == (what,) and read.frame is None
    assert torch.allclose(phi_all(read.net, x), model(x), atol=1e-5)
    assert not read_model(MODELS["sequential"]()).folded


def test_what_a_model_does_to_its_input_is_a_frame():
    torch.manual_seed(1)
    model = Standardised().double()
    read = read_model(model)
    x = model.mean + model.deviation * torch.randn(7, 4, dtype=torch.float64)
    assert read.frame is not None and not read.folded
    assert torch.allclose(read.frame.centre, model.mean)
    z = (x - read.frame.centre) / read.frame.scale
    assert torch.equal(read.frame.net.weights[0], model.first.weight)
    for made in (phi_all(read.net, x), phi_all(read.frame.net, z)):
        assert torch.allclose(made, model(x), atol=1e-9)


def test_reading_leaves_a_model_as_it_was():
    model = used(chain(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))).train()
    model[1].eval()  # as of a layer that is not trained on
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    read_model(model, torch.randn(3, 4))
    assert [m.training for m in model.modules()] == [True, True, False, True, True]
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in kept.items())
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("last", [nn.Sigmoid(), nn.LogSoftmax(1), nn.Softmax(1)])
def test_a_sigmoid_or_softmax_at_the_end_is_left_out(last):
    model = chain(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2), last)
    x = torch.randn(4, 2)
    assert torch.allclose(last(phi_all(network_of(model), x)), model(x))


def test_a_state_dict_says_that_relu_is_assumed():
    state = MODELS["sequential"]().state_dict()
    net = network_of(state)
    assert net.assumed_relu
    arrays = {key: value.numpy() for key, value in state.items()}
    for given in ({"epoch": 3, "model_state_dict": state}, arrays):
        assert torch.equal(network_of(given).theta, net.theta)
    with pytest.raises(StoreError):
        network_of(chain(nn.Conv2d(1, 2, 3)).state_dict())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (chain(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), "tanh"),
        (chain(nn.Linear(2, 3), nn.LeakyReLU(), nn.Linear(3, 1)), "leaky_relu"),
        (chain(nn.Linear(2, 3), nn.ReLU6(), nn.Linear(3, 1)), "hardtanh"),
        (chain(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 1)), "gelu"),
        (chain(nn.Linear(2, 3), nn.LayerNorm(3), nn.ReLU(), nn.Linear(3, 1)), "layer_norm"),
        (
            chain(nn.Linear(2, 3), nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 1)),
            "points of a batch",
        ),
        (chain(nn.Unflatten(1, (1, 2)), nn.Conv1d(1, 2, 1), nn.Linear(2, 3)), "convolution"),
        (nn.Conv2d(1, 2, 3), "cannot be followed"),
        (chain(nn.Linear(2, 3), nn.ReLU()), "must end in a Linear"),
        (chain(nn.ReLU(), nn.Linear(2, 3)), "without a Linear"),
        (chain(nn.Linear(2, 3), nn.Sigmoid(), nn.ReLU(), nn.Linear(3, 1)), "relu"),
        (By(lambda h: h.clamp(0, 6)), "clamp"),
        (By(lambda h: h * (h > 0)), "gt"),
        (By(lambda h: 1 / h), "reciprocal"),
        (By(lambda h: h * torch.rand(7, 1)), "in different ways"),
        (By(lambda h: torch.zeros(7, 8)), "does not depend"),
        (By(lambda h: torch.tensor(h.numpy()).relu()), "does not"),
        (Skipping(), "add"),
        (Branching(), "branches"),
        (Cutting(), "index"),
        (Several(), "2 things"),
        (Deciding(), "decides by the points"),
        ("model.pt", "str"),
    ],
)
def test_other_models_are_refused_by_what_they_have(model, words):
    with pytest.raises(ModelError, match=words):
        network_of(model)


@pytest.mark.parametrize(
    ("y", "outputs", "labels", "classes"),
    [
        ([-1, 1, 1], None, [-1, 1, 1], (-1, 1)),
        ([0, 1, 1], None, [-1, 1, 1], (0, 1)),
        ([1, 1], 1, [1, 1], (-1, 1)),
        ([0.0, 0.0], 1, [-1, -1], (0, 1)),
        ([True, False], None, [1, -1], (False, True)),
        (np.array(["b", "a"]), None, [1, -1], ("a", "b")),
        (pd.Series(["x", "z", "y"]), None, [1, 3, -1], ("x", "y", "z")),
        (torch.tensor([0, 2, 1]), None, [1, 3, -1], (0, 1, 2)),
        ([-1, 1, 3], None, [1, -1, 3], (-1, 1, 3)),
        ([0, 1, 1], 2, [1, -1, -1], (0, 1)),
        ([0, 3], 10, [1, 4], tuple(range(10))),
        (np.array([[2], [5]]), None, [-1, 1], (2, 5)),
    ],
)
def test_classes_of_any_kind_become_labels(y, outputs, labels, classes):
    made, known = class_labels(y, outputs)
    assert made.tolist() == labels and known == classes
    assert Dataset.of(np.zeros((len(labels), 2)), y, outputs).y.tolist() == labels


def test_classes_that_cannot_be_told_apart_are_refused():
    with pytest.raises(ValueError, match="1 output tells 2 apart"):
        class_labels([0, 1, 2], 1)
    with pytest.raises(ValueError, match="missing"):
        class_labels([0.0, float("nan")])
    with pytest.raises(ValueError, match="expected classes among"):
        class_labels(["a", "c"], classes=("a", "b"))
    with pytest.raises(ValueError, match="at most 10"):
        class_labels(range(11))


def test_arrays_of_every_library_make_the_same_set():
    x, y = [[0.0, 1.0], [2.0, 3.0]], [0, 1]
    kinds = (x, np.array(x, dtype=np.float32), torch.tensor(x), pd.DataFrame(x, columns=["a", "b"]))
    for kind in kinds:
        data = Dataset.of(kind, y)
        assert data.x.tolist() == x and data.x.dtype == torch.float64
    assert Dataset.of([1.0, 2.0], y).d == 1 and Dataset.of(np.zeros((2, 8, 8)), y).d == 64
    with pytest.raises(ValueError, match="must be numbers"):
        Dataset.of([["a", "b"]], [1])
