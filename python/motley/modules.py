"""Tracks the running module for messages, and restores modules after a trace."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


_active: "List[ModuleStack]" = []
"""The stacks that are entered."""


def attribute_operations(path: Optional[str]) -> None:
    """Attributes subsequent operations to the module `path`, although it is not called; None resets this."""
    for stack in _active:
        stack.attribute(path)


class ModuleStack:
    """While entered, tracks the calls of modules. Modules without a name in `names` count as their caller."""

    def __init__(self, names: Dict[int, str]):
        self._names = names  # [id of a module]
        self._paths = set(names.values())
        self._stack: List[str] = []
        self._layer: Optional[str] = None
        self._handles: List[Any] = []
        self.called: List[str] = []
        """The modules that ran since the start of the layer."""

    def start(self, layer: str) -> None:
        self._layer = layer
        self._stack = []
        self.called = []

    def attribute(self, path: Optional[str]) -> None:
        self._stack = [path] if path else []
        if path in self._paths and path not in self.called[-1:]:
            self.called.append(str(path))

    def path(self) -> Optional[str]:
        return self._stack[-1] if self._stack else self._layer

    def __enter__(self) -> "ModuleStack":
        def begin(module: torch.nn.Module, _: Any) -> None:
            name = self._names.get(id(module))
            self._stack.append(name or self.path() or "")
            if name:
                self.called.append(name)

        def end(module: torch.nn.Module, _: Any, __: Any) -> None:
            self._stack.pop()

        self._handles = [register_module_forward_pre_hook(begin), register_module_forward_hook(end)]
        _active.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _active.remove(self)
        for handle in self._handles:
            handle.remove()


@contextlib.contextmanager
def preserved_state(roots: List[torch.nn.Module]) -> Iterator[None]:
    """Restores the modes of the modules and the values of their buffers."""
    modes = [(module, module.training) for root in roots for module in root.modules()]
    buffers = [(buffer, buffer.detach().clone()) for root in roots for buffer in root.buffers()]
    try:
        with torch.enable_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for buffer, content in buffers:
                if not torch.equal(buffer, content):
                    buffer.copy_(content)
