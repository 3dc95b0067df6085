"""The layers of a traced model with values, one after another: their inputs, and weights where the trace had none.

Inputs of a layer are the outputs of the one before it for two samples of the example. Weights that are in files are read for one
layer at a time, and only for the first of equal layers: the outputs of the first stand for those of the others.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import torch

from . import eager
from .assemble import Assembled
from .empty_model import with_values
from .interpret import Package
from .layers import Call, Layers
from .memory_limit import MemoryLimit
from .modules import ModuleStack
from .split.segment import Segment
from .virtual import Virtual
from .walk import BATCHES, Traced, handed_on, samples
from .weights import Stored

SMALL_MODEL_FLOPS = 1e12
"""Of a forward of one sample: up to here, all layers compute the inputs of the next, not only the first of equal ones."""


class Valued(NamedTuple):
    """Layer `index`: `traced` has its inputs and target for two samples, `call` and `package` have its weights."""

    index: int
    traced: Traced
    call: Call
    package: Package


def distinct(description: Mapping[str, Any], layer: int) -> str:
    """A key that is the same for layers with equal graphs and shapes."""
    layers = description["layers"]
    own = layers[layer]
    inputs = layers[layer - 1]["outputs"] if layer else description["input"]
    shapes = [[(entry.get("type"), entry.get("gradient"), entry["shape"]) for entry in own[kind]] for kind in ("outputs", "parameters", "statistics", "constants")]
    return json.dumps([own["graph"], inputs, shapes])


class LayerValues:
    """`sources`: [name] where the values of parameters are that have none. `unknown`: names of layers whose inputs could not be
    computed within `memory`, so that they are not among the layers."""

    def __init__(self, built: Assembled, described: Layers, traced: List[Traced], example: Tuple[torch.Tensor, torch.Tensor],
                 modules: ModuleStack, sources: Mapping[str, Stored], memory: MemoryLimit):
        self.unknown: List[str] = []
        self._package = Package(json.loads(json.dumps(built.package)), built.tensors)
        self._described = described
        self._traced = traced
        self._example = example
        self._modules = modules
        self._sources = sources
        self._memory = memory
        self._roots = [root for _, root in described.roots]

    def __iter__(self) -> Iterator[Valued]:
        description = self._package.description
        layers = description["layers"]
        all_run = not self._sources or sum(layer["flops_per_sample"] for layer in layers) <= SMALL_MODEL_FLOPS
        inputs: Optional[List[torch.Tensor]] = [samples(self._example[0], BATCHES[0])]
        outputs: Dict[str, Optional[List[torch.Tensor]]] = {}
        for k, (name, call) in enumerate(self._described.layers):
            key = distinct(description, k)
            if key in outputs and not all_run:
                inputs = outputs[key]
                continue
            if inputs is None:
                self.unknown.append(name)
            else:
                target = None if self._traced[k].target is None else samples(self._example[1], BATCHES[0])
                traced = self._traced[k]._replace(inputs=inputs, target=target)
                with self._weighted(k, call) as (call, package):
                    yield Valued(k, traced, call, package)
                    inputs = self._run(k, traced, call) if k + 1 < len(layers) else None
            if inputs is None and k + 1 < len(layers):
                inputs = self._made_up(layers[k]["outputs"])
            outputs[key] = inputs

    @contextlib.contextmanager
    def _weighted(self, layer: int, call: Call) -> Iterator[Tuple[Call, Package]]:
        """The layer's call and package with the values of its own weights."""
        described = self._package.description["layers"][layer]
        tensors: Dict[str, torch.Tensor] = {}
        values: Dict[int, torch.nn.Parameter] = {}
        for entry in (*described["parameters"], *described["constants"]):
            virtual = self._package.tensors[entry["name"]]
            if isinstance(virtual, Virtual):
                read = torch.nn.Parameter(self._sources[entry["name"]].values().to(virtual.dtype), requires_grad=virtual.requires_grad)
                tensors[entry["name"]] = values[id(virtual)] = read
        if not tensors:
            yield call, self._package
            return
        with with_values(self._roots, values):
            yield (call.with_values(values) if isinstance(call, Segment) else call,
                   self._package.computing(self._package.node_by, {**self._package.tensors, **tensors}))

    def _run(self, layer: int, traced: Traced, call: Call) -> Optional[List[torch.Tensor]]:
        """The layer's outputs in training, as the next one gets them."""
        if not self._memory.runs(layer, BATCHES[0]):
            return None
        self._modules.start(traced.name)
        for root in self._roots:
            root.train()
        with torch.no_grad():
            outputs, _ = eager.EagerLayer(call, traced.structure).run([x.clone() for x in traced.inputs])
        return handed_on(traced.name, outputs)

    @staticmethod
    def _made_up(outputs: List[Dict[str, Any]]) -> Optional[List[torch.Tensor]]:
        """In place of outputs that do not fit, if they may have any values: of mean 0 and deviation 1."""
        if any(entry["type"] != "float32" or entry.get("gradient") is False for entry in outputs):
            return None
        generator = torch.Generator().manual_seed(5)
        return [torch.randn([BATCHES[0], *entry["shape"]], generator=generator) for entry in outputs]
