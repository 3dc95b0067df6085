"""References: the results of each distinct layer in eager PyTorch, with which machines compare their own results.

A reference contains no tensors. It has the descriptions from which inputs and gradients are generated (`synthetic.py`), and a
digest of each result (`result_digest.py`) with its sensitivity to rounding (`rounding.py`). docs/formats/package.md describes the
file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from . import dropout, eager, hashed, pieces, synthetic
from .errors import ExportError
from .graph import Role
from .interpret import Package, Receive
from .intercept import Intercept
from .layer_values import LayerValues, layer_key
from .layers import Layers
from .losses import Loss
from .memory_limit import MemoryLimit
from .modules import ModuleStack
from .named import limits_of
from .result_digest import Digest, deviation, digest
from .rounding import perturbed, in_bf16

FILE = "reference.jsonl"
VERSION = 1

_SAMPLES, _MIN_SAMPLES, _SAMPLES_OF_STATISTICS = 2, 1, 8
"""A small number, and one for layers that need much memory; with two samples of few elements, a batch normalization divides by
almost 0."""
_MANY_ELEMENTS = 1 << 15
"""Elements of a sample; with so many, two samples suffice for statistics."""

_SEEDS = 3
_STEADY = 2e-3
"""If rounding changes a result by more, another seed is tried: near a kink of a ReLU, or under cancellation."""
_PERTURBATIONS = 4
"""For layers of few elements: there one value within rounding of a ReLU's kink decides much of a gradient, and one perturbation in two
does not move it across."""

MIN_SCALE = 1e-3
"""The least scale of a gradient, relative to the layer's largest: that of a bias before a batch normalization is 0 except for
rounding."""

_WRONG = 1e-3
"""The package is wrong if a difference exceeds this and four times the effect of rounding."""

_BYTES = 1 << 20
_SAMPLED = 64


class _Compared(NamedTuple):
    """A result of eager PyTorch, with its role, which names it in the file."""

    role: Role
    digest: Digest
    is_gradient: bool


class References:
    """References of the first of all layers with equal graphs and shapes, in the order of the layers. A layer that cannot run
    with generated inputs has none, with a warning."""

    def __init__(self, described: Layers, loss: Loss, modules: ModuleStack, memory: MemoryLimit):
        self.found: List[Dict[str, Any]] = []
        self._described = described
        self._loss = loss
        self._modules = modules
        self._memory = memory
        self._seen: Set[str] = set()

    def add(self, values: LayerValues) -> None:
        """Adds the reference of a layer, unless an equal layer has one."""
        layer = values.traced
        key = layer_key(values.package.description, values.index)
        if key in self._seen:
            return
        self._seen.add(key)
        count = _sample_count(values)
        if count == _SAMPLES:
            count = self._memory.samples(values.index, (_SAMPLES, _MIN_SAMPLES))
        self._modules.start(layer.name)
        eager_layer = eager.EagerLayer(values.call, layer.structure, self._loss if layer.target is not None else None)
        made = _Layer(values, eager_layer, self._described, count, self._memory.is_large(values.index, count))
        try:
            self.found.append(made.reference())
        except ExportError:
            raise
        except Exception as error:  # any exception of the layer
            warnings.warn(f"{layer.name} has no reference for the comparison on machines: for generated inputs like the example's "
                          f"it raises {type(error).__name__}: {error}", stacklevel=2)


def text(package_json: bytes, found: List[Dict[str, Any]]) -> str:
    """The file of the references to a package."""
    body = json.dumps(found, separators=(",", ":"), allow_nan=False) + "\n"
    head = {"format": "motley-reference", "version": VERSION, "package": hashlib.sha256(package_json).hexdigest(),
            "sha256": hashlib.sha256(body.encode()).hexdigest()}
    return json.dumps(head) + "\n" + body


def _sample_count(values: LayerValues) -> int:
    """The number of samples without a limit of memory."""
    elements = _elements(values)
    has_statistics = bool(values.package.description["layers"][values.index]["statistics"])
    return _SAMPLES_OF_STATISTICS if has_statistics and elements < _MANY_ELEMENTS else _SAMPLES


def _elements(values: LayerValues) -> int:
    """The elements of a sample of the largest input."""
    return max(x[0].numel() for x in values.traced.inputs)


class _Layer:
    def __init__(self, values: LayerValues, layer: eager.EagerLayer, described: Layers, samples: int, is_large: bool):
        self._is_large = is_large
        self._package = package = values.package
        self._index = index = values.index
        self._traced = traced = values.traced
        self._layer = layer
        self._roots = [root for _, root in described.roots]
        self._described = package.description["layers"][index]
        self._samples = samples
        self._perturbations = _PERTURBATIONS if _elements(values) < _MANY_ELEMENTS else 1
        description = package.description
        limits = limits_of(description) if index == 0 else [None] * len(traced.inputs)
        self._inputs = [synthetic.describe(x, limit or 0) if gradient or limit or index == 0 and x.is_floating_point()
                        else synthetic.describe_exact(x) for x, gradient, limit in zip(traced.inputs, traced.gradients, limits)]
        self._ignored = description["ignored"]
        self._target = None if traced.target is None else synthetic.describe(traced.target, description["target_limit"], self._ignored)
        results = 3 + len(self._described["parameters"]) + 2 * len(self._inputs) + len(self._described["outputs"])
        self._sampled = max(0, min(_SAMPLED, (_BYTES // results - 160) // 13))

    def reference(self) -> Dict[str, Any]:
        best: Optional[Tuple[float, Dict[str, Any]]] = None
        for seed in range(1, _SEEDS + 1):
            with self._replaced(seed) as replaced, _masks_of(seed):
                moved, training, evaluation = self._of_seed(seed)
            if best is None or moved < best[0]:
                best = moved, {"layer": self._index, "seed": seed, "samples": self._samples, "inputs": self._inputs,
                               "target": self._target, "replaced": replaced, "training": training, "evaluation": evaluation}
            if best[0] <= _STEADY:
                break
        assert best is not None
        return best[1]

    def _of_seed(self, seed: int) -> Tuple[float, List[Dict[str, Any]], List[Dict[str, Any]]]:
        inputs = [synthetic.make(described, self._samples, seed, hashed.INPUT, k, x.dtype).reshape(self._samples, *x.shape[1:])
                  for k, (described, x) in enumerate(zip(self._inputs, self._traced.inputs))]
        target = self._traced.target
        if target is not None and self._target is not None:
            made = synthetic.make(self._target, self._samples, seed, hashed.TARGET, 0, target.dtype, self._ignored)
            target = made.reshape(self._samples, *target.shape[1:])
        grads = [] if self._layer.loss else [
            synthetic.uniform(torch.Size([self._samples, *output["shape"]]), seed, hashed.GRADIENT, k, -1.0, 2.0) if gradient else None
            for k, (output, gradient) in enumerate(zip(self._described["outputs"], self._traced.train.gradients))]
        run = _Run(self, seed, inputs, target, grads)
        for root in self._roots:
            root.train()
        moved, training = run.compare(run.eager_training(), run.training)
        if self._package.evaluates_as_it_trains(self._index):
            return moved, training, [entry for entry in training if entry["tensor"].startswith("output:")]
        for root in self._roots:
            root.eval()
        moved_too, evaluation = run.compare(run.eager_evaluation(), run.evaluation)
        return max(moved, moved_too), training, evaluation

    @contextlib.contextmanager
    def _replaced(self, seed: int) -> Iterator[Dict[str, Any]]:
        """While entered, replaces parameters and statistics whose elements are all equal."""
        replaced: Dict[str, Any] = {}
        before: List[Tuple[torch.Tensor, float]] = []
        try:
            for role, kind, purpose in (("parameter", "parameters", hashed.PARAMETER), ("statistic", "statistics", hashed.STATISTIC)):
                for k, entry in enumerate(self._described[kind]):
                    tensor = self._package.tensors[entry["name"]]
                    other = synthetic.replacement(tensor.detach())
                    if other is None:
                        continue
                    replaced[f"{role}:{k}"] = other
                    before.append((tensor, float(tensor.detach().flatten()[0])))
                    synthetic.fill(tensor, seed, purpose, k, other["low"], other["width"])
            yield replaced
        finally:
            with torch.no_grad():
                for tensor, value in before:
                    tensor.fill_(value)


@contextlib.contextmanager
def _masks_of(seed: int) -> Iterator[None]:
    before = dropout.seed
    dropout.seed = seed
    try:
        yield
    finally:
        dropout.seed = before


class _Run:
    """One layer with one seed's inputs: by autograd, and by the package."""

    def __init__(self, owner: _Layer, seed: int, inputs: List[torch.Tensor], target: Optional[torch.Tensor],
                 grads: List[Optional[torch.Tensor]]):
        self._package = owner._package
        self._index = owner._index
        self._name = owner._described["name"]
        self._parameters = [entry["name"] for entry in owner._described["parameters"]]
        self._layer = owner._layer._replace(target=target)
        self._gradients = owner._traced.gradients
        self._seed, self._sampled, self._samples = seed, owner._sampled, owner._samples
        self._perturbations = owner._perturbations
        self._is_large = owner._is_large
        self._inputs, self._target, self._grads = inputs, target, grads

    def _digest(self, tensor: torch.Tensor) -> Digest:
        return digest(tensor, self._seed, self._sampled)

    def _compared(self, role: str, index: int, tensor: torch.Tensor) -> _Compared:
        return _Compared(Role(role, index), self._digest(tensor), role.endswith("_grad"))

    def eager_training(self) -> List[_Compared]:
        leaves = [x.detach().requires_grad_(gradient) for x, gradient in zip(self._inputs, self._gradients)]
        outputs, observed = self._layer.run([x.clone() for x in leaves])
        found = [self._compared("loss" if self._layer.loss else "output", k, x) for k, x in enumerate(outputs)]
        found += [self._compared("observed", k, seen.value) for k, seen in enumerate(observed)]
        wanted = {Role("input_grad", k): leaf for k, leaf in enumerate(leaves) if leaf.requires_grad}
        wanted.update({Role("parameter_grad", k): self._package.tensors[name] for k, name in enumerate(self._parameters)})
        digests: Dict[Role, Digest] = {}
        eager.each_gradient(outputs, self._grads, wanted, lambda role, grad: digests.__setitem__(role, self._digest(grad)))
        return found + [_Compared(role, digests[role], True) for role in wanted]

    def eager_evaluation(self) -> List[_Compared]:
        with torch.no_grad():
            outputs, _ = self._layer._replace(loss=None).run([x.clone() for x in self._inputs])
            found = [self._compared("output", k, x) for k, x in enumerate(outputs)]
            if self._layer.loss is not None and self._target is not None:
                with Intercept():
                    total, count = self._layer.loss.terms(outputs[0], self._target)
                found += [self._compared("loss", 0, total), self._compared("count", 0, count)]
        return found

    def training(self, package: Package, inputs: List[torch.Tensor], receive: Receive) -> None:
        saved: Dict[Role, torch.Tensor] = {}

        def sort(role: Role, tensor: torch.Tensor) -> None:
            if role.kind == "saved":
                saved[role] = tensor
            else:
                receive(role, tensor)

        package.run_forward(self._index, inputs, self._target, "forward", sort)
        package.run_backward(self._index, saved, self._grads, self._samples, receive)

    def evaluation(self, package: Package, inputs: List[torch.Tensor], receive: Receive) -> None:
        package.run_forward(self._index, inputs, self._target, "evaluate", receive)
        if self._layer.loss is not None:
            package.run_forward(self._index, inputs, None, "score", receive)

    def compare(self, right: List[_Compared], run: Callable[[Package, List[torch.Tensor], Receive], None]
                ) -> Tuple[float, List[Dict[str, Any]]]:
        """The largest effect of rounding, and the file's entry of each result."""
        least = MIN_SCALE * max((compared.digest.norm for compared in right if compared.is_gradient), default=0.0)

        wanted = {compared.role for compared in right}

        def apart(package: Package, inputs: List[torch.Tensor]) -> List[float]:
            found: Dict[Role, Digest] = {}

            def receive(role: Role, tensor: torch.Tensor) -> None:
                if role in wanted:
                    found[role] = self._digest(tensor)

            run(package, inputs, receive)
            if self._is_large:
                pieces.return_memory()
            return [deviation(found[compared.role], compared.digest, least if compared.is_gradient else 0.0) for compared in right]

        exact = apart(self._package, self._inputs)
        runs = [apart(*perturbed(self._package, self._index, self._inputs, number)) for number in range(self._perturbations)]
        moved = [max(of_result) for of_result in zip(*runs)]
        short = apart(in_bf16(self._package), self._inputs)
        entries = []
        for compared, wrong, off, rounded in zip(right, exact, moved, short):
            what = f"{compared.role.kind}:{compared.role.index}"
            if not wrong <= _WRONG + 4 * off:
                raise ExportError(f"{what} differs from PyTorch's by {wrong:.2g} of its norm, on generated data like the "
                                  "example's",
                                  "Check for state that is kept between calls, and for tensor values used in Python (tolist, "
                                  "numpy)", self._name)
            entries.append({"tensor": what, **compared.digest.json(),
                            "rounding": [float(f"{min(x, 1e9):.3g}") for x in (max(off, wrong), max(off, rounded))]})
        return max(max(a, b) for a, b in zip(exact, moved)) if right else 0.0, entries
