"""The cases of tests/models/operations/: calls of every operation that a package may use, and layouts of their tensors.

tests/models/operation_cases.h reads the same files and makes the same tensors from them.
"""

from __future__ import annotations

import glob
import json
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "operations")

_SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e30, -1e-30, 3e38]
_EDGES = [-3.0, 3.0, -6.0, 0.0, 1.0, -1.0, 6.0]


class Case(NamedTuple):
    name: str
    """The operation and the number of the call: `aten::gelu_backward 2`."""
    op: str
    tensors: List[str]
    """The specification of each tensor argument, see the documentation of the files."""
    args: List[Any]
    """As in package.json; tensors are {"value": k}."""
    kwargs: Dict[str, Any]
    results: Optional[int]
    """If the operation returns a list: its number of tensors."""

    def graph(self, results: int) -> Dict[str, Any]:
        """A graph of this node alone, as in package.json."""
        count = len(self.tensors)
        return {"takes": [f"input:{k}" for k in range(count)],
                "nodes": [{"op": self.op, "args": self.args, "kwargs": self.kwargs, "results": results}],
                "gives": [[f"output:{k}", count + k] for k in range(results)]}


def read(folder: str = FOLDER) -> List[Case]:
    """All cases, by operation."""
    found: Dict[str, List[Case]] = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            for group in json.load(file):
                for op in group["ops"].split():
                    cases = found.setdefault(f"aten::{op}", [])
                    cases += [_case(f"aten::{op}", len(cases) + k, call) for k, call in enumerate(group["cases"])]
    return [case for op in sorted(found) for case in found[op]]


def _case(op: str, number: int, call: Any) -> Case:
    call = call if isinstance(call, dict) else {"args": call}
    tensors: List[str] = []

    def argument(value: Any) -> Any:
        if isinstance(value, str):
            tensors.append(value)
            return {"value": len(tensors) - 1}
        if isinstance(value, list) and any(isinstance(item, str) for item in value):
            return {"values": [None if item is None else argument(item)["value"] for item in value]}
        return value

    args = [argument(value) for value in call["args"]]
    return Case(f"{op} {number}", op, tensors, args, call.get("kwargs", {}), call.get("results"))


