"""Tensors without values: the shape, type and layout of a tensor of the CPU.

A trace needs operations and shapes, not numbers. An operation with a `Virtual` among its arguments runs as its shape function
(PyTorch's `meta` kernels), and its results are `Virtual`. All other tensors have values: tables of positions, masks and buffers
are computed as usual, and Python code may depend on values that are computed from them alone.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Iterator, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten

from . import dropout, operations
from .errors import DataDependent, ExportError
from .graph import map_args

dropout.library.impl("dropout_mask", lambda like, p, index: torch.empty_like(like), "Meta")

_LARGEST_TRIAL_BYTES = 256 << 20
"""An operation without a shape function runs with zeros, up to these bytes of arguments."""

_count = itertools.count(1)

creation: Any = None
"""The `initialisers.Creation` inside of `motley.without_weights()`."""


class Virtual(torch.Tensor):
    """`shape_of` is a tensor of the device `meta`; views of the same memory share the number `memory`, which is negative for a
    parameter of a model that was created without weights."""

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
            if creation is not None:
                return creation.answer(name, args[0])
            raise DataDependent(f"{name} needs the values of a tensor, which is traced without them",
                                "Use operations of PyTorch alone, and torch.where or a mask instead of a branch")
        if operations.writes(func):
            return _written(name, func, args, kwargs)
        out = _shapes(name, func, args, kwargs)
        memory = args[0].memory if operations.is_view(func) and isinstance(args[0], Virtual) else None
        return map_args(out, lambda leaf: cls(leaf, memory) if isinstance(leaf, torch.Tensor) else leaf)


def _written(name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
    """The result of an in-place operation, which may not change the shape. A target with values keeps them: no code reads it."""
    if creation is not None and "out" in kwargs:
        return kwargs["out"]
    before = tuple(args[0].shape)
    if isinstance(args[0], Virtual):
        if args[0].memory < 0 and creation is None:
            raise ExportError(f"{name} writes into a parameter that was created in motley.without_weights() and has no values",
                              "Leave it out, such as load_state_dict, and pass folder= with the weights to motley.export; or create the "
                              "model outside of motley.without_weights()")
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
        if as_numbers and leaf.dim() == 0 and leaf.dtype == torch.float64:  # a Python number, which does not affect type promotion
            return float(leaf)
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")

    given = tuple(map_args(argument, shape_of) for argument in args)
    if name == "aten::native_batch_norm" and not (given[0].dim() == 4 and given[0].is_contiguous(memory_format=torch.channels_last)):
        given = (given[0].contiguous(), *given[1:])  # the CPU's result is contiguous, that of PyTorch 1.13's shape function is not
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
            raise ExportError(f"{name} cannot be traced without values: {error}",
                              "Install a newer PyTorch, which may have its shape function") from error
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype).zero_()

    given = tuple(map_args(argument, zeros) for argument in args)
    named = {key: map_args(value, zeros) for key, value in kwargs.items()}
    if named.get("device") is not None:
        named["device"] = torch.device("cpu")
    out = func(*given, **named)
    return map_args(out, lambda leaf: torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
                    if isinstance(leaf, torch.Tensor) else leaf)


def virtual(shape: Any, dtype: torch.dtype) -> Virtual:
    """A contiguous `Virtual`."""
    return Virtual(torch.empty(shape, dtype=dtype, device="meta"))


def without_values(tensor: torch.Tensor, is_weight: bool = False) -> torch.Tensor:
    """A `Virtual` with the shape, type and layout of a tensor. `is_weight`: for a parameter whose values are in a folder."""
    return Virtual(torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"), -next(_count) if is_weight else None)


def address(tensor: torch.Tensor) -> Any:
    """A key that is equal for tensors whose first elements are in the same place of memory."""
    if isinstance(tensor, Virtual):
        return tensor.memory, tensor.storage_offset()
    return tensor.data_ptr()


@contextlib.contextmanager
def preserved_attributes(root: torch.nn.Module, kind: type = Virtual) -> Iterator[None]:
    """Restores attributes of modules, and entries of dictionaries there such as buffers, that contain new tensors of a `kind`, by
    default without values: a table that the first forward creates, or a cache of them."""
    before = [(held, dict(held)) for module in root.modules()
              for held in (vars(module), *(value for value in vars(module).values() if isinstance(value, dict)))]
    try:
        yield
    finally:
        for held, entries in before:
            for key, value in list(held.items()):
                if value is entries.get(key) or not any(isinstance(leaf, kind) for leaf in tree_flatten(value)[0]):
                    continue
                if key in entries:
                    held[key] = entries[key]
                else:
                    del held[key]
