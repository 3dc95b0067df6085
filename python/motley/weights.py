"""Reads and writes safetensors files, without a library and without conversions."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import Any, BinaryIO, Dict, Mapping, Optional

import torch

from .errors import MotleyError

_NAMES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}


def holds(dtype: torch.dtype) -> bool:
    """Whether the format supports this type."""
    return dtype in _NAMES


def write(path: str, tensors: Mapping[str, torch.Tensor], metadata: Optional[Dict[str, str]] = None) -> None:
    """Writes `tensors` in their order, atomically by a temporary file."""
    header: Dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    begin = 0
    for name, tensor in tensors.items():
        end = begin + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    partial = path + ".partial"
    with open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in tensors.values():
            file.write(_bytes(tensor))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def read(path: str) -> Dict[str, torch.Tensor]:
    """All tensors of a file, in its order."""
    with open(path, "rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
        if not 0 < length <= os.path.getsize(path) - 8:
            raise MotleyError(f"{path} is not a safetensors file: the length of its header is {length}. Write the file again")
        try:
            header = json.loads(file.read(length))
            return {name: _tensor(file, path, name, entry, 8 + length) for name, entry in header.items() if name != "__metadata__"}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise MotleyError(f"{path} has a damaged header: {type(error).__name__}: {error}. Write the file again") from error


def _tensor(file: BinaryIO, path: str, name: str, entry: Mapping[str, Any], start: int) -> torch.Tensor:
    dtype = _TYPES.get(entry["dtype"])
    begin, end = entry["data_offsets"]
    if dtype is None:
        raise MotleyError(f"{path}: {name} has the unsupported type {entry['dtype']}. Convert it to F32")
    bytes_left = os.path.getsize(path) - start
    expected = math.prod(entry["shape"]) * torch.empty(0, dtype=dtype).element_size()
    if not 0 <= begin <= end <= bytes_left or end - begin != expected:
        raise MotleyError(f"{path}: {name} is incomplete. Write the file again")
    file.seek(start + begin)
    values = bytearray(file.read(end - begin))
    flat = torch.frombuffer(values, dtype=dtype) if values else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"])


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().data) if flat.numel() else b""


def sha256(path: str) -> str:
    """The hash of a file, in hexadecimal digits."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            found.update(part)
    return found.hexdigest()


def content(tensor: torch.Tensor) -> bytes:
    """Type, shape and values as bytes; they differ for different tensors."""
    return f"{tensor.dtype}{tuple(tensor.shape)}".encode() + _bytes(tensor)

