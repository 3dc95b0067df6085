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
from .graph import Take
from .intercept import Intercept
from .layer_values import Valued
from .layers import Layers
from .losses import Loss
from .memory_limit import MemoryLimit
from .modules import ModuleStack
from .walk import Traced

SAMPLES, FEWEST = 5, 1
"""Batch sizes that are not traced; the smaller one where a layer is large."""

MANY, MOST_ELEMENTS = 33, 1 << 22
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

    def compare(self, valued: Valued) -> bool:
        """False if there is too little memory for the layer. Raises ExportError if a difference exceeds its tolerance."""
        description, k, layer = valued.package.description, valued.index, valued.traced
        graph = description["layers"][k]["graph"]
        count = self._memory.samples(k, (SAMPLES, FEWEST))
        if count == 0:
            return False
        limit = description["input_limit"]
        self._modules.start(layer.name)
        self._mode(training=False)
        kind = _Kind(k == 0, limit, k == 0 and _takes_packed(layer, valued.call, limit))
        inputs = _like(layer, kind, self._generator, count)
        target = None if layer.target is None else samples.like(layer.target, description["target_limit"], self._generator, count)
        if target is not None and target.is_floating_point():  # e.g. probabilities, which losses look at
            target = target.clamp(float(layer.target.min()), float(layer.target.max()))
        tested = _Layer(valued, self._loss, target)
        largest = max(x[0].numel() for x in layer.inputs)
        many = max(count, min(MANY, MOST_ELEMENTS // max(1, largest))) if graph not in self._seen and count == SAMPLES else count
        self._saw(tested.evaluation(_like(layer, kind, self._generator, many)))
        if target is not None and (count > FEWEST or not self._loss.is_known):
            tested.sums(inputs, target)
        self._mode(training=True)
        if graph not in self._seen:
            self._seen.add(graph)
            self._saw(tested.training(inputs, self._generator))
        return True

    def _saw(self, difference: float) -> None:
        self.largest_difference = max(self.largest_difference, difference)

    def _mode(self, training: bool) -> None:
        for root in self._roots:
            root.train(training)


class _Kind(NamedTuple):
    """How the inputs of a layer are generated."""

    is_data: bool
    """The layer is the first one, whose inputs are samples."""
    limit: int
    """Integers are below it."""
    is_packed: bool
    """Some integer inputs, such as a mask beside ids, keep the values of the example."""


def _takes_packed(layer: Traced, call: Any, limit: int) -> bool:
    """Whether the first layer raises for arbitrary integers below the limit. False if the example is constant, such as zeros."""
    if any(x.is_floating_point() or bool((x == x.flatten()[:1]).all()) for x in layer.inputs):
        return False
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad(), Intercept():
        try:
            call(tree_unflatten(_like(layer, _Kind(True, limit, False), generator, SAMPLES), layer.structure))
        except Exception:  # any that the model's code raises
            return True
    return False


def _like(layer: Traced, kind: _Kind, generator: torch.Generator, count: int) -> List[torch.Tensor]:
    """Inputs of `count` samples for a layer. Boundary tensors without a gradient, such as a mask, positions or a table, are
    repeated from the example: other values may be invalid."""
    made = [samples.like(x, kind.limit, generator, count, layer.takes_whole_numbers) if kind.is_data or gradient
            else samples.of_these(x, generator, count) for x, gradient in zip(layer.inputs, layer.gradients)]
    if kind.is_data:
        return [samples.packed(x, like, generator) for x, like in zip(layer.inputs, made)] if kind.is_packed else made
    return [like.abs() if like.is_floating_point() and bool((x >= 0).all()) else like for like, x in zip(made, layer.inputs)]


class _Layer:
    def __init__(self, valued: Valued, loss: Loss, target: Optional[torch.Tensor]):
        self._package = valued.package
        self._index = valued.index
        self._traced = valued.traced
        self._name = self._traced.name
        self._call = valued.call
        self._structure = self._traced.structure
        self._loss = None if target is None else loss
        self._target = target
        self._eager = eager.EagerLayer(self._call, self._structure, self._loss, target)

    def evaluation(self, inputs: List[torch.Tensor]) -> float:
        with torch.no_grad():
            outputs, _ = self._eager._replace(loss=None).run([x.clone() for x in inputs])
        found = self._package.forward(self._index, inputs, None, "score" if self._loss else "evaluate")
        return max(self._compare(f"output {k} in evaluation", found[Take("output", k)], right) for k, right in enumerate(outputs))

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
                raise ExportError(f"the {what} of {target.size(0)} samples is {float(whole):.6g}, and {float(sum_of_parts):.6g} where it is taken of two "
                                  "parts of them and added up", "Return the sum over the samples, not their mean, and how many terms it has; "
                                  "what a sample adds must not depend on others", self._name)

    def training(self, inputs: List[torch.Tensor], generator: torch.Generator) -> float:
        leaves = [x.detach().requires_grad_(gradient) for x, gradient in zip(inputs, self._traced.gradients)]
        outputs, observed = self._eager.run([x.clone() for x in leaves])
        grads = [] if self._loss else [torch.randn(output.shape, generator=generator) if gradient else None
                                       for output, gradient in zip(outputs, self._traced.train.gradients)]
        names = [entry["name"] for entry in self._package.description["layers"][self._index]["parameters"]]
        own = [k for k, leaf in enumerate(leaves) if leaf.requires_grad]
        wanted = [leaves[k] for k in own] + [self._package.tensors[name] for name in names]
        right = eager.gradients(outputs, [None if grad is None else grad.clone() for grad in grads], wanted)  # hooks may write to them
        outputs = [output.detach() for output in outputs]  # without autograd's graph, before the package runs

        found = self._package.forward(self._index, inputs, self._target)
        role = "loss" if self._loss else "output"
        worst = max(self._compare(f"{role} {k}", found[Take(role, k)], output) for k, output in enumerate(outputs))
        for k, seen in enumerate(observed):
            worst = max(worst, self._compare(f"update of statistic {k}", found[Take("observed", k)], seen.value))
        saved = {take: tensor for take, tensor in found.items() if take.role == "saved"}
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
            raise ExportError(f"{what} has shape {tuple(found.shape)} in the package and {tuple(right.shape)} in PyTorch", _REMEDY, self._name)
        found, right = found.detach(), right.detach()
        if torch.equal(found, right):
            return 0.0
        difference = float((found - right).abs().max()) / (max(float(right.abs().max()), least) or 1.0)
        if not difference <= LARGEST_DIFFERENCE:
            raise ExportError(f"{what} differs from PyTorch's by {difference:.2g} of its largest element, on other data than was "
                              "traced", _REMEDY, self._name)
        return difference


_REMEDY = ("Look for values that leave tensors (tolist, numpy), for state that is kept between calls, and for what is not the same "
           "for any batch")
