"""Records a forward for replay: also whether autograd ran, and what it tracked.

Operations whose number of results may depend on the batch, such as a list of the images' features, are recorded so that only results
that are used count.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from .. import operations, rewrite
from ..aliases import Entry, View
from ..graph import Node, leaves, map_args, uses
from ..lines import user_line
from ..record import Recorder

aten = torch.ops.aten

_LIKE: Dict[str, Optional[float]] = {
    "aten::zeros_like": 0, "aten::ones_like": 1, "aten::full_like": None, "aten::empty_like": 0,
    "aten::new_zeros": 0, "aten::new_ones": 1, "aten::new_full": None, "aten::new_empty": 0}
"""Operations that use only a tensor's type and sizes, and their fill values; None if an argument gives the value."""

_PARTS = 1 << 40
"""The first number of values that are parts of a tensor: their count may depend on the batch, and no other number may."""


class ForwardRecorder(Recorder):
    """A recorder for replay, not for a package."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._depth = 0
        self._below: Set[int] = set()  # [id of a tensor] results of operations that replace one operation, which autograd does not see
        self._next_part = _PARTS
        self._is_unbind = False

    def _is_replaced(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return rewrite.is_always_replaced(name, kwargs) or name.startswith("prims::") or (
            operations.is_view(func) and name not in operations.allowed())

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        self._depth += 1
        try:
            return self._dispatch(func, types, args, kwargs)
        finally:
            self._depth -= 1

    def _dispatch(self, func: Any, types: Any, args: Tuple[Any, ...], kwargs: Optional[dict]) -> Any:
        name = operations.name_of(func)
        if name == "aten::cat":
            whole = self._unbound(*args, **(kwargs or {}))
            if whole is not None:
                with self:
                    return aten.clone(aten.reshape(whole, [whole.size(0) * whole.size(1), *whole.shape[2:]]))
        if name not in _LIKE:
            return super().__torch_dispatch__(func, types, args, kwargs)
        source, kwargs = args[0], kwargs or {}
        sizes = list(source.shape) if name.endswith("_like") else list(args[1] if len(args) > 1 else kwargs["size"])
        rest = args[1:] if name.endswith("_like") else args[2:]
        fill = _LIKE[name] if _LIKE[name] is not None else rest[0] if rest else kwargs["fill_value"]
        with self:
            return aten.full.default(sizes, fill, dtype=kwargs.get("dtype") or source.dtype)

    def _unbound(self, parts: List[torch.Tensor], dim: int = 0) -> Optional[torch.Tensor]:
        """The tensor whose rows are `parts`, as of a list of the images' features. Else None."""
        entries = [self._entries.get(id(part)) for part in parts]
        if dim != 0 or not all(entry and entry.view and entry.view.op == "aten::unbind.int" for entry in entries):
            return None
        parents = {id(entry.parent) for entry in entries}  # type: ignore[union-attr]
        views: List[View] = [entry.view for entry in entries]  # type: ignore[union-attr, misc]
        if len(parents) > 1 or [view.part for view in views] != list(range(views[0].parts)) or any(view.args not in ((), (0,)) for view in views):
            return None
        root, parent = entries[0].root, entries[0].parent  # type: ignore[union-attr]
        is_unchanged = all(entry.seen == root.changes for entry in entries)  # type: ignore[union-attr]
        return parent.tensor if parent is not None and parent.tensor.dim() > 1 and is_unchanged else None

    def _new_value(self, tensor: Any) -> int:
        if not self._is_unbind:
            return super()._new_value(tensor)
        self._next_part += 1
        if isinstance(tensor, torch.Tensor):
            self.shapes[self._next_part] = self._shape(tensor)
        return self._next_part

    def drop_unused_parts(self, outputs: List[int]) -> None:
        """Parts of which none is used have no values, so that recordings with other numbers of them can be merged."""
        used = {value for node in self.nodes for value in uses(node)} | set(outputs)
        for node in self.nodes:
            if node.op == "aten::unbind.int" and not used.intersection(node.results):
                for value in node.results:
                    del self.shapes[value]
                node.results = ()

    def _alias(self, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        if operations.name_of(func) != "aten::detach":
            return super()._alias(func, args, kwargs)
        before = self.value_of(args[0])
        out = func(*args, **kwargs)
        view = View("aten::detach", (), {}, 0, 1)
        value = self._emit("aten::detach", (self._argument(args[0]),), {}, 1)[0]
        self.shapes[value] = self.shapes[before]
        self._add_entry(out, Entry(out, value, self._entries[id(args[0])], view))
        return out

    def _record(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict, out: Any) -> None:
        self._is_unbind = name == "aten::unbind.int"
        super()._record(name, func, args, kwargs, out)
        self._is_unbind = False
        plain = self._number_or_ref if name in operations.ARITHMETIC else self._argument
        taken = [leaf for leaf in leaves([args, [v for k, v in kwargs.items() if k not in operations.DROPPED]])
                 if isinstance(leaf, torch.Tensor) and not isinstance(plain(leaf), float)]
        node = self.nodes[-1]
        node.tracked = tuple(leaf.requires_grad or id(leaf) in self._below for leaf in taken)
        node.grad = torch.is_grad_enabled()
        if self._depth > 1:
            self._below.update(id(tensor) for tensor in leaves(out) if isinstance(tensor, torch.Tensor))

    def _constant_copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def as_call(self, function: Callable[..., Any], args: Tuple[Any, ...], run: Callable[[], Any]) -> Any:
        plain = tuple(map_args(argument, self._argument) for argument in args)
        tracked = tuple(leaf.requires_grad for leaf in leaves(args) if isinstance(leaf, torch.Tensor))
        line, first = user_line(), len(self.nodes)
        out = run()
        del self.nodes[first:]
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        values = tuple(self._new_value(tensor) for tensor in outs)
        name = getattr(function, "__qualname__", type(function).__name__)
        self.nodes.append(Node(f"call::{name}", plain, {}, values, False, line, self._modules.path(), tracked, torch.is_grad_enabled(), function))
        for tensor, value in zip(outs, values):
            self._fixed[value] = False
            if isinstance(tensor, torch.Tensor):
                self._add_entry(tensor, Entry(tensor, value))
                self._created.add(id(tensor))
        return out
