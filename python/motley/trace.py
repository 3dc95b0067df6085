"""Runs one layer at one batch size, and records its forward and backward, and its evaluation."""

from __future__ import annotations

import contextlib
import importlib
import random
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import numpy
import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from . import remedies
from .draws import Draw
from .errors import DataDependent, ExportError
from .frozen import Frozen
from .graph import Role
from .intercept import Intercept
from .lines import guarded
from .losses import Loss
from .modules import ModuleStack
from .record import Recorder


class Trace(NamedTuple):
    """The recording of a run of a layer. `results` maps results to the recorder's values."""

    recorder: Recorder
    results: Dict[Role, int]
    outputs: List[torch.Tensor]
    """The tensors at the boundary after the layer."""
    structure: Optional[TreeSpec]
    """The structure of the layer's result."""
    statistics: List[Tuple[torch.Tensor, float]]
    """Running statistics with their momenta, in the order of `observed`; none in evaluation."""
    gradients: Tuple[bool, ...] = ()
    """For each output at the boundary, whether it has a gradient; in training."""

    def release(self) -> None:
        """Releases the tensors of the run and retains the recording."""
        self.recorder.release()
        self.outputs.clear()


class Run(NamedTuple):
    """A layer to run."""

    name: str
    call: Callable[[Any], Any]
    inputs: List[torch.Tensor]
    structure: TreeSpec
    gradients: Tuple[bool, ...]
    """For each input, whether the layer must return its gradient."""
    target: Optional[torch.Tensor] = None
    loss: Optional[Loss] = None
    """The last layer has a loss."""


_REMEDY = "Run the layers in sequence on a few samples, forward and backward, to reproduce it"


def import_dynamo() -> None:
    """Imports torch._dynamo, which computes with tensors on import, before a recording in which e.g. activation checkpointing
    imports it."""
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")


@contextlib.contextmanager
def draws_nothing(recorder: Recorder) -> Iterator[None]:
    """Refuses layers that draw random numbers without an operation of PyTorch."""
    before = random_states()
    yield
    for name, state in random_states().items():
        if state != before[name]:
            raise recorder.fail(f"the layer draws random numbers from {name}, which would depend on the number of machines",
                                f"Use {remedies.DRAWS}; or generate the numbers as part of the data")


def random_states() -> Dict[str, Any]:
    """The states of the generators that a layer may use, for comparison."""
    _, keys, position = numpy.random.get_state()[:3]
    return {"Python's random": random.getstate(), "NumPy": (keys.tobytes(), position),
            "PyTorch": torch.get_rng_state().numpy().tobytes()}


def _raises(run: Run) -> str:
    return "the layer raises" if run.loss is None else "the layer, or the loss after it, raises"


