"""Traces the layers of a model from the first to the last.

A layer is run with two samples. If its operations equal those of an earlier layer, they are assumed equal for any batch.
Otherwise it is run with further batch sizes, to find the sizes that depend on the batch.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import TreeSpec, tree_flatten

from .errors import ExportError
from .graph import Node, Shape, uses
from .graph_json import TYPES, WIDENED
from .layers import Layers
from .losses import Loss
from .merge import merge
from .named import Input, each
from .simplify import simplify
from .trace import Run, Trace, Tracer
from .virtual import Virtual
from .weights import content_hash

BATCHES = (2, 3, 4)
"""The traced batch sizes: just large enough to detect linear sizes, because all of a layer's results stay in memory."""


class TracedLayer(NamedTuple):
    """A layer, recorded and merged. Only the last layer has `score` and `target`."""

    name: str
    train: Trace
    evaluate: Trace
    score: Optional[Trace]
    inputs: List[torch.Tensor]
    """Its inputs for two samples; `structure` is that of its argument."""
    structure: TreeSpec
    gradients: Tuple[bool, ...]
    """For each input, whether the layer returns its gradient."""
    target: Optional[torch.Tensor]

    @property
    def takes_whole_numbers(self) -> bool:
        """Whether the layer converts floats to integers, such as ids that are packed with floats."""
        recorder = self.train.recorder
        return any(node.op == "aten::_to_copy" and recorder.shapes[uses(node)[0]].dtype.is_floating_point
                   and not recorder.shapes[node.results[0]].dtype.is_floating_point for node in recorder.nodes)


def samples(tensor: torch.Tensor, count: int) -> torch.Tensor:
    """`count` samples of a batch, which is repeated if it has fewer."""
    return tensor[[k % tensor.size(0) for k in range(count)]].detach().contiguous()


def first_inputs(input: Input) -> Tuple[List[torch.Tensor], TreeSpec]:
    """The first layer's inputs for two samples of `input`, and the structure of its argument."""
    return tree_flatten(each(lambda tensor: samples(tensor, BATCHES[0]), input))


def trace_all(described: Layers, loss: Loss, example: Tuple[Input, torch.Tensor], tracer: Tracer) -> List[TracedLayer]:
    """Traces the layers of `described`: the first gets the example's inputs, the last compares with its target."""
    merged = _MergedTraces()
    inputs, structure = first_inputs(example[0])
    gradients: Tuple[bool, ...] = (False,) * len(inputs)
    traced: List[TracedLayer] = []
    twice = False  # outputs of an earlier layer share memory, and later layers may pass them on
    for k, (name, call) in enumerate(described.layers):
        last = k + 1 == len(described.layers)
        run = Run(name, call, inputs, structure, gradients, samples(example[1], BATCHES[0]) if last else None, loss if last else None)
        for _, root in described.roots:
            root.train()
        train, outputs = merged.trace("train", tracer.train, run)
        if twice and train.recorder.written:
            raise ExportError("the layer writes to its input, but an earlier layer returned the same memory twice",
                              "Use the operation without the underscore, or return a clone", name)
        twice = twice or len({memory_of(output) for output in outputs}) < len(outputs)
        for _, root in described.roots:
            root.eval()
        evaluate, evaluated = merged.trace("evaluate", tracer.evaluate, run)
        evaluate_outputs = [tuple(output.shape) for output in evaluated]
        if not last and (evaluate.structure != train.structure or evaluate_outputs != [tuple(o.shape) for o in outputs]):
            raise ExportError("the layer returns other outputs in evaluation than in training",
                              "Return the same outputs in both modes; move auxiliary outputs of training to a separate "
                              "model", name)
        score = merged.trace("score", tracer.evaluate, run._replace(target=None, loss=None))[0] if last else None
        traced.append(TracedLayer(name, train, evaluate, score, inputs, structure, gradients, run.target))
        if not last:
            assert train.structure is not None
            inputs, structure, gradients = next_inputs(name, outputs), train.structure, train.gradients
    return traced


def memory_of(tensor: torch.Tensor) -> int:
    """The address of its storage, or the number of a `Virtual`'s memory, which views of one tensor share."""
    if isinstance(tensor, Virtual):
        return tensor.memory
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


class _MergedTraces:
    def __init__(self) -> None:
        self._constants: Dict[str, torch.Tensor] = {}  # [hash of the content] the first of equal constants
        self._merged: Dict[str, Tuple[List[Node], Dict[int, Shape]]] = {}  # [recording with two samples] recording for any batch

    def trace(self, kind: str, tracer: Callable[[Run], Trace], run: Run) -> Tuple[Trace, List[torch.Tensor]]:
        """The recording of a layer for any batch, and its outputs for two samples."""
        trace = tracer(run)
        outputs = [output.detach() for output in trace.outputs]
        key = kind + _key(trace)
        if key not in self._merged:
            traces = [trace]
            for size in BATCHES[1:]:
                traces.append(tracer(run._replace(inputs=[samples(x, size) for x in run.inputs],
                                                  target=None if run.target is None else samples(run.target, size))))
                traces[-1].release()
            merge(run.name, traces, BATCHES)
            self._merged[key] = ([dataclasses.replace(node) for node in trace.recorder.nodes], dict(trace.recorder.shapes))
        else:
            nodes, shapes = self._merged[key]
            trace.recorder.nodes = [dataclasses.replace(node, line=own.line, module=own.module)
                                    for node, own in zip(nodes, trace.recorder.nodes)]
            trace.recorder.shapes = dict(shapes)
        trace.release()
        simplify(trace)
        for value, tensor in trace.recorder.constants.items():
            if value not in trace.recorder.names:
                trace.recorder.constants[value] = self._constants.setdefault(content_hash(tensor), tensor)
        return trace, outputs


def _key(trace: Trace) -> str:
    recorder = trace.recorder
    nodes = [(node.op, node.args, node.kwargs, node.results, node.backward) for node in recorder.nodes]
    text = repr((nodes, recorder.roles, recorder.shapes, trace.results, trace.structure))
    return hashlib.sha256(text.encode()).hexdigest()


def next_inputs(name: str, outputs: List[torch.Tensor]) -> List[torch.Tensor]:
    """The inputs of the layer after `name`, whose outputs for two samples are `outputs`."""
    for k, tensor in enumerate(outputs):
        if WIDENED.get(tensor.dtype, tensor.dtype) not in TYPES:
            raise ExportError(f"output {k} of the layer is {str(tensor.dtype)[6:]}; outputs may be float32, int64 or bool",
                              "Compute it in the layer that uses it, or join the two layers", name)
        if tensor.dim() == 0 or tensor.size(0) != BATCHES[0]:
            raise ExportError(f"output {k} of the layer has shape {tuple(tensor.shape)} for {BATCHES[0]} samples",
                              "Return tensors whose first dimension is that of the samples", name)
    return [tensor.to(WIDENED.get(tensor.dtype, tensor.dtype)).contiguous() for tensor in outputs]
