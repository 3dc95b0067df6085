"""Compares the layers of a model, called in sequence, with the model itself.

Both run in `train()` and in `eval()` mode on the same samples: the example's and made-up ones, with padding. Random draws are
matched by module, kind and shape (matched.py), and are then equal in both. Outputs, gradients of all parameters, observations
of normalizations and new values of buffers must agree. Gradients that are not proportional to the output's are refused.
"""

from __future__ import annotations

import contextlib
import math
from typing import Dict, List, Optional, Tuple

import torch

from . import activations, beside, outputs, proportional, samples, trial
from .calls import Calls, Ran
from .digest import Digest, differs, gradients
from .draws import Draw
from .errors import DiffersFromModel, ExportError, in_words, lacks_memory
from .layers import Layers, Names
from .lines import guarded, user_line_of
from .matched import matched
from .modules import ModuleStack

LARGEST_DIFFERENCE = 1e-4
"""Tolerance relative to the largest element or a gradient's norm. Layers may compute masks and sums in another way."""

_FLOOR = 1e-2
"""Part of the largest gradient's norm that smaller gradients are compared with, since they may be only rounding."""

_LARGE = 100.0
"""An output large enough for caps and clamps of scores to change it."""


class _NotCompared(Exception):
    """The reason, in words for the user."""


