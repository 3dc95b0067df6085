"""A complex tensor as a pair of real numbers, for the operations of `complex_operations`."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

aten = torch.ops.aten


class Unsupported(Exception):
    """A case that has no such operations."""


class Pair:
    """A complex tensor. `parts`: its real and imaginary parts, in a last dimension of 2."""

    def __init__(self, parts: torch.Tensor):
        self.parts = parts

    @property
    def dim(self) -> int:
        return self.parts.dim() - 1

    @property
    def real(self) -> torch.Tensor:
        return aten.select.int(self.parts, self.dim, 0)

    @property
    def imag(self) -> torch.Tensor:
        return aten.select.int(self.parts, self.dim, 1)


def join(real: torch.Tensor, imag: torch.Tensor) -> Pair:
    return Pair(aten.stack([real, imag], real.dim()))


def factor(value: Any) -> Any:
    """A real factor of a pair; numbers, also in tensors without dimensions, are as they are."""
    return value.unsqueeze(-1) if isinstance(value, torch.Tensor) and value.dim() else value


def at(a: Pair, dim: int, extra: int = 0) -> int:
    """The dimension `dim` of the pair. `extra`: dimensions that the operation adds."""
    return dim % (a.dim + extra)


def dims_of(a: Pair, dims: Optional[Sequence[int]]) -> List[int]:
    return [at(a, dim) for dim in dims] if dims else list(range(a.dim))
