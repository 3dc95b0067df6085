"""Models without weights: their parameters have shapes but no values, which are in a folder of safetensors files."""

from __future__ import annotations

import contextlib
from typing import Dict, Iterator, List, Optional, Tuple

import torch

from . import initialisers, virtual
from .errors import ExportError
from .virtual import Virtual, without_values


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
    """While entered, new modules have parameters without values, and initialisers have no effect on them. Buffers, which modules
    compute, have values.

    >>> with motley.without_weights():
    ...     model = Net()
    >>> motley.export(model, loss, example, "net.motley", folder="trained")
    """
    original, outer = torch.nn.Module.register_parameter, virtual.creation

    def register(module: torch.nn.Module, name: str, parameter: Optional[torch.nn.Parameter]) -> None:
        if parameter is not None and not isinstance(parameter, Virtual):
            parameter = torch.nn.Parameter(without_values(parameter, is_weight=True), requires_grad=parameter.requires_grad)
        original(module, name, parameter)

    torch.nn.Module.register_parameter = register  # type: ignore[method-assign]
    virtual.creation = initialisers.Creation(initialisers.caller())
    try:
        with initialisers.skipped():
            yield
    finally:
        virtual.creation = outer
        torch.nn.Module.register_parameter = original  # type: ignore[method-assign]


def check_buffers(roots: List[torch.nn.Module]) -> None:
    """Refuses buffers without values: only parameters are read from a folder."""
    for root in roots:
        for name, buffer in root.named_buffers():
            if isinstance(buffer, Virtual) or buffer.device.type == "meta":
                raise ExportError(f"the buffer {name} is computed from weights, which have no values here",
                                  "Export the model from memory, or compute the buffer in forward",
                                  name.rpartition(".")[0] or None)


@contextlib.contextmanager
def with_values(roots: List[torch.nn.Module], values: Dict[int, torch.nn.Parameter]) -> Iterator[None]:
    """While entered, parameters without values are replaced. `values`: [id of the replaced parameter] its replacement."""
    before: List[Tuple[torch.nn.Module, str, torch.nn.Parameter]] = []
    try:
        for root in roots:
            for module in root.modules():
                for key, parameter in module._parameters.items():
                    if parameter is not None and id(parameter) in values:
                        before.append((module, key, parameter))
        for module, key, parameter in before:
            module._parameters[key] = values[id(parameter)]
        yield
    finally:
        for module, key, parameter in before:
            module._parameters[key] = parameter
