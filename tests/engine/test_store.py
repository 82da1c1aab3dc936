"""Files: the same numbers back, weights of others in, nothing executed, every refusal in words."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import pickle
import zipfile
from itertools import islice, pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from explorer.engine import files, store, training
from explorer.engine.attacks import kkt
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.margin import normalise
from explorer.engine.network import Network, phi
from explorer.engine.store import Run, StoreError, codec
from explorer.engine.store import weights as store_weights
from tests.engine.draws import rng


@pytest.fixture(scope="module")
def run():
    """Two moons, three layers, six training states, four attack states."""
    data = preset("moons", n=9, seed=4)
    config = training.TrainConfig(widths=(7, 5), steps=300, lr=0.5)
    state = training.init(data, config, rng(3))
    states = [state, *training.iterate(data, state, config)]
    attack = kkt.KKTConfig(m=6, steps=10, multipliers="joint")
    net, _ = normalise(states[-1].net, data.x, data.y)
    target = Target.of(net, 1.0)
    first = kkt.init(target, attack, rng(5))
    return Run(
        data, config, tuple(states[::60]), attack,
        (first, *islice(kkt.iterate(target, first, attack), 3)), seed=3, mix=(0.25, 1.0),
    )  # fmt: skip


def same(a, b):
    """Equal to the last bit, field by field."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()
    elif dataclasses.is_dataclass(a):
        for f in dataclasses.fields(a):
            same(getattr(a, f.name), getattr(b, f.name))
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b


def test_a_run_comes_back_bit_for_bit(run, tmp_path):
    same(store.load(store.dump(run)), run)
    store.save_run(run, tmp_path / "run.safetensors")
    same(store.load_run(tmp_path / "run.safetensors"), run)
    assert run.versions["torch"] == str(torch.__version__)


def test_a_loaded_run_goes_on_as_the_saved_one(run):
    back = store.load(store.dump(run))
    config = dataclasses.replace(run.train_config, steps=400)
    on = [
        list(islice(training.iterate(r.dataset, r.train_states[-1], config), 20))[-1]
        for r in (run, back)
    ]
    same(on[0], on[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_run_without_states(dtype):
    small = Run(preset("two-points").to(dtype=dtype), training.TrainConfig())
    same(store.load(store.dump(small)), small)
    assert small.net is None


@dataclasses.dataclass(frozen=True, eq=False)
class Inner:
    a: torch.Tensor
    b: float
    c: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Outer:
    inner: Inner | None
    many: tuple[Inner, ...]
    pair: tuple[float, str]
    flag: bool
    names: dict[str, int]


@given(st.floats(), st.floats(), st.integers(-(2**60), 2**60), st.text(max_size=5))
def test_any_dataclass_travels(x, y, k, text):
    """No class is named in the codec: fields, nesting, none, nan and inf."""
    inner = Inner(torch.tensor([[x, y, 0.1]], dtype=torch.float64), x, (k, 2))
    value = Outer(inner, (inner, dataclasses.replace(inner, b=y)), (y, text), k > 0, {text: k})
    tensors = {}
    node = json.loads(json.dumps(codec.encode(value, tensors), allow_nan=False))
    back = codec.decode(node, tensors, Outer)
    assert back.inner.c == (k, 2)
    assert repr((back.pair, back.flag, back.names)) == repr((value.pair, value.flag, value.names))
    assert [repr(i.b) for i in back.many] == [repr(x), repr(y)]
    same(back.inner.a, inner.a)
    none = dataclasses.replace(value, inner=None)
    assert codec.decode(codec.encode(none, tensors), tensors, Outer).inner is None


def test_what_cannot_be_saved_is_named():
    with pytest.raises(StoreError, match=r"cannot save a (Posix|Windows)Path"):
        codec.encode((Path(),), {})


def rewritten(run, change):
    """The file of `run` with its JSON passed through `change`."""
    data = store.dump(run)
    tensors = {k: v.clone() for k, v in read_tensors(data).items()}
    length = int.from_bytes(data[:8], "little")
    notes = json.loads(data[8 : 8 + length])["__metadata__"]
    body = json.loads(notes["run"])
    change(notes, body["fields"], tensors)
    return write_tensors(tensors, metadata={**notes, "run": json.dumps(body)})


def retitle(notes, fields, tensors):
    notes["version"] = "99"


def unname(notes, fields, tensors):
    fields["train_config"]["fields"]["colour"] = 1


def remove(notes, fields, tensors):
    del fields["seed"]
    del fields["dataset"]


def drop_tensor(notes, fields, tensors):
    del tensors["t0"]


def mistype(notes, fields, tensors):
    fields["train_config"]["fields"]["steps"] = "many"


def nonsense(notes, fields, tensors):
    fields["train_config"]["fields"]["momentum"] = 2


def poison(notes, fields, tensors):
    name = fields["train_states"][0]["fields"]["net"]["fields"]["weights"][0]["tensor"]
    tensors[name][0, 0] = math.nan


def another_class(notes, fields, tensors):
    fields["dataset"] = {"kind": "Path", "fields": {}}


def indices(notes, fields, tensors):
    name = fields["attack_states"][0]["fields"]["y"]["tensor"]
    tensors[name] = tensors[name].long()


def other_dimension(notes, fields, tensors):
    name = fields["dataset"]["fields"]["x"]["tensor"]
    tensors[name] = tensors[name][:, :1].contiguous()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (retitle, "format 99.*Open it with the version"),
        (unname, "TrainConfig.*unknown: \\['colour'\\]"),
        (remove, "missing: \\['dataset'\\]"),
        (drop_tensor, "does not hold"),
        (mistype, "TrainConfig.steps: expected int; got many"),
        (nonsense, "momentum must be"),
        (poison, "not finite"),
        (another_class, "expected Dataset"),
        (other_dimension, "dimension 1"),
        (indices, "y must be of torch.float64"),
    ],
)
def test_altered_files_are_refused_with_the_reason(run, change, message):
    with pytest.raises(StoreError, match=message):
        store.load(rewritten(run, change))


