"""Frozen tensors as packages hold them: in the type that they have, or in fewer bits.

The model computes in float32: while it is traced and compared, frozen tensors have float32 values (`computed`). A recording has
constants of the types that are written, and the operations that make these values of them (`Recorder`).
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
from .layers import Names
from .number_types import SMALLER
from .quantise import Step
from .record import is_statistic

OWN = "motley."
"""How tensors of a package are called that are not in the model's state_dict."""

_BASE = OWN + "base."

LEAST = 4096
"""Elements of a weight that is quantised."""


class Frozen(NamedTuple):
    """A frozen tensor of the model, and what a package has in its place."""

    name: str
    original: torch.Tensor
    parts: Dict[str, torch.Tensor]
    """By their names in the package, in the order in which `steps` number them."""
    steps: List[Step]

    @property
    def is_quantised(self) -> bool:
        return self.name not in self.parts

    def values(self) -> torch.Tensor:
        return quantise.dequantised(self.parts, self.steps, _run)

    def described(self) -> Dict[str, Any]:
        """As `quantised` of package.json says it."""
        names = list(self.parts)
        return {"type": NARROW.get(self.original.dtype, "float32"), "shape": list(self.original.shape), "codes": names[0], "scales": names[1],
                "table": names[2] if len(names) > 2 else None}


def _run(step: Step, values: List[torch.Tensor]) -> torch.Tensor:
    node = Node(step.op, step.args, step.kwargs, (len(values),))
    (result,) = interpret.run_node(node, {value: values[value] for value in uses(node)}, samples=1)
    assert result is not None
    return result


def dequantised(described: Dict[str, Any], tensors: Dict[str, torch.Tensor]) -> torch.Tensor:
    """A tensor of a package's `quantised`, in the type that it had in the model."""
    parts = {name: tensors[name] for name in (described["codes"], described["scales"], described["table"]) if name is not None}
    blocks = 0 if described["table"] is None else tensors[described["scales"]].size(0)
    values = quantise.dequantised(parts, quantise.steps_of(tuple(described["shape"]), blocks), _run)
    return values.to({text: dtype for dtype, text in NARROW.items()}.get(described["type"], torch.float32))


def frozen_of(names: Names, roots: Iterable[torch.nn.Module], base: Optional[str]) -> Dict[int, Frozen]:
    """[id of a tensor] those that a package does not hold in float32. With `base`, the weights of linear layers are quantised."""
    if base is not None and base not in quantise.KINDS:
        raise ExportError(f"base={base!r} is no type of frozen weights", f"Give one of {', '.join(map(repr, quantise.KINDS))}, or leave it out")
    found: Dict[int, Frozen] = {}
    linear = _linear_weights(roots) if base is not None else {}
    for name, tensor in names.state.items():
        if tensor.requires_grad or is_statistic(name) or tensor.dtype not in (*SMALLER, torch.float32):
            continue
        if base is not None and id(tensor) in linear:
            found[id(tensor)] = _quantised(name, tensor, base, linear[id(tensor)])
        elif tensor.dtype in SMALLER and tensor.numel() > 0:
            step = Step("aten::_to_copy", (Ref(0),), {"dtype": torch.float32}, tuple(tensor.shape))
            found[id(tensor)] = Frozen(name, tensor.data, {name: tensor.data.contiguous()}, [step])
    if base is not None and not any(frozen.is_quantised for frozen in found.values()):
        raise ExportError(f"base={base!r} finds no frozen weight of a linear layer with {LEAST:,} elements or more", "Leave base= out, or freeze them: "
                          "weight.requires_grad_(False)")
    return found


def _linear_weights(roots: Iterable[torch.nn.Module]) -> Dict[int, int]:
    """[id of a frozen weight] its dimension of outputs, of linear layers alone: what an embedding has, too, stays as it is."""
    found: Dict[int, int] = {}
    others = set()
    for root in roots:
        for module in root.modules():
            is_linear = isinstance(module, torch.nn.Linear)
            for key, weight in module._parameters.items():
                if weight is None or weight.requires_grad:
                    continue
                if key == "weight" and weight.dim() == 2 and weight.numel() >= LEAST and (is_linear or type(module).__name__ == "Conv1D"):
                    found[id(weight)] = 0 if is_linear else 1
                else:
                    others.add(id(weight))
    return {key: dim for key, dim in found.items() if key not in others}


def _quantised(name: str, tensor: torch.Tensor, kind: str, outputs: int) -> Frozen:
    data = tensor.data
    if not bool(torch.isfinite(data).all()):
        raise ExportError(f"{name} has values that are not finite, and cannot be in {kind}", "Load it again, or leave base= out", name.rpartition(".")[0] or None)
    made = quantise.quantise(data, kind, outputs)
    names = {"codes": f"{_BASE}{name}.codes", "scales": f"{_BASE}{name}.scales", "table": f"{_BASE}{kind}"}
    return Frozen(name, data, {names[part]: held for part, held in made.parts.items()}, made.steps)


@contextlib.contextmanager
def computed(names: Names, frozen: Dict[int, Frozen]) -> Iterator[List[float]]:
    """Inside, the model's frozen tensors have the float32 values that a package computes with. Gives how far those that are
    quantised are from what they were, as shares of their norms."""
    before: List[Tuple[torch.Tensor, torch.Tensor]] = []
    errors: List[float] = []
    try:
        for name, tensor in names.state.items():
            held = frozen.get(id(tensor))
            if held is None and (tensor.requires_grad or tensor.dtype not in SMALLER):
                continue
            values = held.values() if held is not None else tensor.data.float()
            if held is not None and held.is_quantised:
                errors.append(_apart(values, held.original))
            before.append((tensor, tensor.data))
            tensor.data = values
        yield errors
    finally:
        for tensor, data in before:
            tensor.data = data


def _apart(values: torch.Tensor, original: torch.Tensor) -> float:
    """The norm of their difference as a share of the original's."""
    difference = norm = 0.0
    for begin, end in quantise.row_parts(original, original.size(1)):
        right = original[begin:end].double()
        difference += float((values[begin:end] - right).square().sum())
        norm += float(right.square().sum())
    return math.sqrt(difference / norm) if norm else 0.0


def notices(base: Optional[str], errors: List[float]) -> List[str]:
    """What a user should know of a base that is quantised."""
    if not errors:
        return []
    weights = "1 frozen weight is" if len(errors) == 1 else f"{len(errors)} frozen weights are"
    return [f"{weights} held in {base}: what is computed with differs from the model's by {max(errors):.2%} of a weight's norm at most, and by "
            f"{sum(errors) / len(errors):.2%} in the mean"]
