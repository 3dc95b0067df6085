"""nn.Sequential: a layer for each module; nested nn.Sequential modules are flattened."""

from __future__ import annotations

from typing import List, Tuple

import torch

from ..layers import Call


def knows(model: torch.nn.Module) -> bool:
    return type(model) is torch.nn.Sequential and len(model) > 0


def layers(model: torch.nn.Module, prefix: str = "") -> List[Tuple[str, Call]]:
    """Modules without parameters and buffers belong to the layer before: as separate layers they would only add boundaries."""
    found: List[Tuple[str, List[torch.nn.Module]]] = []
    for name, module in _flat(model, prefix):
        bare = next(module.parameters(), None) is None and next(module.buffers(), None) is None
        if bare and found:
            found[-1][1].append(module)
        else:
            found.append((name, [module]))
    return [(name, modules[0] if len(modules) == 1 else _Chain(modules)) for name, modules in found]


class _Chain:
    """Calls modules in sequence."""

    def __init__(self, modules: List[torch.nn.Module]):
        self.modules = modules

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        for module in self.modules:
            x = module(x)
        return x


def _flat(model: torch.nn.Module, prefix: str) -> List[Tuple[str, torch.nn.Module]]:
    found: List[Tuple[str, torch.nn.Module]] = []
    for name, module in model._modules.items():  # includes modules that occur twice
        if module is None:
            continue
        if type(module) is torch.nn.Sequential:
            found += _flat(module, f"{prefix}{name}.")
        else:
            found.append((prefix + name, module))
    return found
