"""Compares a package with its model before it is written.

Each layer is compared alone, at a batch size and with values that were not traced. This needs the memory of one layer
and identifies the wrong one. For each distinct graph, the backward of one layer is compared as well.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Set

import torch
from torch.utils._pytree import tree_map, tree_unflatten

from . import eager, samples
from .errors import ExportError
from .graph import Role
from .intercept import Intercept
from .layer_values import LayerValues
from .layers import Layers
from .losses import Loss
from .memory_limit import MemoryLimit
from .modules import ModuleStack
from .named import limits_of
from .outputs import listed
from .trace_layers import TracedLayer

SAMPLES, MIN_SAMPLES = 5, 1
"""Batch sizes that are not traced; the smaller one for layers that need much memory."""

LARGE_BATCH, MAX_ELEMENTS = 33, 1 << 22
"""A larger one for evaluation, to find differences above some size; reduced if its inputs would be too large."""

LARGEST_DIFFERENCE = 1e-4
"""Tolerance relative to the largest element. Equal operations give equal bits; decompositions round differently."""

_LARGEST_RESIDUE = 1e-3
"""Tolerance of a sum in another order, relative to it or to 1; a mean is half the sum of two."""


class EagerComparison:
    """Compares layers one after another: the first of those with equal graphs in evaluation and training, others in evaluation."""

    def __init__(self, described: Layers, loss: Loss, modules: ModuleStack, memory: MemoryLimit):
        self.largest_difference = 0.0
        """The largest relative difference so far, over the results of forward, backward and evaluation."""
        self._roots = [root for _, root in described.roots]
        self._loss = loss
        self._modules = modules
        self._memory = memory
        self._generator = torch.Generator().manual_seed(1)
        self._seen: Set[int] = set()

    def compare(self, values: LayerValues) -> bool:
        """False if there is too little memory for the layer. Raises ExportError if a difference exceeds its tolerance."""
        description, k, layer = values.package.description, values.index, values.traced
        graph = description["layers"][k]["graph"]
        count = self._memory.samples(k, (SAMPLES, MIN_SAMPLES))
        if count == 0:
            return False
        limits = limits_of(description)
        self._modules.start(layer.name)
        self._mode(training=False)
        named = "inputs" in description
        kind = _InputSpec(k == 0, limits, named, k == 0 and not named and _needs_packed(layer, values.call, limits))
        inputs = _inputs(layer, kind, self._generator, count)
        target = None if layer.target is None else samples.like(layer.target, description["target_limit"], self._generator, count)
        if target is not None and target.is_floating_point():  # e.g. probabilities, whose range losses check
            target = target.clamp(float(layer.target.min()), float(layer.target.max()))
        tested = _Layer(values, self._loss, target)
        largest = max(x[0].numel() for x in layer.inputs)
        is_first = graph not in self._seen
        many = max(count, min(LARGE_BATCH, MAX_ELEMENTS // max(1, largest))) if is_first and count == SAMPLES else count
        self._add(tested.evaluation(_inputs(layer, kind, self._generator, many)))
        if target is not None and (count > MIN_SAMPLES or not self._loss.is_known):
            tested.sums(inputs, target)
        self._mode(training=True)
        if is_first:
            self._seen.add(graph)
            self._add(tested.training(inputs, self._generator))
        return True

    def _add(self, difference: float) -> None:
        self.largest_difference = max(self.largest_difference, difference)

    def _mode(self, training: bool) -> None:
        for root in self._roots:
            root.train(training)


class _InputSpec(NamedTuple):
    """How the inputs of a layer are generated."""

    is_data: bool
    """The layer is the first one, whose inputs are samples."""
    limits: List[Optional[int]]
    """Integers of the data are below these."""
    is_named: bool
    """The data's inputs have names. Then masks are inputs of their own, and keep the values of the example."""
    is_packed: bool
    """Some integer inputs, such as a mask packed with ids, keep values of the example."""


def _needs_packed(layer: TracedLayer, call: Any, limits: List[Optional[int]]) -> bool:
    """Whether the first layer raises for arbitrary integers below the limit. False if the example is constant, such as zeros."""
    if any(x.is_floating_point() or bool((x == x.flatten()[:1]).all()) for x in layer.inputs):
        return False
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad(), Intercept():
        try:
            call(tree_unflatten(_inputs(layer, _InputSpec(True, limits, False, False), generator, SAMPLES), layer.structure))
        except Exception:  # any that the model's code raises
            return True
    return False


def _inputs(layer: TracedLayer, kind: _InputSpec, generator: torch.Generator, count: int) -> List[torch.Tensor]:
    """Inputs of `count` samples for a layer. Boundary tensors without a gradient, such as a mask, positions or a table, are
    repeated from the example: other values may be invalid."""
    limits = kind.limits if kind.is_data else [None] * len(layer.inputs)
    made = [samples.resampled(x, generator, count) if kind.is_data and kind.is_named and samples.keeps_values(x, limit)
            else samples.like(x, limit or 0, generator, count, layer.takes_whole_numbers) if kind.is_data or gradient
            else samples.resampled(x, generator, count) for x, limit, gradient in zip(layer.inputs, limits, layer.gradients)]
    if kind.is_data:
        return [samples.packed(x, like, generator) for x, like in zip(layer.inputs, made)] if kind.is_packed else made
    return [like.abs() if like.is_floating_point() and bool((x >= 0).all()) else like for like, x in zip(made, layer.inputs)]


