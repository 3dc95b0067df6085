"""The sensitivity of a layer to rounding: its graphs with perturbed results, and with products in bf16."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import torch

from . import operations, pieces
from .graph import Node, uses
from .interpret import Package, run_node

_RELATIVE = 2.0 ** -20
"""The largest relative perturbation: 8 units in the last place, more than the differences between libraries."""
_SEED = 20261129

LARGE_BYTES = 1 << 24
"""Weights of this size are perturbed where they are used."""


class _Perturbation:
    """Perturbs numbers by random relative amounts up to `_RELATIVE`; integers, which may be ids, are unchanged. Large weights are
    perturbed where an operation uses them, so that only one at a time is in memory twice."""

    def __init__(self, number: int) -> None:
        self._generator = torch.Generator().manual_seed(_SEED + number)
        self._later: Dict[Tuple[int, torch.Size], torch.Tensor] = {}  # [address and shape of a weight] the generator's state

    def move(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._move(tensor, torch.empty_like(tensor)) if tensor.dtype == torch.float32 else tensor

    def _move(self, tensor: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        for moved, part in zip(pieces.of(out), pieces.of(tensor)):
            random = torch.rand(part.shape, generator=self._generator).mul_(2).sub_(1).mul_(_RELATIVE).mul_(part).add_(part)
            unchanged = (part == part.round()).logical_or_(torch.isfinite(part).logical_not_())
            moved.copy_(torch.where(unchanged, part, random))
        return out

    def weight(self, tensor: torch.Tensor) -> torch.Tensor:
        """The perturbed weight, or the weight itself if it is perturbed where it is used."""
        if tensor.dtype != torch.float32 or tensor.numel() * tensor.element_size() < LARGE_BYTES:
            return self.move(tensor)
        self._later[tensor.data_ptr(), tensor.shape] = self._generator.get_state()
        for part in pieces.of(tensor):
            torch.rand(part.shape, generator=self._generator)
        return tensor

    def _moved(self, tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        state = None if tensor is None else self._later.get((tensor.data_ptr(), tensor.shape))
        if state is None:
            return tensor
        now = self._generator.get_state()
        self._generator.set_state(state)
        moved = self.move(tensor)  # type: ignore[arg-type]
        self._generator.set_state(now)
        return moved

    def node(self, node: Node, values: Mapping[int, Optional[torch.Tensor]], samples: int) -> List[Optional[torch.Tensor]]:
        out = run_node(node, _Changed(values, self._moved) if self._later else values, samples)
        if node.op.startswith("motley::") or operations.is_view(operations.find(node.op)):
            return out
        return [tensor if tensor is None or tensor.dtype != torch.float32 else self._move(tensor, tensor) if _is_new(tensor, node, values)
                else self.move(tensor) for tensor in out]


def perturbed(package: Package, layer: int, inputs: List[torch.Tensor], number: int = 0) -> "tuple[Package, List[torch.Tensor]]":
    """The package and the inputs with perturbed parameters, results and values. `number` selects the random amounts."""
    perturbation = _Perturbation(number)
    described = package.description["layers"][layer]
    moved = {entry["name"]: perturbation.weight(package.tensors[entry["name"]].detach())
             for kind in ("parameters", "statistics") for entry in described[kind]}
    return package.computing(perturbation.node, {**package.tensors, **moved}), [perturbation.move(x) for x in inputs]


def _is_new(tensor: torch.Tensor, node: Node, values: Mapping[int, Optional[torch.Tensor]]) -> bool:
    """Whether a result may be written to: it shares no memory with an argument, as a conversion to its own type does."""
    addresses = {taken.data_ptr() for value in uses(node) for taken in [values[value]] if taken is not None}
    return tensor.is_contiguous() and tensor.data_ptr() not in addresses


def in_bf16(package: Package) -> Package:
    """The package with products whose arguments and results are rounded to bf16."""
    def short(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        return None if tensor is None else _rounded(tensor, torch.empty_like(tensor)) if tensor.dtype == torch.float32 else tensor

    def rounded(node: Node, values: Mapping[int, Optional[torch.Tensor]], samples: int) -> List[Optional[torch.Tensor]]:
        if node.op not in operations.PRODUCTS:
            return run_node(node, values, samples)
        return [tensor if tensor is None or tensor.dtype != torch.float32 else _rounded(tensor, tensor)
                for tensor in run_node(node, _Changed(values, short), samples)]

    return package.computing(rounded, package.tensors)


def _rounded(tensor: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """`tensor` rounded to bf16 and converted back into `out`, which may be `tensor`."""
    for into, part in zip(pieces.of(out), pieces.of(tensor)):
        into.copy_(part.bfloat16())
    return out


class _Changed(Mapping[int, Optional[torch.Tensor]]):
    """Values that are changed when they are read."""

    def __init__(self, values: Mapping[int, Optional[torch.Tensor]], change: Callable[[Optional[torch.Tensor]], Optional[torch.Tensor]]):
        self._values = values
        self._change = change

    def __getitem__(self, value: int) -> Optional[torch.Tensor]:
        return self._change(self._values[value])

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
