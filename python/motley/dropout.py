"""The operation `motley::dropout_mask`: a mask that is a function of its place, never of what ran before.

In a worker it is a function of (seed, step, micro-batch, layer, index, place). Here, where packages are traced, checked
and interpreted, it is one of (seed, index, shape), so that a model and its graphs meet the same masks.
"""

from __future__ import annotations

import torch

_library = torch.library.Library("motley", "DEF")
_library.define("dropout_mask(Tensor like, float p, int index) -> Tensor")

seed = 0
"""Changes all masks."""


def _mask(like: torch.Tensor, p: float, index: int) -> torch.Tensor:
    if p >= 1:
        return torch.zeros_like(like)
    generator = torch.Generator().manual_seed(seed * 1_000_003 + index)
    kept = torch.rand(like.shape, generator=generator) >= p
    return kept.to(like.dtype) / (1 - p)


_library.impl("dropout_mask", _mask, "CPU")


def mask(like: torch.Tensor, p: float, index: int) -> torch.Tensor:
    """A mask in the shape of `like`: 0 with probability p, else 1 / (1 - p)."""
    return torch.ops.motley.dropout_mask(like.detach(), p, index)
