"""The operation `motley::dropout_mask`: a mask that is a function of its position, never of earlier draws.

In training it is a function of (seed, step, micro-batch, layer, index, position). While packages are traced, checked and
interpreted, and while a worker compares a layer with its reference (docs/formats/package.md), it is a function of (seed, index,
position), so that a model and its graphs use the same masks.
"""

from __future__ import annotations

import numpy
import torch

from . import hashed

library = torch.library.Library("motley", "DEF")
library.define("dropout_mask(Tensor like, float p, int index) -> Tensor")

seed = 0
"""Seed of all masks and of all numbers of random_numbers.py."""


FRESH = -1
"""Instead of an index: the next draw of the traced layer; without a trace, PyTorch's random numbers."""


def _mask(like: torch.Tensor, p: float, index: int) -> torch.Tensor:
    if p >= 1:
        return torch.zeros_like(like)
    if index == FRESH:
        return torch.bernoulli(torch.full_like(like, 1 - p)) * float(numpy.float32(1 / (1 - p)))
    state = hashed.stream(seed, hashed.DROPOUT, index)
    kept = numpy.empty(like.numel(), dtype=bool)
    for begin, end in hashed.parts(like.numel()):
        kept[begin:end] = hashed.fractions(state, begin, end) >= p
    return torch.from_numpy(kept).reshape(like.shape).to(like.dtype) * float(numpy.float32(1 / (1 - p)))


library.impl("dropout_mask", _mask, "CPU")


def mask(like: torch.Tensor, p: float, index: int) -> torch.Tensor:
    """A mask in the shape of `like`: 0 with probability p, else 1 / (1 - p)."""
    return torch.ops.motley.dropout_mask(like.detach(), p, index)
