"""Compares the layers of a model, called one after the other, with the model as it is called.

Both run in `train()` and in `eval()` mode on the same samples: the example's and made-up ones, with padding. Dropout masks
are matched by module, probability and size, and are then the same in both. Outputs, gradients of all parameters, what
normalizations see and what buffers become must agree.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from . import outputs, samples, trial
from .digest import Digest, differs, gradients
from .draws import Draw, Draws
from .errors import ExportError, in_words
from .intercept import Intercept
from .layers import Call, Layers, Names
from .lines import guarded, user_line_of
from .modules import ModuleStack
from .trace import random_states

LARGEST_DIFFERENCE = 1e-4
"""Of the largest element, or of a gradient's norm. The layers may compute a mask otherwise, and sums in another order."""

_FLOOR = 1e-2
"""Of the largest gradient's norm: smaller gradients are compared with this part of it, for they may be rounding alone."""

_LARGE = 100.0
"""An output that caps and clamps of scores change."""


class _Ran(NamedTuple):
    """What a call of the model, or of its layers one after the other, did."""

    value: Any
    drawn: List[Draw]
    modules: List[str]
    seen: Dict[str, Tuple[float, torch.Tensor]]
    """What normalizations saw of their running statistics."""
    buffers: Dict[str, torch.Tensor]
    """Those that the call changed."""
    last: List[str]
    """The modules that the last of the calls called."""
    generators: List[str]
    """Whose random numbers it took, besides PyTorch's."""


