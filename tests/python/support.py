"""Helpers shared by the tests of the Python package: exporting a single module, and bit-exact comparison with eager
PyTorch."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from typing import Any, Callable, Iterator, Optional, Tuple

import torch
import torch.nn as nn
import torch.utils._pytree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import motley  # noqa: E402
from motley.interpret import Package  # noqa: E402

torch.set_num_threads(1)


@contextlib.contextmanager
def imported(name: str, module: Any) -> Iterator[None]:
    """Inside, `module` is the imported module `name`. Other imports inside persist, unlike with mock.patch.dict(sys.modules): PyTorch
    registers operators when it is imported, and fails if it is imported again."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


class Function(nn.Module):
    """A function as a module, with a parameter so that there is something to train."""

    def __init__(self, function: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.5))
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x * self.weight)


def total(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """A loss for any output shape; its gradients differ between elements."""
    return (output * torch.sin(output)).sum(), torch.full((), output.size(0), dtype=torch.int64)


class Folder:
    """A temporary folder for packages, removed at the end of the test."""

    def __enter__(self) -> "Folder":
        self._folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_: Any) -> None:
        self._folder.cleanup()

    def path(self, name: str) -> str:
        return os.path.join(self._folder.name, name)


def export_layers(folder: Folder, layers: Any, input: torch.Tensor, loss: Any = total,
                  target: Optional[torch.Tensor] = None, **options: Any) -> Tuple[motley.Exported, Package]:
    """Writes `layers` as a package and reads it back."""
    target = torch.zeros(input.size(0)) if target is None else target
    done = motley.export(layers, loss, (input, target), folder.path("x.motley"), **options)
    return done, Package.open(done.path)


def exported(layers: Any, input: torch.Tensor, loss: Any, target: torch.Tensor, **options: Any) -> motley.Exported:
    """Returns the output of `export` for `layers`, with its warnings as notices alone; the default loss is cross
    entropy."""
    with Folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return motley.export(layers, loss or nn.CrossEntropyLoss(), (input, target), folder.path("x"), **options)


def eager(module: Callable[[torch.Tensor], Any], parameters: Any, input: torch.Tensor, target: torch.Tensor, loss: Any = total
          ) -> Tuple[torch.Tensor, Tuple[torch.Tensor, ...]]:
    """Loss and gradients by autograd, independent of Motley."""
    value = loss(module(input), target)[0]
    return value.detach(), torch.autograd.grad(value, parameters)


class Boundary(torch.autograd.Function):
    """Motley packs tensors and their gradients between layers, PyTorch does not; kernels may round differently by
    layout."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.contiguous()


def boundary(value: Any) -> Any:
    """A layer's result as the next layer receives it."""
    return torch.utils._pytree.tree_map(lambda x: Boundary.apply(x) if isinstance(x, torch.Tensor) else x, value)
