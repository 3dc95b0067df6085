"""A model whose frozen parts have smaller floats, as float32 while it runs: that is what packages compute in."""

from __future__ import annotations

import contextlib
from typing import Iterable, Iterator, List, Tuple

import torch

SMALLER = (torch.float16, torch.bfloat16)


@contextlib.contextmanager
def as_float32(tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """Inside, frozen parameters and buffers of 16 bits have the same values in float32. What trains is left as it is, for its
    owner has to decide in what it is kept afterwards."""
    before: List[Tuple[torch.Tensor, torch.Tensor]] = []
    try:
        for tensor in tensors:
            if tensor.dtype in SMALLER and not tensor.requires_grad:
                before.append((tensor, tensor.data))
                tensor.data = tensor.data.float()
        yield
    finally:
        for tensor, data in before:
            tensor.data = data
