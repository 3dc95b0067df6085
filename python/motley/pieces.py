"""Large tensors in pieces, so that no second tensor of their size is needed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import tempfile
from typing import Any, Dict, Iterator, Optional, Tuple

import torch

ELEMENTS = 1 << 20
"""The least number of elements of a piece, unless the tensor ends before."""

SPILLED_BYTES = 16 << 20
"""Tensors of this size are kept in a file where that is possible."""


def of(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Views of a tensor's elements, in order: rows of its first dimension that has several."""
    while tensor.dim() > 1 and tensor.size(0) == 1:
        tensor = tensor[0]
    if tensor.dim() == 0:
        tensor = tensor.reshape(1)
    rows = max(1, ELEMENTS // max(1, tensor.numel() // max(1, tensor.size(0))))
    for begin in range(0, tensor.size(0), rows):
        yield tensor[begin:begin + rows]


def largest(tensor: torch.Tensor) -> float:
    """The largest absolute value; NaN if there is one; 0 without elements."""
    found = [part.abs().max() for part in of(tensor) if part.numel()]
    return float(torch.stack(found).max()) if found else 0.0


class Spilled:
    """Tensors by key. Large ones are in a temporary file in `folder`, by default that of the system."""

    def __init__(self, folder: Optional[str] = None) -> None:
        self._folder = folder
        self._file: Any = None
        self._held: Dict[Any, torch.Tensor] = {}
        self._places: Dict[Any, Tuple[int, torch.dtype]] = {}
        self.shapes: Dict[Any, torch.Size] = {}

    def __enter__(self) -> "Spilled":
        return self

    def __exit__(self, *_: Any) -> None:
        self._held.clear()
        if self._file is not None:
            self._file.close()

    def put(self, key: Any, tensor: torch.Tensor) -> None:
        self.shapes[key] = tensor.shape
        if tensor.numel() * tensor.element_size() < SPILLED_BYTES:
            self._held[key] = tensor
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)
        self._places[key] = self._file.seek(0, 2), tensor.dtype
        for part in of(tensor):
            self._file.write(part.contiguous().numpy().data)

    def parts(self, key: Any, like: torch.Tensor) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        """Pieces of `like`, a tensor of the same shape, each with the elements at the same places. REQUIRES: `key` was put."""
        if key in self._held:
            yield from zip(of(like), of(self._held[key]))
            return
        place, dtype = self._places[key]
        self._file.seek(place)
        for part in of(like):
            values = bytearray(part.numel() * torch.empty(0, dtype=dtype).element_size())
            if self._file.readinto(values) != len(values):
                raise OSError("a temporary file was truncated")
            yield part, torch.frombuffer(values, dtype=dtype).reshape(part.shape)


_MMAP_THRESHOLD = -3
"""mallopt's M_MMAP_THRESHOLD."""

_MAPPED_BYTES, _MOST_MAPPED_BYTES = 1 << 20, 32 << 20
"""Tensors of the first size are mapped; the second is the C library's own limit after a tensor of that size was released."""


@functools.lru_cache(maxsize=None)
def _of_c_library(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None)


@contextlib.contextmanager
def mapped_memory() -> Iterator[None]:
    """While entered, tensors of 1 MiB or more return their memory to the system when they are released, with the C library of GNU.
    Otherwise those of less than 32 MiB are in its heap, whose free parts between others stay with the process."""
    mallopt = _of_c_library("mallopt")
    if mallopt is None:
        yield
        return
    return_memory()
    mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)
    try:
        yield
    finally:
        mallopt(_MMAP_THRESHOLD, _MOST_MAPPED_BYTES)


def return_memory() -> None:
    """Returns released memory to the system, with the C library of GNU."""
    trim = _of_c_library("malloc_trim")
    if trim is not None:
        trim(0)
