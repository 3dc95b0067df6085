"""Calls a model, or its layers in sequence, and records the side effects."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from . import functions, outputs
from .draws import Draw, Draws
from .intercept import Intercept
from .layers import Call, Layers, Names
from .modules import ModuleStack
from .named import Input, each
from .trace import random_states


class Returned(NamedTuple):
    """A tensor in the model's result, and its version counter at that time."""

    name: str
    tensor: torch.Tensor
    version: int


class RunResult(NamedTuple):
    """The result and side effects of a call of the model or of its layers in sequence."""

    value: Any
    drawn: List[Draw]
    modules: List[str]
    seen: Dict[str, Tuple[float, torch.Tensor]]
    """Momentum and observation of each running statistic, by name."""
    buffers: Dict[str, torch.Tensor]
    """New values of the buffers that the call changed."""
    last: List[str]
    """The modules that the last layer called."""
    generators: List[str]
    """The random generators that it used, other than PyTorch's."""
    returned: List[Returned]
    """Results of the model itself, or of the layers' modules if there is no model."""
    stored: List[outputs.Part]
    """Tensors with a gradient that it stored in attributes of modules."""

    @property
    def is_model_result(self) -> bool:
        """Whether its value is the model's own result or an unmodified part of it."""
        given = outputs.floats(self.value)
        return bool(given) and all(any(_same(t, r.tensor) and _version(r.tensor) == r.version for r in self.returned) for t in given)


class ModelRunner:
    """Runs one model and its layers."""

    def __init__(self, described: Layers, names: Names, modules: ModuleStack):
        roots = [root for _, root in described.roots]
        self.paths = {path: module for root in roots for module in root.modules() for path in [names.modules[id(module)]]}
        self._modules = modules
        self._watched = roots if described.model is None else [described.model]
        self._buffers = {f"{prefix}.{name}" if prefix else name: buffer for prefix, root in described.roots for name, buffer in root.named_buffers()}
        self._names = {id(tensor): name for name, tensor in names.state.items()}

    def run(self, calls: List[Tuple[str, Call]], input: Input, order: Optional[List[int]]) -> RunResult:
        """`order`: the indices of the random draws, consecutive by default. Restores buffers."""
        before = {name: buffer.detach().clone() for name, buffer in self._buffers.items()}
        states, attributes = random_states(), self._attributes()
        draws = Draws(None, self._modules.path, order)
        value: Any = each(torch.Tensor.clone, input)
        called: List[str] = []
        returned: List[Returned] = []
        handles = [module.register_forward_hook(lambda _, __, output: returned.extend(
            Returned(name, tensor, _version(tensor)) for name, tensor in outputs.parts(output))) for module in self._watched]
        try:
            with Intercept(None, draws) as intercept, functions.intercepted():
                for name, call in calls:
                    self._modules.start(name)
                    value = call(value)
                    called += self._modules.called
        finally:
            for handle in handles:
                handle.remove()
        changed = {}
        for name, buffer in self._buffers.items():
            if not outputs.equal(buffer, before[name]):
                changed[name] = buffer.detach().clone()
                with torch.no_grad():
                    buffer.copy_(before[name])
        seen = {self._names.get(id(o.tensor), "a running statistic"): (o.momentum, o.value.detach()) for o in intercept.observed}
        others = [name for name, state in random_states().items() if state != states[name] and name != "PyTorch"]
        old = {id(tensor) for _, tensor in attributes}
        stored = [part for part in self._attributes() if id(part[1]) not in old]
        return RunResult(value, draws.drawn, called, seen, changed, self._modules.called, others, returned, stored)

    def _attributes(self) -> List[outputs.Part]:
        """Tensors with a gradient in attributes of modules, other than parameters."""
        found: List[outputs.Part] = []
        for path, module in self.paths.items() if torch.is_grad_enabled() else ():
            for key, value in vars(module).items():
                if isinstance(value, (torch.Tensor, tuple, list, dict)) and key not in ("_parameters", "_modules"):
                    found += [(f"{path}.{key}", tensor) for _, tensor in outputs.parts(value) if tensor.grad_fn is not None]
        return found


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether they are the same view of the same memory."""
    return a is b or (a.dtype, a.shape, a.stride(), a.data_ptr()) == (b.dtype, b.shape, b.stride(), b.data_ptr())
