"""Records the forward of a whole model.

Operations are recorded below autograd and replayed under it (`segment.py`). Each node therefore also stores whether autograd was
enabled and which of its arguments autograd tracked. Functions with side effects in forward, or with their own backward, are one
node that calls the Python function again: batch normalization and custom autograd functions.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import TreeSpec, tree_flatten

from .. import adapters, functions, operations, outputs, rewrite
from ..aliases import Entry, View
from ..errors import DataDependent, ExportError
from ..graph import Node, Role, leaves, map_args, needed, uses
from ..intercept import Intercept
from ..layers import Call as Function
from ..layers import Layers, Names, is_statistic
from ..lines import guarded, user_line
from ..merge import merge
from ..modules import ModuleStack
from ..named import Input, by_name, each, passed_and_taken
from ..record import Recorder
from ..trace import Trace, draws_nothing, import_dynamo
from ..trace_layers import BATCHES, samples
from .program import Call, Key, Program

aten = torch.ops.aten

_LIKE: Dict[str, Optional[float]] = {
    "aten::zeros_like": 0, "aten::ones_like": 1, "aten::full_like": None, "aten::empty_like": 0,
    "aten::new_zeros": 0, "aten::new_ones": 1, "aten::new_full": None, "aten::new_empty": 0}
"""Operations that use only a tensor's type and sizes, and their fill values; None if an argument gives the value."""


class CallTree:
    """While entered, records the calls of modules and their ranges of nodes."""

    def __init__(self, names: Dict[int, str], nodes: List[Node]):
        self.root = Call(("", 0), None, 0)
        self._names = names
        self._nodes = nodes
        self._open: List[Optional[Call]] = []
        self._count: Dict[str, int] = {}
        self._handles: List[Any] = []

    def __enter__(self) -> "CallTree":
        def begin(module: torch.nn.Module, _: Any) -> None:
            path = self._names.get(id(module))
            if path is None:
                self._open.append(None)
                return
            key: Key = (path, self._count.get(path, 0))
            self._count[path] = key[1] + 1
            call = Call(key, module, len(self._nodes))
            self._inner().calls.append(call)
            self._open.append(call)

        def end(module: torch.nn.Module, _: Any, __: Any) -> None:
            call = self._open.pop()
            if call is not None:
                call.end = len(self._nodes)

        self._handles = [register_module_forward_pre_hook(begin), register_module_forward_hook(end)]
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self.root.end = len(self._nodes)

    def _inner(self) -> Call:
        return next((call for call in reversed(self._open) if call is not None), self.root)


