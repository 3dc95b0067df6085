"""Compares the layers of a model, called in sequence, with the model itself.

Both run in `train()` and in `eval()` mode on the same samples: the example's and generated ones, with padding. Random draws are
matched by module, kind and shape (matched.py), and are then equal in both. Outputs, gradients of all parameters, observations
of normalizations and new values of buffers must agree. Gradients that are not proportional to the output's are refused.
"""

from __future__ import annotations

import contextlib
import math
from typing import Dict, List, Mapping, Optional, Tuple

import torch

from . import activations, outputs, proportional, samples, trial, untrained
from .calls import ModelRunner, RunResult
from .comparison_report import BY_HAND, ComparisonReport, NotCompared
from .digest import Digest, differs, gradients
from .draws import Draw
from .errors import ModelMismatch, lacks_memory, summary
from .layers import Layers, Names
from .lines import guarded
from .matched import matched
from .modules import ModuleStack
from .named import Input, Limit, count, limits, take

LARGEST_DIFFERENCE = 1e-4
"""Tolerance relative to the largest element or a gradient's norm. Layers may compute masks and sums differently."""

_FLOOR = 1e-2
"""Share of the largest gradient's norm that smaller gradients are compared with, since they may be only rounding."""

_LARGE = 100.0
"""An output large enough for caps and clamps of scores to change it."""


