"""Converts recordings of layers to the contents of `package.json` and its tensors."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import torch

from . import measure, narrow, operations, remedies, weights
from .cut import Parts, cut, whole
from .errors import ExportError
from .frozen import OWN, Frozen
from .graph import Graph, Shape, Take, use_instead, uses
from .graph_json import NARROW, TYPES, WIDENED, graph_json
from .layers import Names
from .losses import Loss, class_count
from .trace import Trace
from .walk import Traced

CONSTANT = OWN + "constant."
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
    """Those of `package`, in the same order."""


class _Constants:
    """Constants by name. Unnamed constants are numbered; equal ones share a name."""

    def __init__(self, state: Dict[str, torch.Tensor]):
        self.tensors: Dict[str, torch.Tensor] = {}
        self._state = state
        self._by_content: Dict[str, str] = {}

    def name(self, tensor: torch.Tensor, given: Optional[str]) -> str:
        if given is not None and given in self._state:
            return given
        if given is not None and given.startswith(OWN):
            self.tensors[given] = tensor
            return given
        key = weights.content_hash(tensor)
        name = self._by_content.setdefault(key, f"{CONSTANT}{len(self._by_content)}")
        self.tensors[name] = tensor
        return name


def assemble(traced: List[Traced], names: Names, frozen: Mapping[int, Frozen], loss: Loss, decayed: Callable[[str, torch.Tensor], bool],
             input_limit: Optional[int], target_limit: Optional[int], unit: Optional[str],
             units_per_sample: Optional[int]) -> Assembled:
    state = {name: frozen[id(tensor)].original if id(tensor) in frozen else tensor for name, tensor in names.state.items()}
    constants = _Constants(state)
    order = {name: k for k, name in enumerate(names.state)}
    seen: Dict[str, int] = {}  # [parameter] its first layer
    layers: List[Dict[str, Any]] = []
    distinct: Dict[str, int] = {}  # [text of the graphs] index
    texts: List[Dict[str, Any]] = []
    graphs: List[LayerGraphs] = []
    for k, layer in enumerate(traced):
        numbered = _Numbered(layer, names, state, constants, order)
        built = LayerGraphs(cut(layer.train, numbered.takes(layer.train)),
                            whole(layer.evaluate, numbered.takes(layer.evaluate)),
                            whole(layer.score, numbered.takes(layer.score)) if layer.score else None)
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
    package = {"format": "motley-package", "version": _version(layers, quantised), "made_by": "", "name": ""}
    if quantised:
        package["quantised"] = quantised
    package.update(_ends(traced, loss, input_limit, target_limit, unit, units_per_sample))
    package.update({"layers": layers, "graphs": texts, "aliases": dict(names.aliases), "weights": {}})
    return Assembled(package, tensors, graphs)


def _version(layers: List[Dict[str, Any]], quantised: Dict[str, Any]) -> int:
    """The first whose readers know all that a package has."""
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
                raise ExportError(f"the layer uses {entry['name']}, which does not count in a package", "Compute without it", layer["name"])


class _Numbered:
    """The numbers of a layer's parameters, statistics and constants."""

    def __init__(self, layer: Traced, names: Names, state: Dict[str, torch.Tensor], constants: _Constants, order: Dict[str, int]):
        """`state`: what the state_dict holds, as it is written."""
        self._layer = layer
        self._state = state
        self._constants = constants
        recorder = layer.train.recorder
        trained = {recorder.names[take.index] for take in layer.train.gives if take.role == "parameter_grad"}
        self.parameters = sorted(trained, key=lambda name: order[name])
        self.statistics = [names.of[id(tensor)] for tensor, _ in layer.train.statistics]
        self.momenta = [momentum for _, momentum in layer.train.statistics]
        self.constants: List[str] = []
        for tensor, name in zip([t for t, _ in layer.train.statistics], self.statistics):
            if name not in state:
                raise ExportError(f"the running statistic {name} is not in the state_dict", "Register it as a buffer", layer.name)
        for trace in (layer.train, layer.evaluate, layer.score):
            if trace is not None:
                trace.gives.update({Take("parameter_grad", self.parameters.index(trace.recorder.names[take.index])):
                                    trace.gives.pop(take) for take in list(trace.gives) if take.role == "parameter_grad"})

    def takes(self, trace: Trace) -> Dict[int, Take]:
        recorder = trace.recorder
        found: Dict[int, Take] = {}
        for value, take in recorder.roles.items():
            if take.role not in ("parameter", "constant"):
                found[value] = take
        used = {u for node in recorder.nodes for u in uses(node)} | set(trace.gives.values())
        for value in sorted(used):
            name = recorder.names.get(value)
            if value in recorder.tensors and name in self.parameters:
                found[value] = Take("parameter", self.parameters.index(name))
            elif name in self.statistics:
                if trace is self._layer.train:
                    raise ExportError(f"the layer uses the running statistic {name} while it trains", "Use it in evaluation only, as "
                                      "BatchNorm does, or clone it into a buffer of your own", self._layer.name)
                found[value] = Take("statistic", self.statistics.index(name))
            elif value in recorder.tensors:
                found[value] = self._constant(recorder.tensors[value], name)
            elif value in recorder.constants:
                found[value] = self._constant(recorder.constants[value], name)
        return _one_value_each(trace, found)

    def _constant(self, tensor: torch.Tensor, given: Optional[str]) -> Take:
        if tensor.dtype in WIDENED:  # under a new name, because the state_dict's tensor keeps its type
            tensor, given = tensor.to(WIDENED[tensor.dtype]), None
        if tensor.dtype not in TYPES and tensor.dtype not in NARROW:
            raise ExportError(f"{given or 'a constant'} is {str(tensor.dtype)[6:]}; packages compute with float32, int64 and bool",
                              remedies.of_type(tensor.dtype), self._layer.name)
        if tensor.numel() == 0:
            raise ExportError(f"{given or 'a constant'} has the shape {list(tensor.shape)}, without any value", "Compute without it; where it is the empty "
                              "cache of a transformers model, call that with use_cache=False", self._layer.name)
        name = self._constants.name(tensor, given)
        if name not in self.constants:
            self.constants.append(name)
        return Take("constant", self.constants.index(name))

    def tensor(self, name: str) -> torch.Tensor:
        return self._constants.tensors.get(name, self._state.get(name))  # type: ignore[return-value]


