"""Frozen tensors in packages: in the model's type, or quantised.

While the model is traced and compared, its frozen tensors have float32 values (`with_float32_values`). A recording contains
constants of the stored types, and the operations that convert them to float32 (`Recording`).
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch

from . import interpret, quantise
from .errors import ExportError
from .graph import Node, Ref, uses
from .graph_json import NARROW
from .layers import Names, is_statistic
from .half_precision import HALF_TYPES
from .quantise import Step

PREFIX = "motley."
"""Name prefix of a package's tensors that are not in the model's state_dict."""

_BASE = PREFIX + "base."

MIN_ELEMENTS = 4096
"""The least number of elements of a quantised weight."""


class Frozen(NamedTuple):
    """A frozen tensor of the model, and the constants that a package stores for it."""

    name: str
    original: torch.Tensor
    parts: Dict[str, torch.Tensor]
    """[name in the package] a constant, in the order of the indices in `steps`."""
    steps: List[Step]

    @property
    def is_quantised(self) -> bool:
        return self.name not in self.parts

    def values(self) -> torch.Tensor:
        return quantise.dequantised(self.parts, self.steps, _run)

    def described(self) -> Dict[str, Any]:
        """Its entry in `quantised` of package.json."""
        names = list(self.parts)
        return {"type": NARROW.get(self.original.dtype, "float32"), "shape": list(self.original.shape), "codes": names[0], "scales": names[1],
                "table": names[2] if len(names) > 2 else None}


def _run(step: Step, values: List[torch.Tensor]) -> torch.Tensor:
    node = Node(step.op, step.args, step.kwargs, (len(values),))
    (result,) = interpret.run_node(node, {value: values[value] for value in uses(node)}, samples=1)
    assert result is not None
    return result


def dequantised(described: Dict[str, Any], tensors: Dict[str, torch.Tensor]) -> torch.Tensor:
    """The values of an entry of a package's `quantised`, in the type that the model has."""
    parts = {name: tensors[name] for name in (described["codes"], described["scales"], described["table"]) if name is not None}
    blocks = 0 if described["table"] is None else tensors[described["scales"]].size(0)
    values = quantise.dequantised(parts, quantise.steps_of(tuple(described["shape"]), blocks), _run)
    return values.to({text: dtype for dtype, text in NARROW.items()}.get(described["type"], torch.float32))


def find_frozen(names: Names, roots: Iterable[torch.nn.Module], base: Optional[str]) -> Dict[int, Frozen]:
    """[id of a tensor] the frozen tensors that a package does not store in float32. `base`: the quantised type of the weights
    of linear layers."""
    if base is not None and base not in quantise.KINDS:
        raise ExportError(f"base={base!r} is not a type of frozen weights",
                          f"Pass one of {', '.join(map(repr, quantise.KINDS))}, or leave it out")
    found: Dict[int, Frozen] = {}
    linear = _linear_weights(roots) if base is not None else {}
    for name, tensor in names.state.items():
        if tensor.requires_grad or is_statistic(name) or tensor.dtype not in (*HALF_TYPES, torch.float32):
            continue
        if base is not None and id(tensor) in linear:
            found[id(tensor)] = _quantised(name, tensor, base, linear[id(tensor)])
        elif tensor.dtype in HALF_TYPES and tensor.numel() > 0:
            step = Step("aten::_to_copy", (Ref(0),), {"dtype": torch.float32}, tuple(tensor.shape))
            found[id(tensor)] = Frozen(name, tensor.data, {name: tensor.data.contiguous()}, [step])
    if base is not None and not any(frozen.is_quantised for frozen in found.values()):
        raise ExportError(f"base={base!r}, but no linear layer has a frozen weight with {MIN_ELEMENTS:,} elements or more",
                          "Leave base= out, or freeze weights: weight.requires_grad_(False)")
    return found


def _linear_weights(roots: Iterable[torch.nn.Module]) -> Dict[int, int]:
    """[id of a frozen weight] its dimension of outputs. Only weights of linear layers alone: those tied to an embedding are
    excluded."""
    found: Dict[int, int] = {}
    others = set()
    for root in roots:
        for module in root.modules():
            is_linear = isinstance(module, torch.nn.Linear)
            for key, weight in module._parameters.items():
                if weight is None or weight.requires_grad:
                    continue
                if key == "weight" and weight.dim() == 2 and weight.numel() >= MIN_ELEMENTS and (is_linear or type(module).__name__ == "Conv1D"):
                    found[id(weight)] = 0 if is_linear else 1
                else:
                    others.add(id(weight))
    return {key: dim for key, dim in found.items() if key not in others}


def _quantised(name: str, tensor: torch.Tensor, kind: str, outputs: int) -> Frozen:
    data = tensor.data
    if not bool(torch.isfinite(data).all()):
        raise ExportError(f"{name} has NaN or infinite values and cannot be quantised to {kind}",
                          "Load it again, or leave base= out", name.rpartition(".")[0] or None)
    made = quantise.quantise(data, kind, outputs)
    names = {"codes": f"{_BASE}{name}.codes", "scales": f"{_BASE}{name}.scales", "table": f"{_BASE}{kind}"}
    return Frozen(name, data, {names[part]: held for part, held in made.parts.items()}, made.steps)


@contextlib.contextmanager
def with_float32_values(names: Names, frozen: Dict[int, Frozen]) -> Iterator[List[float]]:
    """While entered, the model's frozen tensors have the float32 values that a package computes with. Yields the error of each
    quantised tensor, relative to its norm."""
    before: List[Tuple[torch.Tensor, torch.Tensor]] = []
    errors: List[float] = []
    try:
        for name, tensor in names.state.items():
            held = frozen.get(id(tensor))
            if held is None and (tensor.requires_grad or tensor.dtype not in HALF_TYPES):
                continue
            values = held.values() if held is not None else tensor.data.float()
            if held is not None and held.is_quantised:
                errors.append(_relative_error(values, held.original))
            before.append((tensor, tensor.data))
            tensor.data = values
        yield errors
    finally:
        for tensor, data in before:
            tensor.data = data


def _relative_error(values: torch.Tensor, original: torch.Tensor) -> float:
    """The norm of the difference, relative to that of the original."""
    difference = norm = 0.0
    for begin, end in quantise.row_blocks(original, original.size(1)):
        right = original[begin:end].double()
        difference += float((values[begin:end] - right).square().sum())
        norm += float(right.square().sum())
    return math.sqrt(difference / norm) if norm else 0.0


def notices(base: Optional[str], errors: List[float]) -> List[str]:
    """The notice about the error of quantised weights."""
    if not errors:
        return []
    weights = "1 frozen weight is" if len(errors) == 1 else f"{len(errors)} frozen weights are"
    return [f"{weights} quantised to {base}: the relative error is at most {max(errors):.2%} of a weight's norm, "
            f"{sum(errors) / len(errors):.2%} in the mean"]
