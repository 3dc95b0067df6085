"""Operations on complex tensors by operations on pairs of real numbers.

Fourier transforms are products with matrices of cosines and sines: for the lengths of models, rows of a few hundred numbers, a
product costs about as much.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy
import torch

aten = torch.ops.aten

LONGEST_TRANSFORM = 4096
"""The most elements of a Fourier transform; its matrices have as many rows and columns."""


class Unsupported(Exception):
    """A case that has no such operations."""


class Pair:
    """A complex tensor. `parts`: its real and imaginary parts, in a last dimension of 2."""

    def __init__(self, parts: torch.Tensor):
        self.parts = parts

    @property
    def dim(self) -> int:
        return self.parts.dim() - 1

    @property
    def real(self) -> torch.Tensor:
        return aten.select.int(self.parts, self.dim, 0)

    @property
    def imag(self) -> torch.Tensor:
        return aten.select.int(self.parts, self.dim, 1)


Value = Union[Pair, torch.Tensor, complex, float, int]


def find(name: str) -> Optional[Callable[..., Any]]:
    """The function of pairs and real tensors for the operation `name`."""
    return _TABLE.get(name)


def _join(real: torch.Tensor, imag: torch.Tensor) -> Pair:
    return Pair(aten.stack([real, imag], real.dim()))


def _factor(value: Any) -> Any:
    """A real factor of a pair; numbers, also in tensors without dimensions, are as they are."""
    return value.unsqueeze(-1) if isinstance(value, torch.Tensor) and value.dim() else value


def _times(a: Any, b: Any) -> Any:
    return aten.mul.Tensor(a, b) if isinstance(b, torch.Tensor) else aten.mul.Scalar(a, b)


# Arithmetic.

def _promoted(a: Any) -> Pair:
    return a if isinstance(a, Pair) else _join(a, aten.zeros_like(a))


def _mul(a: Value, b: Value) -> Pair:
    if not isinstance(a, Pair) and isinstance(b, Pair):
        a, b = b, a
    a = _promoted(a)
    if isinstance(b, complex):
        return _join(_times(a.real, b.real) - _times(a.imag, b.imag), _times(a.real, b.imag) + _times(a.imag, b.real))
    if not isinstance(b, Pair):
        return Pair(_times(a.parts, _factor(b)))
    return _join(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _squares(a: Pair) -> torch.Tensor:
    return a.real * a.real + a.imag * a.imag


def _reciprocal(a: Pair) -> Pair:
    return Pair(_conj(a).parts / _squares(a).unsqueeze(-1))


def _div(a: Value, b: Value, rounding_mode: Optional[str] = None) -> Pair:
    if isinstance(b, complex):
        return _mul(a, 1 / b)
    if isinstance(b, Pair):
        return _mul(_reciprocal(b), a)
    a, divisor = _promoted(a), _factor(b)
    return Pair(aten.div.Tensor(a.parts, divisor) if isinstance(divisor, torch.Tensor) else aten.div.Scalar(a.parts, divisor))


def _add(a: Value, b: Value, alpha: Any = 1) -> Pair:
    if isinstance(alpha, complex):
        raise Unsupported("alpha is complex")
    if isinstance(a, Pair) and isinstance(b, Pair):
        return Pair(aten.add.Tensor(a.parts, b.parts, alpha=alpha))
    if isinstance(b, Pair):
        return _add(b if alpha == 1 else _mul(b, alpha), a)
    a = _promoted(a)
    if isinstance(b, complex):
        return _join(a.real + b.real * alpha, a.imag + b.imag * alpha)
    real = a.real + b * alpha
    return _join(real, aten.expand(a.imag, list(real.shape)))


def _sub(a: Value, b: Value, alpha: Any = 1) -> Pair:
    return _add(a, b, -alpha)


def _conj(a: Pair) -> Pair:
    return _join(a.real, aten.neg(a.imag))


def _abs(a: Pair) -> torch.Tensor:
    """Its gradient at 0 is 0, as that of complex numbers."""
    squares = _squares(a)
    zero = squares == 0
    return aten.masked_fill.Scalar(aten.sqrt(aten.masked_fill.Scalar(squares, zero, 1)), zero, 0)


def _sgn(a: Pair) -> Pair:
    length = _abs(a)
    return Pair(a.parts / aten.masked_fill.Scalar(length, length == 0, 1).unsqueeze(-1))


def _exp(a: Pair) -> Pair:
    return _polar(aten.exp(a.real), a.imag)


def _polar(length: torch.Tensor, angle: torch.Tensor) -> Pair:
    return _join(length * aten.cos(angle), length * aten.sin(angle))


def _pow(a: Pair, exponent: Any) -> Pair:
    if exponent not in (1, 2, 3):
        raise Unsupported(f"its exponent is {exponent}")
    return functools.reduce(_mul, [a] * int(exponent))  # type: ignore[arg-type]


def _product(name: str) -> Callable[..., Any]:
    product = getattr(aten, name).default

    def run(a: Any, b: Any) -> Any:
        if isinstance(a, Pair) and isinstance(b, Pair):
            return _join(product(a.real, b.real) - product(a.imag, b.imag), product(a.real, b.imag) + product(a.imag, b.real))
        return (_join(product(a.real, b), product(a.imag, b)) if isinstance(a, Pair) else _join(product(a, b.real), product(a, b.imag)))
    return run


def _to_copy(a: Any, dtype: Optional[torch.dtype] = None, **_: Any) -> Any:
    if isinstance(a, Pair):
        if dtype not in (None, torch.complex64):
            raise Unsupported(f"it is converted to {str(dtype)[6:]}")
        return Pair(aten.clone(a.parts))
    if dtype != torch.complex64:
        raise Unsupported(f"its type is {str(dtype)[6:]}")
    real = a if a.dtype == torch.float32 else aten._to_copy(a, dtype=torch.float32)
    return _join(real, aten.zeros_like(real))


def _where(condition: torch.Tensor, a: Any, b: Any) -> Pair:
    if not isinstance(a, Pair) or not isinstance(b, Pair):
        raise Unsupported("one of two values is real")
    return Pair(aten.where.self(_factor(condition), a.parts, b.parts))


def _fill(a: Pair, mask: torch.Tensor, value: Any) -> Pair:
    if value != 0:
        raise Unsupported("the value is not 0")
    return Pair(aten.masked_fill_.Scalar(a.parts, _factor(mask), 0))


def _equals(a: Pair, value: Any) -> torch.Tensor:
    return aten.bitwise_and.Tensor(aten.eq.Scalar(a.real, value.real), aten.eq.Scalar(a.imag, value.imag))


def _filled(a: Pair, mask: torch.Tensor, value: Any) -> Pair:
    if value != 0:
        raise Unsupported("the value is not 0")
    return Pair(aten.masked_fill.Scalar(a.parts, _factor(mask), 0))


# Shapes.

def _at(a: Pair, dim: int, extra: int = 0) -> int:
    """The dimension `dim` of the pair. `extra`: dimensions that the operation adds."""
    return dim % (a.dim + extra)


def _dims(a: Pair, dims: Optional[Sequence[int]]) -> List[int]:
    return [_at(a, dim) for dim in dims] if dims else list(range(a.dim))


def _each(found: Any) -> Any:
    return [Pair(part) for part in found] if isinstance(found, (list, tuple)) else Pair(found)


def _along(operation: Any, place: int) -> Callable[..., Any]:
    """An operation whose argument `place` after the tensor is a dimension, by default the first."""
    def run(a: Pair, *rest: Any) -> Any:
        given = list(rest)
        if len(given) > place:
            given[place] = _at(a, given[place])
        return _each(operation(a.parts, *given))
    return run


def _joined(operation: Any, extra: int) -> Callable[..., Any]:
    def run(tensors: List[Any], dim: int = 0) -> Pair:
        if not all(isinstance(tensor, Pair) for tensor in tensors):
            raise Unsupported("some of the tensors are real")
        return Pair(operation([tensor.parts for tensor in tensors], _at(tensors[0], dim, extra)))
    return run


def _reduced(operation: Any) -> Callable[..., Any]:
    def run(a: Pair, dims: Optional[Sequence[int]] = None, keepdim: bool = False, **_: Any) -> Pair:
        return Pair(operation(a.parts, _dims(a, dims), keepdim))
    return run


def _squeeze(a: Pair, dims: Any = None) -> Pair:
    chosen = range(a.dim) if dims is None else [_at(a, dim) for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]
    parts = a.parts
    for dim in sorted(chosen, reverse=True):
        if parts.size(dim) == 1:
            parts = aten.squeeze.dim(parts, dim)
    return Pair(parts)


def _like(value: Optional[float]) -> Callable[..., Any]:
    def run(a: Any, *rest: Any, dtype: Optional[torch.dtype] = None, **_: Any) -> Any:
        parts = a.parts if isinstance(a, Pair) else None
        if parts is None or dtype not in (None, torch.complex64):
            raise Unsupported("it changes the type")
        zeros = aten.zeros_like(parts)
        return Pair(zeros) if value == 0 else _add(Pair(zeros), 1.0)
    return run


def _zeros(size: Sequence[int], dtype: Optional[torch.dtype] = None, **_: Any) -> Pair:
    return Pair(aten.zeros.default([*size, 2]))


def _new_zeros(a: Any, size: Sequence[int], dtype: Optional[torch.dtype] = None, **_: Any) -> Pair:
    if dtype not in (None, torch.complex64):
        raise Unsupported("it changes the type")
    return _zeros(size)


# Fourier transforms.

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
    return _join(_turned(real, dim, cosines) - sign * _turned(imag, dim, sines), _turned(imag, dim, cosines) + sign * _turned(real, dim, sines))


def _count(shape: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod(int(shape[dim]) for dim in dims)


def _fft_c2c(a: Pair, dims: Sequence[int], norm: int, is_forward: bool) -> Pair:
    dims = _dims(a, dims)
    found = a
    for dim in dims:
        found = _transform(found, dim, is_forward)
    return Pair(_scaled(found.parts, norm, _count(a.parts.shape, dims)))


def _fft_r2c(x: torch.Tensor, dims: Sequence[int], norm: int, is_onesided: bool) -> Pair:
    dims = [dim % x.dim() for dim in dims]
    last, length = dims[-1], x.size(dims[-1])
    cosines, sines = _matrices(length, length, length // 2 + 1 if is_onesided else length)
    found = _join(_turned(x, last, cosines), aten.neg(_turned(x, last, sines)))
    for dim in dims[:-1]:
        found = _transform(found, dim, True)
    return Pair(_scaled(found.parts, norm, _count(x.shape, dims)))


def _fft_c2r(a: Pair, dims: Sequence[int], norm: int, length: int) -> torch.Tensor:
    dims = _dims(a, dims)
    found = a
    for dim in dims[:-1]:
        found = _transform(found, dim, False)
    last, half = dims[-1], int(length) // 2 + 1
    cosines, sines = _matrices(int(length), half, int(length), is_doubled=True)
    real, imag = (aten.slice.Tensor(part, last, 0, half) for part in (found.real, found.imag))
    out = _turned(real, last, cosines) - _turned(imag, last, sines)
    return _scaled(out, norm, _count(out.shape, dims))


_TABLE: Dict[str, Callable[..., Any]] = {
    "aten::abs": _abs, "aten::add.Tensor": _add, "aten::add.Scalar": _add, "aten::angle": lambda a: aten.atan2(a.imag, a.real),
    "aten::bmm": _product("bmm"), "aten::mm": _product("mm"), "aten::cat": _joined(aten.cat.default, 0), "aten::stack": _joined(aten.stack.default, 1),
    "aten::clone": lambda a, **_: Pair(aten.clone(a.parts, memory_format=torch.contiguous_format)),
    "aten::complex": lambda real, imag: _join(*torch.broadcast_tensors(real, imag)), "aten::polar": _polar,
    "aten::_conj": _conj, "aten::conj_physical": _conj, "aten::_conj_physical": _conj,
    "aten::constant_pad_nd": lambda a, pad, value=0: Pair(aten.constant_pad_nd(a.parts, [0, 0, *pad], 0)) if value == 0 else _refuse("its value is not 0"),
    "aten::copy_": lambda a, b, non_blocking=False: Pair(aten.copy_(a.parts, b.parts)) if isinstance(b, Pair) else _refuse("a real tensor is copied"),
    "aten::detach": lambda a: Pair(aten.detach(a.parts)), "aten::div.Tensor": _div, "aten::div.Scalar": _div, "aten::eq.Scalar": _equals,
    "aten::exp": _exp,
    "aten::expand": lambda a, size, implicit=False: Pair(aten.expand(a.parts, [*size, 2])),
    "aten::flip": lambda a, dims: Pair(aten.flip(a.parts, _dims(a, dims))),
    "aten::_fft_c2c": _fft_c2c, "aten::_fft_c2r": _fft_c2r, "aten::_fft_r2c": _fft_r2c,
    "aten::index.Tensor": lambda a, indices: Pair(aten.index.Tensor(a.parts, indices)),
    "aten::index_select": _along(aten.index_select.default, 0), "aten::masked_fill.Scalar": _filled, "aten::masked_fill_.Scalar": _fill,
    "aten::mean.dim": _reduced(aten.mean.dim), "aten::mean": _reduced(aten.mean.dim), "aten::mul.Tensor": _mul, "aten::mul.Scalar": _mul,
    "aten::mul_.Tensor": lambda a, b: Pair(aten.mul_.Tensor(a.parts, _factor(b))) if not isinstance(b, (Pair, complex)) else _refuse("in place"),
    "aten::neg": lambda a: Pair(aten.neg(a.parts)), "aten::new_zeros": _new_zeros, "aten::ones_like": _like(1), "aten::zeros_like": _like(0),
    "aten::permute": lambda a, dims: Pair(aten.permute(a.parts, [*(_at(a, dim) for dim in dims), a.dim])), "aten::pow.Tensor_Scalar": _pow,
    "aten::reciprocal": _reciprocal, "aten::_reshape_alias": lambda a, size, stride: Pair(aten.view(a.parts, [*size, 2])), "aten::repeat": lambda a, times: Pair(aten.repeat(a.parts, [*times, 1])),
    "aten::roll": lambda a, shifts, dims=(): Pair(aten.roll(a.parts, shifts, _dims(a, dims))) if dims else _refuse("no dimension is given"),
    "aten::rsub.Scalar": lambda a, b, alpha=1: _add(_mul(a, -alpha), b), "aten::select.int": _along(aten.select.int, 0),
    "aten::select_backward": lambda a, size, dim, index: Pair(aten.select_backward(a.parts, [*size, 2], dim % len(size), index)),
    "aten::sgn": _sgn, "aten::slice.Tensor": _along(aten.slice.Tensor, 0),
    "aten::slice_backward": lambda a, size, dim, *rest: Pair(aten.slice_backward(a.parts, [*size, 2], dim % len(size), *rest)),
    "aten::split.Tensor": _along(aten.split.Tensor, 1), "aten::split_with_sizes": _along(aten.split_with_sizes.default, 1),
    "aten::squeeze": _squeeze, "aten::squeeze.dim": _squeeze, "aten::squeeze.dims": _squeeze,
    "aten::sub.Tensor": _sub, "aten::sub.Scalar": _sub, "aten::sum": _reduced(aten.sum.dim_IntList), "aten::sum.dim_IntList": _reduced(aten.sum.dim_IntList),
    "aten::t": lambda a: Pair(aten.transpose.int(a.parts, 0, 1)) if a.dim == 2 else a, "aten::_to_copy": _to_copy,
    "aten::transpose.int": lambda a, one, other: Pair(aten.transpose.int(a.parts, _at(a, one), _at(a, other))),
    "aten::unbind.int": _along(aten.unbind.int, 0), "aten::unsqueeze": lambda a, dim: Pair(aten.unsqueeze(a.parts, _at(a, dim, 1))),
    "aten::view": lambda a, size: Pair(aten.view(a.parts, [*size, 2])), "aten::_unsafe_view": lambda a, size: Pair(aten.view(a.parts, [*size, 2])),
    "aten::where.self": _where, "aten::zeros": _zeros,
}


def _refuse(reason: str) -> Any:
    raise Unsupported(reason)
