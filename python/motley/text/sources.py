"""Reads texts as people have them, as chunks of records with their places: JSON lines, JSON arrays, parquet, text files, datasets."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..errors import MotleyError, summary
from . import parquet

RECORDS = 1000
"""The most records of a chunk. Documents are packed within a chunk, as by trl, whose default this is."""

_CHUNK_BYTES = 16 << 20
"""A chunk ends once its records have so many bytes."""

LONGEST_LINE = 64 << 20
_LARGEST_ARRAY = 1 << 30

_COMPRESSED = {b"\x1f\x8b": "gunzip --keep", b"\x28\xb5\x2f\xfd": "unzstd", b"\xfd7zXZ": "unxz --keep", b"BZh": "bunzip2 --keep", b"PK\x03\x04": "unzip"}
_WIDE = (b"\xff\xfe", b"\xfe\xff")

_KINDS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".txt": "text", ".text": "text", ".md": "text"}


class Raw(NamedTuple):
    """A record before it is parsed."""

    place: str
    """For messages, such as chat.jsonl:17."""
    value: Union[bytes, Mapping[str, Any]]
    """A line of JSON, the bytes of a text, or a row."""
    is_text: bool = False


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
        """May end with a chunk that `failed`. Bounded memory, but for a JSON array."""
        try:
            yield from _gathered(self._records())
        except OSError as error:
            yield Chunk([], self.size, f"{self.name} cannot be read: {error.strerror or error}")

    def sha256(self) -> str:
        """Of the file's bytes, or of the rows."""
        found = hashlib.sha256()
        if self._rows is not None:
            for row in self._rows:
                found.update(as_bytes(row) + b"\n")
            return found.hexdigest()
        try:
            with open(self.name, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    found.update(block)
        except OSError as error:
            raise MotleyError(f"{self.name} cannot be read: {error.strerror or error}") from error
        return found.hexdigest()

    def _records(self) -> Iterator[Union[Tuple[Raw, int], Chunk]]:
        if self._rows is not None:
            return self._of_rows(self._rows)
        if self.kind == "parquet":
            return self._parquet()
        return self._json() if self.kind == "json" else self._text()

    def _of_rows(self, rows: Iterable[Any]) -> Iterator[Tuple[Raw, int]]:
        found = hashlib.sha256()
        for k, row in enumerate(rows):
            found.update(as_bytes(row) + b"\n")
            yield Raw(f"row {k} of the {self.name}", row), k + 1
        self.read_sha256 = found.hexdigest()

    def _parquet(self) -> Iterator[Union[Tuple[Raw, int], Chunk]]:
        try:
            for k, (row, end) in enumerate(parquet.rows(self.name, self.size)):
                yield Raw(f"row {k} of {self.name}", row), end
        except parquet.Unreadable as error:
            yield Chunk([], self.size, str(error))

    def _json(self) -> Iterator[Union[Tuple[Raw, int], Chunk]]:
        with open(self.name, "rb") as file:
            start = file.read(64)
            failed = _foreign(self.name, start)
            if failed:
                yield Chunk([], self.size, failed)
                return
            file.seek(0)
            if _without_bom(start).lstrip()[:1] == b"[":
                yield from self._array(file.read(_LARGEST_ARRAY + 1))
                return
            number = 0
            while True:
                line = file.readline(LONGEST_LINE + 1)
                if not line:
                    return
                number += 1
                if len(line) > LONGEST_LINE:
                    yield Chunk([], self.size, f"{self.name}:{number} has more than {LONGEST_LINE >> 20} MiB. Write one record per line")
                    return
                yield Raw(f"{self.name}:{number}", (_without_bom(line) if number == 1 else line).rstrip(b"\r\n")), file.tell()

    def _array(self, content: bytes) -> Iterator[Union[Tuple[Raw, int], Chunk]]:
        if len(content) > _LARGEST_ARRAY:
            yield Chunk([], self.size, f"{self.name} is a JSON array of more than {_LARGEST_ARRAY >> 30} GiB. Write one record per line")
            return
        try:
            rows = strict_json(_without_bom(content))
        except ValueError as error:
            yield Chunk([], self.size, f"{self.name} begins with [ and is no valid JSON array: {error}")
            return
        for k, row in enumerate(rows):
            yield Raw(f"record {k} of {self.name}", row), self.size * (k + 1) // len(rows)

    def _text(self) -> Iterator[Union[Tuple[Raw, int], Chunk]]:
        with open(self.name, "rb") as file:
            failed = _foreign(self.name, file.read(64))
            if failed:
                yield Chunk([], self.size, failed)
                return
            file.seek(0)
            number = 0
            while True:
                piece = file.read(_PIECE)
                if not piece:
                    return
                if len(piece) == _PIECE:
                    piece += file.readline(LONGEST_LINE)  # up to the end of a line
                number += 1
                place = self.name if number == 1 else f"{self.name}, part {number}"
                yield Raw(place, _without_bom(piece) if number == 1 else piece, True), file.tell()


_BOM = b"\xef\xbb\xbf"

_PIECE = 4 << 20
"""A text file is one document, and several if it is larger."""


def _without_bom(start: bytes) -> bytes:
    return start[len(_BOM):] if start.startswith(_BOM) else start


def _gathered(records: Iterator[Union[Tuple[Raw, int], Chunk]]) -> Iterator[Chunk]:
    gathered: List[Raw] = []
    size = end = 0
    for each in records:
        if isinstance(each, Chunk):
            yield Chunk(gathered, each.end, each.failed)
            return
        raw, end = each
        gathered.append(raw)
        size += _size(raw.value)
        if len(gathered) == RECORDS or size >= _CHUNK_BYTES:
            yield Chunk(gathered, end)
            gathered, size = [], 0
    if gathered:
        yield Chunk(gathered, end)


def _size(value: Any) -> int:
    """About the bytes of a record."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else 8


def strict_json(line: bytes) -> Any:
    """The value of UTF-8 JSON; raises ValueError with the reason, also for keys that occur twice, and for NaN."""
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} (0x{line[error.start]:02x}) is not UTF-8") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise ValueError(f"{error.msg} at {place}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _unique(pairs: List[Tuple[str, Any]]) -> Mapping[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return made


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def as_bytes(row: Any) -> bytes:
    return json.dumps(row, sort_keys=True, default=repr).encode("utf-8")


def _foreign(name: str, start: bytes) -> Optional[str]:
    """Why a file with these first bytes is not text."""
    for magic, command in _COMPRESSED.items():
        if start.startswith(magic):
            return f"{name} is compressed. Unpack it with `{command} {name}`"
    if start.startswith(_WIDE):
        return f"{name} is UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8`"
    if start.startswith(b"PAR1"):
        return f"{name} is a parquet file. Rename it to .parquet"
    return None


def sources_of(given: Any) -> List[Source]:
    """The sources of the first argument of `motley.text`."""
    if isinstance(given, (str, os.PathLike)):
        return _files([os.fspath(given)])
    if isinstance(given, (list, tuple)):
        if not given:
            raise MotleyError("the source is an empty list. Pass paths, or records")
        if all(isinstance(each, (str, os.PathLike)) for each in given):
            return _files([os.fspath(each) for each in given])
        if all(isinstance(each, Mapping) for each in given):
            return [Source("list", "rows", len(given), given)]
        raise MotleyError("the source is a list of neither paths nor records. Pass paths, or dictionaries such as {'messages': […]}")
    if isinstance(given, Mapping):
        raise MotleyError(f"the source is a {type(given).__name__} with the keys {', '.join(map(repr, list(given)[:8]))}. Pass one of its "
                          "splits, such as dataset['train'], or a list of records")
    if hasattr(given, "column_names") and hasattr(given, "__iter__"):  # a Dataset or an IterableDataset
        size = len(given) if hasattr(given, "__len__") else 0
        return [Source(type(given).__name__, "rows", size, given)]
    raise MotleyError(f"the source is a {type(given).__name__}. Pass a path, several, a dataset of Hugging Face, or a list of records")


def _files(paths: List[str]) -> List[Source]:
    found: List[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path, onerror=_unreadable) for name in names
                        if os.path.splitext(name)[1].lower() in _KINDS)
        if not inside:
            raise MotleyError(f"{path} has no file that ends in {', '.join(_KINDS)}")
        found += inside
    made = []
    for path in found:
        kind = _KINDS.get(os.path.splitext(path)[1].lower())
        if kind is None:
            raise MotleyError(_unknown(path))
        try:
            made.append(Source(path, kind, os.path.getsize(path)))
        except OSError as error:
            raise MotleyError(f"{path} cannot be read: {error.strerror}") from error
    if any(source.kind == "parquet" for source in made):
        try:
            parquet.check()
        except ImportError as error:
            raise MotleyError(f"parquet files need pyarrow: {summary(error)}. pip install pyarrow") from error
    return made


def _unreadable(error: OSError) -> None:
    raise MotleyError(f"{error.filename} cannot be read: {error.strerror}") from error


def _unknown(path: str) -> str:
    """Why a path whose end names no kind of files is refused."""
    try:
        with open(path, "rb") as file:
            foreign = _foreign(path, file.read(64))
    except FileNotFoundError:
        return f"{path} does not exist. Pass the path of a file or a folder; a dataset of the Hub is datasets.load_dataset({path!r}, split=\"train\")"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return foreign or f"{path} ends in none of {', '.join(_KINDS)}. Rename it after its content"
