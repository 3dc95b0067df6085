"""The values of one recorded run: numbers for tensors, and the nodes that make them.

Every tensor has a value number: declared ones (inputs, targets, gradients), results of operations, and, for any other tensor, a
parameter or a constant whose content is copied. Tensors that share memory are tracked by `aliases.py`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

import torch

from .aliases import Entry
from .errors import ExportError
from .frozen import Frozen
from .graph import Node, Ref, Role, Shape, is_ref, leaves
from .layers import is_statistic
from .lines import user_line
from .modules import ModuleStack
from .virtual import Virtual, address


class Recording:
    """Nodes and values. `Recorder` adds the operations."""

    def __init__(self, known: Dict[int, str], modules: ModuleStack, memory: Dict[Any, str], frozen: Mapping[int, Frozen] = {}):
        """`known`: [id of a tensor] its name in the model. `memory`: [address of a parameter] its name. `frozen`: [id of a
        tensor] frozen tensors, which are recorded as the constants that a package stores for them, and their conversion."""
        self.nodes: List[Node] = []
        self.roles: Dict[int, Role] = {}  # [value] values that no node makes
        self.names: Dict[int, str] = {}  # [value] of named parameters and constants
        self.constants: Dict[int, torch.Tensor] = {}  # [value] content
        self.shapes: Dict[int, Shape] = {}  # [value]
        self.tensors: Dict[int, torch.Tensor] = {}  # [value] parameters of the model
        self.written: Set[int] = set()  # indices of the inputs that the layer wrote to
        self.backward = False
        self._frozen = frozen
        self._memory = memory
        self._known = known
        self._modules = modules
        self._fixed: Dict[int, bool] = {}  # [value] whether it depends only on constants
        self._entries: Dict[int, Entry] = {}  # [id of a tensor]; an entry references its tensor, so ids stay distinct
        self._places: Dict[Tuple[Any, ...], Entry] = {}  # [memory and view] first entry
        self._created: Set[int] = set()  # ids of memory owners that this run created or that were declared
        self._declared: Dict[int, int] = {}  # [id of a declared tensor] first value
        self._next = 0
        self._without_values = False  # whether an input is a `Virtual`

    # Declarations.

    def declare(self, tensor: torch.Tensor, role: str, index: int) -> int:
        """`tensor` is the input, target or gradient `index`."""
        value = self._new_value(tensor)
        self.roles[value] = Role(role, index)
        self._without_values |= isinstance(tensor, Virtual)
        self._add_entry(tensor, Entry(tensor, value))
        self._fixed[value] = False
        self._created.add(id(tensor))
        self._declared[id(tensor)] = value
        return value

    def value_of(self, tensor: torch.Tensor) -> int:
        """The current value of a tensor. A new tensor becomes a parameter or a constant."""
        entry = self._entries.get(id(tensor))
        if entry is None:
            entry = self._register(tensor)
        value = entry.value(self._emit)
        self.shapes.setdefault(value, self._shape(tensor))
        return value

    def release(self) -> None:
        """Releases the tensors of the run and retains the recording."""
        self._entries.clear()
        self._places.clear()

    def is_fixed(self, value: int) -> bool:
        """Whether it depends only on constants."""
        return self._fixed.get(value, False)

    def varies(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's values depend on more than constants."""
        return not self._fixed[self.value_of(tensor)]

    def path(self) -> Optional[str]:
        """The path of the running module."""
        return self._modules.path()

    def fail(self, reason: str, remedy: str) -> ExportError:
        return ExportError(reason, remedy, self._modules.path(), None if self.backward else user_line())

    # Entries.

    def _add_entry(self, tensor: torch.Tensor, entry: Entry) -> Entry:
        self._entries[id(tensor)] = entry
        if has_place(tensor):
            self._places.setdefault(place(tensor), entry)
        return entry

    def _register(self, tensor: torch.Tensor) -> Entry:
        entry = self._places.get(place(tensor)) if has_place(tensor) else None
        if entry is not None:  # autograd returns a saved tensor as a new tensor with the same memory
            alias = self._add_entry(tensor, Entry(tensor, None, entry))
            alias.seen = -1
            return alias
        name = self._known.get(id(tensor))
        if name is None:
            name = self._parameter_name(tensor)
            if isinstance(tensor, Virtual):
                raise self.fail("the layer uses a tensor that an earlier call computed",
                                "Compute it in each call; register state as a buffer")
        if tensor.requires_grad and (name is None or not tensor.is_leaf):
            raise self.fail("the layer uses a tensor that requires a gradient and is not a parameter of its modules",
                            "Make it an nn.Parameter of a module in the layer, pass it in as an input, or detach it")
        if id(tensor) in self._frozen:
            return self._add_entry(tensor, Entry(tensor, self._frozen_value(self._frozen[id(tensor)])))
        value = self._new_value(tensor)
        if tensor.requires_grad:
            self.roles[value] = Role("parameter", len(self.tensors))
            self.tensors[value] = tensor
        else:
            self.roles[value] = Role("constant", len(self.constants))
            self.constants[value] = self._constant_copy(tensor)
        if name is not None:
            self.names[value] = name
        self._fixed[value] = not tensor.requires_grad and not is_statistic(name or "")
        return self._add_entry(tensor, Entry(tensor, value))

    def _frozen_value(self, frozen: Frozen) -> int:
        """The value of a frozen tensor: operations on the constants that a package stores for it."""
        values = []
        for name, part in frozen.parts.items():
            values.append(self._new_value(part))
            self.roles[values[-1]] = Role("constant", len(self.constants))
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

    def _constant_copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """The stored copy of a constant. Parameters are not copied: layers may not write to them."""
        if isinstance(tensor, torch.nn.Parameter):
            return tensor.detach()
        return tensor.detach().clone(memory_format=torch.contiguous_format)

    def _parameter_name(self, tensor: torch.Tensor) -> Optional[str]:
        """The parameter that an unnamed tensor aliases, as `.data` does."""
        name = self._memory.get(address(tensor)) if tensor.numel() and not tensor.requires_grad else None
        if name is not None:
            raise self.fail(f"the layer uses the values of {name} without autograd, as by .data",
                            "Use the parameter itself, or parameter.detach() if it needs no gradient")
        return None

    # Values and nodes.

    def _new_value(self, tensor: Any) -> int:
        value = self._next
        self._next += 1
        if isinstance(tensor, torch.Tensor):
            self.shapes[value] = self._shape(tensor)
        return value

    @staticmethod
    def _shape(tensor: torch.Tensor) -> Shape:
        return Shape(tuple(tensor.shape), tensor.dtype, tensor.is_contiguous())

    def _argument(self, leaf: Any) -> Any:
        return Ref(self.value_of(leaf)) if isinstance(leaf, torch.Tensor) else leaf

    def _number_or_ref(self, leaf: Any) -> Any:
        """Autograd converts Python numbers to tensors without dimensions, which do not affect type promotion."""
        if isinstance(leaf, torch.Tensor) and leaf.dim() == 0 and leaf.dtype == torch.float64:
            if self.value_of(leaf) in self.constants:
                return float(leaf)
        return self._argument(leaf)

    def _all_fixed(self, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return all(self._fixed[self.value_of(leaf)] for leaf in leaves([args, list(kwargs.values())])
                   if isinstance(leaf, torch.Tensor))

    def _append(self, name: str, args: Tuple[Any, ...], kwargs: dict, values: List[int], fixed: bool) -> None:
        for value in values:
            self._fixed[value] = fixed
        line = None if self.backward else user_line()
        self.nodes.append(Node(name, args, kwargs, tuple(values), self.backward, line, self._modules.path()))

    def _emit(self, name: str, args: Tuple[Any, ...], kwargs: dict, parts: int) -> List[int]:
        """Adds a node that the model does not contain: a view that is recomputed or scattered back."""
        values = [self._new_value(None) for _ in range(parts)]
        fixed = all(self._fixed[leaf.value] for leaf in leaves(args) if is_ref(leaf))
        self._append(name, args, kwargs, values, fixed)
        return values


def has_place(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.numel() > 0


def place(tensor: torch.Tensor) -> Tuple[Any, ...]:
    return address(tensor), tensor.dtype, tensor.shape, tensor.stride()
