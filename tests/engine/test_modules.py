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
from explorer.engine.modules import ModelError, network_of
from explorer.engine.network import phi_all
from explorer.engine.store import StoreError


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
        self.last(F.relu(self.first(x)))
        return self.last(F.relu(self.first(x)))


class Cutting(Written):
    def forward(self, x):
        return self.last(F.relu(self.first(x[:, :4])))


class Deciding(Written):
    def forward(self, x):
        return self.last(F.relu(self.first(x))) if x.sum() > 0 else self.last(self.first(x))


def chain(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers)


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
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile's own
@pytest.mark.parametrize("name", MODELS)
def test_a_model_and_its_network_say_the_same(name):
    torch.manual_seed(1)
    model = MODELS[name]()
    net = network_of(model)
    x = torch.randn(7, 4)
    written = next(m for m in model.modules() if "Optimized" not in type(m).__name__).eval()
    assert torch.allclose(phi_all(net, x), written(x), atol=1e-6)
    assert not net.assumed_relu
    model.train()
    before = [p.clone() for p in net.parameters]
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters, strict=True))  # a copy


@pytest.mark.parametrize("last", [nn.Sigmoid(), nn.LogSoftmax(1), nn.Softmax(1)])
def test_a_sigmoid_or_softmax_at_the_end_is_left_out(last):
    model = chain(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2), last)
    x = torch.randn(4, 2)
    assert torch.allclose(last(phi_all(network_of(model), x)), model(x))


def test_a_state_dict_says_that_relu_is_assumed():
    net = network_of(MODELS["sequential"]().state_dict())
    assert net.assumed_relu
    with pytest.raises(StoreError):
        network_of(chain(nn.Conv2d(1, 2, 3)).state_dict())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (chain(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), "Tanh"),
        (chain(nn.Linear(2, 3), nn.LeakyReLU(), nn.Linear(3, 1)), "LeakyReLU"),
        (chain(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1)), "BatchNorm1d"),
        (nn.Conv2d(1, 2, 3), "Conv2d"),
        (chain(nn.Linear(2, 3), nn.ReLU()), "must end in a Linear"),
        (chain(nn.ReLU(), nn.Linear(2, 3)), "ReLU"),
        (chain(nn.Linear(2, 3), nn.Linear(3, 1)), "Linear"),
        (chain(nn.Linear(2, 3), nn.Sigmoid(), nn.ReLU(), nn.Linear(3, 1)), "ReLU"),
        (Skipping(), "add"),
        (Branching(), "branches"),
        (Cutting(), "getitem"),
        (Deciding(), "cannot be followed"),
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
    with pytest.raises(ValueError, match="1 output tell 2 apart"):
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
