"""Custom autograd functions while a whole model is compared or traced; reentrant activation checkpointing is one of them."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional, Tuple

import torch

AsCall = Callable[[Callable[..., Any], Tuple[Any, ...], Callable[[], Any]], Any]
"""The type of `Recorder.as_call`."""


class _Apply:
    """Calls `apply` of a custom autograd function."""

    def __init__(self, function: Any):
        self._function = function
        self.__qualname__ = function.__name__

    def __call__(self, *args: Any) -> Any:
        return self._function.apply(*args)


@contextlib.contextmanager
def intercepted(as_call: Optional[AsCall] = None) -> Iterator[None]:
    """While entered, activation checkpointing runs its function once, without recomputation, which is configured for the
    training of the package. Other functions are passed to `as_call`."""
    owner: Any = torch.autograd.Function
    original = owner.__dict__.get("apply")

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls.__name__ == "CheckpointFunction":
            return args[0](*args[2:])
        bound = original.__get__(None, cls) if original is not None else super(owner, cls).apply
        if as_call is None or kwargs or any(isinstance(leaf, dict) for leaf in args):
            return bound(*args, **kwargs)
        return as_call(_Apply(cls), args, lambda: bound(*args))

    owner.apply = classmethod(apply)
    try:
        yield
    finally:
        if original is not None:
            owner.apply = original
        else:
            del owner.apply
