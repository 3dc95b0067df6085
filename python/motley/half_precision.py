"""Models with frozen tensors in half precision: they are float32 while the model runs, since packages compute in float32."""

from __future__ import annotations

import contextlib
from typing import Iterable, Iterator, List, Tuple

import torch

HALF_TYPES = (torch.float16, torch.bfloat16)


@contextlib.contextmanager
def as_float32(tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """While entered, frozen 16-bit parameters and buffers have the same values in float32. Trained parameters keep their type,
    which is the user's choice."""
    before: List[Tuple[torch.Tensor, torch.Tensor]] = []
    try:
        for tensor in tensors:
            if tensor.dtype in HALF_TYPES and not tensor.requires_grad:
                before.append((tensor, tensor.data))
                tensor.data = tensor.data.float()
        yield
    finally:
        for tensor, data in before:
            tensor.data = data
