"""The memory of a model's activations, from their shapes."""

from __future__ import annotations

from typing import Dict

import torch

from .intercept import Intercept
from .layers import Call
from .virtual import Virtual, attributes_as_before, without_values

_LARGE_BYTES = 1 << 30


def saved_bytes(root: torch.nn.Module, call: Call, input: torch.Tensor) -> int:
    """What autograd saves when `call`, a call of `root`, computes a forward of `input`, other than parameters; 0 if it does not run
    without values."""
    found: Dict[int, int] = {}

    def save(tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, Virtual) and not isinstance(tensor, torch.nn.Parameter):
            found[tensor.memory] = max(found.get(tensor.memory, 0), tensor.numel() * tensor.element_size())
        return tensor

    try:
        with attributes_as_before(root), torch.enable_grad(), Intercept(), torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            call(without_values(input))
    except Exception:  # any that the model's code raises
        return 0
    return sum(found.values())


def samples(root: torch.nn.Module, call: Call, input: torch.Tensor) -> int:
    """As many samples of `input` as a forward and backward may have; one if the activations of all are large."""
    return 1 if saved_bytes(root, call, input) > _LARGE_BYTES else input.size(0)
