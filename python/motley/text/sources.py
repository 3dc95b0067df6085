"""Reads texts as people have them, as chunks of records with their places: JSON, parquet, text files, datasets."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..errors import MotleyError, summary
from . import folders, json_records, parquet
from .foreign import Unreadable, check, foreign
from .json_records import as_bytes

RECORDS = 1000
"""The most records of a chunk. Documents are packed within a chunk, as by trl, whose default this is."""

_CHUNK_BYTES = 16 << 20
"""A chunk ends once its records have so many bytes."""

_PIECE = 4 << 20
"""A text file is one document, and several if it is larger."""


class Raw(NamedTuple):
    """A record before it is parsed."""

    place: str
    """For messages, such as chat.jsonl:17."""
    value: Union[bytes, Mapping[str, Any]]
    """A line of JSON, the bytes of a text, or a row."""
    is_text: bool = False
    is_table: bool = False
    """Of rows that have null in the place of a key that others have."""


class Chunk(NamedTuple):
    """Consecutive records of a source. `end`: the source's bytes or rows up to here; `failed`: why the source ends here."""

    records: List[Raw]
    end: int
    failed: Optional[str] = None

    def digest(self) -> str:
        """Of the records and their places."""
        found = hashlib.blake2b(digest_size=16)
        for raw in self.records:
            value = raw.value if isinstance(raw.value, bytes) else as_bytes(raw.value)
            found.update(f"{raw.place}\0{raw.is_text}\0{len(value)}\0".encode("utf-8", "surrogateescape"))
            found.update(value)
        return found.hexdigest()


