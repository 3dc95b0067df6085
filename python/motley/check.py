"""Compares a package with its model before it is written.

Each layer is compared alone, at a batch size and with values that were not traced. This needs the memory of one layer
and identifies the wrong one. For each distinct graph, the backward of one layer is compared as well.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

import torch
from torch.utils._pytree import tree_map, tree_unflatten

from . import eager, samples
from .errors import ExportError
from .graph import Role
from .intercept import Intercept
from .interpret import Package
from .layers import Layers
from .losses import Loss
from .modules import ModuleStack
from .trace_layers import TracedLayer

SAMPLES = 5
"""A batch size that is not traced."""

LARGE_BATCH, MAX_ELEMENTS = 33, 1 << 22
"""A larger one for evaluation, to find differences above some size; reduced if its inputs would be too large."""

LARGEST_DIFFERENCE = 1e-4
"""Tolerance relative to the largest element. Equal operations give equal bits; decompositions round differently."""

_LARGEST_RESIDUE = 1e-3
"""Tolerance of a sum in another order, relative to it or to 1; a mean is half the sum of two."""


def against_eager(package: Package, described: Layers, loss: Loss, traced: List[TracedLayer], modules: ModuleStack) -> float:
    """The largest relative difference between `package` and the modules, over the results of each distinct layer in forward,
    backward and evaluation. Raises ExportError if one exceeds its tolerance."""
    generator = torch.Generator().manual_seed(1)
    limit = package.description["input_limit"]
    worst = 0.0
    seen = set()
    for k, (layer, (name, call)) in enumerate(zip(traced, described.layers)):
        graph = package.description["layers"][k]["graph"]
        modules.start(name)
        for _, root in described.roots:
            root.eval()
        kind = _InputSpec(k == 0, limit, k == 0 and _needs_packed(layer, call, limit))
        inputs = _inputs(layer, kind, generator, SAMPLES)
        target = None if layer.target is None else samples.like(layer.target, package.description["target_limit"], generator, SAMPLES)
        if target is not None and target.is_floating_point():  # e.g. probabilities, whose range losses check
            target = target.clamp(float(layer.target.min()), float(layer.target.max()))
        tested = _Layer(package, k, call, layer, loss, target)
        largest = max(x[0].numel() for x in layer.inputs)
        many = max(SAMPLES, min(LARGE_BATCH, MAX_ELEMENTS // max(1, largest))) if graph not in seen else SAMPLES
        worst = max(worst, tested.evaluation(_inputs(layer, kind, generator, many)))
        if target is not None:
            tested.sums(inputs, target)
        for _, root in described.roots:
            root.train()
        if graph not in seen:
            seen.add(graph)
            worst = max(worst, tested.training(inputs, generator))
    return worst


class _InputSpec(NamedTuple):
    """How the inputs of a layer are generated."""

    is_data: bool
    """The layer is the first one, whose inputs are samples."""
    limit: int
    """Integers are below it."""
    is_packed: bool
    """Some integer inputs, such as a mask packed with ids, keep values of the example."""


def _needs_packed(layer: TracedLayer, call: Any, limit: int) -> bool:
    """Whether the first layer raises for arbitrary integers below the limit. False if the example is constant, such as zeros."""
    if any(x.is_floating_point() or bool((x == x.flatten()[:1]).all()) for x in layer.inputs):
        return False
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad(), Intercept():
        try:
            call(tree_unflatten(_inputs(layer, _InputSpec(True, limit, False), generator, SAMPLES), layer.structure))
        except Exception:  # any that the model's code raises
            return True
    return False


def _inputs(layer: TracedLayer, kind: _InputSpec, generator: torch.Generator, count: int) -> List[torch.Tensor]:
    """Inputs of `count` samples for a layer. Boundary tensors without a gradient, such as a mask, positions or a table, are
    repeated from the example: other values may be invalid."""
    made = [samples.like(x, kind.limit, generator, count, layer.takes_whole_numbers) if kind.is_data or gradient
            else samples.resampled(x, generator, count) for x, gradient in zip(layer.inputs, layer.gradients)]
    if kind.is_data:
        return [samples.packed(x, like, generator) for x, like in zip(layer.inputs, made)] if kind.is_packed else made
    return [like.abs() if like.is_floating_point() and bool((x >= 0).all()) else like for like, x in zip(made, layer.inputs)]


class _Layer:
    def __init__(self, package: Package, index: int, call: Any, traced: TracedLayer, loss: Loss, target: Optional[torch.Tensor]):
        self._package = package
        self._index = index
        self._name = traced.name
        self._call = call
        self._traced = traced
        self._structure = traced.structure
        self._loss = None if target is None else loss
        self._target = target
        self._eager = eager.EagerLayer(call, traced.structure, self._loss, target)

    def evaluation(self, inputs: List[torch.Tensor]) -> float:
        with torch.no_grad():
            outputs, _ = self._eager._replace(loss=None).run([x.clone() for x in inputs])
        found = self._package.forward(self._index, inputs, None, "score" if self._loss else "evaluate")
        return max(self._compare(f"output {k} in evaluation", found[Role("output", k)], right) for k, right in enumerate(outputs))

    def sums(self, inputs: List[torch.Tensor], target: torch.Tensor) -> None:
        """Refuses a loss that is not a sum over the samples, such as their mean: Motley adds the losses of micro-batches."""
        assert self._loss is not None
        with torch.no_grad(), Intercept():
            output = self._call(tree_unflatten([x.clone() for x in inputs], self._structure))
            total, count = self._loss.terms(output, target)
            parts = [self._loss.terms(tree_map(lambda x: x[part] if isinstance(x, torch.Tensor) else x, output), target[part])
                     for part in (slice(0, 2), slice(2, None))]
        for what, whole, sum_of_parts in (("loss", total, sum(part[0] for part in parts)), ("count", count, sum(part[1] for part in parts))):
            if not abs(float(whole) - float(sum_of_parts)) <= _LARGEST_RESIDUE * max(abs(float(whole)), 1.0):
                raise ExportError(f"the {what} of {SAMPLES} samples is {float(whole):.6g}, but {float(sum_of_parts):.6g} as the "
                                  "sum over two parts of them", "Return the sum over the samples, not their mean, and the number "
                                  "of its terms; the term of a sample must not depend on other samples", self._name)

    def training(self, inputs: List[torch.Tensor], generator: torch.Generator) -> float:
        leaves = [x.detach().requires_grad_(gradient) for x, gradient in zip(inputs, self._traced.gradients)]
        outputs, observed = self._eager.run([x.clone() for x in leaves])
        found = self._package.forward(self._index, inputs, self._target)
        role = "loss" if self._loss else "output"
        worst = max(self._compare(f"{role} {k}", found[Role(role, k)], right) for k, right in enumerate(outputs))
        for k, seen in enumerate(observed):
            worst = max(worst, self._compare(f"update of statistic {k}", found[Role("observed", k)], seen.value))

        grads = [] if self._loss else [torch.randn(output.shape, generator=generator) if gradient else None
                                       for output, gradient in zip(outputs, self._traced.train.gradients)]
        names = [entry["name"] for entry in self._package.description["layers"][self._index]["parameters"]]
        own = [k for k, leaf in enumerate(leaves) if leaf.requires_grad]
        wanted = [leaves[k] for k in own] + [self._package.tensors[name] for name in names]
        right = eager.gradients(outputs, [None if grad is None else grad.clone() for grad in grads], wanted)  # hooks may write to them
        saved = {role: tensor for role, tensor in found.items() if role.kind == "saved"}
        input_grads, gradients = self._package.backward(self._index, saved, grads, SAMPLES)
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
            raise ExportError(f"{what} differs from PyTorch's by {difference:.2g} of its largest element, on data that was not "
                              "traced", _REMEDY, self._name)
        return difference


_REMEDY = ("Check for tensor values used in Python (tolist, numpy), for state that is kept between calls, and for computations "
           "that depend on the batch size")
