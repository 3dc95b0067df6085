"""Trial runs of a model: the use of its input, and temporary changes of its parameters and of random generators."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Iterator, List, Mapping, Optional, Set, Tuple

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import operations
from .named import Input, tensors


class InputUse(TorchDispatchMode):
    """Records the use of a model's inputs: the rows of their embeddings, and whether floats are converted to integers. Of several
    inputs each has its own `rows`, by an embedding of exactly that input."""

    def __init__(self, input: Input):
        super().__init__()
        self._inputs = tensors(input)
        self.rows: List[Optional[int]] = [None] * len(self._inputs)
        self.whole_numbers = False
        self._own: Set[int] = set()  # inputs with an embedding of exactly them

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = operations.name_of(func)
        if name == "aten::_to_copy" and args[0].is_floating_point() and not out.is_floating_point():
            self.whole_numbers = True
        if name == "aten::embedding":
            self._see(args[0].size(0), args[1])
        return out

    def _see(self, rows: int, ids: torch.Tensor) -> None:
        for k, input in enumerate(self._inputs):
            if input.is_floating_point():
                continue
            is_own = ids.shape == input.shape and ids.dtype == input.dtype and torch.equal(ids, input)
            if is_own and k not in self._own:
                self._own.add(k)
                self.rows[k] = rows
            elif is_own or k not in self._own and len(self._inputs) == 1:  # of a part of the only input, or of something else
                self.rows[k] = min(rows, self.rows[k] or rows)


def uncalled(paths: Mapping[str, torch.nn.Module], called: Set[str]) -> List[str]:
    """Modules with trained parameters or dropout that neither ran nor are children of one that did."""
    def matters(module: torch.nn.Module) -> bool:
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            return module.p > 0
        return any(p.requires_grad for p in module._parameters.values() if p is not None)
    return [path for path, module in paths.items()
            if path not in called and path.rpartition(".")[0] not in called and matters(module)]


@contextlib.contextmanager
def perturbed(roots: List[torch.nn.Module]) -> Iterator[None]:
    """While entered, parameters and running statistics whose elements are all equal have other values. Otherwise they would
    hide missing operations: an adapter of zeros hides its factor, and a new normalization hides a second one."""
    generator = torch.Generator().manual_seed(4)
    before: List[Tuple[torch.Tensor, torch.Tensor]] = []
    known = {id(tensor): tensor for root in roots for tensor in root.parameters()}
    known.update({id(tensor): tensor for root in roots for name, tensor in root.named_buffers() if name.endswith(("running_mean", "running_var"))})
    try:
        with torch.no_grad():
            for tensor in known.values():
                if tensor.dtype == torch.float32 and tensor.numel() > 0 and bool((tensor == tensor.reshape(-1)[0]).all()):
                    before.append((tensor, tensor.clone()))
                    noise = torch.rand(tensor.shape, generator=generator)
                    tensor.copy_(tensor * (0.9 + 0.2 * noise) if float(tensor.reshape(-1)[0]) != 0 else 0.04 * noise - 0.02)
        yield
    finally:
        with torch.no_grad():
            for tensor, content in before:
                tensor.copy_(content)


@contextlib.contextmanager
def scaled(tensors: List[torch.Tensor], exponent: int) -> Iterator[None]:
    """While entered, parameters are multiplied by a power of two, which is exact."""
    distinct = list({id(tensor): tensor for tensor in tensors if tensor.is_floating_point()}.values())
    with torch.no_grad():
        for tensor in distinct:
            tensor.mul_(2.0 ** exponent)
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor in distinct:
                tensor.mul_(2.0 ** -exponent)


@contextlib.contextmanager
def preserved_generators() -> Iterator[None]:
    """Restores the random generators of Python, NumPy and PyTorch."""
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.set_rng_state(states[2])
