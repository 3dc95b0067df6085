"""Converts recordings of layers to the contents of `package.json` and its tensors."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import torch

from . import measure, narrow, operations, remedies, weights
from .partition import Parts, partition, single_graph
from .errors import ExportError
from .frozen import PREFIX, Frozen
from .graph import Graph, Shape, Role, use_instead, uses
from .graph_json import NARROW, TYPES, WIDENED, graph_json
from .layers import Names
from .losses import Loss
from .named import Limit, limits
from .target import described_target, tensor_json
from .trace import Trace
from .trace_layers import TracedLayer

CONSTANT = PREFIX + "constant."
"""Name prefix of constants that are not in the model's state_dict."""


class LayerGraphs(NamedTuple):
    """The graphs of a layer as values, for the interpreter."""

    parts: Parts
    evaluate: Graph
    score: Optional[Graph]


class Assembled(NamedTuple):
    package: Dict[str, Any]
    tensors: Dict[str, torch.Tensor]
    graphs: List[LayerGraphs]
    """The distinct graphs, in the order of `package`."""


class _Constants:
    """Constants by name. Unnamed constants are numbered; equal ones share a name."""

    def __init__(self, state: Dict[str, torch.Tensor]):
        self.tensors: Dict[str, torch.Tensor] = {}
        self._state = state
        self._by_content: Dict[str, str] = {}

    def name(self, tensor: torch.Tensor, given: Optional[str]) -> str:
        if given is not None and given in self._state:
            return given
        if given is not None and given.startswith(PREFIX):
            self.tensors[given] = tensor
            return given
        key = weights.content_hash(tensor)
        name = self._by_content.setdefault(key, f"{CONSTANT}{len(self._by_content)}")
        self.tensors[name] = tensor
        return name


def assemble(traced: List[TracedLayer], names: Names, frozen: Mapping[int, Frozen], loss: Loss, decayed: Callable[[str, torch.Tensor], bool],
             input_limit: Limit, target_limit: Optional[int], unit: Optional[str],
             units_per_sample: Optional[int], names_of_inputs: List[str]) -> Assembled:
    """`names_of_inputs`: [""] for a single one without name."""
    state = {name: frozen[id(tensor)].original if id(tensor) in frozen else tensor for name, tensor in names.state.items()}
    constants = _Constants(state)
    order = {name: k for k, name in enumerate(names.state)}
    seen: Dict[str, int] = {}  # [parameter] its first layer
    layers: List[Dict[str, Any]] = []
    distinct: Dict[str, int] = {}  # [text of the graphs] index
    texts: List[Dict[str, Any]] = []
    graphs: List[LayerGraphs] = []
    for k, layer in enumerate(traced):
        numbered = _Indices(layer, names, state, constants, order)
        built = LayerGraphs(partition(layer.train, numbered.roles(layer.train)),
                            single_graph(layer.evaluate, numbered.roles(layer.evaluate)),
                            single_graph(layer.score, numbered.roles(layer.score)) if layer.score else None)
        described = _graphs_json(built, layer.name)
        text = json.dumps(described, sort_keys=True)
        if text not in distinct:
            distinct[text] = len(texts)
            texts.append(described)
            graphs.append(built)
        layers.append(_layer_json(layer, numbered, names, decayed, seen, k, [t.name for t in traced], distinct[text], built))
    _check_constants(layers)
    quantised = {held.name: held.described() for held in frozen.values()
                 if held.is_quantised and held.parts.keys() <= constants.tensors.keys()}
    tensors = {name: tensor for name, tensor in state.items() if name not in quantised}
    tensors.update(constants.tensors)
    version = 3 if names_of_inputs != [""] else _version(layers, quantised)
    package = {"format": "motley-package", "version": version, "made_by": "", "name": ""}
    if quantised:
        package["quantised"] = quantised
    package.update(_inputs(traced, input_limit, names_of_inputs))
    package.update(described_target(traced, loss, target_limit, unit, units_per_sample))
    package.update({"layers": layers, "graphs": texts, "aliases": dict(names.aliases), "weights": {}})
    return Assembled(package, tensors, graphs)


def _version(layers: List[Dict[str, Any]], quantised: Dict[str, Any]) -> int:
    """The first format version that has all features of this package."""
    exact = any("gradient" in output or output["type"] != "float32" for layer in layers for output in layer["outputs"])
    narrow_types = any(entry["type"] not in TYPES.values() for layer in layers for entry in layer["constants"])
    return 2 if exact or narrow_types or quantised else 1


