"""The memory of a model's activations, from their shapes."""

from __future__ import annotations

from typing import Dict

import torch

from .intercept import Intercept
from .layers import Call
from .named import Input, count, each
from .virtual import Virtual, preserved_attributes, without_values

_LARGE_BYTES = 1 << 30


def saved_bytes(root: torch.nn.Module, call: Call, input: Input) -> int:
    """The bytes that autograd saves, without parameters, in the forward of `input` by `call`, which calls `root`; 0 if it does not
    run without values."""
    found: Dict[int, int] = {}

    def save(tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, Virtual) and not isinstance(tensor, torch.nn.Parameter):
            found[tensor.memory] = max(found.get(tensor.memory, 0), tensor.numel() * tensor.element_size())
        return tensor

    try:
        with preserved_attributes(root), torch.enable_grad(), Intercept(), \
                torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            call(each(without_values, input))
    except Exception:  # any that the model's code raises
        return 0
    return sum(found.values())


def sample_count(root: torch.nn.Module, call: Call, input: Input) -> int:
    """The number of samples of `input` for a forward and backward: one if the activations of all are large."""
    return 1 if saved_bytes(root, call, input) > _LARGE_BYTES else count(input)
