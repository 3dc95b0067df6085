"""Compares a package with its model before it is written.

Each layer is compared alone, at a batch size and with values that were not traced. This needs the memory of one layer
and identifies the wrong one. For each distinct graph, the backward of one layer is compared as well.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.utils._pytree import tree_map, tree_unflatten

from . import eager, pieces, samples
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

    def __init__(self, described: Layers, loss: Loss, modules: ModuleStack, memory: MemoryLimit, folder: Optional[str] = None):
        """`folder`: for a temporary file with large gradients."""
        self._folder = folder
        self.largest_difference = 0.0
        """The largest relative difference so far, over the results of forward, backward and evaluation."""
        self._roots = [root for _, root in described.roots]
        self._loss = loss
        self._modules = modules
        self._memory = memory
        self._generator = torch.Generator().manual_seed(1)
        self._seen: Set[int] = set()

    def compare(self, values: LayerValues) -> None:
        """Raises ExportError if a difference exceeds its tolerance."""
        description, k, layer = values.package.description, values.index, values.traced
        graph = description["layers"][k]["graph"]
        count = self._memory.samples(k, (SAMPLES, MIN_SAMPLES))
        limits = limits_of(description)
        self._modules.start(layer.name)
        self._mode(training=False)
        named = "inputs" in description
        kind = _InputSpec(k == 0, limits, named, k == 0 and not named and _needs_packed(layer, values.call, limits, count))
        inputs = _inputs(layer, kind, self._generator, count)
        target = None if layer.target is None else samples.like(layer.target, description["target_limit"], self._generator, count)
        if target is not None and target.is_floating_point():  # e.g. probabilities, whose range losses check
            target = target.clamp(float(layer.target.min()), float(layer.target.max()))
        tested = _Layer(values, self._loss, target, self._folder)
        largest = max(x[0].numel() for x in layer.inputs)
        is_first = graph not in self._seen
        many = max(count, min(LARGE_BATCH, MAX_ELEMENTS // max(1, largest))) if is_first and count == SAMPLES else count
        while many > count and not self._memory.allows_evaluation(k, many):
            many = max(count, many // 2)
        self._add(tested.evaluation(_inputs(layer, kind, self._generator, many)))
        if target is not None and (count > MIN_SAMPLES or not self._loss.is_known):
            tested.sums(inputs, target)
        self._mode(training=True)
        if is_first:
            self._seen.add(graph)
            self._add(tested.training(inputs, self._generator))

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


def _needs_packed(layer: TracedLayer, call: Any, limits: List[Optional[int]], count: int) -> bool:
    """Whether the first layer raises for arbitrary integers below the limit. False if the example is constant, such as zeros."""
    if any(x.is_floating_point() or bool((x == x.flatten()[:1]).all()) for x in layer.inputs):
        return False
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad(), Intercept():
        try:
            call(tree_unflatten(_inputs(layer, _InputSpec(True, limits, False, False), generator, count), layer.structure))
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
    def __init__(self, values: LayerValues, loss: Loss, target: Optional[torch.Tensor], folder: Optional[str]):
        self._folder = folder
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
        worst = [0.0]

        def receive(role: Role, tensor: torch.Tensor) -> None:
            if role.kind == "output":
                worst.append(self._compare(f"output {role.index} in evaluation", tensor, outputs[role.index]))

        self._package.run_forward(self._index, inputs, None, "score" if self._loss else "evaluate", receive)
        assert len(worst) == 1 + len(outputs)
        return max(worst)

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
        parameters = [entry["name"] for entry in self._package.description["layers"][self._index]["parameters"]]
        wanted = {Role("input_grad", k): leaf for k, leaf in enumerate(leaves) if leaf.requires_grad}
        wanted.update({Role("parameter_grad", k): self._package.tensors[name] for k, name in enumerate(parameters)})
        with pieces.Spilled(self._folder) as right:
            noise = [0.0]

            def keep(role: Role, grad: torch.Tensor) -> None:
                noise[0] = max(noise[0], 1e-4 * pieces.largest(grad))  # e.g. of a bias before BatchNorm
                right.put(role, grad)

            eager.each_gradient(outputs, [None if grad is None else grad.clone() for grad in grads], wanted, keep)  # hooks may write to them
            del wanted, leaves
            outputs = [output.detach() for output in outputs]  # releases autograd's graph before the package runs
            return self._against(inputs, outputs, [seen.value for seen in observed], grads, parameters, right, noise[0])

    def _against(self, inputs: List[torch.Tensor], outputs: List[torch.Tensor], observed: List[torch.Tensor],
                 grads: List[Optional[torch.Tensor]], parameters: List[str], right: pieces.Spilled, noise: float) -> float:
        """The largest difference of the package's results in training."""
        saved = {}
        kind = "loss" if self._loss else "output"
        worst = [0.0]

        def forward(role: Role, tensor: torch.Tensor) -> None:
            if role.kind == "saved":
                saved[role] = tensor
            elif role.kind == kind:
                worst.append(self._compare(f"{kind} {role.index}", tensor, outputs[role.index]))
            elif role.kind == "observed":
                worst.append(self._compare(f"update of statistic {role.index}", tensor, observed[role.index]))

        def backward(role: Role, tensor: torch.Tensor) -> None:
            what = f"the gradient of {f'input {role.index}' if role.kind == 'input_grad' else parameters[role.index]}"
            self._check_shape(what, tensor.shape, right.shapes[role])
            worst.append(self._difference(what, lambda: right.parts(role, tensor), noise))

        count = 1 + len(outputs) + len(observed) + len(right.shapes)
        self._package.run_forward(self._index, inputs, self._target, "forward", forward)
        outputs.clear()
        self._package.run_backward(self._index, saved, grads, inputs[0].size(0), backward)
        assert len(worst) == count
        return max(worst)

    def _compare(self, what: str, found: torch.Tensor, right: torch.Tensor) -> float:
        """Their difference relative to the largest element."""
        self._check_shape(what, found.shape, right.shape)
        found, right = found.detach(), right.detach()
        return self._difference(what, lambda: zip(pieces.of(found), pieces.of(right)), 0.0)

    def _check_shape(self, what: str, found: torch.Size, right: torch.Size) -> None:
        if found != right:
            raise ExportError(f"{what} has shape {tuple(found)} in the package, but {tuple(right)} in PyTorch", _REMEDY, self._name)

    def _difference(self, what: str, parts: Callable[[], Iterable[Tuple[torch.Tensor, torch.Tensor]]], least: float) -> float:
        """The difference of pairs of found and right pieces relative to the largest right element, or to `least` if that is larger."""
        if all(torch.equal(found, right) for found, right in parts()):
            return 0.0
        apart, largest = (float(torch.stack(values).max()) for values in zip(*(
            ((found - right).abs().max().float(), right.abs().max().float()) for found, right in parts())))
        difference = apart / (max(largest, least) or 1.0)
        if not difference <= LARGEST_DIFFERENCE:
            if difference != difference:
                self._refuse_not_finite(what, [right for _, right in parts()])
            raise ExportError(f"{what} differs from PyTorch's by {difference:.2g} of its largest element, on data that was not "
                              "traced", _REMEDY, self._name)
        return difference

    def _refuse_not_finite(self, what: str, right: List[torch.Tensor]) -> None:
        """Refuses NaN and infinity that PyTorch computes too, and names the weights that contain them."""
        described = self._package.description["layers"][self._index]
        named = {entry["name"]: kind for kind in ("parameters", "statistics", "constants") for entry in described[kind]}
        found = [name for name, kind in named.items() for tensor in [self._package.tensors[name]] if tensor.is_floating_point()
                 and not bool((~tensor.isnan() if kind == "constants" else tensor.isfinite()).all())]
        if found:
            raise ExportError(f"{listed(found)} {'has' if len(found) == 1 else 'have'} NaN or infinity, and so has {what}",
                              "Restore or initialize the values", self._name)
        if not all(bool(part.isfinite().all()) for part in right):
            raise ExportError(f"{what} has NaN or infinity in PyTorch, on data that was not traced",
                              "Make it finite for all values of the example's kind, e.g. by a clamp before a division or a logarithm",
                              self._name)


_REMEDY = ("Check for tensor values used in Python (tolist, numpy), for state that is kept between calls, and for computations "
           "that depend on the batch size")
