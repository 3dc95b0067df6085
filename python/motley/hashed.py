"""Counter-based random numbers: functions of their position, with the same bits in Python and in a worker
(docs/formats/package.md).

A stream is a 64-bit state derived from a seed, a purpose and an index; its element i is `mix(stream, i)`.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple, Union

import numpy

INPUT, TARGET, GRADIENT, PARAMETER, STATISTIC, DROPOUT, PLACES, SIGNS, DRAWN = range(1, 10)
"""The purposes of streams."""

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
PART = 1 << 20
"""Elements computed at once, to limit the memory for a large tensor."""
_FRACTION = 1 << 24
"""Multiples of its inverse in [0, 1) are exact in float32."""


def mix(state: int, element: int) -> int:
    """Element `element` of SplitMix64 with the initial state `state`."""
    z = (state + (element + 1) * _GOLDEN) & _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def stream(seed: int, purpose: int, index: int = 0) -> int:
    return mix(mix(mix(0, seed), purpose), index)


def bits(state: int, begin: int, end: int) -> Any:
    """Elements `begin` to `end` of a stream."""
    with numpy.errstate(over="ignore"):
        z = numpy.arange(begin + 1, end + 1, dtype=numpy.uint64)
        z *= numpy.uint64(_GOLDEN)
        z += numpy.uint64(state)
        z ^= z >> numpy.uint64(30)
        z *= numpy.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> numpy.uint64(27)
        z *= numpy.uint64(0x94D049BB133111EB)
        z ^= z >> numpy.uint64(31)
    return z


def parts(count: int) -> Iterator[Tuple[int, int]]:
    for begin in range(0, count, PART):
        yield begin, min(count, begin + PART)


def fractions(state: int, begin: int, end: int) -> Any:
    """Multiples of 2^-24 from 0 to below 1, as float64."""
    return (bits(state, begin, end) >> numpy.uint64(40)).astype(numpy.float64) / _FRACTION


def words(state: int, begin: int, end: int) -> Any:
    """The upper 32 bits of elements."""
    return bits(state, begin, end) >> numpy.uint64(32)


def uniform(state: int, begin: int, end: int, low: float, width: float) -> Any:
    """From `low` to `low + width`. Both are float32 values, so the product is exact, and the sum is rounded the same
    everywhere."""
    return (low + width * fractions(state, begin, end)).astype(numpy.float32)


def choice(state: int, begin: int, end: int, values: Union[List[float], List[int]]) -> Any:
    return numpy.asarray(values)[(bits(state, begin, end) % numpy.uint64(len(values))).astype(numpy.int64)]


def below(state: int, begin: int, end: int, limit: int) -> Any:
    return (bits(state, begin, end) % numpy.uint64(limit)).astype(numpy.int64)


def places(seed: int, count: int, wanted: int) -> Any:
    """The sampled indices of `count` elements: all if they are few enough."""
    if count <= wanted:
        return numpy.arange(count)
    return below(stream(seed, PLACES), 0, wanted, count)
