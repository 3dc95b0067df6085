"""Operations that are recorded as other operations."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import torch

from . import masked_scatter, operations

aten = torch.ops.aten

class NoReplacement(Exception):
    """There is a replacement, but not for these arguments."""


ALIASES = frozenset({"aten::detach", "aten::alias", "aten::lift_fresh", "aten::lift"})
"""Operations whose result is an alias of their argument."""


def _copy(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if source.dtype != self.dtype:
        source = aten._to_copy(source, dtype=self.dtype)
    if source.shape != self.shape:
        source = aten.expand(source, list(self.shape))
    return aten.clone(source, memory_format=torch.contiguous_format)


def _index_put(self: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False,
               unsafe: bool = False) -> torch.Tensor:
    return aten.index_put(self, indices, values, accumulate)


_ALWAYS = frozenset({"aten::as_strided", "aten::_reshape_alias", "aten::masked_scatter", "aten::sort"})
"""Views that cannot be scattered back; an operation whose gradient is one of values; and sort, whose order of equal elements varies
between versions of PyTorch."""


def is_always_replaced(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether it is replaced even for constants, and if packages support it. With beta = 0, small products of 1.13 read
    uninitialized memory."""
    return name in _ALWAYS or name == "aten::baddbmm" and kwargs.get("beta", 1) == 0

_IN_PLACE: Dict[str, Callable[..., torch.Tensor]] = {
    "aten::copy_": _copy,
    "aten::zero_": lambda self: aten.zeros_like(self),
    "aten::fill_.Scalar": lambda self, value: aten.full_like(self, value),
    "aten::fill_.Tensor": lambda self, value: _copy(self, value),
    "aten::_index_put_impl_": _index_put,
}

def _squeeze(self: torch.Tensor, dims: List[int]) -> torch.Tensor:
    for dim in sorted((dim % self.dim() for dim in dims), reverse=True):
        self = aten.squeeze(self, dim)
    return self


def _windows(size: List[int], stride: List[int]) -> Optional[Tuple[int, int]]:
    """The dimensions of windows and of their elements, if windows overlap."""
    for number, step in enumerate(stride):
        for element, inner in enumerate(stride):
            if number != element and min(size[number], size[element]) > 1 and 0 < inner <= step < size[element] * inner and step % inner == 0:
                return number, element
    return None


def _unfolded(self: torch.Tensor, size: List[int], stride: List[int], offset: Optional[int], number: int, element: int) -> torch.Tensor:
    step = stride[number] // stride[element]
    sizes, strides = list(size), list(stride)
    sizes[number], strides[number] = (size[number] - 1) * step + size[element], stride[element]
    del sizes[element], strides[element]
    shown = aten.unfold(_as_strided(self, sizes, strides, offset), number - (element < number), size[element], step)
    order = list(range(len(sizes)))
    order.insert(element, len(sizes))
    return aten.permute(shown, order)


