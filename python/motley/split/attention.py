"""Functions for language models of several releases of `transformers`."""

from __future__ import annotations

import inspect
from typing import Any, Optional

import torch


def has(module: Any, *paths: str) -> bool:
    """Whether a module has all of these attributes."""
    for path in paths:
        owner = module
        for part in path.split("."):
            owner = getattr(owner, part, None)
            if owner is None:
                return False
    return True


def causal_mask(x: torch.Tensor, window: Optional[int] = None) -> torch.Tensor:
    """The additive mask [batch, 1, query, key] for the scores of `x`: a position attends neither to later positions nor to
    those that are `window` or more before it."""
    length = x.size(1)
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    if window is not None:
        seen = seen.triu(1 - window)
    return torch.zeros(length, length).masked_fill(~seen, torch.finfo(torch.float32).min).expand(x.size(0), 1, -1, -1)


def call(attention: torch.nn.Module, x: torch.Tensor, **offered: Any) -> torch.Tensor:
    """The attention of `x`, with the arguments of `offered` that this release accepts. Only the first of several results is
    returned."""
    accepted = inspect.signature(attention.forward).parameters
    accepts_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in accepted.values())
    out = attention(x, **{name: value for name, value in offered.items() if accepts_all or name in accepted})
    return out[0] if isinstance(out, tuple) else out