def test_a_file_of_an_older_version_takes_the_defaults(run):
    def age(notes, fields, tensors):
        del fields["mix"]
        del fields["train_config"]["fields"]["ascent_steps"]

    back = store.load(rewritten(run, age))
    assert back.mix is None
    assert back.train_config.ascent_steps == training.TrainConfig().ascent_steps


def test_every_cut_and_every_flipped_header_byte_is_refused_or_harmless(run):
    data = store.dump(run)
    for length in (0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(StoreError, match=r"cut short|no PyTorch|not a PyTorch|damaged"):
            store.open_bytes(data[:length])
    header = int.from_bytes(data[:8], "little")
    for place in range(0, 8 + header, max(1, header // 150)):
        bent = bytearray(data)
        bent[place] ^= 0x15
        try:
            assert isinstance(store.open_bytes(bytes(bent)), Run)  # a digit of a number, say
        except StoreError as error:
            assert len(str(error)) > 20


@pytest.mark.parametrize(
    "data",
    [
        b"", b"x1,x2,y\n0,0,1\n", b"\x89PNG\r\n\x1a\n" + b"0" * 99, b"PK\x03\x04" + b"1" * 60,
        b"\x80\x04junk", (2).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"{{{{", b"\xff" * 8 + b"{", b"[" * 100_000,
        (100_000).to_bytes(8, "little") + b'{"__metadata__":' + b"[" * 99_984,
    ],
)  # fmt: skip
def test_foreign_files_are_refused(data):
    for read in (store.load, store.import_weights, store.open_bytes):
        with pytest.raises(StoreError):
            read(data)


def test_too_large_a_file_is_refused_before_it_is_read(run, tmp_path, monkeypatch):
    path = tmp_path / "big.safetensors"
    with path.open("wb") as file:
        file.truncate(store.MAX_BYTES + 1)  # sparse: takes no room
    monkeypatch.setattr(files.os, "fdopen", lambda *_: pytest.fail("was read"))
    with pytest.raises(StoreError, match="at most 64 MB"):
        store.load_run(path)
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"cannot read .*absent"):
        store.load_run(tmp_path / "absent")


def test_too_large_a_run_is_refused_and_thinning_helps(run, monkeypatch):
    limit = len(store.dump(run)) - 1000
    monkeypatch.setattr(store, "MAX_BYTES", limit)
    with pytest.raises(StoreError, match="thinned"):
        store.dump(run)
    thin = store.thinned_run(run, limit)
    assert 0 < len(thin.train_states) < len(run.train_states)
    assert thin.train_states[-1] is run.train_states[-1]
    assert thin.attack_states[-1] is run.attack_states[-1]
    assert len(store.dump(thin)) <= limit


# -- weights of others ----------------------------------------------------------------------------


def mlp(*widths, bias=True, last_bias=False):
    torch.manual_seed(0)
    layers = []
    for below, above in pairwise(widths):
        last = len(layers) == 2 * (len(widths) - 2)
        layers += [torch.nn.Linear(below, above, bias=last_bias if last else bias)]
        layers += [] if last else [torch.nn.ReLU()]
    return torch.nn.Sequential(*layers).double()


def as_pt(state):
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


@pytest.mark.parametrize("last_bias", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [(2, 5, 1), (1, 7, 4, 1), (2, 3, 3, 3, 1)])
@pytest.mark.parametrize("write", [as_pt, write_tensors])
def test_a_state_dict_is_the_same_function(widths, bias, last_bias, write):
    model = mlp(*widths, bias=bias, last_bias=last_bias)
    net = store.import_weights(write(model.state_dict()))
    x = torch.randn(11, widths[0], generator=rng(1)).double()
    torch.testing.assert_close(phi(net, x), model(x)[:, 0])
    assert net.widths == widths[1:-1]
    assert net.homogeneous == (not last_bias and (len(widths) == 3 or not bias))
    assert not any(p.requires_grad for p in net.parameters)


def test_layers_are_put_in_order():
    """Ten and two, text names, and checkpoints that hold the weights among other things."""
    model = mlp(2, *[4] * 11, 1)
    numbered = write_tensors(model.state_dict())  # alphabetical: "10" comes before "2"
    x = torch.randn(5, 2, generator=rng(1)).double()
    torch.testing.assert_close(phi(store.import_weights(numbered), x), model(x)[:, 0])
    small = mlp(2, 6, 3, 1)
    named = dict(zip(("b", "c", "a"), small[::2], strict=True))
    state = {f"{k}.{p}": v for k, m in named.items() for p, v in m.state_dict().items()}
    for data in (write_tensors(state), as_pt({"epoch": 3, "state_dict": state})):
        torch.testing.assert_close(phi(store.import_weights(data), x), small(x)[:, 0])


def test_half_precision_becomes_single():
    state = mlp(2, 5, 1).half().state_dict()
    assert store.import_weights(as_pt(state)).dtype == torch.float32


SQUARE = {f"{k}.weight": torch.ones(3, 3) for k in "ab"}
BAD_STATES = {
    "convolution": ({"c.weight": torch.ones(3, 1, 2, 2)}, r"c.weight \(3, 1, 2, 2\).*Only fully"),
    "batch norm": (torch.nn.BatchNorm1d(3).state_dict(), "weight"),
    "not a layer": ({"scale": torch.ones(3)}, "scale"),
    "bias alone": ({"a.bias": torch.ones(3)}, "no weight"),
    "integers": ({"a.weight": torch.ones(1, 2).long()}, "floating"),
    "nan": ({"a.weight": torch.full((1, 2), math.nan)}, "finite"),
    "no chain": ({"a.weight": torch.ones(3, 2), "b.weight": torch.ones(1, 4)}, "any order"),
    "two orders": (
        {"z.weight": torch.ones(1, 3), **SQUARE, "i.weight": torch.ones(3, 2)},
        "one order",
    ),
    "wrong bias": ({"a.weight": torch.ones(1, 2), "a.bias": torch.ones(3)}, "bias"),
    "nothing": ({}, "no layers"),
}


@pytest.mark.parametrize("name", BAD_STATES)
@pytest.mark.parametrize("write", [as_pt, write_tensors])
def test_other_models_are_refused_with_the_reason(name, write):
    state, message = BAD_STATES[name]
    with pytest.raises(StoreError, match=message):
        store.import_weights(write(state))


class Malicious:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_no_pickle_is_executed(tmp_path):
    mark = tmp_path / "executed"
    plain = pickle.dumps(Malicious(mark))
    nested = as_pt({"a.weight": torch.ones(1, 2), "b": Malicious(mark)})
    old = io.BytesIO()
    torch.save({"b": Malicious(mark)}, old, _use_new_zipfile_serialization=False)
    for data in (plain, nested, old.getvalue()):
        with pytest.raises(StoreError, match="never run"):
            store.open_bytes(data)
    assert not mark.exists()
    pickle.loads(plain)  # the file does what it says
    assert mark.exists()


def test_a_whole_module_and_a_list_are_refused():
    with pytest.raises(StoreError, match="state_dict"):
        store.import_weights(as_pt(mlp(2, 3, 1)))
    with pytest.raises(StoreError, match="got a list"):
        store.import_weights(as_pt([torch.ones(1, 2)]))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(1).expand(40_000, 40_000), "needs 1600000000 numbers; the file holds 1"),
        (torch.zeros(8).as_strided((7, 2), (1, 1)), "needs 14 numbers; the file holds 8"),
        (torch.zeros(0, 2**40), "needs 0 numbers"),
        (torch.ones(2, 2).to_sparse(), "more than weights|never run"),
        (torch.empty(2, 2, device="meta"), "never run"),
        (torch.ones(1, 2, dtype=torch.complex64), "never run"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_has_its_numbers_in_the_file(value, message):
    with pytest.raises(StoreError, match=message):
        store.import_weights(as_pt({"a.weight": value}))


def test_parameters_and_shared_storages_are_taken():
    both = torch.arange(6.0).reshape(3, 2)
    state = {"a.weight": torch.nn.Parameter(both[:, 1:].clone()), "b.weight": both.T[:1]}
    net = store.import_weights(as_pt(state))
    assert net.weights[0].flatten().tolist() == [1, 3, 5]
    assert net.weights[1].tolist() == [[0, 2, 4]] and net.weights[1].is_contiguous()


def test_too_many_weights_in_all_are_refused(monkeypatch):
    monkeypatch.setattr(store_weights, "MOST_NUMBERS", 10)
    whole = torch.ones(3, 3)
    with pytest.raises(StoreError, match="has 18 weights; at most 10"):
        store.import_weights(as_pt({"a.weight": whole, "b.weight": whole}))


def test_what_torch_calls_old_is_read():
    model = mlp(2, 5, 1)
    out = io.BytesIO()
    torch.save(model.state_dict(), out, _use_new_zipfile_serialization=False)
    x = torch.randn(11, 2, generator=rng(1)).double()
    torch.testing.assert_close(phi(store.import_weights(out.getvalue()), x), model(x)[:, 0])
    with pytest.raises(StoreError, match="cut short"):
        store.import_weights(out.getvalue()[:-8])


def give(**values):
    def change(notes, fields, tensors):
        fields |= values

    return change


def source(**values):
    def change(notes, fields, tensors):
        fields["dataset"]["fields"]["source"]["fields"] |= values

    return change


def state(**values):
    def change(notes, fields, tensors):
        fields["train_states"][0]["fields"] |= values

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (give(seed=-1), "seed must be from 0"),
        (give(seed=10**400), "a whole number of 1329 bits"),
        (give(mix=[0.5, {"float": "nan"}]), "shares of mix"),
        (give(attack_config=None), "without its settings"),
        (give(attack_name="hinge"), "expected HingeConfig"),
        (source(preset="nowhere"), "no preset 'nowhere'"),
        (source(n=8), "gives .8, 2. points"),
        (source(noise={"float": "nan"}), "noise"),
        (state(rho=0.0), "have the norm"),
        (state(log_scale={"float": "inf"}), "not finite"),
        (state(t=-1), "from 0"),
        (state(grads={"tensor": "t0"}), "grads must be"),
    ],
)
def test_parts_of_a_run_that_do_not_fit_are_refused(run, change, message):
    with pytest.raises(StoreError, match=message):
        store.load(rewritten(run, change))


