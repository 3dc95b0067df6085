"""Records the ATen operations of one run, below autograd, as functions without side effects.

A `Recorder` is entered around a forward and its `torch.autograd.grad`. Every tensor has a value number:
declared ones (inputs, parameters), results of operations, and, for any other tensor, a constant whose content is
copied. In-place operations become functions (`aliases.py`); operations outside the list of `operations.txt` are replaced
(`rewrite.py`) or decomposed by PyTorch's own table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import fixed_values, operations, remedies, rewrite
from .aliases import Entry, NotInvertible, View
from .errors import DependsOnValues, ExportError
from .graph import Node, Ref, Shape, Take, is_ref, leaves, map_args
from .lines import user_line
from .modules import ModuleStack
from .virtual import Virtual, address

if TYPE_CHECKING:
    from .frozen import Frozen


def is_statistic(name: str) -> bool:
    """Whether training changes a tensor of this name without a gradient."""
    return name.rpartition(".")[2] in ("running_mean", "running_var")


class Recorder(TorchDispatchMode):
    """Records the operations that run under it in `nodes`."""

    def __init__(self, known: Dict[int, str], modules: ModuleStack, memory: Dict[Any, str], frozen: "Mapping[int, Frozen]" = {}):
        """`frozen`: [id of a tensor] those that are recorded as what a package has in their place, and how it is converted."""
        super().__init__()
        self._frozen = frozen
        self._memory = memory  # [address of a parameter] its name
        self.nodes: List[Node] = []
        self.roles: Dict[int, Take] = {}  # [value] inputs: values that no node makes
        self.names: Dict[int, str] = {}  # [value] parameters and constants that have one
        self.constants: Dict[int, torch.Tensor] = {}  # [value] their content
        self.shapes: Dict[int, Shape] = {}  # [value]
        self.tensors: Dict[int, torch.Tensor] = {}  # [value] parameters, as they are in the model
        self.written: Set[int] = set()  # inputs that the layer wrote to
        self.backward = False
        self._fixed: Dict[int, bool] = {}  # [value] whether it depends only on constants
        self._known = known  # [id of a tensor] its name in the model
        self._modules = modules
        self._entries: Dict[int, Entry] = {}  # [id of a tensor]; an entry keeps its tensor, so ids stay distinct
        self._places: Dict[Tuple[Any, ...], Entry] = {}  # [memory and view] its first entry
        self._fresh: set = set()  # roots that this run made
        self._first: Dict[int, int] = {}  # [id of a tensor that was declared] its first value
        self._next = 0
        self._without_values = False

    # Declarations.

    def declare(self, tensor: torch.Tensor, role: str, index: int) -> int:
        """`tensor` is the input, target or gradient `index`."""
        value = self._new_value(tensor)
        self.roles[value] = Take(role, index)
        self._without_values |= isinstance(tensor, Virtual)
        self._enter(tensor, Entry(tensor, value))
        self._fixed[value] = False
        self._fresh.add(id(tensor))
        self._first[id(tensor)] = value
        return value

    def value_of(self, tensor: torch.Tensor) -> int:
        """The current value of a tensor. A new tensor becomes a parameter or a constant."""
        entry = self._entries.get(id(tensor))
        if entry is None:
            entry = self._adopt(tensor)
        value = entry.value(self._emit)
        self.shapes.setdefault(value, self._shape(tensor))
        return value

    def release(self) -> None:
        """Releases the tensors of the run and retains the recording."""
        self._entries.clear()
        self._places.clear()

    def path(self) -> Optional[str]:
        """An error that names the running module."""
        return self._modules.path()

    def is_fixed(self, value: int) -> bool:
        """Whether it depends only on constants."""
        return self._fixed.get(value, False)

    def varies(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's values depend on more than constants."""
        return not self._fixed[self.value_of(tensor)]

    def as_call(self, function: Callable[..., Any], args: Tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """The result of `run`, which is equivalent to `function` of `args`. This recorder records its operations."""
        return run()

    def fail(self, reason: str, remedy: str) -> ExportError:
        return ExportError(reason, remedy, self._modules.path(), None if self.backward else user_line())

    # Dispatch.

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        name = operations.name_of(func)
        if name.endswith((".out", "_out")):
            raise self.fail(f"{name} writes to a tensor that it was given", "Use the operation's result, without out=")
        if name in rewrite.SAME:
            return self._same(func, args, kwargs)
        self._refuse(name, args, kwargs)
        if _base(name) in operations.DATA_DEPENDENT:
            args = tuple(map_args(argument, self._with_values) for argument in args)
        if self._writes(func):
            return self._write(name, func, args, kwargs)
        if name == "aten::cat":
            args = (rewrite.with_elements(args[0]),) + args[1:]
        if self._is_replaced(name, func, args, kwargs):
            replaced = rewrite.replacement(func, name)
            if replaced is not None:
                try:
                    with self:
                        return replaced(*args, **kwargs)
                except rewrite.NoReplacement:
                    raise self.fail(f"{name} shows a tensor in a way that slices and views do not",
                                    "Clone a tensor before you write to parts of parts of it") from None
        out = func(*args, **kwargs)
        if self._without_values and not operations.is_view(func):
            out = fixed_values.kept(out)
        self._record(name, func, args, kwargs, out)
        return out

    def _with_values(self, leaf: Any) -> Any:
        """A fixed tensor that was not kept, again."""
        if isinstance(leaf, Virtual) and self.is_fixed(self.value_of(leaf)):
            tensor = fixed_values.evaluated(self.value_of(leaf), self.nodes, self.constants)
            self._enter(tensor, Entry(tensor, self.value_of(leaf)))
            return tensor
        return leaf

    def _is_replaced(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return rewrite.is_always_replaced(name, kwargs) or name not in operations.allowed() and not self._all_fixed(args, kwargs)

    def _same(self, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An operation whose result is its argument."""
        source = args[0]
        out = func(*args, **kwargs)
        self.value_of(source)
        if out is not source:
            self._enter(out, Entry(out, None, self._entries[id(source)])).seen = -1
        elif "lift_fresh" in operations.name_of(func):
            self._fresh.add(id(self._entries[id(source)].root.tensor))
        return out

    def _record(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict, out: Any) -> None:
        plain = self._number_or_ref if name in operations.ARITHMETIC else self._plain
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
            self._enter(tensor, Entry(tensor, value, parent, view))
            if parent is None:
                self._fresh.add(id(tensor))

    def _write(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An in-place operation: recorded as a function, then applied to the model's tensor."""
        target = args[0]
        self.value_of(target)
        entry = self._entries[id(target)]
        if id(entry.root.tensor) not in self._fresh:
            owner = self._known.get(id(entry.root.tensor), "a tensor from outside the layer")
            if owner.endswith("num_batches_tracked"):
                return target
            raise self.fail(f"{name} writes to {owner}",
                            "A layer may only write to what it made itself; use the operation without the underscore")
        if rewrite.shows(name):
            return self._turn(name, func, args, kwargs)
        role = self.roles.get(self._first[id(entry.root.tensor)]) if id(entry.root.tensor) in self._first else None
        if role is not None and role.role == "input":
            self.written.add(role.index)
        with self:
            # The copy does not share values, so the function's result is the tensor's next value.
            result = rewrite.functional(name, func)(target, *args[1:], **kwargs)
        value = self.value_of(result)
        out = func(*args, **kwargs)
        try:
            entry.change(value, self._emit)
        except NotInvertible as view:
            raise self.fail(f"{name} writes through the view {view}", "Clone the tensor before you write to it") from None
        self.shapes[value] = self._shape(target)
        return out

    def _turn(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """An in-place view operation, such as transpose_: the tensor becomes a view of its former value."""
        target = args[0]
        before = self._entries[id(target)]
        with self:
            shown = rewrite.functional(name, func)(target, *args[1:], **kwargs)
        view = self._entries[id(shown)]
        before.tensor = target.detach()  # below this mode: the former view
        if id(target) in self._fresh:
            self._fresh.add(id(before.tensor))
        if id(target) in self._first:
            self._first[id(before.tensor)] = self._first[id(target)]
        self._entries[id(before.tensor)] = before
        self._enter(target, Entry(target, view.value(self._emit), before, view.view))
        return func(*args, **kwargs)

    # Values.

    def _enter(self, tensor: torch.Tensor, entry: Entry) -> Entry:
        self._entries[id(tensor)] = entry
        if _has_place(tensor):
            self._places.setdefault(_place(tensor), entry)
        return entry

    def _new_value(self, tensor: Any) -> int:
        value = self._next
        self._next += 1
        if isinstance(tensor, torch.Tensor):
            self.shapes[value] = self._shape(tensor)
        return value

    @staticmethod
    def _shape(tensor: torch.Tensor) -> Shape:
        return Shape(tuple(tensor.shape), tensor.dtype, tensor.is_contiguous())

    def _adopt(self, tensor: torch.Tensor) -> Entry:
        entry = self._places.get(_place(tensor)) if _has_place(tensor) else None
        if entry is not None:  # autograd returns a saved tensor as a new tensor with the same memory
            alias = self._enter(tensor, Entry(tensor, None, entry))
            alias.seen = -1
            return alias
        name = self._known.get(id(tensor))
        if name is None:
            name = self._of_parameter(tensor)
            if isinstance(tensor, Virtual):
                raise self.fail("the layer uses a tensor that an earlier call computed", "Compute it in each call; state belongs into buffers")
        if tensor.requires_grad and (name is None or not tensor.is_leaf):
            raise self.fail("the layer uses a tensor that requires a gradient and is no parameter of its modules",
                            "Make it an nn.Parameter of a module in the layer, pass it in as an input, or detach it")
        if id(tensor) in self._frozen:
            return self._enter(tensor, Entry(tensor, self._converted(self._frozen[id(tensor)])))
        value = self._new_value(tensor)
        if tensor.requires_grad:
            self.roles[value] = Take("parameter", len(self.tensors))
            self.tensors[value] = tensor
        else:
            self.roles[value] = Take("constant", len(self.constants))
            self.constants[value] = self._content(tensor)
        if name is not None:
            self.names[value] = name
        self._fixed[value] = not tensor.requires_grad and not is_statistic(name or "")
        return self._enter(tensor, Entry(tensor, value))

    def _converted(self, frozen: "Frozen") -> int:
        """The value of a frozen tensor: operations on the constants that a package has in its place."""
        values = []
        for name, part in frozen.parts.items():
            values.append(self._new_value(part))
            self.roles[values[-1]] = Take("constant", len(self.constants))
            self.constants[values[-1]] = part
            self.names[values[-1]] = name
            self._fixed[values[-1]] = True
        for step in frozen.steps:
            value = self._new_value(None)
            self.shapes[value] = Shape(step.shape, step.dtype)
            args = tuple(Ref(values[arg.value]) if is_ref(arg) else arg for arg in step.args)
            self._append(step.op, args, dict(step.kwargs), [value], fixed=True)
            values.append(value)
        return values[-1]

    def _content(self, tensor: torch.Tensor) -> torch.Tensor:
        """The stored copy of a constant. A parameter is not copied: it does not change while a layer runs, which may not write to it."""
        if isinstance(tensor, torch.nn.Parameter):
            return tensor.detach()
        return tensor.detach().clone(memory_format=torch.contiguous_format)

    def _of_parameter(self, tensor: torch.Tensor) -> Optional[str]:
        """The parameter that an unnamed tensor aliases, as `.data` does."""
        name = self._memory.get(address(tensor)) if tensor.numel() and not tensor.requires_grad else None
        if name is not None:
            raise self.fail(f"the layer uses the values of {name} past autograd, as .data gives them",
                            "Use the parameter itself, or parameter.detach() where no gradient is wanted")
        return None

    def _plain(self, leaf: Any) -> Any:
        return Ref(self.value_of(leaf)) if isinstance(leaf, torch.Tensor) else leaf

    def _number_or_ref(self, leaf: Any) -> Any:
        """Autograd converts Python numbers to tensors without dimensions, which do not affect type promotion."""
        if isinstance(leaf, torch.Tensor) and leaf.dim() == 0 and leaf.dtype == torch.float64:
            if self.value_of(leaf) in self.constants:
                return float(leaf)
        return self._plain(leaf)

    def _all_fixed(self, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return all(self._fixed[self.value_of(leaf)] for leaf in leaves([args, list(kwargs.values())])
                   if isinstance(leaf, torch.Tensor))

    def _append(self, name: str, args: Tuple[Any, ...], kwargs: dict, values: List[int], fixed: bool) -> None:
        for value in values:
            self._fixed[value] = fixed
        line = None if self.backward else user_line()
        self.nodes.append(Node(name, args, kwargs, tuple(values), self.backward, line, self._modules.path()))

    def _emit(self, name: str, args: Tuple[Any, ...], kwargs: dict, parts: int) -> List[int]:
        """A node that the model does not contain: a view that is recomputed or scattered back."""
        values = [self._new_value(None) for _ in range(parts)]
        fixed = all(self._fixed[leaf.value] for leaf in leaves(args) if is_ref(leaf))
        self._append(name, args, kwargs, values, fixed)
        return values

    @staticmethod
    def _writes(func: Any) -> bool:
        return any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)

    def _refuse(self, name: str, args: Tuple[Any, ...], kwargs: dict) -> None:
        base = _base(name)
        if base in operations.RANDOM and name.startswith("aten::"):
            raise self.fail(f"{name} takes random numbers, which would depend on the number of machines",
                            remedies.of_draw(base, kwargs.get("generator") is not None))
        if base == "_local_scalar_dense" and self._known.get(id(args[0]), "").endswith("num_batches_tracked"):
            raise self.fail("batch normalization averages its statistics over all steps (momentum=None)",
                            "Give it a number, such as the default 0.1")
        if base == "embedding_dense_backward" and args[4]:
            raise self.fail("an embedding scales gradients by how often a row is used", "Leave out scale_grad_by_freq")
        masks = base == "index" and any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1])
        if (base in operations.DATA_DEPENDENT or masks) and not self._all_fixed(args, kwargs):
            raise DependsOnValues(*self.fail(f"{name} makes Python, or a shape, depend on the values of a tensor", remedies.of(
                name, user_line()) or "Replace the branch, .item() or selection by torch.where or a mask").args)


def _base(name: str) -> str:
    """An operation without namespace, overload and underscore."""
    return name.split("::")[1].split(".")[0].rstrip("_")


def _has_place(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.numel() > 0


def _place(tensor: torch.Tensor) -> Tuple[Any, ...]:
    return address(tensor), tensor.dtype, tensor.shape, tensor.stride()
