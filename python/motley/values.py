"""Converts arrays to the types that Motley reads (docs/formats/data.md), and checks their values."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional, Tuple

import numpy
import torch

from .errors import MotleyError

INTEGERS = frozenset({"uint8", "int32", "int64"})

_EXACT = 1 << 24
"""Up to this number float32 represents every integer."""

_BLOCK = 1 << 22
"""The elements checked at once, so that mapped files are not read into memory as a whole."""


def as_array(part: Any, what: str) -> numpy.ndarray:
    """`part` as float32, bool or one of INTEGERS. float16, bfloat16 and smaller floats become float32 exactly, other integers
    int64."""
    array = _from_tensor(part, what) if isinstance(part, torch.Tensor) else _from_object(part, what)
    kind = array.dtype.kind
    if kind == "f":
        with numpy.errstate(over="ignore"):
            return array if array.dtype == numpy.float32 else array.astype(numpy.float32)
    if kind == "u" and array.dtype.itemsize == 8 and array.size and int(array.max()) >= 1 << 63:
        raise MotleyError(f"{what} have integers of 2^63 or more. Pass int64")
    if kind in "iu" and array.dtype.name not in INTEGERS:
        return array.astype(numpy.int64)
    if kind in "iub":
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    raise MotleyError(f"the data has the type {array.dtype}: {what} are {_kind_of(array)}. Pass floats, integers or booleans")


def _from_tensor(tensor: torch.Tensor, what: str) -> numpy.ndarray:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise MotleyError(f"{what} are a {'quantized' if tensor.is_quantized else 'sparse'} tensor. Convert it by "
                          f"{'dequantize()' if tensor.is_quantized else 'to_dense()'}")
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        tensor = tensor.float()
    return tensor.resolve_conj().resolve_neg().numpy()


def _from_object(part: Any, what: str) -> numpy.ndarray:
    if isinstance(part, numpy.ma.MaskedArray) and numpy.ma.is_masked(part):
        raise MotleyError(f"{what} are a masked array, whose masked values would be used. Convert it by filled(), or leave "
                          "these samples out")
    try:
        return numpy.asarray(part)
    except ValueError as error:  # newer versions of NumPy, for lists of different lengths
        raise MotleyError(f"{what} are lists of different lengths: {error}. {PAD}") from error


PAD = ("Pad or crop them to one shape, or pass pad= with the values to fill them up, and resize images; fill padding in targets "
       "with the class that the loss ignores (-100)")
"""The hint for samples of different shapes."""


def _kind_of(array: numpy.ndarray) -> str:
    if array.dtype.kind in "US":
        return "strings"
    if array.dtype.kind == "c":
        return "complex numbers"
    return f"of {type(array.flat[0]).__name__}" if array.dtype.kind == "O" and array.size else "not numbers"


def as_input(array: numpy.ndarray) -> numpy.ndarray:
    """Booleans become float32, since bytes of inputs are divided by 255."""
    return array.astype(numpy.float32) if array.dtype.kind == "b" else array


def as_target(array: numpy.ndarray, numbers: bool, classes: bool) -> numpy.ndarray:
    """Targets in the type that the loss needs: `numbers` in the output's shape, or `classes`."""
    if array.dtype.kind == "b":
        return array.astype(numpy.int64 if classes else numpy.float32)
    if not numbers or array.dtype.kind == "f":
        return array
    if array.size and max(abs(int(array.min())), abs(int(array.max()))) > _EXACT:
        raise MotleyError(f"the targets are integers beyond {_EXACT}, which float32 does not represent exactly, but the loss "
                          "compares numbers. Scale them")
    return array.astype(numpy.float32)


def check_finite(array: numpy.ndarray, what: str) -> None:
    """Refuses NaN and infinity: every step with such a sample would be skipped."""
    if array.dtype.kind != "f":
        return
    first: Optional[Tuple[int, ...]] = None
    samples = 0
    for begin, block in _blocks(array):
        finite = numpy.isfinite(block)
        if finite.all():
            continue
        samples += int((~finite.reshape(len(block), -1).all(axis=1)).sum())
        if first is None:
            place = numpy.unravel_index(int(numpy.argmin(finite)), block.shape)
            first = (begin + int(place[0]),) + tuple(int(k) for k in place[1:])
    if first is not None:
        raise MotleyError(f"{_at(what, first)} is {array[first]}: {samples} of {len(array)} samples "
                          f"{'has' if samples == 1 else 'have'} NaN or infinity, and steps with such samples are skipped. Leave "
                          "these samples out or replace the values; data__allow_nonfinite=True accepts them")


def check_integers(array: numpy.ndarray, what: str, limit: int, ignored: Optional[int] = None, padding: Any = None) -> None:
    """Refuses integers outside the range that the model accepts. `padding`: the value that filled up samples, if any did."""
    if array.dtype.kind not in "iu":
        return
    for begin, block in _blocks(array):
        wrong = (block < 0) | (block >= limit)
        if ignored is not None:
            wrong &= block != ignored
        if not wrong.any():
            continue
        place = numpy.unravel_index(int(numpy.argmax(wrong)), block.shape)
        first = (begin + int(place[0]),) + tuple(int(k) for k in place[1:])
        also = f", or {ignored}, which the loss ignores" if ignored is not None else ""
        if padding is not None and array[first] == padding:
            raise MotleyError(f"{_at(what, first)} is {array[first]}, the value of pad= for it; the model accepts 0 to {limit - 1}{also}. "
                              "Pass another value in pad=")
        raise MotleyError(f"{_at(what, first)} is {array[first]}; the model accepts 0 to {limit - 1}{also}. Number them from 0, "
                          "or enlarge the model")


def check_width(array: numpy.ndarray, what: str) -> None:
    """Refuses integers of more than 32 bits, which samples do not hold."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8:
        return
    for begin, block in _blocks(array):
        wrong = (block < -(1 << 31)) | (block >= 1 << 31)
        if wrong.any():
            place = numpy.unravel_index(int(numpy.argmax(wrong)), block.shape)
            first = (begin + int(place[0]),) + tuple(int(k) for k in place[1:])
            raise MotleyError(f"{_at(what, first)} is {array[first]}; integers of samples have 32 bits. Number them from 0")


def _at(what: str, place: Tuple[int, ...]) -> str:
    return f"{what}[{', '.join(map(str, place))}]"


def _blocks(array: numpy.ndarray) -> Iterator[Tuple[int, numpy.ndarray]]:
    rows = max(1, _BLOCK // max(1, array[:1].size))
    for begin in range(0, len(array), rows):
        yield begin, array[begin:begin + rows]


@contextlib.contextmanager
def naming(what: str) -> Iterator[None]:
    """Adds the name of the data to errors."""
    try:
        yield
    except MotleyError as error:
        raise MotleyError(f"{what}: {error}") from error
