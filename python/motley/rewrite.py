"""Operations that are recorded as others."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch

from . import operations

aten = torch.ops.aten

SAME = frozenset({"aten::detach", "aten::alias", "aten::lift_fresh", "aten::lift"})
"""Operations that show their argument as it is."""


def _copy(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if source.dtype != self.dtype:
        source = aten._to_copy(source, dtype=self.dtype)
    if source.shape != self.shape:
        source = aten.expand(source, list(self.shape))
    return aten.clone(source, memory_format=torch.contiguous_format)


def _index_put(self: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False,
               unsafe: bool = False) -> torch.Tensor:
    return aten.index_put(self, indices, values, accumulate)


_IN_PLACE: Dict[str, Callable[..., torch.Tensor]] = {
    "aten::copy_": _copy,
    "aten::zero_": lambda self: aten.zeros_like(self),
    "aten::fill_.Scalar": lambda self, value: aten.full_like(self, value),
    "aten::fill_.Tensor": lambda self, value: _copy(self, value),
    "aten::_index_put_impl_": _index_put,
}

_PLAIN: Dict[str, Callable[..., Any]] = {
    "aten::_reshape_alias": lambda self, size, stride: aten.view(self, size),
    "aten::_index_put_impl": _index_put,
}


def functional(name: str, func: Any) -> Callable[..., torch.Tensor]:
    """What the operation in place `func` gives its first argument, as a function."""
    if name in _IN_PLACE:
        return _IN_PLACE[name]
    space, rest = name.split("::")
    packet, _, overload = rest.partition(".")
    if not packet.endswith("_"):
        raise NotImplementedError(name)
    return operations.find(f"{space}::{packet[:-1]}" + (f".{overload}" if overload else ""))


def replacement(func: Any, name: str) -> Optional[Callable[..., Any]]:
    """What does the same as `func` by other operations, where there is something."""
    if name in _PLAIN:
        return _PLAIN[name]
    from torch._decomp import decomposition_table
    found = decomposition_table.get(func)
    return found
