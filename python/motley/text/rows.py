"""Writes tokenized documents as rows of one length, as the .npy files of docs/formats/data.md."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import numpy

from ..errors import MotleyError, summary
from .packing import packed
from .tokenized import IGNORED, Tokenized

Row = List[Tuple[numpy.ndarray, numpy.ndarray]]
"""Ids and targets of the documents of a row."""


class Layout(NamedTuple):
    """`length`: the tokens of a row."""

    length: int
    packing: bool
    pad_id: int

    @property
    def dtypes(self) -> Dict[str, Any]:
        """Of the files, by their names."""
        small = numpy.dtype("<i2" if self.length < 1 << 15 else "<i4")
        tokens = numpy.dtype("<i4")
        if self.packing:
            return {"inputs.input_ids": tokens, "inputs.position_ids": small, "inputs.document_ids": small, "targets": tokens}
        return {"inputs.input_ids": tokens, "inputs.attention_mask": numpy.dtype("i1"), "targets": tokens}


class Written(NamedTuple):
    """`example`: rows for the export, among them those with the most documents, or the most padding; the first has the most documents."""

    rows: int
    example: List[int]
    padding: int


def longest(parts: List[str]) -> int:
    return max((int(_lengths(part).max(initial=0)) for part in parts), default=0)


def write(parts: List[str], layout: Layout, folder: str) -> Written:
    """Writes the files under temporary names and renames them, so that files with links elsewhere do not change."""
    count = sum(len(packed(_lengths(part).tolist(), layout.length)) if layout.packing else len(_lengths(part)) for part in parts)
    partial = {name: os.path.join(folder, f"{name}.npy.partial") for name in layout.dtypes}
    files = {name: numpy.lib.format.open_memmap(partial[name], mode="w+", dtype=dtype, shape=(count, layout.length))
             for name, dtype in layout.dtypes.items()}
    for name in layout.dtypes:
        _reserve(partial[name])
    padding = 0
    most_documents, most_padding = (0, 0), (0, 0)  # with the row
    for k, row in enumerate(_rows(parts, layout)):
        used = _fill(row, k, files, layout)
        padding += layout.length - used
        most_documents, most_padding = max(most_documents, (len(row), k)), max(most_padding, (layout.length - used, k))
    for name, array in files.items():
        array.flush()
        _sync(partial[name])
    files.clear()
    for name, path in partial.items():
        os.replace(path, os.path.join(folder, f"{name}.npy"))
    for name in os.listdir(folder):  # of an earlier call with another packing=
        if name.startswith("inputs.") and name.endswith(".npy") and name[:-len(".npy")] not in layout.dtypes:
            os.remove(os.path.join(folder, name))
    example = list(dict.fromkeys([most_documents[1], most_padding[1], *range(min(count, 4))]))[:4]
    return Written(count, example, padding)


def _rows(parts: List[str], layout: Layout) -> Iterator[Row]:
    for part in parts:
        made = Tokenized.read(part)
        ends = numpy.cumsum(made.lengths)
        documents = [(made.ids[end - length:end], made.targets[end - length:end]) for end, length in zip(ends, made.lengths)]
        for numbers in packed(made.lengths.tolist(), layout.length) if layout.packing else [[k] for k in range(len(documents))]:
            yield [documents[number] for number in numbers]


def _fill(row: Row, k: int, files: Dict[str, Any], layout: Layout) -> int:
    """Returns the number of tokens without the padding."""
    files["inputs.input_ids"][k] = layout.pad_id
    files["targets"][k] = IGNORED
    start = 0
    for number, (ids, targets) in enumerate(row):
        end = start + len(ids)
        files["inputs.input_ids"][k, start:end] = ids
        files["targets"][k, start:end] = targets
        if layout.packing:
            files["inputs.position_ids"][k, start:end] = numpy.arange(len(ids))
            files["inputs.document_ids"][k, start:end] = number + 1
        start = end
    if layout.packing:  # the padding is a document of its own, with the number 0
        files["inputs.position_ids"][k, start:] = numpy.arange(layout.length - start)
        files["inputs.document_ids"][k, start:] = 0
    else:
        files["inputs.attention_mask"][k, :start] = 1
        files["inputs.attention_mask"][k, start:] = 0
    return start


def _lengths(part: str) -> numpy.ndarray:
    with numpy.load(part, allow_pickle=False) as file:
        return file["lengths"]


def _reserve(path: str) -> None:
    """Allocates a sparse file: a full disk is an OSError here, and in a write to mapped memory the end of the process by SIGBUS."""
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def hashes(folder: str, names: Iterable[str]) -> Dict[str, str]:
    """The SHA-256 of each file. Raises MotleyError if one cannot be read."""
    found = {}
    for name in names:
        path = os.path.join(folder, f"{name}.npy")
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
        except OSError as error:
            raise MotleyError(f"{path} cannot be read: {error.strerror}. Call motley.text again, which writes it anew") from error
        found[name] = digest.hexdigest()
    return found


def open_rows(folder: str, names: List[str], rows: int, length: int) -> Dict[str, numpy.ndarray]:
    """The mapped files. Raises MotleyError if one is missing or has another shape."""
    found = {}
    for name in names:
        path = os.path.join(folder, f"{name}.npy")
        try:
            found[name] = numpy.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # numpy raises many kinds for a damaged header
            raise MotleyError(f"{path} cannot be read: {summary(error)}. Call motley.text again, which writes it anew") from error
        if found[name].dtype.kind != "i":
            raise MotleyError(f"{path} has the type {found[name].dtype} instead of integers. Remove {folder}, and call motley.text again")
        if found[name].shape != (rows, length):
            raise MotleyError(f"{path} has the shape {list(found[name].shape)}, and the manifest [{rows}, {length}]. Remove {folder}, and call "
                              "motley.text again")
    return found
