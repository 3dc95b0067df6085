"""The sensitivity of a layer to rounding: its graphs with perturbed results, and with products in bf16."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

import torch

from . import operations
from .graph import Node
from .interpret import Package, run_node

_RELATIVE = 2.0 ** -20
"""The largest relative perturbation: 8 units in the last place, more than the differences between libraries."""
_SEED = 20261129


class _Perturbation:
    """Perturbs numbers by random relative amounts up to `_RELATIVE`; integers, which may be ids, are unchanged."""

    def __init__(self, number: int) -> None:
        self._generator = torch.Generator().manual_seed(_SEED + number)

    def move(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype != torch.float32:
            return tensor
        # In place, because weights may be large.
        moved = torch.rand(tensor.shape, generator=self._generator).mul_(2).sub_(1).mul_(_RELATIVE)
        moved.mul_(tensor).add_(tensor)
        unchanged = (tensor == tensor.round()).logical_or_(torch.isfinite(tensor).logical_not_())
        return torch.where(unchanged, tensor, moved)

    def node(self, node: Node, values: Mapping[int, Optional[torch.Tensor]], samples: int) -> List[Optional[torch.Tensor]]:
        out = run_node(node, values, samples)
        if node.op.startswith("motley::") or operations.is_view(operations.find(node.op)):
            return out
        return [None if tensor is None else self.move(tensor) for tensor in out]


def perturbed(package: Package, layer: int, inputs: List[torch.Tensor], number: int = 0) -> "tuple[Package, List[torch.Tensor]]":
    """The package and the inputs with perturbed parameters, results and values. `number` selects the random amounts."""
    perturbation = _Perturbation(number)
    described = package.description["layers"][layer]
    moved = {entry["name"]: perturbation.move(package.tensors[entry["name"]].detach())
             for kind in ("parameters", "statistics") for entry in described[kind]}
    return package.computing(perturbation.node, {**package.tensors, **moved}), [perturbation.move(x) for x in inputs]


def in_bf16(package: Package) -> Package:
    """The package with products whose arguments and results are rounded to bf16."""
    def short(tensor: Optional[torch.Tensor]) -> Any:
        return tensor.bfloat16().float() if tensor is not None and tensor.dtype == torch.float32 else tensor

    def rounded(node: Node, values: Mapping[int, Optional[torch.Tensor]], samples: int) -> List[Optional[torch.Tensor]]:
        if node.op not in operations.PRODUCTS:
            return run_node(node, values, samples)
        taken = _Rounded(values, short)
        return [short(tensor) for tensor in run_node(node, taken, samples)]

    return package.computing(rounded, package.tensors)


class _Rounded(Mapping[int, Optional[torch.Tensor]]):
    def __init__(self, values: Mapping[int, Optional[torch.Tensor]], short: Any):
        self._values = values
        self._short = short

    def __getitem__(self, value: int) -> Optional[torch.Tensor]:
        return self._short(self._values[value])  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
