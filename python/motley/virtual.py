"""Tensors without values: the shape, type and layout of a tensor of the CPU.

A trace needs the operations and the shapes, not the numbers. An operation with a `Virtual` among its arguments runs as its
shape function (PyTorch's `meta` kernels) and makes further ones. Everything else keeps its values: tables of positions, masks
and buffers are computed as always, and what follows from them alone may decide a branch.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Iterator, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten

from . import dropout, operations
from .errors import DependsOnValues, ExportError
from .graph import map_args

dropout.library.impl("dropout_mask", lambda like, p, index: torch.empty_like(like), "Meta")

_LARGEST_TRIAL_BYTES = 256 << 20
"""An operation without a shape function runs with zeros, up to these bytes of arguments."""

_count = itertools.count(1)


class Virtual(torch.Tensor):
    """`shape_of` is a tensor of the device `meta`, `memory` a number that views of the same memory share."""

    shape_of: torch.Tensor
    memory: int

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, shape_of: torch.Tensor, memory: Optional[int] = None) -> "Virtual":
        made = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, shape_of.shape, strides=shape_of.stride(), storage_offset=shape_of.storage_offset(), dtype=shape_of.dtype,
            device=torch.device("cpu"), requires_grad=False)
        made.shape_of = shape_of
        made.memory = next(_count) if memory is None else memory
        return made  # type: ignore[no-any-return]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Virtual({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        name = operations.name_of(func)
        if name.split("::")[1].partition(".")[0] in operations.DATA_DEPENDENT:
            raise DependsOnValues(f"{name} asks for the values of a tensor, which is traced without them", "Compute with PyTorch's operations alone; "
                                  "in place of a branch use torch.where or a mask")
        if any(argument.alias_info is not None and argument.alias_info.is_write for argument in func._schema.arguments):
            return _written(name, func, args, kwargs)
        out = _shapes(name, func, args, kwargs)
        memory = args[0].memory if operations.is_view(func) and isinstance(args[0], Virtual) else None
        return map_args(out, lambda leaf: cls(leaf, memory) if isinstance(leaf, torch.Tensor) else leaf)


def _written(name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
    """An operation in place changes no shape; a real target of virtual values keeps its former ones, which nothing asks for."""
    before = tuple(args[0].shape)
    if isinstance(args[0], Virtual):
        copy = args[0].shape_of.detach()
        _shapes(name, func, (copy,) + args[1:], kwargs)
        if tuple(copy.shape) != before or copy.stride() != args[0].stride():
            raise ExportError(f"{name} changes the shape of a tensor in place", "Use the operation without the underscore")
    return args[0]


def _shapes(name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
    """The results of an operation on the device `meta`."""
    as_numbers = name in operations.ARITHMETIC

    def shape_of(leaf: Any) -> Any:
        if isinstance(leaf, Virtual):
            return leaf.shape_of
        if not isinstance(leaf, torch.Tensor) or leaf.device.type == "meta":
            return leaf
        if as_numbers and leaf.dim() == 0 and leaf.dtype == torch.float64:  # a number of Python's, which decides no type
            return float(leaf)
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")

    given = tuple(map_args(argument, shape_of) for argument in args)
    named = {key: map_args(value, shape_of) for key, value in kwargs.items()}
    if named.get("device") is not None:
        named["device"] = torch.device("meta")
    try:
        return func(*given, **named)
    except (NotImplementedError, RuntimeError) as error:
        return _with_zeros(name, func, given, named, error)


def _with_zeros(name: str, func: Any, args: Tuple[Any, ...], kwargs: dict, error: Exception) -> Any:
    taken = 0

    def zeros(leaf: Any) -> Any:
        nonlocal taken
        if not isinstance(leaf, torch.Tensor):
            return leaf
        taken += leaf.numel() * leaf.element_size()
        if taken > _LARGEST_TRIAL_BYTES:
            raise ExportError(f"{name} cannot be traced without values: {error}", "A newer PyTorch may know its shapes") from error
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype).zero_()

    given = tuple(map_args(argument, zeros) for argument in args)
    named = {key: map_args(value, zeros) for key, value in kwargs.items()}
    if named.get("device") is not None:
        named["device"] = torch.device("cpu")
    out = func(*given, **named)
    return map_args(out, lambda leaf: torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
                    if isinstance(leaf, torch.Tensor) else leaf)


def virtual(shape: Any, dtype: torch.dtype) -> Virtual:
    """A contiguous one."""
    return Virtual(torch.empty(shape, dtype=dtype, device="meta"))


def without_values(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's shape, type and layout."""
    return Virtual(torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"))


def address(tensor: torch.Tensor) -> Any:
    """Equal for tensors whose first elements are the same memory."""
    if isinstance(tensor, Virtual):
        return tensor.memory, tensor.storage_offset()
    return tensor.data_ptr()


@contextlib.contextmanager
def attributes_as_before(root: torch.nn.Module) -> Iterator[None]:
    """Afterwards no attribute of a module has a tensor without values that it did not have before, such as a table that it keeps."""
    before = [(module, dict(vars(module))) for module in root.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            for key, value in list(vars(module).items()):
                if value is attributes.get(key) or not any(isinstance(leaf, Virtual) for leaf in tree_flatten(value)[0]):
                    continue
                if key in attributes:
                    vars(module)[key] = attributes[key]
                else:
                    del vars(module)[key]