class Comparison:
    """Compares `layers` with the model. `notices`: the parts that it could not compare, in words for the user."""

    def __init__(self, described: Layers, names: Names, modules: ModuleStack, counted: Optional[torch.Tensor] = None):
        """`counted`: the positions of the targets that no sample of the example ignores."""
        self.notices: List[str] = list(described.notices)
        self._counted = counted
        self._described = described
        self._modules = modules
        self._roots = [root for _, root in described.roots]
        self._calls = Calls(described, names, modules)
        self._parameters = {name: tensor for name, tensor in names.state.items() if tensor.requires_grad}

    def run(self, input: torch.Tensor, limit: Optional[int]) -> None:
        """Refuses layers that differ from the model."""
        try:
            self._run(input, limit)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
            self.notices.append(f"the layers were not compared with the whole model, for which there was not enough memory ({in_words(error)})")

    def _run(self, input: torch.Tensor, limit: Optional[int]) -> None:
        example = input[[k % input.size(0) for k in range(2)]]
        with trial.varied(self._roots), trial.generators_as_before():
            try:
                self._compare(example, input, limit)
            except _NotCompared as why:
                self._say(str(why))
                self._train_alone(example)

    def _compare(self, example: torch.Tensor, input: torch.Tensor, limit: Optional[int]) -> None:
        several = len(self._described.layers) > 1
        if self._described.whole is None:
            raise _NotCompared("the layers were compared with no model: give model=, or forward=, a function that gives what they give one after "
                               "the other" if several else "")
        self._mode(training=False)
        with torch.no_grad():
            found = self._layers(example, None)
        if self._described.by != "forward" and found.is_the_models and self._is_the_models_in_training(example):
            raise _NotCompared("")
        try:
            self._compare_with(found, example, input, limit)
        except DiffersFromModel as error:
            if several or not found.returned or self._described.by == "forward":
                raise
            raise _NotCompared(self._calls_and_more(error.reason.partition(": ")[2])) from error

    def _is_the_models_in_training(self, example: torch.Tensor) -> bool:
        self._mode(training=True)
        with torch.no_grad():
            found = self._layers(example, None)
        self._mode(training=False)
        return found.is_the_models

    def _compare_with(self, found: Ran, example: torch.Tensor, input: torch.Tensor, limit: Optional[int]) -> None:
        kinds = trial.Kinds(example)
        try:
            with torch.no_grad(), kinds:
                right = self._whole(example)
        except Exception as error:
            raise self._cannot_call(error, found) from error
        with torch.no_grad():
            found = self._same_in_evaluation(right, example, "in eval() mode", found)
        made = self._made_up(input, limit if limit is not None else kinds.rows, kinds.whole_numbers)
        with torch.no_grad():
            self._same_in_evaluation(self._whole(made), made, "in eval() mode, on other samples than the example's")
        self._large_outputs(example, right, found)
        self._mode(training=True)
        self._training(made[:self._trained_samples(made[:2])])

    # Names.

    def _mode(self, training: bool) -> None:
        for root in self._roots:
            root.train(training)

    def _whole(self, input: torch.Tensor) -> Ran:
        assert self._described.whole is not None
        return self._calls.run([("", self._described.whole)], input, None)

    def _layers(self, input: torch.Tensor, order: Optional[List[int]]) -> Ran:
        split = self._described.by == "split" or self._described.traced
        with guarded(f"motley.split cannot take {self._kind} apart" if split else "the layer raises",
                     _BY_HAND if split else "Run the layers by hand on a few samples to see it", self._modules.path):
            return self._calls.run(self._described.layers, input, order)

    def _made_up(self, input: torch.Tensor, rows: Optional[int], whole_numbers: bool) -> torch.Tensor:
        """Three samples that the model accepts."""
        generator = torch.Generator().manual_seed(2)
        limit = rows if rows is not None else int(input.max()) + 1 if input.dtype == torch.int64 else 0
        made = samples.like(input, limit, generator, 3, whole_numbers)
        padded = [] if made.is_floating_point() else [samples.padded(made, samples.pads_of(self._described.model, limit))]
        if padded and (self._described.by == "forward" or input.dim() > 2):
            padded, made = [samples.packed(input, padded[0], generator)], samples.packed(input, made, generator)
        for tried in (*padded, made):
            with contextlib.suppress(Exception), torch.no_grad():
                self._whole(tried)
                return tried
        return input[[k % input.size(0) for k in (2, 1, 0)]]

    def _trained_samples(self, input: torch.Tensor) -> int:
        model, whole = self._described.model, self._described.whole
        return activations.samples(model, whole, input) if model is not None and whole is not None else input.size(0)

    # Comparisons.

    def _large_outputs(self, example: torch.Tensor, right: Ran, found: Ran) -> None:
        """Caps and clamps have no effect on the small outputs of an untrained model."""
        owned = [tensor for path in found.last for tensor in self._calls.paths[path]._parameters.values() if tensor is not None]
        matrices = [tensor for tensor in owned if tensor.dim() > 1] or owned
        largest = max((float(t.abs().max()) for t in outputs.floats(right.value) if t.numel()), default=0.0)
        if matrices and 0 < largest < _LARGE:
            with trial.scaled(matrices, math.ceil(math.log2(_LARGE / largest))), torch.no_grad():
                self._same_in_evaluation(self._whole(example), example, f"where its outputs are as large as {_LARGE:g}")

    def _training(self, input: torch.Tensor) -> None:
        with torch.no_grad():
            alone = self._layers(input, None)
        try:
            right = self._whole(input)
        except Exception as error:
            raise self._cannot_call(error, alone) from error
        if right.generators != alone.generators:
            raise self._fail(f"in train() mode the model takes random numbers from {' and '.join(right.generators) or 'no generator'}, and the "
                             f"layers from {' and '.join(alone.generators) or 'no generator'}", right, alone)
        with torch.no_grad():
            pairs = self._same_values(right, self._drawing_alike(right, input, "in train() mode", alone), "in train() mode")
        trained = [output for output, _ in pairs]
        grads = proportional.random_gradients(trained)
        others = [t for t in outputs.floats(right.value) if t.requires_grad and not any(t is output for output in trained)]
        wanted = gradients(trained, grads, self._parameters, retain_graph=True)
        self._say(proportional.check(trained, grads, self._parameters, wanted, retain_graph=bool(others)))
        names = beside.learning_by(others, {name: tensor for name, tensor in self._parameters.items() if name not in wanted})
        if names:
            self._say(f"{self._kind} also returns other outputs in train() mode, which are not trained, and {outputs.some(names)} would "
                      "learn by them alone: they keep their values")
        # Only now, when the model's own activations are freed.
        found = self._drawing_alike(right, input, "in train() mode", alone)
        pairs = self._same_values(right, found, "in train() mode")
        self._say_untrained(right, trained, found)
        self._same_gradients(wanted, gradients([output for _, output in pairs], grads, self._parameters), right, found)

    def _train_alone(self, input: torch.Tensor) -> None:
        """Notices about layers that are not compared."""
        self._mode(training=True)
        try:
            found = self._layers(input, None)
            trained = outputs.floats(found.value)
            grads = proportional.random_gradients(trained)
            seen = gradients(trained, grads, self._parameters, retain_graph=True)
        except Exception as error:  # tracing reports the error
            if lacks_memory(error):
                raise
            return
        self._say(proportional.check(trained, grads, self._parameters, seen))
        self._say_untrained(found, trained, found)

    def _drawing_alike(self, right: Ran, input: torch.Tensor, where: str, found: Optional[Ran] = None) -> Ran:
        """Runs the layers with the model's random numbers. `found`: their run with other numbers."""
        found = self._layers(input, None) if found is None else found
        turns = [k for _, call in self._described.layers for k in call.turns] if self._described.traced else None  # type: ignore[attr-defined]
        match = matched(right.drawn, found.drawn, turns)
        if match.models or match.layers:
            parts = [f"{who} {_count(draws)} that {other} not: {outputs.some([str(d) for d in draws])}" for who, other, draws in
                     (("the model has", "the layers do", match.models), ("the layers have", "the model does", match.layers)) if draws]
            raise self._fail(f"{where} {'; '.join(parts)}", right, found)
        in_turn = match.order == list(range(len(match.order)))
        return found if in_turn and not torch.is_grad_enabled() else self._layers(input, match.order)

    def _same_in_evaluation(self, right: Ran, input: torch.Tensor, where: str, found: Optional[Ran] = None) -> Ran:
        """Runs the layers with the same numbers. Their outputs must be equal to the model's."""
        found = self._drawing_alike(right, input, where, found)
        self._same_values(right, found, where)
        return found

    def _same_values(self, right: Ran, found: Ran, where: str) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """The compared outputs of both."""
        pairs = outputs.pairs(right.value, found.value)
        if not pairs:
            raise self._fail(f"{where} the layers return {outputs.shapes(found.value)}, and the model {outputs.shapes(right.value)}", right, found)
        for k, (whole, layers) in enumerate(pairs):
            difference = outputs.difference(layers.detach(), whole.detach())
            if not difference <= LARGEST_DIFFERENCE and self._counted is not None:
                pairs[k] = self._where_counted(whole, layers)
                difference = outputs.difference(pairs[k][1].detach(), pairs[k][0].detach())
            if not difference <= LARGEST_DIFFERENCE:
                raise self._fail(f"the layers do not compute what the model computes {where}: {difference:.2g} of the largest output is between "
                                 "them", right, found)
        for what, a, b in (("what the model's normalizations see of", {k: v for k, (_, v) in right.seen.items()},
                            {k: v for k, (_, v) in found.seen.items()}), ("what a forward makes of the buffer", right.buffers, found.buffers)):
            for name in sorted({*a, *b}):
                if name.endswith("num_batches_tracked"):
                    continue
                if name not in a or name not in b or not outputs.difference(b[name], a[name]) <= LARGEST_DIFFERENCE:
                    raise self._fail(f"{what} {name} {where} is not the same in the layers", right, found)
        return pairs

    def _where_counted(self, whole: torch.Tensor, layers: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Both outputs without the positions of padding, whose values are arbitrary."""
        assert self._counted is not None
        some = outputs.at(self._counted, whole), outputs.at(self._counted, layers)
        if some[0] is None or some[1] is None:
            return whole, layers
        self._say("the layers' outputs were compared only where the example's targets are not ignored; elsewhere they are not the model's")
        return some[0], some[1]

    def _same_gradients(self, right: Dict[str, Digest], found: Dict[str, Digest], whole: Ran, layers: Ran) -> None:
        for who, other, a, b in (("the model", "the layers leave", right, found), ("the layers", "the model leaves", found, right)):
            missing = [name for name in self._parameters if name in a and name not in b]
            if missing:
                raise self._fail(f"{who} give{'s' if who == 'the model' else ''} a gradient to {outputs.some(missing)}, which {other} without one", whole, layers)
        floor = _FLOOR * max((d.norm for d in right.values()), default=0.0)
        worst = max(((differs(found[name], right[name], floor), name) for name in right), default=(0.0, ""))
        if not worst[0] <= LARGEST_DIFFERENCE:
            raise self._fail(f"the gradient of {worst[1]} differs by {worst[0]:.2g} of its norm between the model and the layers", whole, layers)

    # Messages.

    def _say(self, notice: Optional[str]) -> None:
        if notice and notice not in self.notices:
            self.notices.append(notice)

    @property
    def _kind(self) -> str:
        return type(self._described.model).__name__ if self._described.model is not None else "the model"

    def _fail(self, reason: str, right: Ran, found: Ran) -> DiffersFromModel:
        unused = [name for name in dict.fromkeys(right.modules) if name not in set(found.modules) and not self._calls.paths[name]._modules]
        if unused:
            reason += f"; the layers never call {outputs.some(unused)}"
        if self._described.traced:
            return DiffersFromModel(f"the layers of {self._kind}'s trace are not the model: {reason}", _WITHOUT_TRACE)
        if self._described.by == "split":
            return DiffersFromModel(f"motley.split's layers of {self._kind} are not the model: {reason}", _BY_HAND)
        more = "" if self._described.by == "forward" else (
            f" If {self._kind}(input) is not how you train it, pass forward=, a function of the input that calls it as you do")
        return DiffersFromModel(f"the list of layers is not the model: {reason}", f"Put what is missing into the layers.{more}")

    def _cannot_call(self, error: Exception, found: Ran) -> Exception:
        if lacks_memory(error):
            return error
        if self._described.by != "model":
            what = "forward=" if self._described.by == "forward" else f"{self._kind}(input)"
            return ExportError(f"{what} raises {in_words(error)}", "It is called with the example's input, to be compared with the layers",
                               self._modules.path(), user_line_of(error))
        why = f"{self._kind}(input) raises {in_words(error)}"
        if found.returned and len(self._described.layers) == 1:
            return _NotCompared(self._calls_and_more(why))
        forgotten = trial.forgotten(self._calls.paths, set(found.modules))
        return _NotCompared(f"the layers were not compared with the whole model, for {why}: pass forward=, a function of the input that calls it as you "
                            "do, e.g. forward=lambda t: model(t[:, 0], t[:, 1])" + (f". The layers never call {outputs.some(forgotten)}" if forgotten else ""))

    def _calls_and_more(self, why: str) -> str:
        return (f"the layer does more than call {self._kind}, and nothing says that this is how it is trained ({why}): give forward=, a function of "
                "the input that gives what the layer has to give")

    def _say_untrained(self, right: Ran, trained: List[torch.Tensor], found: Ran) -> None:
        returned, left = beside.untrained(right, trained, found)
        for names, what in ((returned, f"{self._kind} also returns"), (left, f"calling {self._kind} also computes")):
            if names:
                self._say(f"{what} {outputs.some(names)}, which {'is' if len(names) == 1 else 'are'} not trained: the loss sees what the last layer returns")


_WITHOUT_TRACE = ("A trace has no hooks on gradients, and no state that is kept between calls. As one layer the model is itself: "
                  "layers=[(\"all\", model)]; a list of layers by hand divides it")

_BY_HAND = "Give its layers by hand: a list of (name, module or function), each called with what the one before returned"


def _count(draws: List[Draw]) -> str:
    return "a random draw" if len(draws) == 1 else f"{len(draws)} random draws"