class Source:
    """One file, or the rows of an object. `name` is for messages; `size` in bytes or rows, 0 if unknown."""

    def __init__(self, name: str, kind: str, size: int, rows: Optional[Iterable[Any]] = None):
        self.name, self.kind, self.size = name, kind, size
        self._rows = rows
        self.read_sha256: Optional[str] = None
        """Of rows, when `chunks` has read them: that of `sha256`, unless they change from one reading to the next."""

    def chunks(self) -> Iterator[Chunk]:
        """May end with a chunk that `failed`. Bounded memory, but for a file that `json_records` parses as a whole."""
        gathered: List[Raw] = []
        size = end = 0
        try:
            for raw, end in self._records():
                gathered.append(raw)
                size += _size(raw.value)
                if len(gathered) == RECORDS or size >= _CHUNK_BYTES:
                    yield Chunk(gathered, end)
                    gathered, size = [], 0
        except Unreadable as error:
            yield Chunk(gathered, self.size, str(error))
        except OSError as error:
            yield Chunk(gathered, self.size, f"{self.name} cannot be read: {error.strerror or error}")
        else:
            if gathered:
                yield Chunk(gathered, end)

    def sha256(self) -> str:
        """Of the file's bytes, or of the rows."""
        found = hashlib.sha256()
        if self._rows is not None:
            for row in self._iterated():
                found.update(as_bytes(row) + b"\n")
            return found.hexdigest()
        try:
            with open(self.name, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    found.update(block)
        except OSError as error:
            raise MotleyError(f"{self.name} cannot be read: {error.strerror or error}") from error
        return found.hexdigest()

    def _records(self) -> Iterator[Tuple[Raw, int]]:
        if self._rows is not None:
            yield from self._of_rows()
        elif self.kind == "parquet":
            for k, (row, end) in enumerate(parquet.rows(self.name, self.size)):
                yield Raw(f"row {k} of {self.name}", row, is_table=True), end
        elif self.kind == "json":
            for place, value, end in json_records.records(self.name, self.size):
                yield Raw(place, value), end
        else:
            yield from self._text()

    def _of_rows(self) -> Iterator[Tuple[Raw, int]]:
        found = hashlib.sha256()
        for k, row in enumerate(self._iterated()):
            found.update(as_bytes(row) + b"\n")
            yield Raw(f"row {k} of the {self.name}", row, is_table=True), k + 1
        self.read_sha256 = found.hexdigest()

    def _iterated(self) -> Iterator[Any]:
        assert self._rows is not None
        try:
            yield from self._rows
        except (MotleyError, GeneratorExit, MemoryError):
            raise
        except Exception as error:  # any error of a dataset, such as one of its functions'
            raise MotleyError(f"the {self.name} cannot be read: {summary(error)}") from error

    def _text(self) -> Iterator[Tuple[Raw, int]]:
        with open(self.name, "rb") as file:
            check(self.name, file.read(64))
            file.seek(0)
            number = 0
            while True:
                piece = file.read(_PIECE)
                if not piece:
                    return
                if len(piece) == _PIECE:
                    piece += file.readline(json_records.LONGEST_LINE)  # up to the end of a line
                number += 1
                place = self.name if number == 1 else f"{self.name}, part {number}"
                yield Raw(place, json_records.without_bom(piece) if number == 1 else piece, True), file.tell()


def _size(value: Any) -> int:
    """About the bytes of a record."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else 8


def sources_of(given: Any, output: str) -> Tuple[List[Source], List[str]]:
    """The sources of the first argument of `motley.text`, and notices of what is left out. `output`: the folder that is written."""
    if isinstance(given, (str, os.PathLike)):
        return _files([os.fspath(given)], output)
    if isinstance(given, (list, tuple)):
        if not given:
            raise MotleyError("the source is an empty list. Pass paths, or records")
        if all(isinstance(each, (str, os.PathLike)) for each in given):
            return _files([os.fspath(each) for each in given], output)
        if all(isinstance(each, Mapping) for each in given):
            return [Source("list", "rows", len(given), given)], []
        raise MotleyError("the source is a list of neither paths nor records. Pass paths, or dictionaries such as {'messages': […]}")
    if isinstance(given, Mapping):
        raise MotleyError(f"the source is a {type(given).__name__} with the keys {', '.join(map(repr, list(given)[:8]))}. Pass one of its "
                          "splits, such as dataset['train'], or a list of records")
    if hasattr(given, "column_names") and hasattr(given, "__iter__"):  # a Dataset or an IterableDataset
        size = len(given) if hasattr(given, "__len__") else 0
        return [Source(type(given).__name__, "rows", size, given)], []
    hint = " df.to_dict('records') are the records of a DataFrame" if hasattr(given, "to_dict") else ""
    raise MotleyError(f"the source is a {type(given).__name__}. Pass a path, several, a dataset of Hugging Face, or a list of records.{hint}")


def _files(paths: List[str], output: str) -> Tuple[List[Source], List[str]]:
    found, notices = folders.expanded(paths, output)
    made = []
    for path in found:
        try:
            state = os.stat(path)
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
            code = getattr(error, "errno", None)
            raise MotleyError(_missing(path) if code in (None, errno.ENOENT, errno.ENAMETOOLONG)
                              else f"{path} cannot be read: {os.strerror(code)}") from error
        if not stat.S_ISREG(state.st_mode):
            raise MotleyError(f"{path} is no file, but a pipe or a device, which cannot be read twice. Write its content to a file")
        kind = folders.kind_of(path)
        if not kind:
            raise MotleyError(_unknown(path))
        made.append(Source(path, kind, state.st_size))
    if any(source.kind == "parquet" for source in made):
        try:
            parquet.check()
        except ImportError as error:
            raise MotleyError(f"parquet files need pyarrow: {summary(error)}. pip install pyarrow") from error
    return made, notices


def _missing(path: str) -> str:
    if "\n" in path or "\0" in path or len(path) > 255:
        return "the source is a text, and not the path of a file. Pass texts as records: [{'text': …}, …]"
    return f"{path} does not exist. Pass the path of a file or a folder; a dataset of the Hub is datasets.load_dataset({path!r}, split=\"train\")"


def _unknown(path: str) -> str:
    """Why a file whose end names no kind of files is refused."""
    try:
        with open(path, "rb") as file:
            why = foreign(path, file.read(64))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    if path.lower().endswith((".csv", ".tsv")):
        return f"{path} is a table. Pass datasets.load_dataset(\"csv\", data_files={path!r}, split=\"train\")"
    if path.lower().endswith(".arrow"):
        return f"{path} is a part of a dataset on disk. Pass datasets.load_from_disk({os.path.dirname(path)!r})"
    return why or f"{path} ends in none of {', '.join(folders.KINDS)}. Rename it after its content"
