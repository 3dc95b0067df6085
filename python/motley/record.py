"""Records the ATen operations of one run, below autograd, as functions without side effects.

A `Recorder` is entered around a forward and its `torch.autograd.grad`. In-place operations become functions (`aliases.py`);
operations outside the list of `operations.txt` are replaced (`rewrite.py`) or decomposed by PyTorch's own table.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import fixed_values, operations, remedies, rewrite
from .aliases import Entry, NotInvertible, View
from .complex_numbers import ComplexRecording
from .errors import DataDependent
from .frozen import Frozen
from .graph import map_args
from .lines import user_line
from .modules import ModuleStack
from .virtual import Virtual


class Recorder(ComplexRecording, TorchDispatchMode):
    """Records the operations that run under it in `nodes`."""

    def __init__(self, known: Dict[int, str], modules: ModuleStack, memory: Dict[Any, str], frozen: Mapping[int, Frozen] = {}):
        """Arguments as of `Recording`."""
        TorchDispatchMode.__init__(self)
        ComplexRecording.__init__(self, known, modules, memory, frozen)

    def as_call(self, function: Callable[..., Any], args: Tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """The result of `run`, which is equivalent to `function` of `args`. Here its operations are recorded."""
        return run()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        name = operations.name_of(func)
        if name.endswith((".out", "_out")):
            raise self.fail(f"{name} writes to a given tensor", remedies.for_given_result(self.path()))
        if self.takes_complex(name, args, kwargs):
            return self.run_complex(func, name, args, kwargs)
        if name in rewrite.ALIASES:
            return self._alias(func, args, kwargs)
        self._refuse(name, args, kwargs)
        if _base(name) in operations.DATA_DEPENDENT:
            args = tuple(map_args(argument, self._with_values) for argument in args)
        if operations.writes(func):
            return self._write(name, func, args, kwargs)
        if name == "aten::cat":
            args = (rewrite.without_empty(args[0]),) + args[1:]
        if self._is_replaced(name, func, args, kwargs):
            replaced = rewrite.replacement(func, name)
            if replaced is not None:
                try:
                    with self:
                        return replaced(*args, **kwargs)
                except rewrite.NoReplacement:
                    raise self.fail(f"{name} needs a view of a tensor that views and slices cannot express",
                                    "Clone a tensor before writing to a view of its view") from None
        out = func(*args, **kwargs)
        if self._without_values and not operations.is_view(func):
            out = fixed_values.discard_large(out)
        self._record(name, func, args, kwargs, out)
        return out

    def _with_values(self, leaf: Any) -> Any:
        """The values of a fixed tensor that were discarded, computed again."""
        if isinstance(leaf, Virtual) and self.is_fixed(self.value_of(leaf)):
            tensor = fixed_values.evaluate(self.value_of(leaf), self.nodes, self.constants)
            self._add_entry(tensor, Entry(tensor, self.value_of(leaf)))
            return tensor
        return leaf

    def _is_replaced(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return rewrite.is_always_replaced(name, kwargs) or name not in operations.allowed() and not self._all_fixed(args, kwargs)

    def _alias(self, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An operation whose result is its argument."""
        source = args[0]
        out = func(*args, **kwargs)
        self.value_of(source)
        if out is not source:
            self._add_entry(out, Entry(out, None, self._entries[id(source)])).seen = -1
        elif "lift_fresh" in operations.name_of(func):
            self._created.add(id(self._entries[id(source)].root.tensor))
        return out

    def _record(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict, out: Any) -> None:
        plain = self._number_or_ref if name in operations.ARITHMETIC else self._argument
        plain_args = tuple(map_args(a, plain) for a in args)
        plain_kwargs = {k: map_args(v, plain) for k, v in kwargs.items() if k not in operations.DROPPED}
        fixed = self._all_fixed(args, kwargs) and not name.startswith("motley::")
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        values = [self._new_value(t) for t in outs]
        self._append(name, plain_args, plain_kwargs, values, fixed)
        shown = operations.is_view(func)
        for part, (tensor, value) in enumerate(zip(outs, values)):
            if not isinstance(tensor, torch.Tensor):
                continue
            parent = self._entries[id(args[0])] if shown else None
            view = View(name, plain_args[1:], plain_kwargs, part, len(outs)) if shown else None
            self._add_entry(tensor, Entry(tensor, value, parent, view))
            if parent is None:
                self._created.add(id(tensor))

    def _write(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An in-place operation: recorded as a function, then applied to the model's tensor."""
        target = args[0]
        self.value_of(target)
        entry = self._entries[id(target)]
        if id(entry.root.tensor) not in self._created:
            owner = self._known.get(id(entry.root.tensor), "a tensor from outside the layer")
            if owner.endswith("num_batches_tracked"):
                return target
            raise self.fail(f"{name} writes to {owner}", remedies.for_write(user_line()))
        if rewrite.is_inplace_view(name):
            return self._inplace_view(name, func, args, kwargs)
        role = self.roles.get(self._declared[id(entry.root.tensor)]) if id(entry.root.tensor) in self._declared else None
        if role is not None and role.kind == "input":
            self.written.add(role.index)
        with self:
            # The copy does not share values, so the function's result is the tensor's next value.
            result = rewrite.functional(name, func)(target, *args[1:], **kwargs)
        value = self.value_of(result)
        out = func(*args, **kwargs)
        try:
            entry.change(value, self._emit)
        except NotInvertible as view:
            raise self.fail(f"{name} writes through the view {view}", "Clone the tensor before writing to it") from None
        self.shapes[value] = self._shape(target)
        return out

    def _inplace_view(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An in-place view operation, such as transpose_: the tensor becomes a view of its former value."""
        target = args[0]
        before = self._entries[id(target)]
        with self:
            shown = rewrite.functional(name, func)(target, *args[1:], **kwargs)
        view = self._entries[id(shown)]
        before.tensor = target.detach()  # below this mode: the former view
        if id(target) in self._created:
            self._created.add(id(before.tensor))
        if id(target) in self._declared:
            self._declared[id(before.tensor)] = self._declared[id(target)]
        self._entries[id(before.tensor)] = before
        self._add_entry(target, Entry(target, view.value(self._emit), before, view.view))
        return func(*args, **kwargs)

    def _refuse(self, name: str, args: Tuple[Any, ...], kwargs: dict) -> None:
        base = _base(name)
        if base in operations.RANDOM and name.startswith("aten::"):
            raise self.fail(f"{name} draws random numbers, which would depend on the number of machines",
                            remedies.for_draw(base, kwargs.get("generator") is not None))
        if base == "_local_scalar_dense" and self._known.get(id(args[0]), "").endswith("num_batches_tracked"):
            raise self.fail("batch normalization averages its statistics over all steps (momentum=None)",
                            "Set momentum to a number, such as the default 0.1")
        if base == "embedding_dense_backward" and args[4]:
            raise self.fail("an embedding scales gradients by the frequency of its rows", "Leave scale_grad_by_freq out")
        masks = base == "index" and any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1])
        if (base in operations.DATA_DEPENDENT or masks) and not self._all_fixed(args, kwargs):
            raise DataDependent(*self.fail(f"{name} makes Python code or a shape depend on the values of a tensor", remedies.for_operation(
                name, user_line()) or "Replace the branch, .item() or selection by torch.where or a mask").args)


def _base(name: str) -> str:
    """An operation's name without namespace, overload and final underscores."""
    return name.split("::")[1].split(".")[0].rstrip("_")