def make(spec: str, seed: int) -> torch.Tensor:
    """The tensor `f 2x3 0..1`: its type (f, i, b), shape and values."""
    kind, shape, *rest = spec.split()
    sizes = [] if shape == "scalar" else [int(size) for size in shape.split("x")]
    count = 1
    for size in sizes:
        count *= size
    i = torch.arange(count)
    h = (i * 2654435761 + (seed * 97531 + 12345)) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    unit = h.to(torch.float64) / 4294967296.0
    if rest[:1] == ["along"]:
        dim, last = int(rest[1]), int(rest[3]) - 1
        inner = 1
        for size in sizes[dim + 1:]:
            inner *= size
        return (last - (i // inner) % sizes[dim]).view(sizes)
    if kind == "b":
        return (h & 1).bool().view(sizes)
    if rest in (["special"], ["edges"]):
        listed = torch.tensor(_SPECIAL if rest == ["special"] else _EDGES)
        return listed[i % len(listed)].view(sizes)
    if rest == ["halves"]:
        return ((h % 11 - 5).to(torch.float32) / 2).view(sizes)
    if rest == ["infinite"]:
        return torch.full(sizes, float("-inf"))
    low, high = (float(end) for end in rest[0].split("..")) if rest else (-2.0, 2.0)
    values = low + unit * (high - low)
    return (values.floor().to(torch.int64) if kind == "i" else values.to(torch.float32)).view(sizes)


def _filler(t: torch.Tensor) -> Any:
    """The content of the gaps."""
    return float("nan") if t.is_floating_point() else t.dtype == torch.bool


def _by_order(t: torch.Tensor, order: List[int]) -> torch.Tensor:
    """Its dimensions are in this order in memory."""
    back = [order.index(dim) for dim in range(t.dim())]
    return t.permute(order).contiguous().permute(back)


def _transposed(t: torch.Tensor) -> Optional[torch.Tensor]:
    return _by_order(t, list(reversed(range(t.dim())))) if t.dim() > 1 else None


def _swapped(t: torch.Tensor) -> Optional[torch.Tensor]:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.dim() > 2 else None


def _channels_last(t: torch.Tensor) -> Optional[torch.Tensor]:
    return _by_order(t, [0, *range(2, t.dim()), 1]) if t.dim() > 2 else None


def _gaps(t: torch.Tensor) -> Optional[torch.Tensor]:
    if t.dim() == 0:
        return None
    wide = t.new_full([*t.shape[:-1], 2 * t.size(-1) + 1], _filler(t))
    part = wide[..., 1::2]
    part.copy_(t)
    return part


def _rows(t: torch.Tensor) -> Optional[torch.Tensor]:
    if t.dim() == 0:
        return None
    wide = t.new_full([*t.shape[:-1], t.size(-1) + 3], _filler(t))
    part = wide.narrow(-1, 2, t.size(-1))
    part.copy_(t)
    return part


def _planes(t: torch.Tensor) -> Optional[torch.Tensor]:
    if t.dim() < 2:
        return None
    wide = t.new_full([t.size(0), t.size(1) + 2, *t.shape[2:]], _filler(t))
    part = wide.narrow(1, 1, t.size(1))
    part.copy_(t)
    return part


def _transposed_rows(t: torch.Tensor) -> Optional[torch.Tensor]:
    order = list(reversed(range(t.dim())))
    part = _rows(t.permute(order).contiguous())
    return part.permute(order) if part is not None and t.dim() > 1 else None


def _repeated_second(t: torch.Tensor) -> Optional[torch.Tensor]:
    return t.narrow(1, 0, 1).expand(t.shape) if t.dim() > 2 and t.numel() else None


def _repeated_first(t: torch.Tensor) -> Optional[torch.Tensor]:
    return t.narrow(0, 0, 1).expand(t.shape) if t.dim() > 1 and t.numel() else None


def _repeated_last(t: torch.Tensor) -> Optional[torch.Tensor]:
    return t.narrow(-1, 0, 1).expand(t.shape) if t.dim() > 1 and t.numel() else None


def _repeated(t: torch.Tensor) -> Optional[torch.Tensor]:
    return t.flatten()[:1].view([1] * t.dim()).expand(t.shape) if t.dim() and t.numel() else None


def _overlapping(t: torch.Tensor) -> Optional[torch.Tensor]:
    if t.dim() < 2 or not t.numel():
        return None
    width = t.size(-1) + t.size(-2) - 1
    strides = [1] * t.dim()
    for dim in reversed(range(t.dim() - 2)):
        strides[dim] = width if dim == t.dim() - 3 else strides[dim + 1] * t.size(dim + 1)
    return t.contiguous().as_strided(t.shape, strides)


def _ones(t: torch.Tensor) -> Optional[torch.Tensor]:
    if 1 not in t.shape:
        return None
    return t.contiguous().as_strided(t.shape, [7 if size == 1 else stride for size, stride in zip(t.shape, t.contiguous().stride())])


LAYOUTS = {"transposed": _transposed, "swapped": _swapped, "channels last": _channels_last, "gaps": _gaps, "rows": _rows,
           "planes": _planes, "transposed rows": _transposed_rows, "repeated first": _repeated_first,
           "repeated second": _repeated_second, "repeated last": _repeated_last, "repeated": _repeated, "overlapping": _overlapping, "strides of ones": _ones}
"""Each maps a contiguous tensor to one of the same shape in its layout, or to None if that layout would not differ."""


def laid_out(spec: str, tensor: torch.Tensor, layout: str) -> Optional[torch.Tensor]:
    """A tensor of these values in a layout. A layout with repeated elements has other values, but never a repeated
    index."""
    made = LAYOUTS[layout](tensor)
    if made is None or " along " in spec and not torch.equal(made, tensor):
        return None
    return made


class Variant(NamedTuple):
    name: str
    """`1 transposed`: the second tensor is transposed."""
    tensors: List[torch.Tensor]


def variants(case: Case, tensors: List[torch.Tensor]) -> Iterator[Variant]:
    """Its tensors in other layouts: each alone, all in the same one, all in different ones."""
    layouts = list(LAYOUTS)
    seen = set()
    wanted: List[Tuple[str, List[Optional[str]]]] = []
    for place in range(len(tensors)):
        wanted += [(f"{place} {name}", [name if k == place else None for k in range(len(tensors))]) for name in layouts]
    if len(tensors) > 1:
        wanted += [(f"all {name}", [name] * len(tensors)) for name in layouts]
        wanted += [(f"mixed from {name}", [layouts[(first + k) % len(layouts)] for k in range(len(tensors))])
                   for first, name in enumerate(layouts)]
    for name, chosen in wanted:
        made = [None if layout is None else laid_out(spec, tensor, layout)
                for spec, tensor, layout in zip(case.tensors, tensors, chosen)]
        key = tuple(None if t is None else layout for t, layout in zip(made, chosen))
        if key in seen or not any(t is not None for t in made):
            continue
        seen.add(key)
        yield Variant(name, [plain if t is None else t for t, plain in zip(made, tensors)])