def _check_constants(layers: List[Dict[str, Any]]) -> None:
    """Refuses constants that another layer trains: they would keep their initial values."""
    moved = {entry["name"]: layer["name"] for layer in layers for kind in ("parameters", "statistics") for entry in layer[kind]}
    for layer in layers:
        for entry in layer["constants"]:
            if entry["name"] in moved:
                raise ExportError(f"{entry['name']} is trained by the layer {moved[entry['name']]} and used here without a gradient (detach, "
                                  "no_grad, a running statistic)", "Use it with its gradient, put both uses into one layer, or clone it", layer["name"])
            if entry["name"].rpartition(".")[2] == "num_batches_tracked":
                raise ExportError(f"the layer uses {entry['name']}, which a package does not update",
                                  "Compute without it", layer["name"])


class _Indices:
    """The indices of a layer's parameters, statistics and constants."""

    def __init__(self, layer: TracedLayer, names: Names, state: Dict[str, torch.Tensor], constants: _Constants, order: Dict[str, int]):
        """`state`: the tensors of the state_dict, as they are written."""
        self._layer = layer
        self._state = state
        self._constants = constants
        recorder = layer.train.recorder
        trained = {recorder.names[role.index] for role in layer.train.results if role.kind == "parameter_grad"}
        self.parameters = sorted(trained, key=lambda name: order[name])
        self.statistics = [names.of[id(tensor)] for tensor, _ in layer.train.statistics]
        self.momenta = [momentum for _, momentum in layer.train.statistics]
        self.constants: List[str] = []
        for tensor, name in zip([t for t, _ in layer.train.statistics], self.statistics):
            if name not in state:
                raise ExportError(f"the running statistic {name} is not in the state_dict", "Register it as a buffer", layer.name)
        for trace in (layer.train, layer.evaluate, layer.score):
            if trace is not None:
                trace.results.update({Role("parameter_grad", self.parameters.index(trace.recorder.names[role.index])):
                                      trace.results.pop(role) for role in list(trace.results) if role.kind == "parameter_grad"})

    def roles(self, trace: Trace) -> Dict[int, Role]:
        recorder = trace.recorder
        found: Dict[int, Role] = {}
        for value, role in recorder.roles.items():
            if role.kind not in ("parameter", "constant"):
                found[value] = role
        used = {u for node in recorder.nodes for u in uses(node)} | set(trace.results.values())
        for value in sorted(used):
            name = recorder.names.get(value)
            if value in recorder.tensors and name in self.parameters:
                found[value] = Role("parameter", self.parameters.index(name))
            elif name in self.statistics:
                if trace is self._layer.train:
                    raise ExportError(f"the layer uses the running statistic {name} while it trains",
                                      "Use it in evaluation only, like BatchNorm, or clone it into another "
                                      "buffer", self._layer.name)
                found[value] = Role("statistic", self.statistics.index(name))
            elif value in recorder.tensors:
                found[value] = self._constant(recorder.tensors[value], name)
            elif value in recorder.constants:
                found[value] = self._constant(recorder.constants[value], name)
        return _one_value_each(trace, found)

    def _constant(self, tensor: torch.Tensor, given: Optional[str]) -> Role:
        if tensor.dtype in WIDENED:  # under a new name, because the state_dict's tensor keeps its type
            tensor, given = tensor.to(WIDENED[tensor.dtype]), None
        if tensor.dtype not in TYPES and tensor.dtype not in NARROW:
            raise ExportError(f"{given or 'a constant'} is {str(tensor.dtype)[6:]}; packages compute with float32, int64 and bool",
                              remedies.for_dtype(tensor.dtype), self._layer.name)
        if tensor.numel() == 0:
            raise ExportError(f"{given or 'a constant'} has the shape {list(tensor.shape)} and no elements",
                              "Compute without it; if it is the empty cache of a transformers model, call the model with "
                              "use_cache=False", self._layer.name)
        name = self._constants.name(tensor, given)
        if name not in self.constants:
            self.constants.append(name)
        return Role("constant", self.constants.index(name))

    def tensor(self, name: str) -> torch.Tensor:
        return self._constants.tensors.get(name, self._state.get(name))  # type: ignore[return-value]


def _one_value_each(trace: Trace, roles: Dict[int, Role]) -> Dict[int, Role]:
    """Merges equal constants: uses of a duplicate are redirected to the first one."""
    first: Dict[Role, int] = {}
    instead = {value: first.setdefault(role, value) for value, role in roles.items()}
    use_instead(trace.recorder.nodes, instead)
    trace.results.update({role: instead.get(value, value) for role, value in trace.results.items()})
    return {value: role for role, value in first.items()}


