"""Compares a package that was made with the model that it was made from, before it is written."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_map

from .errors import ExportError
from .graph import Take
from .intercept import Intercept
from .interpret import Package
from .layers import Layers
from .losses import Loss
from .modules import ModuleStack

SAMPLES = 4
"""A batch size that is not traced."""

LARGEST_DIFFERENCE = 1e-4
"""Between the same operations on the same PyTorch nothing differs; decompositions round differently."""


def against_eager(package: Package, described: Layers, loss: Loss, example: Tuple[torch.Tensor, torch.Tensor],
                  modules: ModuleStack) -> float:
    """The largest relative difference of loss and gradients between `package` and the modules. Refuses a wrong one."""
    description = package.description
    generator = torch.Generator().manual_seed(1)
    input = _like(example[0], description["input_limit"], generator)
    target = _like(example[1], description["target_limit"], generator)
    for _, root in described.roots:
        root.train()
    eager = eager_step(described, loss, input, target, modules, [p["name"] for l in description["layers"] for p in l["parameters"]],
                       package.tensors)
    step = package.train(input, target)
    try:
        worst = _compare("the loss", step.loss, eager.loss)
    except ExportError as error:
        error.module = _first_wrong_layer(package, described, input, modules)
        raise
    for name, gradient in eager.gradients.items():
        worst = max(worst, _compare(f"the gradient of {name}", step.gradients[name], gradient))
    for name, seen in eager.observed.items():
        worst = max(worst, _compare(f"what was observed of {name}", step.observed[name], seen))
    for _, root in described.roots:
        root.eval()
    score = eager_score(described, input, modules)
    return max(worst, _compare("the evaluated output", package.score(input), score))


def _first_wrong_layer(package: Package, described: Layers, input: torch.Tensor, modules: ModuleStack) -> str:
    value: Any = input.clone()
    for k, (name, call) in enumerate(described.layers[:-1]):
        modules.start(name)
        found = package.forward(k, tree_flatten(value)[0], None)
        with torch.no_grad(), Intercept(_fail):
            value = call(boundary(value) if k else value)
        for index, right in enumerate(tree_flatten(value)[0]):
            given = found[Take("output", index)]
            if given.shape != right.shape or not float((given - right).abs().max()) <= LARGEST_DIFFERENCE * float(right.abs().max()):
                return name
    return described.layers[-1][0]


class Eager(NamedTuple):
    loss: torch.Tensor
    gradients: Dict[str, torch.Tensor]
    observed: Dict[str, torch.Tensor]


def eager_step(described: Layers, loss: Loss, input: torch.Tensor, target: torch.Tensor, modules: ModuleStack,
               names: List[str], tensors: Mapping[str, torch.Tensor]) -> Eager:
    """Forward and backward of the modules by autograd."""
    value: Any = input.clone()
    by_id = {id(tensor): name for name, tensor in tensors.items()}
    observed = {}
    for k, (name, call) in enumerate(described.layers):
        modules.start(name)
        with Intercept(_fail) as intercept:
            value = call(boundary(value) if k else value)
            if k + 1 == len(described.layers):
                value = loss.terms(value, target)[0]
        observed.update({by_id[id(seen.tensor)]: seen.value for seen in intercept.observed})
    distinct = list(dict.fromkeys(names))
    gradients = torch.autograd.grad(value, [tensors[name] for name in distinct])
    return Eager(value.detach(), dict(zip(distinct, gradients)), observed)


class Boundary(torch.autograd.Function):
    """Between layers tensors and their gradients are packed, which PyTorch alone does not do; kernels may round by layout."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.contiguous()


def boundary(value: Any) -> Any:
    """What a layer returned, as the next one gets it."""
    return tree_map(lambda x: Boundary.apply(x) if isinstance(x, torch.Tensor) else x, value)


def eager_score(described: Layers, input: torch.Tensor, modules: ModuleStack) -> torch.Tensor:
    value: Any = input.clone()
    with torch.no_grad():
        for k, (name, call) in enumerate(described.layers):
            modules.start(name)
            with Intercept(_fail):
                value = call(boundary(value) if k else value)
    return value


def _fail(reason: str, remedy: str) -> ExportError:
    return ExportError(reason, remedy)


def _like(example: torch.Tensor, limit: int, generator: torch.Generator) -> torch.Tensor:
    """Other samples than the example's, of its kind."""
    shape = (SAMPLES,) + tuple(example.shape[1:])
    if example.dtype == torch.int64:
        return torch.randint(limit, shape, generator=generator)
    spread = float(example.std()) if example.numel() > 1 else 1.0
    return torch.randn(shape, generator=generator) * (spread or 1.0) + float(example.mean())


def _compare(what: str, found: torch.Tensor, right: torch.Tensor) -> float:
    if found.shape != right.shape:
        raise ExportError(f"{what} has shape {tuple(found.shape)} in the package and {tuple(right.shape)} in PyTorch",
                          "The layers must do the same for any batch; this may be a mistake of Motley")
    if torch.equal(found, right):
        return 0.0
    scale = float(right.abs().max())
    difference = float((found - right).abs().max()) / (scale or 1.0)
    if not difference <= LARGEST_DIFFERENCE:
        raise ExportError(f"{what} differs from PyTorch's by {difference:.2g} of its largest element, on other data than "
                          "was traced", "The layers use values that were taken out of tensors (tolist, numpy), keep state "
                          "between calls, or do not do the same for any batch")
    return difference
