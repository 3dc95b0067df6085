"""Digests of tensors in references, and the deviation of two digests (docs/formats/package.md, docs/numerics.md)."""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, Iterator, List, NamedTuple

import numpy
import torch

from . import hashed, pieces

PROJECTIONS = 4
_OUTLIERS = 8
"""One of this many samples is ignored as an outlier: a ReLU or a maximum may switch."""


class Digest(NamedTuple):
    count: int
    nonfinite: int
    """The number of elements that are not finite; they count as 0."""
    norm: float
    largest: float
    projections: List[float]
    """Sums with seeded random signs; their root mean square is the norm of the tensor."""
    samples: List[float]

    def json(self) -> Dict[str, Any]:
        short = [float(f"{x:.9g}") for x in (self.norm, self.largest, *self.projections, *self.samples)]
        return {"count": self.count, "nonfinite": self.nonfinite, "norm": short[0], "largest": short[1],
                "projections": short[2:2 + PROJECTIONS], "samples": short[2 + PROJECTIONS:]}


def digest(tensor: torch.Tensor, seed: int, samples: int) -> Digest:
    tensor = tensor.detach() if tensor.dim() else tensor.detach().reshape(1)
    signs = hashed.stream(seed, hashed.SIGNS)
    nonfinite, squares, largest, begin = 0, 0.0, 0.0, 0
    projections = [0.0] * PROJECTIONS
    for x in _parts(tensor):
        squared = float(x @ x)
        if not math.isfinite(squared):
            finite = numpy.isfinite(x)
            nonfinite += int((~finite).sum())
            x = numpy.where(finite, x, 0.0)
            squared = float(x @ x)
        squares += squared
        largest = max(largest, float(x.max()), -float(x.min()))
        drawn = _signs(signs, begin)[:x.size]
        begin += x.size
        total = float(x.sum())
        for k in range(PROJECTIONS):
            minus = (drawn >> numpy.uint8(k)) & numpy.uint8(1)
            projections[k] += total - 2.0 * float(x @ minus.astype(numpy.float64))
    values = tensor.numpy()
    taken = values[numpy.unravel_index(hashed.places(seed, values.size, samples), values.shape)].astype(numpy.float32).astype(numpy.float64)
    taken = numpy.where(numpy.isfinite(taken), taken, 0.0)
    return Digest(values.size, nonfinite, math.sqrt(squares), largest, projections, taken.tolist())


def _parts(tensor: torch.Tensor) -> Iterator[Any]:
    """The elements in order as float32 numbers in float64, `hashed.PART` at a time; without a copy of a large tensor in another
    layout."""
    if tensor.is_contiguous():
        flat = tensor.reshape(-1)
        for begin, end in hashed.parts(flat.numel()):
            yield flat[begin:end].to(torch.float32).numpy().astype(numpy.float64)
        return
    buffer, filled = numpy.empty(min(hashed.PART, tensor.numel())), 0
    for piece in pieces.of(tensor):
        flat = piece.to(torch.float32).reshape(-1).numpy()
        while flat.size:
            count = min(flat.size, buffer.size - filled)
            buffer[filled:filled + count] = flat[:count]
            flat, filled = flat[count:], filled + count
            if filled == buffer.size:
                yield buffer
                filled = 0
    if filled:
        yield buffer[:filled]


@functools.lru_cache(maxsize=32)
def _signs(state: int, begin: int) -> Any:
    """The lowest bits of a part of a stream, 1 MiB. All tensors have the same signs."""
    return hashed.bits(state, begin, begin + hashed.PART).astype(numpy.uint8)


def deviation(found: Digest, right: Digest, least: float = 0.0) -> float:
    """The approximate norm of the difference, relative to the norm of `right`, or to `least` if that is larger."""
    scale = max(right.norm, least)
    if found.count != right.count or found.nonfinite != right.nonfinite:
        return math.inf
    if found == right:
        return 0.0
    if scale == 0:
        return math.inf
    root = math.sqrt(right.count)
    projected = math.sqrt(sum((a - b) ** 2 for a, b in zip(found.projections, right.projections)) / PROJECTIONS)
    apart = sorted((abs(a - b) for a, b in zip(found.samples, right.samples)), reverse=True)
    sampled = apart[len(apart) // _OUTLIERS] * root if apart else 0.0
    largest = abs(found.largest - right.largest) / max(right.largest, scale / root)
    return max(projected / scale, sampled / scale, abs(found.norm - right.norm) / scale, largest)
