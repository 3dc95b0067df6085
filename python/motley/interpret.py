"""Runs packages like a worker, for checks and tests: by ATen operations, without autograd.

>>> package = Package.open("digits.motley")
>>> step = package.train(input, target)
>>> step.loss, step.gradients["0.weight"]
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from . import operations, random_numbers, weights  # noqa: F401  (random_numbers registers Motley's operations)
from .graph import Batch, Graph, Node, Ref, Role, map_args, map_node, uses
from .named import Input

_TYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
_FORMATS = {"contiguous": torch.contiguous_format, "preserve": torch.preserve_format}


def run_node(node: Node, values: Mapping[int, Optional[torch.Tensor]], samples: int) -> List[Optional[torch.Tensor]]:
    """The results of one operation in a micro-batch of `samples`."""
    def leaf(argument: Any) -> Any:
        if isinstance(argument, Ref):
            return values[argument.value]
        return argument.at(samples) if isinstance(argument, Batch) else argument

    args, kwargs = map_node(node, leaf)
    with torch.no_grad():
        out = operations.run(node.op, args, kwargs)
    return list(out) if isinstance(out, (list, tuple)) else [out]


RunNode = Callable[[Node, Mapping[int, Optional[torch.Tensor]], int], List[Optional[torch.Tensor]]]
"""The type of `run_node`."""

Receive = Callable[[Role, torch.Tensor], None]
"""Receives one result of a graph, which is released after the call unless the callee holds it."""


def run(graph: Graph, taken: Mapping[Role, torch.Tensor], samples: int, node_by: RunNode, receive: Receive) -> None:
    """Runs `graph` for its inputs. Each result is passed on after its last use in the graph."""
    values: Dict[int, Optional[torch.Tensor]] = {value: taken[role] for value, role in graph.inputs.items()}
    last = {value: k for k, node in enumerate(graph.nodes) for value in uses(node)}
    given: Dict[int, List[Role]] = {}
    for role, value in graph.outputs:
        given.setdefault(value, []).append(role)

    def release(value: int) -> None:
        tensor = values.pop(value)
        for role in given.pop(value, ()):
            assert tensor is not None
            receive(role, tensor)

    for k, node in enumerate(graph.nodes):
        values.update(zip(node.results, node_by(node, values, samples)))
        for value in {*uses(node), *node.results}:
            if last.get(value, k) == k:
                release(value)
    for value in list(given):
        release(value)


def read_graph(described: Mapping[str, Any]) -> Graph:
    """A graph from its JSON."""
    graph = Graph(inputs={k: _role(text) for k, text in enumerate(described["takes"])})
    count = len(graph.inputs)
    for node in described["nodes"]:
        results = tuple(range(count, count + node["results"]))
        count += node["results"]
        graph.nodes.append(Node(node["op"], tuple(map(_argument, node["args"])),
                                {key: _argument(value) for key, value in node["kwargs"].items()}, results))
    graph.outputs = [(_role(text), value) for text, value in described["gives"]]
    return graph


def _role(text: str) -> Role:
    role, _, index = text.partition(":")
    return Role(role, int(index))


def _argument(value: Any) -> Any:
    def leaf(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        ((kind, content),) = part.items()
        if kind == "value":
            return Ref(content)
        if kind == "values":
            return [None if v is None else Ref(v) for v in content]
        if kind == "batch":
            return Batch(*content)
        return {"float": float, "text": str, "type": _TYPES.get, "memory_format": _FORMATS.get}[kind](content)
    return map_args(value, leaf)


class Step(NamedTuple):
    """The results of a micro-batch: sums, not means."""

    loss: torch.Tensor
    count: torch.Tensor
    correct: Optional[torch.Tensor]
    gradients: Dict[str, torch.Tensor]
    observed: Dict[str, torch.Tensor]


class Package:
    """A package with its weights, in memory."""

    def __init__(self, description: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], node_by: RunNode = run_node):
        self.description = description
        self.tensors = tensors
        self.node_by = node_by
        self._graphs = [{key: read_graph(graph) for key, graph in graphs.items() if key != "memory"}
                        for graphs in description["graphs"]]

    def computing(self, node_by: RunNode, tensors: Mapping[str, torch.Tensor]) -> "Package":
        """The same package with other weights, and with `node_by` to run operations."""
        other = copy.copy(self)
        other.tensors, other.node_by = tensors, node_by
        return other

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"]) -> "Package":
        with open(os.path.join(path, "package.json"), encoding="utf-8") as file:
            description = json.load(file)
        tensors = weights.read(os.path.join(path, description["weights"]["file"]))
        moved = {entry["name"] for layer in description["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]}
        return cls(description, {name: tensor.float() if name in moved else tensor for name, tensor in tensors.items()})

    def evaluates_as_it_trains(self, layer: int) -> bool:
        """Whether the outputs of a layer in evaluation are those in training, by the same operations."""
        graphs = self._graphs[self.description["layers"][layer]["graph"]]
        forward, evaluate = graphs["forward"], graphs["evaluate"]
        outputs = [{role: value for role, value in graph.outputs if role.kind != "saved"} for graph in (forward, evaluate)]
        return "score" not in graphs and (forward.inputs, forward.nodes, outputs[0]) == (evaluate.inputs, evaluate.nodes, outputs[1])

    def _inputs(self, input: Input) -> List[torch.Tensor]:
        """In the order of the description."""
        return [input[entry["name"]] for entry in self.description["inputs"]] if isinstance(input, Mapping) else [input]

    def train(self, input: Input, target: torch.Tensor) -> Step:
        """Forward of all layers, then input part and weight part of each from the last."""
        layers = self.description["layers"]
        inputs, kept, observed = self._inputs(input), [], {}
        ends: Dict[Role, torch.Tensor] = {}
        for k, layer in enumerate(layers):
            ends = self.forward(k, inputs, target)
            kept.append({role: tensor for role, tensor in ends.items() if role.kind == "saved"})
            observed.update({layer["statistics"][role.index]["name"]: tensor for role, tensor in ends.items()
                             if role.kind == "observed"})
            inputs = [ends[Role("output", index)].contiguous() for index in range(len(layer["outputs"]))]
        gradients: Dict[str, torch.Tensor] = {}
        grads: List[Optional[torch.Tensor]] = []
        for k in reversed(range(len(layers))):
            grads, found = self.backward(k, kept[k], grads, target.size(0))
            for name, tensor in found.items():
                gradients[name] = gradients[name] + tensor if name in gradients else tensor
        return Step(ends[Role("loss", 0)], ends[Role("count", 0)], ends.get(Role("correct", 0)), gradients, observed)

    def forward(self, layer: int, inputs: List[torch.Tensor], target: Optional[torch.Tensor], kind: str = "forward"
                ) -> Dict[Role, torch.Tensor]:
        """The results of the graph `kind` of one layer."""
        found: Dict[Role, torch.Tensor] = {}
        self.run_forward(layer, inputs, target, kind, found.__setitem__)
        return found

    def run_forward(self, layer: int, inputs: List[torch.Tensor], target: Optional[torch.Tensor], kind: str, receive: Receive) -> None:
        """`forward`, whose results are passed to `receive` one by one."""
        taken = {Role("input", k): tensor for k, tensor in enumerate(inputs)}
        if target is not None:
            taken[Role("target", 0)] = target
        self._run(self.description["layers"][layer], kind, taken, inputs[0].size(0), receive)

    def backward(self, layer: int, saved: Dict[Role, torch.Tensor], grads: Sequence[Optional[torch.Tensor]], samples: int
                 ) -> Tuple[List[Optional[torch.Tensor]], Dict[str, torch.Tensor]]:
        """Gradients of one layer's inputs, None for inputs without one, and of its parameters, by name."""
        names = [entry["name"] for entry in self.description["layers"][layer]["parameters"]]
        gradients: Dict[str, torch.Tensor] = {}
        of_inputs: List[Optional[torch.Tensor]] = [None] * (len(self.description["layers"][layer - 1]["outputs"]) if layer else 0)

        def receive(role: Role, tensor: torch.Tensor) -> None:
            if role.kind == "input_grad":
                of_inputs[role.index] = tensor
            else:
                gradients[names[role.index]] = tensor

        self.run_backward(layer, saved, grads, samples, receive)
        return of_inputs, gradients

    def run_backward(self, layer: int, saved: Dict[Role, torch.Tensor], grads: Sequence[Optional[torch.Tensor]], samples: int,
                     receive: Receive) -> None:
        """`backward`, whose results, `input_grad` and `parameter_grad`, are passed to `receive` one by one."""
        described = self.description["layers"][layer]
        queued: Dict[Role, torch.Tensor] = {}

        def sort(role: Role, tensor: torch.Tensor) -> None:
            if role.kind == "queued":
                queued[role] = tensor
            elif role.kind == "input_grad":
                receive(role, tensor.contiguous())
            elif role.kind == "parameter_grad":
                receive(role, tensor)

        given = {Role("grad", k): grad for k, grad in enumerate(grads) if grad is not None}
        self._run(described, "input_part", {**saved, **given}, samples, sort)
        self._run(described, "weight_part", {**saved, **queued}, samples, sort)

    def evaluate(self, input: Input, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, Optional[torch.Tensor]]:
        """Loss, count and, if available, the number of correct predictions."""
        ends = self._through("evaluate", "evaluate", input, target)
        return ends[Role("loss", 0)], ends[Role("count", 0)], ends.get(Role("correct", 0))

    def score(self, input: Input) -> torch.Tensor:
        """The model's output before its loss."""
        return self._through("evaluate", "score", input, None)[Role("output", 0)]

    def _through(self, kind: str, last: str, input: Input, target: Optional[torch.Tensor]) -> Dict[Role, torch.Tensor]:
        inputs = self._inputs(input)
        ends: Dict[Role, torch.Tensor] = {}
        for k, layer in enumerate(self.description["layers"]):
            ends = self.forward(k, inputs, target, last if k + 1 == len(self.description["layers"]) else kind)
            inputs = [ends[Role("output", index)].contiguous() for index in range(len(layer["outputs"]))]
        return ends

    def _run(self, layer: Mapping[str, Any], kind: str, given: Dict[Role, torch.Tensor], samples: int, receive: Receive) -> None:
        taken = dict(given)
        for role, listed in (("parameter", "parameters"), ("statistic", "statistics"), ("constant", "constants")):
            taken.update({Role(role, k): self.tensors[entry["name"]].detach() for k, entry in enumerate(layer[listed])})
        run(self._graphs[layer["graph"]][kind], taken, samples, self.node_by, receive)
