"""Which operations a package may use, and what is known of the others.

`operations.txt` is the list; Motley's workers have the same one.
"""

from __future__ import annotations

import functools
import os
from typing import Any, FrozenSet

DROPPED = frozenset({"device", "layout", "pin_memory", "non_blocking", "generator"})
"""Arguments that a package does not write: the worker decides them."""

RANDOM = frozenset({
    "alpha_dropout", "bernoulli", "cauchy", "exponential", "feature_alpha_dropout", "feature_dropout", "geometric",
    "log_normal", "multinomial", "native_dropout", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
    "binomial", "randn", "randn_like", "random", "randperm", "rrelu_with_noise", "uniform", "_fused_dropout", "_sample_dirichlet", "_standard_gamma"})

DATA_DEPENDENT = frozenset({
    "_local_scalar_dense", "equal", "is_nonzero", "item", "masked_select", "nonzero", "unique_consecutive", "unique_dim",
    "_unique", "_unique2"})


ARITHMETIC = frozenset({"aten::add.Tensor", "aten::div.Tensor", "aten::mul.Tensor", "aten::sub.Tensor"})
"""Operations of two tensors that take a number in place of one."""


@functools.lru_cache(maxsize=None)
def allowed() -> FrozenSet[str]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operations.txt")
    with open(path, encoding="utf-8") as file:
        return frozenset(line.strip() for line in file if line.strip())


def name_of(func: Any) -> str:
    """The overload `func` as LibTorch names it, `aten::add.Tensor`."""
    overload = func._overloadname
    return func._schema.name if overload in ("", "default") else f"{func._schema.name}.{overload}"


def is_view(func: Any) -> bool:
    """Whether the results share the first argument's memory."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def find(name: str) -> Any:
    """The overload of a name that `name_of` gave."""
    import torch
    space, rest = name.split("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
