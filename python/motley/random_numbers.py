"""The operations `motley::uniform`, `normal`, `exponential` and `integers`: random numbers that are functions of their position.

In training they are functions of (seed, step, position of the sample in the step, layer, index, position in the sample); here
they are functions of (seed, index, position), like dropout masks (dropout.py).
"""

from __future__ import annotations

from typing import Any, Callable, List

import numpy
import torch

from . import dropout, hashed, quantiles

MAX_INTEGERS = 1 << 32
"""The largest size of the range of `integers`."""

for _name in ("uniform", "normal", "exponential"):
    dropout.library.define(f"{_name}(int[] size, int index) -> Tensor")
dropout.library.define("integers(int[] size, int low, int high, int index) -> Tensor")

OPERATIONS = frozenset({"motley::uniform", "motley::normal", "motley::exponential", "motley::integers"})


def _made(size: List[int], index: int, dtype: torch.dtype, numbers: Callable[[int, int, int], Any]) -> torch.Tensor:
    """A tensor whose elements `begin` to `end` are numbers(stream, begin, end)."""
    out = torch.empty(size, dtype=dtype)
    flat = out.view(-1).numpy()
    state = hashed.stream(dropout.seed, hashed.DRAWN, index) if index != dropout.FRESH else int(torch.randint(1 << 62, ()))
    for begin, end in hashed.parts(flat.size):
        flat[begin:end] = numbers(state, begin, end)
    return out


def _uniform(size: List[int], index: int) -> torch.Tensor:
    return _made(size, index, torch.float32, hashed.fractions)


def _normal(size: List[int], index: int) -> torch.Tensor:
    return _made(size, index, torch.float32, lambda *place: quantiles.normal(hashed.words(*place)))


def _exponential(size: List[int], index: int) -> torch.Tensor:
    return _made(size, index, torch.float32, lambda *place: quantiles.exponential(hashed.words(*place)))


def scaled(bits: Any, low: int, count: int) -> Any:
    """low + floor(bits / 2^64 * count), exactly, for 64 bits and at most 2^32 integers."""
    wide, half = numpy.uint64(count), numpy.uint64(32)
    lower = (bits & numpy.uint64(0xFFFFFFFF)) * wide >> half
    return ((bits >> half) * wide + lower >> half).astype(numpy.int64) + low


def _integers(size: List[int], low: int, high: int, index: int) -> torch.Tensor:
    return _made(size, index, torch.int64, lambda *place: scaled(hashed.bits(*place), low, high - low))


# Operations without tensor arguments are not dispatched by a device's key.
for _name, _function in (("uniform", _uniform), ("normal", _normal), ("exponential", _exponential), ("integers", _integers)):
    dropout.library.impl(_name, _function, "BackendSelect")
