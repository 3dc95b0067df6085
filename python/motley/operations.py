"""The operations of packages, and properties of these and other operations.

`operations.txt` lists the supported operations, `contiguous_arguments.txt` their arguments that must be contiguous, and
`narrow_operations.txt` those that accept constants of narrow types. Motley's workers use the same lists.
"""

from __future__ import annotations

import functools
import os
from typing import Any, FrozenSet, List, Mapping, Sequence, Tuple

import torch

DROPPED = frozenset({"device", "layout", "pin_memory", "non_blocking", "generator"})
"""Arguments that a package omits: the worker determines them."""

RANDOM = frozenset({
    "alpha_dropout", "bernoulli", "cauchy", "exponential", "feature_alpha_dropout", "feature_dropout", "geometric",
    "log_normal", "multinomial", "native_dropout", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
    "binomial", "randn", "randn_like", "random", "randperm", "rrelu_with_noise", "uniform", "_fused_dropout", "_sample_dirichlet", "_standard_gamma"})

DATA_DEPENDENT = frozenset({
    "_local_scalar_dense", "equal", "is_nonzero", "item", "masked_select", "nonzero", "unique_consecutive", "unique_dim",
    "_unique", "_unique2"})


ARITHMETIC = frozenset({"aten::add.Tensor", "aten::div.Tensor", "aten::mul.Tensor", "aten::sub.Tensor"})
"""Operations of two tensors that accept a number instead of one."""


def _lines(name: str) -> List[str]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


@functools.lru_cache(maxsize=None)
def allowed() -> FrozenSet[str]:
    return frozenset(_lines("operations.txt"))


@functools.lru_cache(maxsize=None)
def accepts_narrow() -> FrozenSet[str]:
    """The operations that accept a constant of a narrow type: views, selections, and operations on its bits."""
    return frozenset(_lines("narrow_operations.txt"))


@functools.lru_cache(maxsize=None)
def contiguous_arguments() -> Mapping[str, FrozenSet[str]]:
    """[operation] the names of arguments that its kernels, in some version of PyTorch, assume or require to be contiguous."""
    return {words[0]: frozenset(words[1:]) for words in map(str.split, _lines("contiguous_arguments.txt"))}


RESHAPING_VIEWS = frozenset({"aten::view", "aten::_unsafe_view"})
"""Views that raise for some layouts. Values of a graph are never written to, so a copy is equivalent."""


@functools.lru_cache(maxsize=None)
def name_of(func: Any) -> str:
    """The overload `func` as LibTorch names it, `aten::add.Tensor`."""
    overload = func._overloadname
    return func._schema.name if overload in ("", "default") else f"{func._schema.name}.{overload}"


PRODUCTS = frozenset({
    "aten::_convolution", "aten::addmm", "aten::baddbmm", "aten::bmm", "aten::convolution", "aten::convolution_backward", "aten::mm"})
"""The operations that a worker computes in `train.precision` (models/graph/rounded_product.cc)."""


@functools.lru_cache(maxsize=None)
def is_view(func: Any) -> bool:
    """Whether the results share the first argument's memory."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


@functools.lru_cache(maxsize=None)
def writes(func: Any) -> bool:
    """Whether it writes to an argument."""
    return any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)


def with_tensors(name: str, args: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The arguments of an operation under a dispatch mode: autograd passes a complex factor of Python to `_conj`, which accepts tensors
    alone."""
    if name == "aten::_conj" and isinstance(args[0], complex):
        return (torch.scalar_tensor(args[0], dtype=torch.complex64),)
    return args


def run(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of the operation `name` for any layout of its arguments, as in Motley's workers
    (models/graph/kernel_layouts.h)."""
    if name in RESHAPING_VIEWS and not args[0].is_contiguous():
        return args[0].reshape(*args[1:])
    return run_kernel(find(name), name, args, kwargs)


def run_kernel(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of `func`, the operation `name`, with arguments in the layouts that its kernels need."""
    names = contiguous_arguments().get(name)
    if names is None:
        return func(*args, **kwargs)

    def laid_out(argument: str, value: Any) -> Any:
        return value.contiguous() if argument in names and isinstance(value, torch.Tensor) else value

    places = [argument.name for argument in func._schema.arguments]
    return func(*map(laid_out, places, args), **{key: laid_out(key, value) for key, value in kwargs.items()})


@functools.lru_cache(maxsize=None)
def find(name: str) -> Any:
    """The overload with this name of `name_of`."""
    space, rest = name.split("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
