"""Which operations a package may use, and what is known of them and of the others.

`operations.txt` is the list, `contiguous_arguments.txt` says which arguments of them must be contiguous, and
`narrow_operations.txt` which of them take constants of narrow types. Motley's workers have the same ones.
"""

from __future__ import annotations

import functools
import os
from typing import Any, FrozenSet, List, Mapping, Sequence

import torch

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


def _lines(name: str) -> List[str]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


@functools.lru_cache(maxsize=None)
def allowed() -> FrozenSet[str]:
    return frozenset(_lines("operations.txt"))


@functools.lru_cache(maxsize=None)
def of_narrow() -> FrozenSet[str]:
    """Those that take a constant of a narrow type as it is: they show or select parts of it, or of its bits."""
    return frozenset(_lines("narrow_operations.txt"))


@functools.lru_cache(maxsize=None)
def contiguous_arguments() -> Mapping[str, FrozenSet[str]]:
    """[operation] names of the arguments that its kernels, in some version of PyTorch, read as if they were contiguous, or
    refuse where they are not."""
    return {words[0]: frozenset(words[1:]) for words in map(str.split, _lines("contiguous_arguments.txt"))}


VIEWS_IN_OTHER_SIZES = frozenset({"aten::view", "aten::_unsafe_view"})
"""Refused for layouts that do not allow them; values of a graph are never written to, so that a copy is as good."""


def name_of(func: Any) -> str:
    """The overload `func` as LibTorch names it, `aten::add.Tensor`."""
    overload = func._overloadname
    return func._schema.name if overload in ("", "default") else f"{func._schema.name}.{overload}"


PRODUCTS = frozenset({
    "aten::_convolution", "aten::addmm", "aten::baddbmm", "aten::bmm", "aten::convolution", "aten::convolution_backward", "aten::mm"})
"""What a worker computes in the numbers of `train.precision` (models/graph/rounded_product.cc)."""


def is_view(func: Any) -> bool:
    """Whether the results share the first argument's memory."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def run(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the operation of this name makes, whatever the layout of its arguments, as in Motley's workers
    (models/graph/kernel_layouts.h)."""
    if name in VIEWS_IN_OTHER_SIZES and not args[0].is_contiguous():
        return args[0].reshape(*args[1:])
    return run_kernel(find(name), name, args, kwargs)


def run_kernel(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`func`, the operation of this name, of arguments in the layout that its kernels need."""
    names = contiguous_arguments().get(name)
    if names is None:
        return func(*args, **kwargs)

    def laid_out(argument: str, value: Any) -> Any:
        return value.contiguous() if argument in names and isinstance(value, torch.Tensor) else value

    places = [argument.name for argument in func._schema.arguments]
    return func(*map(laid_out, places, args), **{key: laid_out(key, value) for key, value in kwargs.items()})


def find(name: str) -> Any:
    """The overload of a name that `name_of` gave."""
    space, rest = name.split("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
