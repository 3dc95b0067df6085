"""Records the forward of a whole model.

Operations are recorded below autograd and replayed under it (`segment.py`). Each node therefore also stores whether autograd was
enabled and which of its arguments autograd tracked. Functions with side effects in forward, or with their own backward, are one
node that calls the Python function again: batch normalization and custom autograd functions.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import TreeSpec, tree_flatten

from .. import adapters, functions, outputs
from ..errors import DataDependent, ExportError
from ..graph import Node, Role, needed, uses
from ..intercept import Intercept
from ..layers import Call as Function
from ..layers import Layers, Names, is_statistic
from ..lines import guarded
from ..merge import merge
from ..modules import ModuleStack
from ..named import Input, by_name, each, passed_and_taken
from ..trace import Trace, draws_nothing, import_dynamo
from ..trace_layers import BATCHES, samples
from .forward_recorder import ForwardRecorder
from .program import Call, Key, Program


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
        recorder.drop_unused_parts(values)
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
