"""The layers of a traced model with values, one after another: their inputs, and weights if the trace had none.

The inputs of a layer are the outputs of the previous layer for two samples of the example. Weights in files are read for one
layer at a time, and only for the first of equal layers: its outputs replace those of the others.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import torch

from . import eager
from .assemble import Assembled
from .empty_model import with_values
from .interpret import Package
from .layers import Call, Layers
from .memory_limit import MemoryLimit
from .modules import ModuleStack
from .named import Input
from .pieces import return_memory
from .split.segment import Segment
from .trace_layers import BATCHES, TracedLayer, first_inputs, next_inputs, samples
from .virtual import Virtual
from .weights import Stored

SMALL_MODEL_FLOPS = 1e12
"""FLOPs of a forward of one sample. Up to this number, all layers compute the inputs of the next one, not only the first of equal
layers, unless only some layers are compared."""


class LayerValues(NamedTuple):
    """Layer `index`: `traced` has its inputs and target for two samples, `call` and `package` have its weights."""

    index: int
    traced: TracedLayer
    call: Call
    package: Package


def layer_key(description: Mapping[str, Any], layer: int) -> str:
    """A key that is equal for layers with equal graphs and shapes."""
    layers = description["layers"]
    own = layers[layer]
    inputs = layers[layer - 1]["outputs"] if layer else description.get("inputs") or description["input"]
    shapes = [[(entry.get("type"), entry.get("gradient"), entry["shape"]) for entry in own[kind]]
              for kind in ("outputs", "parameters", "statistics", "constants")]
    return json.dumps([own["graph"], inputs, shapes])


class LayerIterator:
    """Iterates over the layers that can be compared. `sources`: [name] the stored values of parameters that have none.
    `skipped`: the names of layers that could not be compared within `memory`, or their inputs not be computed; they are not iterated
    over. `only`: names of the layers to iterate over, by default all."""

    def __init__(self, built: Assembled, described: Layers, traced: List[TracedLayer], example: Tuple[Input, torch.Tensor],
                 modules: ModuleStack, sources: Mapping[str, Stored], memory: MemoryLimit, only: Optional[Collection[str]] = None):
        self.skipped: List[str] = []
        self._package = Package(json.loads(json.dumps(built.package)), built.tensors)
        self._described = described
        self._traced = traced
        self._example = example
        self._modules = modules
        self._sources = sources
        self._memory = memory
        self._only = only
        self._roots = [root for _, root in described.roots]

    def __iter__(self) -> Iterator[LayerValues]:
        description = self._package.description
        layers = description["layers"]
        flops = sum(layer["flops_per_sample"] for layer in layers)
        all_run = not self._sources or self._only is None and flops <= SMALL_MODEL_FLOPS
        inputs: Optional[List[torch.Tensor]] = first_inputs(self._example[0])[0]
        keys = [layer_key(description, k) for k in range(len(layers))]
        runs = [all_run or key not in keys[:k] for k, key in enumerate(keys)]
        outputs: Dict[str, Optional[List[torch.Tensor]]] = {}  # of layers that are equal to a later one before one that runs
        for k, (name, call) in enumerate(self._described.layers):
            needs_outputs = k + 1 < len(layers) and runs[k + 1]
            if not runs[k]:
                inputs = outputs[keys[k]] if needs_outputs else None
                continue
            is_wanted = self._only is None or name in self._only
            is_compared = is_wanted and inputs is not None and self._memory.allows(k)
            if is_wanted and not is_compared:
                self.skipped.append(name)
            equal = [j for j in range(k + 1, len(keys) - 1) if keys[j] == keys[k] and not runs[j] and runs[j + 1]]
            needs_outputs = needs_outputs or bool(equal)
            is_run = needs_outputs and inputs is not None and self._memory.allows_forward(k, BATCHES[0])
            found: Optional[List[torch.Tensor]] = None
            if inputs is not None and (is_compared or is_run):
                target = None if self._traced[k].target is None else samples(self._example[1], BATCHES[0])
                traced = self._traced[k]._replace(inputs=inputs, target=target)
                with self._with_weights(k, call) as (weighted_call, package):
                    if is_compared:
                        yield LayerValues(k, traced, weighted_call, package)
                    found = self._run(traced, weighted_call) if is_run else None
                del traced, weighted_call, package
                if self._memory.is_large(k, 1):
                    return_memory()
            if found is None and needs_outputs:
                found = self._random_inputs(layers[k]["outputs"])
            if equal:
                outputs[keys[k]] = found
            inputs = found

    @contextlib.contextmanager
    def _with_weights(self, layer: int, call: Call) -> Iterator[Tuple[Call, Package]]:
        """The layer's call and package with the values of its own weights."""
        described = self._package.description["layers"][layer]
        tensors: Dict[str, torch.Tensor] = {}
        values: Dict[int, torch.nn.Parameter] = {}
        for entry in (*described["parameters"], *described["constants"]):
            virtual = self._package.tensors[entry["name"]]
            if isinstance(virtual, Virtual):
                stored = self._sources[entry["name"]].values(virtual.dtype)
                read = torch.nn.Parameter(stored, requires_grad=virtual.requires_grad)
                tensors[entry["name"]] = values[id(virtual)] = read
        if not tensors:
            yield call, self._package
            return
        with with_values(self._roots, values):
            yield (call.with_values(values) if isinstance(call, Segment) else call,
                   self._package.computing(self._package.node_by, {**self._package.tensors, **tensors}))

    def _run(self, traced: TracedLayer, call: Call) -> List[torch.Tensor]:
        """The inputs of the next layer, in training."""
        self._modules.start(traced.name)
        for root in self._roots:
            root.train()
        with torch.no_grad():
            outputs, _ = eager.EagerLayer(call, traced.structure).run([x.clone() for x in traced.inputs])
        return next_inputs(traced.name, outputs)

    @staticmethod
    def _random_inputs(outputs: List[Dict[str, Any]]) -> Optional[List[torch.Tensor]]:
        """Random numbers of mean 0 and deviation 1 instead of a layer's outputs; None if the next layer may require others."""
        if any(entry["type"] != "float32" or entry.get("gradient") is False for entry in outputs):
            return None
        generator = torch.Generator().manual_seed(5)
        return [torch.randn([BATCHES[0], *entry["shape"]], generator=generator) for entry in outputs]
