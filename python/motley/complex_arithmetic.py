"""Arithmetic of complex tensors by operations on pairs of real numbers."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Union

import torch

from .complex_pair import Pair, Unsupported, factor, join

aten = torch.ops.aten

Value = Union[Pair, torch.Tensor, complex, float, int]


def _times(a: Any, b: Any) -> Any:
    return aten.mul.Tensor(a, b) if isinstance(b, torch.Tensor) else aten.mul.Scalar(a, b)


def _promoted(a: Any) -> Pair:
    return a if isinstance(a, Pair) else join(a, aten.zeros_like(a))


def _mul(a: Value, b: Value) -> Pair:
    if not isinstance(a, Pair) and isinstance(b, Pair):
        a, b = b, a
    a = _promoted(a)
    if isinstance(b, complex):
        return join(_times(a.real, b.real) - _times(a.imag, b.imag), _times(a.real, b.imag) + _times(a.imag, b.real))
    if not isinstance(b, Pair):
        return Pair(_times(a.parts, factor(b)))
    return join(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _squares(a: Pair) -> torch.Tensor:
    return a.real * a.real + a.imag * a.imag


def _reciprocal(a: Pair) -> Pair:
    return Pair(_conj(a).parts / _squares(a).unsqueeze(-1))


def _div(a: Value, b: Value, rounding_mode: Optional[str] = None) -> Pair:
    if isinstance(b, complex):
        return _mul(a, 1 / b)
    if isinstance(b, Pair):
        return _mul(_reciprocal(b), a)
    a, divisor = _promoted(a), factor(b)
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
        return join(a.real + b.real * alpha, a.imag + b.imag * alpha)
    real = a.real + b * alpha
    return join(real, aten.expand(a.imag, list(real.shape)))


def _sub(a: Value, b: Value, alpha: Any = 1) -> Pair:
    return _add(a, b, -alpha)


def _conj(a: Pair) -> Pair:
    return join(a.real, aten.neg(a.imag))


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
    return join(length * aten.cos(angle), length * aten.sin(angle))


def _pow(a: Pair, exponent: Any) -> Pair:
    if exponent not in (1, 2, 3):
        raise Unsupported(f"its exponent is {exponent}")
    return functools.reduce(_mul, [a] * int(exponent))  # type: ignore[arg-type]


def _product(name: str) -> Callable[..., Any]:
    product = getattr(aten, name).default

    def run(a: Any, b: Any) -> Any:
        if isinstance(a, Pair) and isinstance(b, Pair):
            return join(product(a.real, b.real) - product(a.imag, b.imag), product(a.real, b.imag) + product(a.imag, b.real))
        return (join(product(a.real, b), product(a.imag, b)) if isinstance(a, Pair) else join(product(a, b.real), product(a, b.imag)))
    return run


def _to_copy(a: Any, dtype: Optional[torch.dtype] = None, **_: Any) -> Any:
    if isinstance(a, Pair):
        if dtype not in (None, torch.complex64):
            raise Unsupported(f"it is converted to {str(dtype)[6:]}")
        return Pair(aten.clone(a.parts))
    if dtype != torch.complex64:
        raise Unsupported(f"its type is {str(dtype)[6:]}")
    real = a if a.dtype == torch.float32 else aten._to_copy(a, dtype=torch.float32)
    return join(real, aten.zeros_like(real))


def _where(condition: torch.Tensor, a: Any, b: Any) -> Pair:
    if not isinstance(a, Pair) or not isinstance(b, Pair):
        raise Unsupported("one of two values is real")
    return Pair(aten.where.self(factor(condition), a.parts, b.parts))


def _filled(operation: Any) -> Callable[..., Pair]:
    def run(a: Pair, mask: torch.Tensor, value: Any) -> Pair:
        if value != 0:
            raise Unsupported("the value is not 0")
        return Pair(operation(a.parts, factor(mask), 0))
    return run


def _equals(a: Pair, value: Any) -> torch.Tensor:
    return aten.bitwise_and.Tensor(aten.eq.Scalar(a.real, value.real), aten.eq.Scalar(a.imag, value.imag))


def _mul_in_place(a: Pair, b: Any) -> Pair:
    if isinstance(b, (Pair, complex)):
        raise Unsupported("the factor is complex, in place")
    return Pair(aten.mul_.Tensor(a.parts, factor(b)))


ARITHMETIC: Dict[str, Callable[..., Any]] = {
    "aten::abs": _abs, "aten::add.Tensor": _add, "aten::add.Scalar": _add, "aten::angle": lambda a: aten.atan2(a.imag, a.real), "aten::bmm": _product("bmm"),
    "aten::complex": lambda real, imag: join(*torch.broadcast_tensors(real, imag)), "aten::_conj": _conj, "aten::conj_physical": _conj,
    "aten::_conj_physical": _conj, "aten::div.Tensor": _div, "aten::div.Scalar": _div, "aten::eq.Scalar": _equals, "aten::exp": _exp,
    "aten::masked_fill.Scalar": _filled(aten.masked_fill.Scalar), "aten::masked_fill_.Scalar": _filled(aten.masked_fill_.Scalar),
    "aten::mm": _product("mm"), "aten::mul.Tensor": _mul, "aten::mul.Scalar": _mul, "aten::mul_.Tensor": _mul_in_place,
    "aten::neg": lambda a: Pair(aten.neg(a.parts)), "aten::polar": _polar, "aten::pow.Tensor_Scalar": _pow,
    "aten::reciprocal": _reciprocal, "aten::rsub.Scalar": lambda a, b, alpha=1: _add(_mul(a, -alpha), b), "aten::sgn": _sgn, "aten::sub.Tensor": _sub,
    "aten::sub.Scalar": _sub, "aten::_to_copy": _to_copy, "aten::where.self": _where}
"""[operation] its function of pairs and real tensors."""