class Comparison:
    """Compares layers with their model, and collects notices about the parts that are not compared."""

    def __init__(self, described: Layers, names: Names, modules: ModuleStack, counted: Optional[torch.Tensor] = None):
        """`counted`: the positions of the targets that no sample of the example ignores."""
        self._counted = counted
        self._described = described
        self._modules = modules
        self._roots = [root for _, root in described.roots]
        self._runner = ModelRunner(described, names, modules)
        self._report = ComparisonReport(described, self._runner, modules)
        self._parameters = {name: tensor for name, tensor in names.state.items() if tensor.requires_grad}

    @property
    def notices(self) -> List[str]:
        """Messages for the user."""
        return self._report.notices

    def run(self, input: Input, limit: Limit) -> None:
        """Refuses layers that differ from the model. Integer inputs are below `limit`, if it is known."""
        try:
            self._run(input, limits(limit, input))
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
            self._report.add(f"the layers were not compared with the model: not enough memory ({summary(error)})")

    def _run(self, input: Input, limit: List[Optional[int]]) -> None:
        example = take(input, [k % count(input) for k in range(2)])
        with trial.perturbed(self._roots), trial.preserved_generators():
            try:
                self._compare(example, input, limit)
            except NotCompared as notice:
                self._report.add(str(notice))
                self._train_alone(example)

    def _compare(self, example: Input, input: Input, limit: List[Optional[int]]) -> None:
        several = len(self._described.layers) > 1
        if self._described.whole is None:
            raise NotCompared("the layers were not compared with a model: pass model=, or forward=, a function that returns the "
                              "result of the layers in sequence" if several else "")
        self._mode(training=False)
        with torch.no_grad():
            found = self._layers(example, None)
        if self._described.by != "forward" and found.is_model_result and self._is_model_result_in_training(example):
            raise NotCompared("")
        try:
            self._compare_with(found, example, input, limit)
        except ModelMismatch as error:
            if several or not found.returned or self._described.by == "forward":
                raise
            raise NotCompared(self._report.unknown_call(error.reason.partition(": ")[2])) from error

    def _is_model_result_in_training(self, example: Input) -> bool:
        self._mode(training=True)
        with torch.no_grad():
            found = self._layers(example, None)
        self._mode(training=False)
        return found.is_model_result

    def _compare_with(self, found: RunResult, example: Input, input: Input, limit: List[Optional[int]]) -> None:
        use = trial.InputUse(example)
        try:
            with torch.no_grad(), use:
                right = self._whole(example)
        except Exception as error:
            raise self._report.call_error(error, found) from error
        with torch.no_grad():
            found = self._same_in_evaluation(right, example, "in eval() mode", found)
        made = self._generated(input, [rows if given is None else given for given, rows in zip(limit, use.rows)], use.whole_numbers)
        with torch.no_grad():
            self._same_in_evaluation(self._whole(made), made, "in eval() mode, on other samples than the example's")
        self._large_outputs(example, right, found)
        self._mode(training=True)
        self._training(self._training_samples(take(made, [0, 1])))

    # Runs.

    def _mode(self, training: bool) -> None:
        for root in self._roots:
            root.train(training)

    def _whole(self, input: Input) -> RunResult:
        assert self._described.whole is not None
        return self._runner.run([("", self._described.whole)], input, None)

    def _layers(self, input: Input, order: Optional[List[int]]) -> RunResult:
        split = self._described.by == "split" or self._described.traced
        with guarded(f"motley.split cannot split {self._report.model_name}" if split else "the layer raises",
                     BY_HAND if split else "Call the layers in sequence on a few samples to reproduce it", self._modules.path):
            return self._runner.run(self._described.layers, input, order)

    def _generated(self, input: Input, rows: List[Optional[int]], whole_numbers: bool) -> Input:
        """Three samples that the model accepts."""
        generator = torch.Generator().manual_seed(2)
        for tried in self._candidates(input, rows, whole_numbers, generator):
            with contextlib.suppress(Exception), torch.no_grad():
                self._whole(tried)
                return tried
        return take(input, [k % count(input) for k in (2, 1, 0)])

    def _training_samples(self, input: Input) -> Input:
        """As many samples of `input` as the model's activations allow."""
        model, whole = self._described.model, self._described.whole
        if model is None or whole is None:
            return input
        return take(input, list(range(activations.sample_count(model, whole, input))))

    def _candidates(self, input: Input, rows: List[Optional[int]], whole_numbers: bool, generator: torch.Generator) -> List[Input]:
        """Samples with padding, and without."""
        if not isinstance(input, Mapping):
            return list(self._single_candidates(input, rows[0], whole_numbers, generator))
        made, padded = {}, {}
        for (name, example), limit in zip(input.items(), rows):
            keeps = samples.keeps_values(example, limit)
            made[name] = samples.resampled(example, generator, 3) if keeps else samples.like(example, limit or 0, generator, 3)
            padded[name] = made[name]
            if limit is not None and not keeps:
                padded[name] = samples.padded(made[name], samples.pads_of(self._described.model, limit))
        return [padded, made]

    def _single_candidates(self, input: torch.Tensor, rows: Optional[int], whole_numbers: bool, generator: torch.Generator
                           ) -> List[torch.Tensor]:
        limit = rows if rows is not None else int(input.max()) + 1 if input.dtype == torch.int64 else 0
        made = samples.like(input, limit, generator, 3, whole_numbers)
        padded = [] if made.is_floating_point() else [samples.padded(made, samples.pads_of(self._described.model, limit))]
        if padded and (self._described.by == "forward" or input.dim() > 2):
            padded, made = [samples.packed(input, padded[0], generator)], samples.packed(input, made, generator)
        return [*padded, made]

    # Comparisons.

    def _large_outputs(self, example: Input, right: RunResult, found: RunResult) -> None:
        """Caps and clamps have no effect on the small outputs of an untrained model."""
        owned = [tensor for path in found.last for tensor in self._runner.paths[path]._parameters.values() if tensor is not None]
        matrices = [tensor for tensor in owned if tensor.dim() > 1] or owned
        largest = max((float(t.abs().max()) for t in outputs.floats(right.value) if t.numel()), default=0.0)
        if matrices and 0 < largest < _LARGE:
            with trial.scaled(matrices, math.ceil(math.log2(_LARGE / largest))), torch.no_grad():
                self._same_in_evaluation(self._whole(example), example, f"with outputs as large as {_LARGE:g}")

    def _training(self, input: Input) -> None:
        with torch.no_grad():
            alone = self._layers(input, None)
        try:
            right = self._whole(input)
        except Exception as error:
            raise self._report.call_error(error, alone) from error
        if right.generators != alone.generators:
            raise self._report.mismatch("in train() mode the model draws random numbers from "
                                        f"{' and '.join(right.generators) or 'no generator'}, the layers from "
                                        f"{' and '.join(alone.generators) or 'no generator'}", right, alone)
        with torch.no_grad():
            alike = self._drawing_alike(right, input, "in train() mode", alone)
        pairs = self._same_values(right, alike, "in train() mode")
        trained = [output for output, _ in pairs]
        grads = proportional.random_gradients(trained)
        others = [t for t in outputs.floats(right.value) if t.requires_grad and not any(t is output for output in trained)]
        wanted = gradients(trained, grads, self._parameters, retain_graph=True)
        self._report.add(proportional.check(trained, grads, self._parameters, wanted, retain_graph=bool(others)))
        names = untrained.learning_by(others, trained, {name: tensor for name, tensor in self._parameters.items() if name not in wanted})
        if names:
            self._report.add(f"{self._report.model_name} returns further outputs in train() mode, which are not trained; only "
                             f"they give a gradient to {outputs.listed(names)}, which therefore keep their values")
        # After the release of the model's activations.
        found = self._drawing_alike(right, input, "in train() mode", alone)
        pairs = self._same_values(right, found, "in train() mode")
        self._report.add_untrained(right, trained, found)
        self._same_gradients(wanted, gradients([output for _, output in pairs], grads, self._parameters), right, found)

    def _train_alone(self, input: Input) -> None:
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
        self._report.add(proportional.check(trained, grads, self._parameters, seen))
        self._report.add_untrained(found, trained, found)

    def _drawing_alike(self, right: RunResult, input: Input, where: str, found: Optional[RunResult] = None) -> RunResult:
        """Runs the layers with the model's random numbers. `found`: their run with other numbers."""
        found = self._layers(input, None) if found is None else found
        recorded = [k for _, call in self._described.layers for k in call.draw_indices] if self._described.traced else None  # type: ignore[attr-defined]
        match = matched(right.drawn, found.drawn, recorded)
        if match.models or match.layers:
            parts = [f"{has} {_count(draws)} that {lacks}: {outputs.listed([str(d) for d in draws])}" for has, lacks, draws in
                     (("the model has", "the layers lack", match.models), ("the layers have", "the model lacks", match.layers)) if draws]
            raise self._report.mismatch(f"{where} {'; '.join(parts)}", right, found)
        in_order = match.order == list(range(len(match.order)))
        return found if in_order and not torch.is_grad_enabled() else self._layers(input, match.order)

    def _same_in_evaluation(self, right: RunResult, input: Input, where: str, found: Optional[RunResult] = None) -> RunResult:
        """Runs the layers with the same numbers. Their outputs must be equal to the model's."""
        found = self._drawing_alike(right, input, where, found)
        self._same_values(right, found, where)
        return found

    def _same_values(self, right: RunResult, found: RunResult, where: str) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """The compared outputs of both."""
        pairs = outputs.pairs(right.value, found.value)
        if not pairs:
            raise self._report.mismatch(f"{where} the layers return {outputs.shapes(found.value)}, but the model returns "
                                        f"{outputs.shapes(right.value)}",
                                        right, found)
        for k, (whole, layers) in enumerate(pairs):
            difference = outputs.difference(layers.detach(), whole.detach())
            if not difference <= LARGEST_DIFFERENCE and self._counted is not None:
                pairs[k] = self._where_counted(whole, layers)
                difference = outputs.difference(pairs[k][1].detach(), pairs[k][0].detach())
            if not difference <= LARGEST_DIFFERENCE:
                raise self._report.mismatch(f"outputs of the layers differ from the model's {where}: {difference:.2g} of the "
                                            "largest output", right, found)
        for what, a, b in (("the observation of the running statistic", {k: v for k, (_, v) in right.seen.items()},
                            {k: v for k, (_, v) in found.seen.items()}), ("the new value of the buffer", right.buffers, found.buffers)):
            for name in sorted({*a, *b}):
                if name.endswith("num_batches_tracked"):
                    continue
                if name not in a or name not in b or not outputs.difference(b[name], a[name]) <= LARGEST_DIFFERENCE:
                    raise self._report.mismatch(f"{what} {name} differs between the model and the layers {where}", right, found)
        return pairs

    def _where_counted(self, whole: torch.Tensor, layers: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Both outputs without the positions of padding, whose values are arbitrary."""
        assert self._counted is not None
        some = outputs.select(self._counted, whole), outputs.select(self._counted, layers)
        if some[0] is None or some[1] is None:
            return whole, layers
        self._report.add("the layers' outputs were compared only at positions whose targets are not ignored; at the other "
                         "positions they differ from the model's")
        return some[0], some[1]

    def _same_gradients(self, right: Dict[str, Digest], found: Dict[str, Digest], whole: RunResult, layers: RunResult) -> None:
        for only, a, b in (("the model gives", right, found), ("the layers give", found, right)):
            missing = [name for name in self._parameters if name in a and name not in b]
            if missing:
                raise self._report.mismatch(f"only {only} a gradient to {outputs.listed(missing)}", whole, layers)
        floor = _FLOOR * max((d.norm for d in right.values()), default=0.0)
        worst = max(((differs(found[name], right[name], floor), name) for name in right), default=(0.0, ""))
        if not worst[0] <= LARGEST_DIFFERENCE:
            raise self._report.mismatch(f"the gradient of {worst[1]} differs by {worst[0]:.2g} of its norm between the model "
                                        "and the layers", whole, layers)


def _count(draws: List[Draw]) -> str:
    return "a random draw" if len(draws) == 1 else f"{len(draws)} random draws"