def _as_strided(self: torch.Tensor, size: List[int], stride: List[int], offset: Optional[int] = None) -> torch.Tensor:
    """A part of a tensor without gaps in memory, by views and slices; autograd uses as_strided after an in-place operation on a view.

    If each stride divides the next larger one, the memory is an array whose dimensions are the quotients, and the offset in
    mixed radix gives the start of the part in each dimension. Windows that overlap are unfolded from their union.
    """
    windows = _windows(size, stride)
    if windows is not None:
        return _unfolded(self, size, stride, offset, *windows)
    if not self.is_contiguous():
        self = aten.permute(self, sorted(range(self.dim()), key=lambda k: -self.stride(k)))  # in the order of memory
    large = sorted((k for k in range(len(size)) if size[k] > 1), key=lambda k: -stride[k])
    steps = [stride[k] for k in large] + [1]
    wholes = [self.numel()] + steps[:-1]
    if not self.is_contiguous() or any(step < 1 or whole % step for whole, step in zip(wholes, steps)):
        raise NoReplacement
    rest = 0 if offset is None else offset - self.storage_offset()
    shown = aten.view(self, [whole // step for whole, step in zip(wholes, steps)])
    for dim, step in enumerate(steps):
        start, rest = divmod(rest, step)
        if dim == len(large):
            shown = aten.select(shown, dim, start)
        elif start + size[large[dim]] > shown.size(dim):
            raise NoReplacement
        elif size[large[dim]] != shown.size(dim):
            shown = aten.slice(shown, dim, start, start + size[large[dim]])
    if large != sorted(large):
        shown = aten.permute(shown, [large.index(k) for k in sorted(large)])
    for k in range(len(size)):
        if size[k] == 1:
            shown = aten.unsqueeze(shown, k)
    return shown


def _sort(self: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    return aten.sort.stable(self, stable=True, dim=dim, descending=descending)


def _scaled_bmm(self: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, beta: float = 0, alpha: float = 1) -> torch.Tensor:
    """baddbmm without its first argument."""
    product = aten.bmm(batch1, batch2)
    return product if alpha == 1 else product * alpha


def _upsample(base: str, spatial: int, aligns: bool) -> Callable[..., torch.Tensor]:
    """The overload with sizes, for a call of the overload with sizes or factors."""
    function = operations.find(f"aten::{base}")

    def sized(shape: Any, output_size: Optional[List[int]], rest: Any) -> Any:
        factors = rest[-1]
        sizes = output_size or [int(shape[2 + k] * factors[k]) for k in range(spatial)]
        return sizes, (rest[:1] if aligns else ()), factors if factors is not None else [None] * spatial

    def resize(input: torch.Tensor, output_size: Optional[List[int]], *rest: Any) -> torch.Tensor:
        sizes, align, scales = sized(input.shape, output_size, rest)
        return function(input, sizes, *align, *scales)

    def resize_backward(grad: torch.Tensor, output_size: Optional[List[int]], shape: List[int], *rest: Any) -> torch.Tensor:
        sizes, align, scales = sized(shape, output_size, rest)
        return function(grad, sizes, shape, *align, *scales)
    return resize_backward if base.endswith("_backward") else resize


_UPSAMPLES = (("upsample_nearest1d", 1, False), ("upsample_nearest2d", 2, False), ("upsample_nearest3d", 3, False),
              ("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True), ("upsample_bicubic2d", 2, True),
              ("upsample_trilinear3d", 3, True))


_REPLACEMENTS: Dict[str, Callable[..., Any]] = {
    "aten::_reshape_alias": lambda self, size, stride: aten.view(self, size),
    "aten::_index_put_impl": _index_put,
    "aten::as_strided": _as_strided,
    "aten::baddbmm": _scaled_bmm,
    "aten::masked_scatter": masked_scatter.forward,
    "aten::masked_scatter_backward": masked_scatter.backward,
    "aten::sort": _sort,
    "aten::squeeze.dims": _squeeze,
    **{f"aten::{base}{way}.vec": _upsample(base + way, spatial, aligns)
       for base, spatial, aligns in _UPSAMPLES for way in ("", "_backward")},
}


def without_empty(tensors: List[torch.Tensor]) -> List[torch.Tensor]:
    """Without tensors of the shape [0], such as an empty cache, which `cat` ignores; packages do not support them."""
    return [tensor for tensor in tensors if tensor.shape != (0,)] or tensors


_INPLACE_VIEWS = frozenset({"transpose_", "t_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_"})


def is_inplace_view(name: str) -> bool:
    """Whether an in-place operation only changes the view of its tensor."""
    return name.split("::")[1].partition(".")[0] in _INPLACE_VIEWS


def functional(name: str, func: Any) -> Callable[..., torch.Tensor]:
    """The function whose result the in-place operation `func` writes to its first argument."""
    if name in _IN_PLACE:
        return _IN_PLACE[name]
    space, rest = name.split("::")
    packet = rest.partition(".")[0]
    if not packet.endswith("_"):
        raise NotImplementedError(name)
    functions = getattr(getattr(torch.ops, space), packet[:-1], None)
    wanted = [(argument.name, str(argument.type)) for argument in func._schema.arguments]
    for overload in functions.overloads() if functions is not None else ():
        function = getattr(functions, overload)
        if [(argument.name, str(argument.type)) for argument in function._schema.arguments] == wanted:
            return function
    raise NotImplementedError(name)


def replacement(func: Any, name: str) -> Optional[Callable[..., Any]]:
    """A function that computes `func` by other operations, if there is one."""
    if name in _REPLACEMENTS:
        return _REPLACEMENTS[name]
    if name.startswith("prims::"):
        return getattr(func, "impl_aten", None)
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return func.decompose
    from torch._decomp import decomposition_table
    return decomposition_table.get(func)
