"""The notices and errors of a comparison of layers with their model."""

from __future__ import annotations

from typing import List, Optional

import torch

from . import outputs, trial, untrained
from .calls import ModelRunner, RunResult
from .errors import ExportError, ModelMismatch, lacks_memory, summary
from .layers import Layers
from .lines import error_line
from .modules import ModuleStack

BY_HAND = ("Pass an input for a trace of the whole forward, motley.split(model, input). Or list the layers by hand: pairs of a name "
           "and a module or function, each called with the result of the previous one")
"""The hint for models whose structure `motley.split` mistakes for a known one."""

_WITHOUT_TRACE = ("A trace contains no hooks on gradients and no state that is kept between calls. Train the model as one layer "
                  "by layers=[(\"all\", model)], or list its layers by hand")


class NotCompared(Exception):
    """The notice about layers that are not compared; empty if none is needed."""


class ComparisonReport:
    """Collects `notices`, and makes errors that name the model and the missing modules."""

    def __init__(self, described: Layers, runner: ModelRunner, modules: ModuleStack):
        self.notices: List[str] = list(described.notices)
        self._described = described
        self._runner = runner
        self._modules = modules

    @property
    def model_name(self) -> str:
        return type(self._described.model).__name__ if self._described.model is not None else "the model"

    def add(self, notice: Optional[str]) -> None:
        if notice and notice not in self.notices:
            self.notices.append(notice)

    def add_untrained(self, expected: RunResult, trained: List[torch.Tensor], found: RunResult) -> None:
        """Notices about auxiliary losses in `expected`, a run of the model. `found`: the layers' run."""
        returned, stored = untrained.auxiliary_losses(expected, trained, found)
        for names, what in ((returned, f"{self.model_name} also returns"), (stored, f"calling {self.model_name} also computes")):
            if names:
                self.add(f"{what} {outputs.listed(names)}, which {'is' if len(names) == 1 else 'are'} not trained: the loss "
                         "receives only the result of the last layer")

    def mismatch(self, reason: str, expected: RunResult, found: RunResult) -> ModelMismatch:
        """The error for layers whose run `found` differs from the model's run `expected`. Its reason ends in ": " and
        `reason`."""
        unused = [name for name in dict.fromkeys(expected.modules) if name not in set(found.modules) and not self._runner.paths[name]._modules]
        if unused:
            reason += f"; the layers never call {outputs.listed(unused)}"
        if self._described.traced:
            return ModelMismatch(f"the traced layers of {self.model_name} differ from the model: {reason}", _WITHOUT_TRACE)
        if self._described.by == "split":
            return ModelMismatch(f"motley.split's layers of {self.model_name} differ from the model: {reason}", BY_HAND)
        more = "" if self._described.by == "forward" else (
            f" If {self.model_name}(input) is not the call that you train, pass forward=, a function of the input that calls "
            "the model")
        return ModelMismatch(f"the list of layers differs from the model: {reason}",
                             f"Add the missing operations to the layers.{more}")

    def call_error(self, error: Exception, found: RunResult) -> Exception:
        """What to raise if the call of the whole model raises `error`. `found`: the layers' run."""
        if lacks_memory(error):
            return error
        if self._described.by != "model":
            what = "forward=" if self._described.by == "forward" else f"{self.model_name}(input)"
            return ExportError(f"{what} raises {summary(error)}",
                               "It is called with the example's input and must return the result of the layers",
                               self._modules.path(), error_line(error))
        why = f"{self.model_name}(input) raises {summary(error)}"
        if found.returned and len(self._described.layers) == 1:
            return NotCompared(self.unknown_call(why))
        uncalled = trial.uncalled(self._runner.paths, set(found.modules))
        return NotCompared(f"the layers were not compared with the model: {why}; pass forward=, a function of the input that "
                           "calls the model as in training, e.g. forward=lambda t: model(t[:, 0], t[:, 1])" + (f". The layers never call {outputs.listed(uncalled)}" if uncalled else ""))

    def unknown_call(self, why: str) -> str:
        """The notice about a single layer that calls the model and computes more."""
        return (f"the layer does more than call {self.model_name}, and the call to compare it with is unknown ({why}): pass "
                "forward=, a function of the input that returns the expected result of the layer")
