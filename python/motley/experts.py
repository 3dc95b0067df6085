"""Mixtures of experts of transformers, computed by operations that do not depend on the routing.

Implementations of transformers sort the tokens by expert, so that the sizes of products depend on values. While a model is traced,
each expert computes all tokens, and the weights of tokens that the routing sends elsewhere are 0: the same results and gradients.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, List, Optional

import torch
import torch.nn.functional as F

_ATTRIBUTES = ("config", "down_proj", "has_bias", "has_gate", "has_post_expert_norm", "is_transposed", "num_experts", "_apply_gate")
"""Of modules that transformers' `use_experts_implementation` decorates."""

_OF_ITS_OWN = "batched_mm"
"""An implementation of transformers that packages support: a product with a copy of the weights for each token."""


def _replaced(root: torch.nn.Module) -> List[torch.nn.Module]:
    found = []
    for module in root.modules():
        if all(hasattr(module, name) for name in _ATTRIBUTES) and getattr(module.config, "_experts_implementation", _OF_ITS_OWN) != _OF_ITS_OWN:
            if not getattr(module, "_is_expert_parallel", False) and "forward" not in vars(module):
                found.append(module)
    return found


@contextlib.contextmanager
def computed_for_all_tokens(roots: List[torch.nn.Module]) -> Iterator[None]:
    """While entered, each expert computes all tokens."""
    modules = [module for root in roots for module in _replaced(root)]
    for module in modules:
        module.forward = functools.partial(_forward, module)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for module in modules:
            vars(module).pop("forward", None)


def notice(roots: List[torch.nn.Module]) -> Optional[str]:
    modules = [module for root in roots for module in _replaced(root)]
    if not modules:
        return None
    return (f"each of the {modules[0].num_experts} experts of {type(modules[0]).__name__} computes all tokens, since the operations of a package do "
            "not depend on the routing: more products than in transformers, for the same results")


def _forward(own: Any, tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """`tokens` [token, width]; `experts` and `weights` [token, choice]."""
    into = (own.gate_up_proj if own.has_gate else own.up_proj).unbind(0)
    out_of = own.down_proj.unbind(0)
    none = [None] * len(out_of)
    into_biases = (own.gate_up_proj_bias if own.has_gate else own.up_proj_bias).unbind(0) if own.has_bias else none
    out_of_biases = own.down_proj_bias.unbind(0) if own.has_bias else none
    total: Any = 0
    for k in range(len(out_of)):
        hidden = _linear(tokens, into[k], into_biases[k], own.is_transposed)
        hidden = own._apply_gate(hidden) if own.has_gate else own.act_fn(hidden)
        result = _linear(hidden, out_of[k], out_of_biases[k], own.is_transposed)
        if own.has_post_expert_norm:
            result = own.post_expert_norm(result)
        total = total + result * (weights * (experts == k)).sum(-1, keepdim=True)
    return total.to(tokens.dtype)


def _linear(input: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], is_transposed: bool) -> torch.Tensor:
    return F.linear(input, weight.t() if is_transposed else weight, bias)