def test_a_run_that_is_no_table_is_refused(run):
    notes = {"format": store.FORMAT, "version": store.VERSION, "run": "5"}
    with pytest.raises(StoreError, match="expected Run; got 5"):
        store.load(write_tensors({"t0": torch.ones(1)}, metadata=notes))


def test_no_more_text_is_saved_than_is_read(run, monkeypatch):
    monkeypatch.setattr(store, "MOST_HEADER", 8000)
    with pytest.raises(StoreError, match="as text"):
        store.dump(run)
    thin = store.thinned_run(run)
    assert store.load(store.dump(thin)).train_states


def test_an_archive_that_unpacks_to_too_much_is_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(store_weights.MAX_BYTES + 1))
    assert len(stream.getvalue()) < 2**20
    with pytest.raises(StoreError, match="unpacks to"):
        store.import_weights(stream.getvalue())


def test_a_run_and_weights_are_told_apart(run):
    assert isinstance(store.open_bytes(store.dump(run)), Run)
    weights = write_tensors(mlp(2, 3, 1).state_dict())
    assert isinstance(store.open_bytes(weights), Network)
    with pytest.raises(StoreError, match="import it as weights"):
        store.load(weights)
    with pytest.raises(StoreError, match="Open it as a run"):
        store.import_weights(store.dump(run))