def _one_value_each(trace: Trace, takes: Dict[int, Take]) -> Dict[int, Take]:
    """Merges equal constants: uses of a duplicate are redirected to the first one."""
    first: Dict[Take, int] = {}
    instead = {value: first.setdefault(take, value) for value, take in takes.items()}
    use_instead(trace.recorder.nodes, instead)
    trace.gives.update({take: instead.get(value, value) for take, value in trace.gives.items()})
    return {value: take for take, value in first.items()}


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


def _layer_json(layer: Traced, numbered: _Numbered, names: Names, decayed: Callable[[str, torch.Tensor], bool],
                seen: Dict[str, int], k: int, names_of: List[str], graph: int, built: LayerGraphs) -> Dict[str, Any]:
    parameters = []
    count = len(names_of)
    for name in numbered.parameters:
        tensor = names.state[name]
        if name in seen and not (seen[name] == 0 and k == count - 1):
            raise ExportError(f"the parameter {name} is used by the layers {names_of[seen[name]]} and {layer.name}",
                              "A parameter may be shared by the first and the last layer only. Put the layers that share it "
                              "into one, or give each a module of its own", layer.name)
        parameters.append({"name": name, "shape": list(tensor.shape), "decayed": bool(decayed(name, tensor)),
                           "tied": name in seen})
        seen.setdefault(name, k)
    statistics = [{"name": name, "shape": list(names.state[name].shape), "momentum": momentum}
                  for name, momentum in zip(numbered.statistics, numbered.momenta)]
    constants = [{"name": name, "type": {**TYPES, **NARROW}[numbered.tensor(name).dtype], "shape": list(numbered.tensor(name).shape)}
                 for name in numbered.constants]
    outputs = [] if k + 1 == count else [
        _boundary_json(layer.train.recorder.shapes[value], layer.train.gradients[take.index], layer.name)
        for take, value in sorted(layer.train.gives.items()) if take.role == "output"]
    return {"name": layer.name, "graph": graph, "outputs": outputs, "parameters": parameters, "statistics": statistics,
            "constants": constants, "flops_per_sample": measure.flops(built.parts.forward),
            "input_part_flops_per_sample": measure.flops(built.parts.input_part),
            "weight_part_flops_per_sample": measure.flops(built.parts.weight_part)}