class Tracer:
    """Runs layers of one model."""

    def __init__(self, known: Dict[int, str], modules: ModuleStack, memory: Dict[Any, str], frozen: Mapping[int, Frozen] = {}):
        """Arguments as of `Recording`."""
        import_dynamo()
        self._frozen = frozen
        self._known = known
        self._memory = memory
        self._modules = modules
        self._reporting: Set[str] = set()  # layers for which PyTorch reports that it is tracing

    def train(self, run: Run) -> Trace:
        """Forward and backward in training mode."""
        return self._without_branches(self._train, run)

    def evaluate(self, run: Run) -> Trace:
        """Forward in evaluation mode. A last layer without a target is scored: its result is its output."""
        return self._without_branches(self._evaluate, run)

    def _without_branches(self, trace: Callable[[Run], Trace], run: Run) -> Trace:
        """If a layer branches on values, repeats it while PyTorch reports tracing, where it may omit the branch."""
        try:
            return trace(run)
        except DataDependent:
            if run.name in self._reporting:
                raise
            self._reporting.add(run.name)
            with contextlib.suppress(ExportError):
                return trace(run)
            self._reporting.remove(run.name)
            raise

    def _train(self, run: Run) -> Trace:
        recorder, intercept = self._start(run)
        leaves = [x.detach().requires_grad_(gradient) for x, gradient in zip(run.inputs, run.gradients)]
        inputs = [x.clone() for x in leaves]  # a layer may write to its input, which autograd forbids for a leaf
        with draws_nothing(recorder), guarded(_raises(run), _REMEDY, recorder.path), recorder, intercept:
            outputs, structure, results = self._forward(run, recorder, inputs, intercept.draws.drawn)
            for k, seen in enumerate(intercept.observed):
                results[Role("observed", k)] = recorder.value_of(seen.value)
            gradients = () if run.loss is not None else tuple(output.requires_grad for output in outputs)
            self._backward(run, recorder, leaves, outputs, gradients, results)
        return Trace(recorder, results, outputs, structure, [(seen.tensor, seen.momentum) for seen in intercept.observed], gradients)

    def _evaluate(self, run: Run) -> Trace:
        recorder, intercept = self._start(run)
        inputs = [x.clone() for x in run.inputs]
        with draws_nothing(recorder), guarded(_raises(run), _REMEDY, recorder.path), recorder, intercept:
            outputs, structure, results = self._forward(run, recorder, inputs, intercept.draws.drawn)
        return Trace(recorder, results, outputs, structure, [])

    def _start(self, run: Run) -> Tuple[Recorder, Intercept]:
        self._modules.start(run.name)
        recorder = Recorder(self._known, self._modules, self._memory, self._frozen)
        return recorder, Intercept(recorder, reports_tracing=run.name in self._reporting)

    def _forward(self, run: Run, recorder: Recorder, inputs: List[torch.Tensor], drawn: List[Draw]
                 ) -> Tuple[List[torch.Tensor], Optional[TreeSpec], Dict[Role, int]]:
        for k, tensor in enumerate(inputs):
            recorder.declare(tensor, "input", k)
        if run.target is not None:
            recorder.declare(run.target, "target", 0)
        result = run.call(tree_unflatten(inputs, run.structure))
        if run.target is not None and run.loss is not None:
            before = len(drawn)
            of_loss = self._loss(run.loss, run.target, recorder, result)
            if len(drawn) > before:
                raise recorder.fail(f"the loss draws random numbers: {drawn[before]}",
                                    "Draw in the last layer, and return the numbers that the loss needs")
            return of_loss
        outputs, structure = tree_flatten(result)
        for k, tensor in enumerate(outputs):
            if not isinstance(tensor, torch.Tensor):
                raise recorder.fail(f"the layer returns a {type(tensor).__name__} in addition to tensors",
                                    "Return a tensor, or a tuple, list or dictionary of tensors")
        return outputs, structure, {Role("output", k): recorder.value_of(t) for k, t in enumerate(outputs)}

    @staticmethod
    def _loss(loss: Loss, target: torch.Tensor, recorder: Recorder, output: Any
              ) -> Tuple[List[torch.Tensor], Optional[TreeSpec], Dict[Role, int]]:
        terms = loss.terms(output, target)
        if not (isinstance(terms, tuple) and len(terms) == 2 and all(isinstance(t, torch.Tensor) for t in terms)):
            raise recorder.fail("the loss does not return (sum, count), two tensors",
                                "Return the sum over the batch and the number of its terms")
        total, count = terms
        if total.numel() != 1 or count.numel() != 1 or total.dtype != torch.float32:
            raise recorder.fail(f"the loss's sum has shape {tuple(total.shape)} and type {total.dtype}, its count "
                                f"{tuple(count.shape)}", "Return two scalars, the sum of type float32")
        results = {Role("loss", 0): recorder.value_of(total), Role("count", 0): recorder.value_of(count)}
        if loss.correct is not None and not target.is_floating_point():
            with torch.no_grad():
                results[Role("correct", 0)] = recorder.value_of(loss.correct(output, target))
        return [total], None, results

    @staticmethod
    def _backward(run: Run, recorder: Recorder, leaves: List[torch.Tensor], outputs: List[torch.Tensor],
                  gradients: Tuple[bool, ...], results: Dict[Role, int]) -> None:
        last = run.loss is not None
        wanted = [x for x in leaves if x.requires_grad]
        parameters = list(recorder.tensors.items())
        wanted += [tensor for _, tensor in parameters]
        grads: Dict[int, torch.Tensor] = {}
        for k, output in enumerate(outputs):
            if not last and gradients[k]:
                grads[k] = torch.ones(output.shape, dtype=output.dtype)
                recorder.declare(grads[k], "grad", k)
        of = [k for k, output in enumerate(outputs) if output.requires_grad]
        if not wanted:
            return
        if not of:
            raise recorder.fail("no result of the layer depends on its inputs or parameters with a gradient",
                                "Remove no_grad or detach from the layer")
        recorder.backward = True
        found = torch.autograd.grad([outputs[k] for k in of], wanted, None if last else [grads[k] for k in of],
                                    allow_unused=True)
        position = 0
        for k, leaf in enumerate(leaves):
            if leaf.requires_grad:
                grad = found[position] if found[position] is not None else torch.zeros(leaf.shape)
                results[Role("input_grad", k)] = recorder.value_of(grad)
                position += 1
        for (value, _), grad in zip(parameters, found[position:]):
            if grad is not None:
                results[Role("parameter_grad", value)] = recorder.value_of(grad)