class ForwardRecorder(Recorder):
    """A recorder for replay, not for a package."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._depth = 0
        self._below: Set[int] = set()  # [id of a tensor] results of operations that replace one operation, which autograd does not see

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
        if name not in _LIKE:
            return super().__torch_dispatch__(func, types, args, kwargs)
        source, kwargs = args[0], kwargs or {}
        sizes = list(source.shape) if name.endswith("_like") else list(args[1] if len(args) > 1 else kwargs["size"])
        rest = args[1:] if name.endswith("_like") else args[2:]
        fill = _LIKE[name] if _LIKE[name] is not None else rest[0] if rest else kwargs["fill_value"]
        with self:
            return aten.full.default(sizes, fill, dtype=kwargs.get("dtype") or source.dtype)

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
        super()._record(name, func, args, kwargs, out)
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


class _Ran(NamedTuple):
    trace: Trace
    tree: Call
    inputs: Dict[str, int]
    outputs: List[int]
    structure: TreeSpec


class WholeTracer:
    """Records the only layer of `described`, which is the whole model."""

    def __init__(self, described: Layers, names: Names, modules: ModuleStack):
        import_dynamo()
        (_, self._call), = described.layers
        self._names = names
        self._modules = modules
        self._kind = type(described.model).__name__
        self._model = described.model
        self._by_forward = described.by == "forward"
        self.read: Set[str] = set()
        """The inputs that an operation of any recorded run reads, or that it returned."""
        self._reports_tracing = False

    def program(self, input: Input, exact: bool) -> Program:
        """Records the model in its current mode. With `exact` it returns the call's whole result, else its main tensor."""
        try:
            return self._program(input, exact)
        except DataDependent as first:  # under tracing, libraries omit branches that only save time
            if self._reports_tracing:
                raise
            self._reports_tracing = True
            try:
                return self._program(input, exact)
            except ExportError as again:
                self._reports_tracing = False
                if isinstance(again, DataDependent):
                    if (again.module, again.line) == (first.module, first.line):
                        raise first
                    raise  # the first branch can be omitted, this one cannot
                if again.__cause__ is None:
                    raise
                reason = f"{again.reason} (traced without the branch on values at {first.line or first.module})"
                raise ExportError(reason, again.remedy, again.module, again.line) from again.__cause__

    def check_call(self, input: Input) -> None:
        """Raises the error of the model's call itself, without a trace, if it raises one."""
        raises = f"{'forward=' if self._by_forward else self._kind} raises for the input"
        with guarded(raises, self._remedy(input), self._modules.path), torch.no_grad():
            self._modules.start("")
            self._call(each(torch.Tensor.clone, input))

    def _remedy(self, input: Input) -> str:
        if self._by_forward:
            of = f"a dictionary of {', '.join(map(repr, input))}" if isinstance(input, Mapping) else f"a tensor {list(input.shape)}"
            return f"forward= is called with {of}. Call it with such an input to reproduce it"
        return (f"{passed_and_taken(self._model, input)}Call it with such an input to reproduce it, or pass forward=, a function of "
                "the input that calls the model")

    def _program(self, input: Input, exact: bool) -> Program:
        ran = []
        for size in BATCHES:
            ran.append(self._run(each(lambda tensor: samples(tensor, size), input), exact))
            ran[-1].trace.release()
        merge(self._kind, [run.trace for run in ran], BATCHES)
        first = ran[0]
        read = {value for node in first.trace.recorder.nodes for value in uses(node)} | set(first.outputs)
        self.read.update(name for name, value in first.inputs.items() if value in read)
        recorder = first.trace.recorder
        assert isinstance(recorder, ForwardRecorder)
        kept = needed(recorder.nodes, first.outputs)
        alive = {id(node) for node in kept}
        place = [0]
        for node in recorder.nodes:
            place.append(place[-1] + (id(node) in alive))
        for call in first.tree.all():
            call.begin, call.end = (place[min(k, len(recorder.nodes))] for k in (call.begin, call.end))
        statistics = {value for value in recorder.constants if is_statistic(recorder.names.get(value, ""))}
        fixed = {value for value in [*recorder.constants, *(v for node in kept for v in node.results)]
                 if recorder.is_fixed(value) and value not in statistics}
        return Program(kept, recorder.shapes, first.inputs, first.outputs, first.structure, recorder.tensors, recorder.constants,
                       statistics, fixed, first.tree)

    def _run(self, input: Input, exact: bool) -> _Ran:
        self._modules.start("")
        recorder = ForwardRecorder(self._names.of, self._modules, self._names.memory())
        intercept = Intercept(recorder, reports_tracing=self._reports_tracing)
        intercept.whole, intercept.draws.most = True, None
        given = each(torch.Tensor.clone, input)
        raises = f"{'forward=' if self._by_forward else self._kind} raises for the input"
        with draws_nothing(recorder), guarded(raises, self._remedy(input), recorder.path), \
                CallTree(self._names.modules, recorder.nodes) as tree, recorder, intercept, functions.intercepted(recorder.as_call):
            declared = {name: recorder.declare(tensor, "input", k) for k, (name, tensor) in enumerate(by_name(given).items())}
            returned = self._call(given)
            tensors, structure = self._given(returned, exact)
            values = [recorder.value_of(tensor) for tensor in tensors]
        results = {Role("output", k): value for k, value in enumerate(values)}
        return _Ran(Trace(recorder, results, tensors, structure, []), tree.root, declared, values, structure)

    def _given(self, returned: Any, exact: bool) -> Tuple[List[torch.Tensor], TreeSpec]:
        tensors, structure = tree_flatten(returned)
        if exact and tensors and all(isinstance(tensor, torch.Tensor) for tensor in tensors):
            return tensors, structure
        main = outputs.main(returned)
        if main is None:
            raise ExportError(f"{self._kind} returns no tensor of floats",
                              "Pass forward=, a function of the input that returns the tensor for the loss")
        return tree_flatten(main)


def whole_model(model: torch.nn.Module, forward: Optional[Function]) -> Layers:
    """The model as one layer."""
    call = forward or adapters.call_of(model)
    return Layers([(type(model).__name__, call)], [("", model)], call, model, "forward" if forward else "split")