class Comparison:
    """Of `layers` with the model; `notices` is what it could not compare, in words for the user."""

    def __init__(self, described: Layers, names: Names, modules: ModuleStack, counted: Optional[torch.Tensor] = None):
        """`counted` says which places of the targets no sample of the example ignores."""
        self.notices: List[str] = []
        self._counted = counted
        self._described = described
        self._modules = modules
        self._roots = [root for _, root in described.roots]
        self._buffers = {f"{prefix}.{name}" if prefix else name: buffer for prefix, root in described.roots for name, buffer in root.named_buffers()}
        self._paths = {path: module for root in self._roots for module in root.modules() for path in [names.modules[id(module)]]}
        self._names = {id(tensor): name for name, tensor in names.state.items()}
        self._parameters = {name: tensor for name, tensor in names.state.items() if tensor.requires_grad}
        self._returned: List[Any] = []  # by the model, where it was called

    def run(self, input: torch.Tensor, limit: Optional[int]) -> None:
        """Refuses layers that do otherwise than the model."""
        try:
            self._run(input, limit)
        except (RuntimeError, MemoryError) as error:
            if "memory" not in str(error) and not isinstance(error, MemoryError):
                raise
            self.notices.append(f"the layers were not compared with the whole model, for which there was not enough memory ({in_words(error)})")

    def _run(self, input: torch.Tensor, limit: Optional[int]) -> None:
        whole = self._described.whole
        if whole is None and len(self._described.layers) == 1:
            return
        if whole is None:
            self.notices.append("the layers were compared with no model: give model=, or forward=, a function that gives what they "
                                "give one after the other")
            return
        example = input[[k % input.size(0) for k in range(2)]]
        with trial.varied(self._roots), trial.generators_as_before():
            self._mode(training=False)
            with torch.no_grad(), self._watched():
                found = self._layers(example, None)
            if self._returned and self._described.by != "forward":  # the list calls the model itself
                self._say_losses(self._returned[0])
                return
            kinds = trial.Kinds(example)
            try:
                with torch.no_grad(), kinds:
                    right = self._whole(example)
            except Exception as error:
                self._cannot_call(error, found)
                return
            self._same_values(right, found, "in eval() mode")
            made = self._made_up(input, limit if limit is not None else kinds.rows, kinds.whole_numbers)
            with torch.no_grad():
                self._same_values(self._whole(made), self._layers(made, None), "in eval() mode, on other samples than the example's")
            self._large_outputs(example, right, found)
            self._mode(training=True)
            self._training(made[:2])

    # How things are called.

    def _mode(self, training: bool) -> None:
        for root in self._roots:
            root.train(training)

    def _whole(self, input: torch.Tensor) -> _Ran:
        assert self._described.whole is not None
        return self._ran([("", self._described.whole)], input, None)

    def _layers(self, input: torch.Tensor, order: Optional[List[int]]) -> _Ran:
        split = self._described.by == "split"
        with guarded(f"motley.split cannot take {self._kind} apart" if split else "the layer raises",
                     _BY_HAND if split else "Run the layers by hand on a few samples to see it", self._modules.path):
            return self._ran(self._described.layers, input, order)

    def _ran(self, calls: List[Tuple[str, Call]], input: torch.Tensor, order: Optional[List[int]]) -> _Ran:
        before = {name: buffer.detach().clone() for name, buffer in self._buffers.items()}
        states = random_states()
        draws = Draws(None, self._modules.path, order)
        value: Any = input.clone()
        called: List[str] = []
        with Intercept(None, draws) as intercept:
            for name, call in calls:
                self._modules.start(name)
                value = call(value)
                called += self._modules.called
        changed = {}
        for name, buffer in self._buffers.items():
            if not outputs.equal(buffer, before[name]):
                changed[name] = buffer.detach().clone()
                with torch.no_grad():
                    buffer.copy_(before[name])
        seen = {self._names.get(id(o.tensor), "a running statistic"): (o.momentum, o.value.detach()) for o in intercept.observed}
        others = [whose for whose, state in random_states().items() if state != states[whose] and whose != "PyTorch"]
        return _Ran(value, draws.drawn, called, seen, changed, self._modules.called, others)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """What the model itself returns, where it is called."""
        model = self._described.model
        handle = None if model is None else model.register_forward_hook(lambda module, inputs, output: self._returned.append(output))
        try:
            yield
        finally:
            if handle is not None:
                handle.remove()

    def _made_up(self, input: torch.Tensor, rows: Optional[int], whole_numbers: bool) -> torch.Tensor:
        """Three samples that the model takes."""
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

    # What must be the same.

    def _large_outputs(self, example: torch.Tensor, right: _Ran, found: _Ran) -> None:
        """Caps and clamps do nothing to the small outputs of a model that was not trained."""
        owned = [tensor for path in found.last for tensor in self._paths[path]._parameters.values() if tensor is not None]
        matrices = [tensor for tensor in owned if tensor.dim() > 1] or owned
        largest = max((float(t.abs().max()) for t in outputs.floats(right.value) if t.numel()), default=0.0)
        if matrices and 0 < largest < _LARGE:
            with trial.scaled(matrices, math.ceil(math.log2(_LARGE / largest))), torch.no_grad():
                self._same_values(self._whole(example), self._layers(example, None), f"where its outputs are as large as {_LARGE:g}")

    def _training(self, input: torch.Tensor) -> None:
        with torch.no_grad():
            alone = self._layers(input, None)
        try:
            right = self._whole(input)
        except Exception as error:
            self._cannot_call(error, alone)
            return
        order = self._matched(right, alone)
        if right.generators != alone.generators:
            raise self._fail(f"in train() mode the model takes random numbers from {' and '.join(right.generators) or 'no generator'}, and the "
                             f"layers from {' and '.join(alone.generators) or 'no generator'}", right, alone)
        found = self._layers(input, order)
        pairs = self._same_values(right, found, "in train() mode")
        generator = torch.Generator().manual_seed(3)
        grads = [torch.randn(output.shape, generator=generator) for output, _ in pairs]
        others = [t for t in outputs.floats(right.value) if t.requires_grad and not any(t is output for output, _ in pairs)]
        wanted = gradients([output for output, _ in pairs], grads, self._parameters, retain_graph=bool(others))
        self._say_losses(right.value)
        self._say_others(others, wanted)
        self._same_gradients(wanted, gradients([output for _, output in pairs], grads, self._parameters), right, found)

    def _matched(self, right: _Ran, found: _Ran) -> List[int]:
        """[draw of the layers] the model's that it is: of the same module in turn, else the next that no module's is."""
        free = dict(enumerate(right.drawn))
        drawn = found.drawn
        order: List[Optional[int]] = [None] * len(drawn)
        for by_module in (True, False):
            for k, draw in enumerate(drawn):
                if order[k] is None:
                    order[k] = next((j for j, d in free.items() if (d.what, d.p, d.count) == (draw.what, draw.p, draw.count)
                                     and (not by_module or d.module == draw.module)), None)
                    free.pop(order[k], None)  # type: ignore[arg-type]
        alone = [draw for draw, j in zip(drawn, order) if j is None]
        if free or alone:
            parts = [f"{who} {_count(draws)} that {other} not: {outputs.some([str(d) for d in draws])}" for who, other, draws in
                     (("the model has", "the layers do", list(free.values())), ("the layers have", "the model does", alone)) if draws]
            raise self._fail(f"in train() mode {'; '.join(parts)}", right, found)
        return [j for j in order if j is not None]

    def _same_values(self, right: _Ran, found: _Ran, where: str) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """The outputs of both that were compared."""
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
        """Both outputs, without those at places that are padding, where each may have anything."""
        assert self._counted is not None
        some = outputs.at(self._counted, whole), outputs.at(self._counted, layers)
        if some[0] is None or some[1] is None:
            return whole, layers
        notice = "the layers' outputs were compared only where the example's targets are not ignored; elsewhere they are not the model's"
        if notice not in self.notices:
            self.notices.append(notice)
        return some[0], some[1]

    def _same_gradients(self, right: Dict[str, Digest], found: Dict[str, Digest], whole: _Ran, layers: _Ran) -> None:
        for who, other, a, b in (("the model", "the layers leave", right, found), ("the layers", "the model leaves", found, right)):
            missing = [name for name in self._parameters if name in a and name not in b]
            if missing:
                raise self._fail(f"{who} give{'s' if who == 'the model' else ''} a gradient to {outputs.some(missing)}, which {other} without one", whole, layers)
        floor = _FLOOR * max((d.norm for d in right.values()), default=0.0)
        worst = max(((differs(found[name], right[name], floor), name) for name in right), default=(0.0, ""))
        if not worst[0] <= LARGEST_DIFFERENCE:
            raise self._fail(f"the gradient of {worst[1]} differs by {worst[0]:.2g} of its norm between the model and the layers", whole, layers)

    # What is said.

    @property
    def _kind(self) -> str:
        return type(self._described.model).__name__ if self._described.model is not None else "the model"

    def _fail(self, reason: str, right: _Ran, found: _Ran) -> ExportError:
        unused = [name for name in dict.fromkeys(right.modules) if name not in set(found.modules) and not self._paths[name]._modules]
        if unused:
            reason += f"; the layers never call {outputs.some(unused)}"
        if self._described.by == "split":
            return ExportError(f"motley.split's layers of {self._kind} are not the model: {reason}", _BY_HAND)
        more = "" if self._described.by == "forward" else (
            f" If {self._kind}(input) is not how you train it, pass forward=, a function of the input that calls it as you do")
        return ExportError(f"the list of layers is not the model: {reason}", f"Put what is missing into the layers.{more}")

    def _cannot_call(self, error: Exception, found: _Ran) -> None:
        if "memory" in str(error):
            raise error
        if self._described.by != "model":
            what = "forward=" if self._described.by == "forward" else f"{self._kind}(input)"
            raise ExportError(f"{what} raises {in_words(error)}", "It is called with the example's input, to be compared with the layers",
                              self._modules.path(), user_line_of(error)) from error
        self.notices.append(f"the layers were not compared with the whole model, for {self._kind}(input) raises {in_words(error)}: pass "
                            "forward=, a function of the input that calls it as you do, e.g. forward=lambda t: model(t[:, 0], t[:, 1])")
        forgotten = trial.forgotten(self._paths, set(found.modules))
        if forgotten:
            self.notices[-1] += f". The layers never call {outputs.some(forgotten)}"

    def _say_losses(self, value: Any) -> None:
        for key, part in value.items() if hasattr(value, "items") else ():
            if "loss" in str(key) and isinstance(part, torch.Tensor):
                self.notices.append(f"{self._kind} also returns {key}, which is not trained: the loss sees what the last layer returns")

    def _say_others(self, others: List[torch.Tensor], trained: Dict[str, Digest]) -> None:
        left = {name: tensor for name, tensor in self._parameters.items() if name not in trained}
        if not others or not left:
            return
        reached = torch.autograd.grad([t.sum() for t in others], list(left.values()), allow_unused=True)
        names = [name for name, grad in zip(left, reached) if grad is not None]
        if names:
            self.notices.append(f"{self._kind} also returns other outputs in train() mode, which are not trained, and {outputs.some(names)} would "
                                "learn by them alone: they keep their values")


_BY_HAND = "Give its layers by hand: a list of (name, module or function), each called with what the one before returned"


def _count(draws: List[Draw]) -> str:
    return "a random draw" if len(draws) == 1 else f"{len(draws)} random draws"
