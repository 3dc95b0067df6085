"""Reads and writes safetensors files, without a library and without conversions."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import Any, BinaryIO, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

import torch

from .errors import MotleyError

_NAMES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}

_PIECE = 8 << 20
"""Bytes of a stored tensor that are read at once."""


def holds(dtype: torch.dtype) -> bool:
    """Whether the format supports this type."""
    return dtype in _NAMES


def write(path: str, tensors: Mapping[str, torch.Tensor], metadata: Optional[Dict[str, str]] = None,
          sources: Mapping[str, Stored] = {}) -> str:
    """Writes `tensors` in their order, atomically by a temporary file; values of tensors in `sources` are read from there.
    Returns the file's hash, in hexadecimal digits."""
    head, _ = _head(tensors, metadata)
    partial = path + ".partial"
    found = hashlib.sha256()
    with open(partial, "wb") as file:
        def append(part: Any) -> None:
            found.update(part)
            file.write(part)

        append(head)
        for name, tensor in tensors.items():
            for piece in sources[name].pieces(tensor.dtype) if name in sources else (tensor,):
                append(_memory(piece))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    return found.hexdigest()


def write_zeros(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a file of the same size as `write`, whose values are 0: a sparse file if the file system supports it."""
    head, length = _head(tensors, None)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + length)


def _head(tensors: Mapping[str, torch.Tensor], metadata: Optional[Dict[str, str]]) -> Tuple[bytes, int]:
    """The bytes before the values, and the number of bytes of the values."""
    header: Dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    begin = 0
    for name, tensor in tensors.items():
        end = begin + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, begin


class Stored(NamedTuple):
    """A tensor in a file. Its values are read on request."""

    path: str
    dtype: torch.dtype
    shape: Tuple[int, ...]
    begin: int
    """The position of its first byte in the file."""

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * torch.empty(0, dtype=self.dtype).element_size()

    def values(self, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """Its values, converted to `dtype`, by default in its own."""
        if dtype in (None, self.dtype):
            with open(self.path, "rb") as file:
                return self._read(file, self.begin, self.bytes).reshape(self.shape)
        found = torch.empty(math.prod(self.shape), dtype=dtype)
        begin = 0
        for piece in self.pieces(found.dtype):
            found[begin:begin + piece.numel()] = piece
            begin += piece.numel()
        return found.reshape(self.shape)

    def equals(self, other: Stored) -> bool:
        """Whether both have the same shape and values as float32, or the same bytes."""
        if self == other:
            return True
        if self.shape != other.shape:
            return False
        dtype = self.dtype if self.dtype == other.dtype else torch.float32
        mine, others = (tensor._parts(dtype) for tensor in (self, other))
        return all(torch.equal(a, b) or bytes(_memory(a)) == bytes(_memory(b)) for a, b in zip(mine, others))

    def _parts(self, dtype: torch.dtype) -> Iterator[torch.Tensor]:
        """Its elements in order, in pieces of equal numbers for all types."""
        with open(self.path, "rb") as file:
            size, count = torch.empty(0, dtype=self.dtype).element_size(), math.prod(self.shape)
            for begin in range(0, count, _PIECE // 8):
                yield self._read(file, self.begin + begin * size, min(_PIECE // 8, count - begin) * size).to(dtype)

    def pieces(self, dtype: torch.dtype) -> Iterator[torch.Tensor]:
        """Its elements in order, converted to `dtype`, in pieces of at most `_PIECE` bytes in the file."""
        with open(self.path, "rb") as file:
            for begin in range(0, self.bytes, _PIECE):
                yield self._read(file, self.begin + begin, min(_PIECE, self.bytes - begin)).to(dtype)

    def _read(self, file: BinaryIO, begin: int, count: int) -> torch.Tensor:
        if count == 0:
            return torch.empty(0, dtype=self.dtype)
        values = bytearray(count)
        file.seek(begin)
        if file.readinto(values) != count:  # type: ignore[attr-defined]
            raise MotleyError(f"{self.path} was truncated while it was read. Write the file again")
        return torch.frombuffer(values, dtype=self.dtype)


def stored(path: str) -> Dict[str, Stored]:
    """The tensors of a file, in its order, without their values."""
    with open(path, "rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
        if not 0 < length <= os.path.getsize(path) - 8:
            raise MotleyError(f"{path} is not a safetensors file: the length of its header is {length}. Write the file again")
        try:
            header = json.loads(file.read(length))
            found = {name: _stored(path, name, entry, 8 + length) for name, entry in header.items() if name != "__metadata__"}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise MotleyError(f"{path} has a damaged header: {type(error).__name__}: {error}. Write the file again") from error
    surplus = os.path.getsize(path) - max((tensor.begin + tensor.bytes for tensor in found.values()), default=8 + length)
    if surplus > 0:
        raise MotleyError(f"{path} has {surplus} bytes after its last tensor. Write the file again")
    return found


def read(path: str) -> Dict[str, torch.Tensor]:
    """All tensors of a file, in its order."""
    return {name: entry.values() for name, entry in stored(path).items()}


def _stored(path: str, name: str, entry: Mapping[str, Any], start: int) -> Stored:
    dtype = _TYPES.get(entry["dtype"])
    begin, end = entry["data_offsets"]
    if dtype is None:
        raise MotleyError(f"{path}: {name} has the unsupported type {entry['dtype']}. Convert it to F32")
    found = Stored(path, dtype, tuple(entry["shape"]), start + begin)
    if not 0 <= begin <= end <= os.path.getsize(path) - start or end - begin != found.bytes:
        raise MotleyError(f"{path}: {name} is incomplete. Write the file again")
    return found


def _memory(tensor: torch.Tensor) -> Any:
    """The bytes of a tensor, without a copy if it is contiguous."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def sha256(path: str) -> str:
    """The hash of a file, in hexadecimal digits."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            found.update(part)
    return found.hexdigest()


def content_hash(tensor: torch.Tensor) -> str:
    """A hash of type, shape and values, in hexadecimal digits."""
    found = hashlib.sha256(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    found.update(_memory(tensor))
    return found.hexdigest()
