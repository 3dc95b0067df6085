"""Fourier transforms as products with matrices of cosines and sines, of complex tensors as pairs of real numbers.

A transform of n numbers has n² products, which suits lengths of some hundred numbers.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, Sequence

import numpy
import torch

from .complex_pair import Pair, Unsupported, dims_of, join

aten = torch.ops.aten

LONGEST_TRANSFORM = 4096
"""The most elements of a transform; its matrices have as many rows and columns."""


@functools.lru_cache(maxsize=16)
def _matrices(length: int, rows: int, columns: int, is_doubled: bool = False) -> "tuple[torch.Tensor, torch.Tensor]":
    """Cosine and sine of 2 π j k / length. `is_doubled`: rows that also stand for the other half of a symmetric transform are twice
    as large."""
    if length > LONGEST_TRANSFORM:
        raise Unsupported(f"a Fourier transform has {length} elements, more than {LONGEST_TRANSFORM}")
    j, k = numpy.arange(rows)[:, None], numpy.arange(columns)[None, :]
    angles = j * k % length * (2 * math.pi / length)
    weights = numpy.where(is_doubled & (j > 0) & (2 * j != length), 2.0, 1.0)
    cosines, sines = (torch.from_numpy((weights * function(angles)).astype(numpy.float32)) for function in (numpy.cos, numpy.sin))
    return cosines, sines


def _scaled(parts: torch.Tensor, norm: int, count: int) -> torch.Tensor:
    """`norm`: 0 for none, 1 for 1 / √count, 2 for 1 / count."""
    return parts if norm == 0 else aten.mul.Scalar(parts, 1 / math.sqrt(count) if norm == 1 else 1 / count)


def _turned(tensor: torch.Tensor, dim: int, matrix: torch.Tensor) -> torch.Tensor:
    """The product with a matrix along `dim`."""
    moved = aten.transpose.int(tensor, dim, tensor.dim() - 1)
    shape = list(moved.shape)
    flat = aten.reshape(moved, [-1, shape[-1]])
    out = aten.view(aten.mm(flat, matrix), [*shape[:-1], matrix.size(1)])
    return aten.transpose.int(out, dim, tensor.dim() - 1)


def _transform(a: Pair, dim: int, is_forward: bool) -> Pair:
    length = a.parts.size(dim)
    cosines, sines = _matrices(length, length, length)
    sign = -1.0 if is_forward else 1.0
    real, imag = a.real, a.imag
    return join(_turned(real, dim, cosines) - sign * _turned(imag, dim, sines), _turned(imag, dim, cosines) + sign * _turned(real, dim, sines))


def _count(shape: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod(int(shape[dim]) for dim in dims)


def _fft_c2c(a: Pair, dims: Sequence[int], norm: int, is_forward: bool) -> Pair:
    dims = dims_of(a, dims)
    found = a
    for dim in dims:
        found = _transform(found, dim, is_forward)
    return Pair(_scaled(found.parts, norm, _count(a.parts.shape, dims)))


def _fft_r2c(x: torch.Tensor, dims: Sequence[int], norm: int, is_onesided: bool) -> Pair:
    dims = [dim % x.dim() for dim in dims]
    last, length = dims[-1], x.size(dims[-1])
    cosines, sines = _matrices(length, length, length // 2 + 1 if is_onesided else length)
    found = join(_turned(x, last, cosines), aten.neg(_turned(x, last, sines)))
    for dim in dims[:-1]:
        found = _transform(found, dim, True)
    return Pair(_scaled(found.parts, norm, _count(x.shape, dims)))


def _fft_c2r(a: Pair, dims: Sequence[int], norm: int, length: int) -> torch.Tensor:
    dims = dims_of(a, dims)
    found = a
    for dim in dims[:-1]:
        found = _transform(found, dim, False)
    last, half = dims[-1], int(length) // 2 + 1
    cosines, sines = _matrices(int(length), half, int(length), is_doubled=True)
    real, imag = (aten.slice.Tensor(part, last, 0, half) for part in (found.real, found.imag))
    out = _turned(real, last, cosines) - _turned(imag, last, sines)
    return _scaled(out, norm, _count(out.shape, dims))


TRANSFORMS: Dict[str, Callable[..., Any]] = {"aten::_fft_c2c": _fft_c2c, "aten::_fft_c2r": _fft_c2r, "aten::_fft_r2c": _fft_r2c}
"""[operation] its function of pairs and real tensors."""
