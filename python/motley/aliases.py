"""The values of tensors that share memory while a model runs, also after in-place operations.

A view is stored as the operation that made it, applied to its parent tensor. An in-place operation assigns a new value to its
tensor. The parent's new value is the old one with the changed part scattered back, up to the tensor that owns the memory. Other
views of the memory are recomputed at their next use.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import torch

from .graph import Ref


class View:
    """A view of a parent tensor: `op` of the parent with `args` after it; result number `part` of several."""

    def __init__(self, op: str, args: Tuple[Any, ...], kwargs: dict, part: int, parts: int):
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.part = part
        self.parts = parts


class Entry:
    """A recorded tensor, its parent if it is a view, and its current value."""

    def __init__(self, tensor: torch.Tensor, value: Optional[int], parent: Optional["Entry"] = None,
                 view: Optional[View] = None):
        self.tensor = tensor
        self.parent = parent
        self.view = view  # None for an alias of the whole parent
        self.changes = 0  # writes to the memory; only a root counts them
        self.seen = self.root.changes
        self._value = value

    @property
    def root(self) -> "Entry":
        """The tensor that owns the memory."""
        return self if self.parent is None else self.parent.root

    def value(self, emit: "Emit") -> int:
        """The current value. If the parent has changed, `emit` recomputes it from the parent's."""
        if self.parent is not None and self.seen != self.root.changes:
            above = self.parent.value(emit)
            self._value = above if self.view is None else emit(
                self.view.op, (Ref(above),) + self.view.args, self.view.kwargs, self.view.parts)[self.view.part]
            self.seen = self.root.changes
        assert self._value is not None
        return self._value

    def change(self, value: int, emit: "Emit") -> None:
        """Records a write to the tensor, whose value is now `value`."""
        if self.parent is not None:
            whole = value if self.view is None else scatter_back(self.parent, self.view, value, emit)
            self.parent.change(whole, emit)
        else:
            self.changes += 1
        self._value = value
        self.seen = self.root.changes


Emit = Callable[[str, Tuple[Any, ...], dict, int], List[int]]


class NotInvertible(Exception):
    """A view that cannot be scattered back into its parent."""


def scatter_back(parent: Entry, view: View, value: int, emit: Emit) -> int:
    """The parent's value after its part `view` became `value`."""
    name, args, new = view.op, view.args, Ref(value)
    shape = list(parent.tensor.shape)

    def one(op: str, *rest: Any) -> int:
        return emit(op, rest, {}, 1)[0]

    if name == "aten::detach":
        return value
    if name in ("aten::view", "aten::_unsafe_view", "aten::unsqueeze", "aten::squeeze", "aten::squeeze.dim"):
        return one("aten::reshape", new, shape)
    if name == "aten::t":
        return one("aten::t", new)
    if name == "aten::transpose.int":
        return one("aten::transpose.int", new, args[0], args[1])
    if name == "aten::permute":
        order = [d % len(shape) for d in args[0]]
        return one("aten::permute", new, [order.index(d) for d in range(len(order))])
    old = Ref(parent.value(emit))
    if name == "aten::slice.Tensor":
        return one("aten::slice_scatter", old, new, *args)
    if name == "aten::select.int":
        return one("aten::select_scatter", old, new, *args)
    if name == "aten::diagonal":
        return one("aten::diagonal_scatter", old, new, *args)
    if name == "aten::unbind.int":
        return one("aten::select_scatter", old, new, args[0] if args else 0, view.part)
    if name == "aten::split.Tensor":
        size, dim = args[0], args[1] if len(args) > 1 else 0
        begin = size * view.part
        return one("aten::slice_scatter", old, new, dim, begin, min(begin + size, shape[dim]))
    if name == "aten::split_with_sizes":
        sizes, dim = args[0], args[1] if len(args) > 1 else 0
        begin = sum(sizes[:view.part])
        return one("aten::slice_scatter", old, new, dim, begin, begin + sizes[view.part])
    raise NotInvertible(name)