def _boundary_json(shape: Shape, gradient: bool, layer: str) -> Dict[str, Any]:
    described = tensor_json(shape.sizes[1:], WIDENED.get(shape.dtype, shape.dtype), layer)
    return {**described, "gradient": False} if shape.dtype.is_floating_point and not gradient else described


def tensor_json(sizes: Any, dtype: torch.dtype, layer: str) -> Dict[str, Any]:
    if any(type(size) is not int for size in sizes):
        raise ExportError("an output's shape depends on the batch beyond its first dimension", "Return one row for each sample", layer)
    return {"type": TYPES[dtype], "shape": list(sizes)}


def _ends(traced: List[Traced], loss: Loss, input_limit: Optional[int], target_limit: Optional[int], unit: Optional[str],
          units_per_sample: Optional[int]) -> Dict[str, Any]:
    """The package's description of its input and target."""
    first, last = traced[0], traced[-1]
    (example,) = first.inputs
    target = last.target
    assert target is not None
    if example.dtype == torch.int64 and input_limit is None:
        input_limit = _rows(first.train)
        if input_limit is None:
            raise ExportError("the input is of integers and no embedding says how many there are", "Pass input_limit=", first.name)
    integers = target.dtype == torch.int64
    if integers and target_limit is None:
        target_limit = _classes(last) if loss.classes else None
        if target_limit is None:
            raise ExportError("the target is of integers and the loss does not say how many there are", "Pass target_limit=", last.name)
    per_sample = 1
    for size in target.shape[1:]:
        per_sample *= size
    if loss.classes and not integers:
        per_sample //= target.size(1)
    tokens = integers and loss.classes and target.dim() > 1 and example.dtype == torch.int64
    return {"input": tensor_json(example.shape[1:], example.dtype, first.name),
            "input_limit": input_limit if example.dtype == torch.int64 else 0,
            "target": tensor_json(target.shape[1:], target.dtype, last.name),
            "target_limit": target_limit if integers else 0,
            "ignored": loss.ignored if integers else None,
            "units_per_sample": units_per_sample or per_sample,
            "unit": unit or ("token" if tokens else "sample")}


def _rows(trace: Trace) -> Optional[int]:
    """The number of rows of the smallest embedding that is indexed by the input or a view of it."""
    recorder = trace.recorder
    inputs = {value for value, take in recorder.roles.items() if take.role == "input"}
    found = []
    for node in recorder.nodes:
        operands = uses(node)
        if operations.is_view(operations.find(node.op)) and operands[0] in inputs:
            inputs.update(node.results)
        if node.op == "aten::embedding" and operands[1] in inputs:
            found.append(recorder.shapes[operands[0]].sizes[0])
    return min(found, default=None)


def _classes(last: Traced) -> Optional[int]:
    """The number of classes in the model's output, if the target is a class."""
    assert last.score is not None and last.target is not None
    sizes = last.score.recorder.shapes[last.score.gives[Take("output", 0)]].sizes
    at_two = [size.at(last.target.size(0)) if not isinstance(size, int) else size for size in sizes]
    return class_count(torch.empty(at_two, device="meta"), last.target)
