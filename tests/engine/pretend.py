"""A device that is none: its tensors are computed on the CPU, and all that crosses over is noted.

Tensors of the device `NAME` hold one of the CPU. No operation may take one of them beside an array
of the CPU, as no other device would, and each number that is read back is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Self
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from explorer.research import devices

NAME = "lazy"  # torch knows the name, and looks for no library
# Of what an operation reads to know the shape of its result, or gives as a number.
READS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_dim"}


class Held(Tensor):
    """A tensor of the device."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> Held:
        made: Held = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype, device=NAME,
        )  # fmt: skip
        made.inner = inner
        return made

    inner: Tensor

    def tolist(self) -> Any:
        """Read every number."""
        return self.to("cpu").tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run it on what is held."""
        return _run(func, args, kwargs or {}, Counter())


class Pretend(TorchDispatchMode):
    """While it is on, the device is there.

    Attributes:
        reads: names of the operations that read back, with their number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.seen = patch.object(devices, "devices", lambda: ["cpu", NAME])

    def __enter__(self) -> Self:
        """Let the engine's runs see the device too."""
        self.seen.start()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        """Take it away."""
        super().__exit__(*error)
        self.seen.stop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run it, and note what is read back."""
        return _run(func, args, kwargs or {}, self.reads)


def _run(func: Any, args: Any, kwargs: dict[str, Any], reads: Counter[str]) -> Any:
    given = [v for v in tree_flatten((args, kwargs))[0] if isinstance(v, Tensor)]
    here = any(isinstance(v, Held) for v in given)
    name = func.name().split("::")[1].split(".")[0]
    wanted = kwargs.get("device")
    there = here if wanted is None else torch.device(wanted).type == NAME
    copies = name in ("_to_copy", "copy_")
    if name == "copy_":
        there = isinstance(args[0], Held)
    if here and not copies:
        alone = [v for v in given if not isinstance(v, Held) and v.ndim]
        assert not alone, f"{name} takes arrays of two devices"
    by_mask = name.startswith("index") and any(v.dtype == torch.bool for v in given[1:])
    if here and (name in READS or by_mask or (copies and not there)):
        reads[name] += 1
    plain, more = tree_map(lambda v: v.inner if isinstance(v, Held) else v, (args, kwargs))
    out = func(*plain, **(more if wanted is None else {**more, "device": torch.device("cpu")}))
    if "out" in kwargs or (name.endswith("_") and not name.startswith("_")):  # in place
        return kwargs["out"] if "out" in kwargs else args[0]
    return tree_map(lambda v: Held(v) if there and isinstance(v, Tensor) else v, out)
