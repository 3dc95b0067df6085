"""Views, selections, joins and sums of complex tensors by operations on pairs of real numbers."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from .complex_pair import Pair, Unsupported, at, dims_of, join

aten = torch.ops.aten


def _each(found: Any) -> Any:
    return [Pair(part) for part in found] if isinstance(found, (list, tuple)) else Pair(found)


def _along(operation: Any, place: int) -> Callable[..., Any]:
    """An operation whose argument `place` after the tensor is a dimension, by default the first."""
    def run(a: Pair, *rest: Any) -> Any:
        given = list(rest)
        if len(given) > place:
            given[place] = at(a, given[place])
        return _each(operation(a.parts, *given))
    return run


def _joined(operation: Any, extra: int) -> Callable[..., Any]:
    def run(tensors: List[Any], dim: int = 0) -> Pair:
        if not all(isinstance(tensor, Pair) for tensor in tensors):
            raise Unsupported("some of the tensors are real")
        return Pair(operation([tensor.parts for tensor in tensors], at(tensors[0], dim, extra)))
    return run


def _reduced(operation: Any) -> Callable[..., Any]:
    def run(a: Pair, dims: Optional[Sequence[int]] = None, keepdim: bool = False, **_: Any) -> Pair:
        return Pair(operation(a.parts, dims_of(a, dims), keepdim))
    return run


def _squeeze(a: Pair, dims: Any = None) -> Pair:
    chosen = range(a.dim) if dims is None else [at(a, dim) for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]
    parts = a.parts
    for dim in sorted(chosen, reverse=True):
        if parts.size(dim) == 1:
            parts = aten.squeeze.dim(parts, dim)
    return Pair(parts)


def _like(value: Optional[float]) -> Callable[..., Any]:
    def run(a: Any, *rest: Any, dtype: Optional[torch.dtype] = None, **_: Any) -> Any:
        parts = a.parts if isinstance(a, Pair) else None
        if parts is None or dtype not in (None, torch.complex64):
            raise Unsupported("it changes the type")
        zeros = aten.zeros_like(parts)
        return Pair(zeros) if value == 0 else join(aten.select.int(zeros, zeros.dim() - 1, 0) + 1, aten.select.int(zeros, zeros.dim() - 1, 1))
    return run


def _zeros(size: Sequence[int], dtype: Optional[torch.dtype] = None, **_: Any) -> Pair:
    return Pair(aten.zeros.default([*size, 2]))


def _new_zeros(a: Any, size: Sequence[int], dtype: Optional[torch.dtype] = None, **_: Any) -> Pair:
    if dtype not in (None, torch.complex64):
        raise Unsupported("it changes the type")
    return _zeros(size)


def _copy(a: Pair, b: Any, non_blocking: bool = False) -> Pair:
    if not isinstance(b, Pair):
        raise Unsupported("a real tensor is copied")
    return Pair(aten.copy_(a.parts, b.parts))


def _padded(a: Pair, pad: Sequence[int], value: Any = 0) -> Pair:
    if value != 0:
        raise Unsupported("its value is not 0")
    return Pair(aten.constant_pad_nd(a.parts, [0, 0, *pad], 0))


def _rolled(a: Pair, shifts: Any, dims: Sequence[int] = ()) -> Pair:
    if not dims:
        raise Unsupported("no dimension is given")
    return Pair(aten.roll(a.parts, shifts, dims_of(a, dims)))


def _view(a: Pair, size: Sequence[int], stride: Optional[Sequence[int]] = None) -> Pair:
    return Pair(aten.view(a.parts, [*size, 2]))


SHAPES: Dict[str, Callable[..., Any]] = {
    "aten::cat": _joined(aten.cat.default, 0), "aten::clone": lambda a, **_: Pair(aten.clone(a.parts, memory_format=torch.contiguous_format)),
    "aten::constant_pad_nd": _padded, "aten::copy_": _copy, "aten::detach": lambda a: Pair(aten.detach(a.parts)),
    "aten::expand": lambda a, size, implicit=False: Pair(aten.expand(a.parts, [*size, 2])),
    "aten::flip": lambda a, dims: Pair(aten.flip(a.parts, dims_of(a, dims))),
    "aten::index.Tensor": lambda a, indices: Pair(aten.index.Tensor(a.parts, indices)), "aten::index_select": _along(aten.index_select.default, 0),
    "aten::mean.dim": _reduced(aten.mean.dim), "aten::mean": _reduced(aten.mean.dim), "aten::new_zeros": _new_zeros, "aten::ones_like": _like(1),
    "aten::permute": lambda a, dims: Pair(aten.permute(a.parts, [*(at(a, dim) for dim in dims), a.dim])),
    "aten::repeat": lambda a, times: Pair(aten.repeat(a.parts, [*times, 1])), "aten::_reshape_alias": _view, "aten::roll": _rolled,
    "aten::select.int": _along(aten.select.int, 0),
    "aten::select_backward": lambda a, size, dim, index: Pair(aten.select_backward(a.parts, [*size, 2], dim % len(size), index)),
    "aten::slice.Tensor": _along(aten.slice.Tensor, 0),
    "aten::slice_backward": lambda a, size, dim, *rest: Pair(aten.slice_backward(a.parts, [*size, 2], dim % len(size), *rest)),
    "aten::split.Tensor": _along(aten.split.Tensor, 1), "aten::split_with_sizes": _along(aten.split_with_sizes.default, 1), "aten::squeeze": _squeeze,
    "aten::squeeze.dim": _squeeze, "aten::squeeze.dims": _squeeze, "aten::stack": _joined(aten.stack.default, 1), "aten::sum": _reduced(aten.sum.dim_IntList),
    "aten::sum.dim_IntList": _reduced(aten.sum.dim_IntList), "aten::t": lambda a: Pair(aten.transpose.int(a.parts, 0, 1)) if a.dim == 2 else a,
    "aten::transpose.int": lambda a, one, other: Pair(aten.transpose.int(a.parts, at(a, one), at(a, other))), "aten::unbind.int": _along(aten.unbind.int, 0),
    "aten::unsqueeze": lambda a, dim: Pair(aten.unsqueeze(a.parts, at(a, dim, 1))), "aten::view": _view, "aten::_unsafe_view": _view, "aten::zeros": _zeros,
    "aten::zeros_like": _like(0)}
"""[operation] its function of pairs and real tensors."""