class _Layer:
    def __init__(self, values: LayerValues, loss: Loss, target: Optional[torch.Tensor]):
        self._package = values.package
        self._index = values.index
        self._traced = values.traced
        self._name = self._traced.name
        self._call = values.call
        self._structure = self._traced.structure
        self._loss = None if target is None else loss
        self._target = target
        self._eager = eager.EagerLayer(self._call, self._structure, self._loss, target)

    def evaluation(self, inputs: List[torch.Tensor]) -> float:
        with torch.no_grad():
            outputs, _ = self._eager._replace(loss=None).run([x.clone() for x in inputs])
        found = self._package.forward(self._index, inputs, None, "score" if self._loss else "evaluate")
        return max(self._compare(f"output {k} in evaluation", found[Role("output", k)], right) for k, right in enumerate(outputs))

    def sums(self, inputs: List[torch.Tensor], target: torch.Tensor) -> None:
        """Refuses a loss that is not a sum over the samples, such as their mean: Motley adds the losses of micro-batches."""
        assert self._loss is not None
        if target.size(0) < 2:  # the same sample twice
            inputs, target = [torch.cat([x, x]) for x in inputs], torch.cat([target, target])
        first = target.size(0) // 2
        with torch.no_grad(), Intercept():
            output = self._call(tree_unflatten([x.clone() for x in inputs], self._structure))
            total, count = self._loss.terms(output, target)
            parts = [self._loss.terms(tree_map(lambda x: x[part] if isinstance(x, torch.Tensor) else x, output), target[part])
                     for part in (slice(0, first), slice(first, None))]
        for what, whole, sum_of_parts in (("loss", total, sum(part[0] for part in parts)), ("count", count, sum(part[1] for part in parts))):
            if not abs(float(whole) - float(sum_of_parts)) <= _LARGEST_RESIDUE * max(abs(float(whole)), 1.0):
                raise ExportError(f"the {what} of {target.size(0)} samples is {float(whole):.6g}, but {float(sum_of_parts):.6g} as "
                                  "the sum over two parts of them", "Return the sum over the samples, not their mean, and the number "
                                  "of its terms; the term of a sample must not depend on other samples", self._name)

    def training(self, inputs: List[torch.Tensor], generator: torch.Generator) -> float:
        leaves = [x.detach().requires_grad_(gradient) for x, gradient in zip(inputs, self._traced.gradients)]
        outputs, observed = self._eager.run([x.clone() for x in leaves])
        grads = [] if self._loss else [torch.randn(output.shape, generator=generator) if gradient else None
                                       for output, gradient in zip(outputs, self._traced.train.gradients)]
        names = [entry["name"] for entry in self._package.description["layers"][self._index]["parameters"]]
        own = [k for k, leaf in enumerate(leaves) if leaf.requires_grad]
        wanted = [leaves[k] for k in own] + [self._package.tensors[name] for name in names]
        right = eager.gradients(outputs, [None if grad is None else grad.clone() for grad in grads], wanted)  # hooks may write to them
        outputs = [output.detach() for output in outputs]  # releases autograd's graph before the package runs

        found = self._package.forward(self._index, inputs, self._target)
        kind = "loss" if self._loss else "output"
        worst = max(self._compare(f"{kind} {k}", found[Role(kind, k)], output) for k, output in enumerate(outputs))
        for k, seen in enumerate(observed):
            worst = max(worst, self._compare(f"update of statistic {k}", found[Role("observed", k)], seen.value))
        saved = {role: tensor for role, tensor in found.items() if role.kind == "saved"}
        del found
        input_grads, gradients = self._package.backward(self._index, saved, grads, inputs[0].size(0))
        whats = [f"the gradient of input {k}" for k in own]
        noise = 1e-4 * max((float(g.abs().max()) for g in right if g is not None), default=0.0)  # e.g. of a bias before BatchNorm
        for what, given, expected in zip(whats + [f"the gradient of {name}" for name in names],
                                         [input_grads[k] for k in own] + [gradients[name] for name in names], right):
            worst = max(worst, self._compare(what, given, torch.zeros_like(given) if expected is None else expected,
                                             noise))
        return worst

    def _compare(self, what: str, found: torch.Tensor, right: torch.Tensor, least: float = 0.0) -> float:
        """Their difference relative to the largest element, or to `least` if that is larger."""
        if found.shape != right.shape:
            raise ExportError(f"{what} has shape {tuple(found.shape)} in the package, but {tuple(right.shape)} in PyTorch", _REMEDY, self._name)
        found, right = found.detach(), right.detach()
        if torch.equal(found, right):
            return 0.0
        difference = float((found - right).abs().max()) / (max(float(right.abs().max()), least) or 1.0)
        if not difference <= LARGEST_DIFFERENCE:
            if difference != difference:
                self._refuse_not_finite(what, right)
            raise ExportError(f"{what} differs from PyTorch's by {difference:.2g} of its largest element, on data that was not "
                              "traced", _REMEDY, self._name)
        return difference


    def _refuse_not_finite(self, what: str, right: torch.Tensor) -> None:
        """Refuses NaN and infinity that PyTorch computes too, and names the weights that contain them."""
        described = self._package.description["layers"][self._index]
        named = {entry["name"]: kind for kind in ("parameters", "statistics", "constants") for entry in described[kind]}
        found = [name for name, kind in named.items() for tensor in [self._package.tensors[name]] if tensor.is_floating_point()
                 and not bool((~tensor.isnan() if kind == "constants" else tensor.isfinite()).all())]
        if found:
            raise ExportError(f"{listed(found)} {'has' if len(found) == 1 else 'have'} NaN or infinity, and so has {what}",
                              "Restore or initialize the values", self._name)
        if not bool(right.isfinite().all()):
            raise ExportError(f"{what} has NaN or infinity in PyTorch, on data that was not traced",
                              "Make it finite for all values of the example's kind, e.g. by a clamp before a division or a logarithm",
                              self._name)


_REMEDY = ("Check for tensor values used in Python (tolist, numpy), for state that is kept between calls, and for computations "
           "that depend on the batch size")