def _graphs_json(built: LayerGraphs, layer: str) -> Dict[str, Any]:
    for graph in (*built.parts, built.evaluate, *((built.score,) if built.score else ())):
        narrow.check_uses(graph, layer)
    described: Dict[str, Any] = {
        "forward": graph_json(built.parts.forward, layer), "input_part": graph_json(built.parts.input_part, layer),
        "weight_part": graph_json(built.parts.weight_part, layer), "evaluate": graph_json(built.evaluate, layer),
        "memory": measure.memory(built.parts)}
    if built.score is not None:
        described["score"] = graph_json(built.score, layer)
    return described


def _layer_json(layer: TracedLayer, numbered: _Indices, names: Names, decayed: Callable[[str, torch.Tensor], bool],
                seen: Dict[str, int], k: int, names_of: List[str], graph: int, built: LayerGraphs) -> Dict[str, Any]:
    parameters = []
    count = len(names_of)
    for name in numbered.parameters:
        tensor = names.state[name]
        if name in seen and not (seen[name] == 0 and k == count - 1):
            raise ExportError(f"the parameter {name} is used by the layers {names_of[seen[name]]} and {layer.name}",
                              "Only the first and the last layer may share a parameter. Join the layers that share it, or give "
                              "each its own module", layer.name)
        parameters.append({"name": name, "shape": list(tensor.shape), "decayed": bool(decayed(name, tensor)),
                           "tied": name in seen})
        seen.setdefault(name, k)
    statistics = [{"name": name, "shape": list(names.state[name].shape), "momentum": momentum}
                  for name, momentum in zip(numbered.statistics, numbered.momenta)]
    constants = [{"name": name, "type": {**TYPES, **NARROW}[numbered.tensor(name).dtype], "shape": list(numbered.tensor(name).shape)}
                 for name in numbered.constants]
    outputs = [] if k + 1 == count else [
        _boundary_json(layer.train.recorder.shapes[value], layer.train.gradients[role.index], layer.name)
        for role, value in sorted(layer.train.results.items()) if role.kind == "output"]
    return {"name": layer.name, "graph": graph, "outputs": outputs, "parameters": parameters, "statistics": statistics,
            "constants": constants, "flops_per_sample": measure.flops(built.parts.forward),
            "input_part_flops_per_sample": measure.flops(built.parts.input_part),
            "weight_part_flops_per_sample": measure.flops(built.parts.weight_part)}


def _boundary_json(shape: Shape, gradient: bool, layer: str) -> Dict[str, Any]:
    described = tensor_json(shape.sizes[1:], WIDENED.get(shape.dtype, shape.dtype), layer)
    return {**described, "gradient": False} if shape.dtype.is_floating_point and not gradient else described


def _inputs(traced: List[TracedLayer], input_limit: Limit, names: List[str]) -> Dict[str, Any]:
    """The package's description of its inputs. Integers that have a name and index no embedding need no limit: they may be masks."""
    first = traced[0]
    given = limits(input_limit, None if names == [""] else dict.fromkeys(names))
    traces = [layer.train for layer in traced]
    found = [(_rows(traces, k) if limit is None else limit) if example.dtype == torch.int64 else None
             for k, (example, limit) in enumerate(zip(first.inputs, given))]
    tensors = [tensor_json(example.shape[1:], example.dtype, first.name) for example in first.inputs]
    if names != [""]:
        return {"inputs": [{"name": name, **tensor, "limit": limit} for name, tensor, limit in zip(names, tensors, found)]}
    if first.inputs[0].dtype == torch.int64 and found[0] is None:
        raise ExportError("the input consists of integers, and no embedding determines their limit",
                          "Pass input_limit=", first.name)
    return {"input": tensors[0], "input_limit": found[0] or 0}


def _rows(traces: List[Trace], index: int) -> Optional[int]:
    """The number of rows of the smallest embedding that is indexed by the input `index` or a view of it, in the first layer that has
    such an embedding. The layers before it pass the input on."""
    places = {index}
    for trace in traces:
        recorder = trace.recorder
        inputs = {value for value, role in recorder.roles.items() if role.kind == "input" and role.index in places}
        found = []
        for node in recorder.nodes:
            operands = uses(node)
            if operations.is_view(operations.find(node.op)) and operands[0] in inputs:
                inputs.update(node.results)
            if node.op == "aten::embedding" and operands[1] in inputs:
                found.append(recorder.shapes[operands[0]].sizes[0])
        if found:
            return min(found)
        places = {role.index for role, value in trace.results.items() if role.kind == "output" and value in inputs}
    return None
