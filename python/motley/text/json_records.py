"""Reads the records of JSON files: an object per line, an array of objects, or objects over several lines, one after the other."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any, BinaryIO, Iterator, List, Mapping, Tuple

from ..errors import MotleyError, summary
from .foreign import Unreadable, check

LONGEST_LINE = 64 << 20
_LARGEST_WHOLE = 1 << 30
"""The most bytes of a file that is parsed as a whole."""

_BOM = b"\xef\xbb\xbf"


def records(path: str, size: int) -> Iterator[Tuple[str, Any, int]]:
    """The place of each record, its line (bytes) or its value, and the bytes up to it, of `size`. Raises Unreadable."""
    with open(path, "rb") as file:
        start = file.read(64)
        check(path, start)
        file.seek(0)
        if without_bom(start).lstrip()[:1] == b"[":
            yield from _array(path, _whole(path, file, "a JSON array"), size)
        elif _is_indented(file):
            yield from _values(path, _whole(path, file, "JSON over several lines"), size)
        else:
            yield from _lines(path, file)


def _lines(path: str, file: BinaryIO) -> Iterator[Tuple[str, bytes, int]]:
    number = 0
    while True:
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        number += 1
        if len(line) > LONGEST_LINE:
            raise Unreadable(f"{path}:{number} has more than {LONGEST_LINE >> 20} MiB. Write one record per line")
        yield f"{path}:{number}", (without_bom(line) if number == 1 else line).rstrip(b"\r\n"), file.tell()


def _is_indented(file: BinaryIO) -> bool:
    """Whether the first line with anything in it is `{` alone. Leaves the file at its start."""
    first = next((line for line in map(_stripped, iter(lambda: file.readline(64), b"")) if line), b"")
    file.seek(0)
    return first == b"{"


def _stripped(line: bytes) -> bytes:
    return without_bom(line).strip()


def _whole(path: str, file: BinaryIO, what: str) -> bytes:
    content = file.read(_LARGEST_WHOLE + 1)
    if len(content) > _LARGEST_WHOLE:
        raise Unreadable(f"{path} is {what}, of more than {_LARGEST_WHOLE >> 30} GiB. Write one record per line")
    return without_bom(content)


def _array(path: str, content: bytes, size: int) -> Iterator[Tuple[str, Any, int]]:
    try:
        rows = strict_json(content)
    except ValueError as error:
        raise Unreadable(f"{path} begins with [ and is no valid JSON array: {error}") from error
    for k, row in enumerate(rows):
        yield f"record {k} of {path}", row, size * (k + 1) // len(rows)


def _values(path: str, content: bytes, size: int) -> Iterator[Tuple[str, Any, int]]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: byte {error.start} (0x{content[error.start]:02x}) is not UTF-8") from error
    place, found = _skipped(text, 0), []
    while place < len(text):
        line = text.count("\n", 0, place) + 1 if not found else found[-1][0] + text.count("\n", found[-1][2], place)
        try:
            value, end = _DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise Unreadable(f"{path} has JSON over several lines that is not valid: {error.msg} at line {error.lineno} "
                             f"column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"{path} has JSON over several lines that is not valid, at line {line}: {error}") from error
        found.append((line, value, place))
        place = _skipped(text, end)
    for k, (line, value, _) in enumerate(found):
        yield f"{path}:{line}", value, size * (k + 1) // len(found)


def _skipped(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def without_bom(start: bytes) -> bytes:
    return start[len(_BOM):] if start.startswith(_BOM) else start


def strict_json(line: bytes) -> Any:
    """The value of UTF-8 JSON; raises ValueError with the reason, also for keys that occur twice, and for NaN."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
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


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def as_bytes(row: Any) -> bytes:
    """A row as JSON; values that JSON has not, such as an image, by their types alone, since they are not trained on."""
    try:
        return json.dumps(row, sort_keys=True, default=_plain).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:  # keys of several types, or a list in itself
        raise MotleyError(f"a row is not like JSON: {summary(error)}. Rows have texts as keys, and texts, numbers, lists and objects "
                          "as values") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return repr(value) if isinstance(value, _BY_REPR) else type(value).__name__


_BY_REPR = (bytes, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal)
