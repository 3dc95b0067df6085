"""Generated inputs of a layer, similar to those of its trace: their description, and their generation from a seed.

A tensor is described by consecutive *pieces* of a sample: numbers between two bounds, integers below a limit, or one of a
few values, as in masks, or in ids that are packed with floats (docs/formats/package.md).
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import torch

from . import hashed, pieces

Pieces = List[Dict[str, Any]]

_MAX_PIECES = 8
_FEW, _SOME = 8, 64
"""Up to this many distinct values are listed: of floats, and of integers."""


def describe(example: torch.Tensor, limit: int, ignored: Optional[int] = None) -> Pieces:
    """Pieces for the samples of a trace; integers lie below `limit`."""
    rows = example.detach().reshape(example.size(0), -1)
    if ignored is not None:
        rows = rows.masked_fill(rows == ignored, int(rows[rows != ignored][0]) if bool((rows != ignored).any()) else 0)
    if rows.numel() == 0 or bool((rows == rows.flatten()[0]).all()):  # a placeholder, such as zeros
        if not example.is_floating_point():
            return [{"count": rows.size(1), "below": limit}]
        return [{"count": rows.size(1), **_between(float(rows.flatten()[0]) - 1 if rows.numel() else -1.0, 2.0)}]
    return [{"count": end - begin, **_kind(rows[:, begin:end], limit)} for begin, end in _cuts(example, rows)]


def describe_exact(example: torch.Tensor) -> Pieces:
    """Pieces of a boundary tensor without a gradient: a layer may accept only values that occurred in its trace."""
    rows = example.detach().reshape(example.size(0), -1)
    rows = rows if rows.is_floating_point() else rows.long()
    if rows.numel() == 0:
        return [{"count": rows.size(1), "values": [0]}]
    return [{"count": end - begin, **_exactly(rows[:, begin:end])} for begin, end in _cuts(example, rows)]


def _exactly(x: torch.Tensor) -> Dict[str, Any]:
    distinct = torch.unique(x[torch.isfinite(x)] if x.is_floating_point() else x)
    if x.is_floating_point() and distinct.numel() > _FEW and not bool((distinct == distinct.round()).all()):
        return _kind(x, 0)
    if distinct.numel() > _SOME:
        distinct = distinct[torch.linspace(0, distinct.numel() - 1, _SOME).long()]
    return {"values": distinct.tolist() or [0]}


def _cuts(example: torch.Tensor, rows: torch.Tensor) -> List[Tuple[int, int]]:
    """Ranges of a sample that may have different kinds of values: its rows if they are few, or ranges of integers and of
    others."""
    count = rows.size(1)
    if example.dim() > 2 and 2 <= example.size(1) <= _MAX_PIECES:
        length = count // example.size(1)
        return [(k * length, (k + 1) * length) for k in range(example.size(1))]
    if example.dim() == 2 and example.is_floating_point():
        whole = (rows == rows.round()).all(0)
        edges = [0] + [int(k) + 1 for k in (whole[1:] != whole[:-1]).nonzero()[:_MAX_PIECES + 1]] + [count]
        if len(edges) <= _MAX_PIECES + 1:
            return list(zip(edges, edges[1:]))
    return [(0, count)]


def _kind(x: torch.Tensor, limit: int) -> Dict[str, Any]:
    finite = x[torch.isfinite(x)] if x.is_floating_point() else x.flatten()
    if finite.numel() == 0:
        return _between(-1.0, 2.0)
    distinct = torch.unique(finite)
    whole = bool((distinct == distinct.round()).all()) if x.is_floating_point() else True
    if distinct.numel() <= (_SOME if whole else min(_FEW, finite.numel() // 4)):
        return {"values": distinct.tolist()}
    if not x.is_floating_point():
        return {"below": limit}
    if whole:
        return {"values": distinct[torch.linspace(0, distinct.numel() - 1, _SOME).long()].tolist()}
    reach = math.sqrt(3) * float(finite.double().std())  # half the range of a uniform distribution with this deviation
    mean = float(finite.double().mean())
    low, high = max(float(finite.min()), mean - reach), min(float(finite.max()), mean + reach)
    return _between(low, high - low)


def _between(low: float, width: float) -> Dict[str, Any]:
    return {"low": float(numpy.float32(low)), "width": float(numpy.float32(width))}


def replacement(tensor: torch.Tensor) -> Optional[Dict[str, Any]]:
    """Values for a parameter or statistic whose elements are all equal, as in a new norm or adapter: factors of 0 and 1 would
    hide errors."""
    if tensor.numel() == 0:
        return None
    value = float(tensor[(0,) * tensor.dim()])
    if not all(bool((part == value).all()) for part in pieces.of(tensor)):
        return None
    width = 0.2 * abs(value) or 0.1
    return _between(value - width / 2, width) if math.isfinite(value) else None


def uniform(shape: "torch.Size", seed: int, purpose: int, index: int, low: float, width: float) -> torch.Tensor:
    return make([{"count": shape.numel(), "low": low, "width": width}], 1, seed, purpose, index, torch.float32).reshape(shape)


def fill(tensor: torch.Tensor, seed: int, purpose: int, index: int, low: float, width: float) -> None:
    """Sets a tensor to what `uniform` makes, without a second tensor of its size."""
    state, begin = hashed.stream(seed, purpose, index), 0
    with torch.no_grad():
        for part in pieces.of(tensor):
            values = numpy.concatenate([hashed.uniform(state, begin + a, begin + b, low, width) for a, b in hashed.parts(part.numel())])
            part.copy_(torch.from_numpy(values).reshape(part.shape))
            begin += part.numel()


def make(described: Pieces, samples: int, seed: int, purpose: int, index: int, dtype: torch.dtype, ignored: Optional[int] = None) -> torch.Tensor:
    """Samples, each in one row. One in eight integers is `ignored`, but never the first."""
    state = hashed.stream(seed, purpose, index)
    per_sample = sum(piece["count"] for piece in described)
    out = torch.empty(samples * per_sample, dtype=dtype)
    flat = out.numpy()
    for piece, first, count in _places(described, samples, per_sample):
        for at, end in hashed.parts(count):
            begin, behind = first + at, first + end
            if "low" in piece:
                flat[begin:behind] = hashed.uniform(state, begin, behind, piece["low"], piece["width"])
            elif "values" in piece:
                flat[begin:behind] = hashed.choice(state, begin, behind, piece["values"])
            else:
                flat[begin:behind] = hashed.below(state, begin, behind, piece["below"])
            if ignored is not None:
                left_out = (hashed.bits(state, begin, behind) >> numpy.uint64(61)) == 0
                left_out &= numpy.arange(begin, behind) > 0
                flat[begin:behind][left_out] = ignored
    return out.reshape(samples, per_sample)


def _places(pieces: Pieces, samples: int, per_sample: int) -> Iterator[Tuple[Dict[str, Any], int, int]]:
    for sample in range(samples):
        first = sample * per_sample
        for piece in pieces:
            yield piece, first, piece["count"]
            first += piece["count"]
