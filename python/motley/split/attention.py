"""What language models of several releases of `transformers` have in common."""

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
    """What is added to the scores [batch, 1, query, key] of `x` so that no position sees a later one, nor one that is `window`
    or more before it."""
    length = x.size(1)
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    if window is not None:
        seen = seen.triu(1 - window)
    return torch.zeros(length, length).masked_fill(~seen, torch.finfo(torch.float32).min).expand(x.size(0), 1, -1, -1)


def call(attention: torch.nn.Module, x: torch.Tensor, **offered: Any) -> torch.Tensor:
    """The attention of `x`, with those of `offered` that this release takes. It may return a tuple."""
    accepted = inspect.signature(attention.forward).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in accepted.values())
    out = attention(x, **{name: value for name, value in offered.items() if takes_all or name in accepted})
    return out[0] if isinstance(out, tuple) else out
