"""`motley.text`: tokenizes texts into a folder of arrays that `motley.train` takes."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import shutil
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Union

from ..errors import MotleyError
from . import manifest, rows
from .rendering import Renderer
from .rows import Layout
from .sources import Source, sources_of
from .texts import Texts
from .tokenize import Totals, tokenize
from .tokenized import IGNORED, LISTED, Limits

Path = Union[str, "os.PathLike[str]"]

OVERFLOWS = ("truncate", "split", "drop")


def text(source: Any, tokenizer: Any, path: Path, *, max_length: int = 1024, train_on: Optional[str] = None, packing: bool = False,
         overflow: Optional[str] = None, skip_errors: bool = False, length: Optional[int] = None, pad_id: Optional[int] = None,
         chat_template_kwargs: Optional[Mapping[str, Any]] = None, date: Optional[str] = None, processes: int = 1,
         follow: Callable[[str], None] = print) -> Texts:
    """Prepares texts for `motley.train`: tokenizes them with the model's own tokenizer and chat template, and writes a folder of arrays.

    >>> tokenizer = transformers.AutoTokenizer.from_pretrained("llama")
    >>> data = motley.text("chats.jsonl", tokenizer, "chats.data", max_length=2048, packing=True)
    >>> run = motley.train(model, nn.CrossEntropyLoss(), data, steps=1000)

    source      the path of a file, or of a folder of them, or a list of paths; a dataset of Hugging Face; a list of records:
                  .jsonl, .ndjson, .json  one object per line, an array of objects, or objects over several lines
                  .parquet                rows (with pyarrow)
                  .txt, .text, .md        one document
                A record is {"messages": [{"role": "user", "content": "…"}, …]}, ShareGPT's {"conversations": [{"from": …, "value": …}, …]},
                {"prompt": …, "completion": …} of texts or of messages, {"instruction": …, "input": …, "output": …}, or {"text": …}. All
                records are of one kind
    tokenizer   of transformers, or an object with its interface
    path        the folder to write; with the same source and settings, the call returns what is there
    max_length  the most tokens of a document
    train_on    "assistant": all assistant turns; "completion": the last one, or the completion of a prompt; "all": all tokens. By
                default answers, and all tokens of texts. Other tokens have the target -100, which nn.CrossEntropyLoss ignores
    packing     several documents in a row of `max_length` tokens; attention does not cross them, and positions restart
    overflow    what becomes of a longer document: "truncate", "split" or "drop"; by default text files are split and records truncated
    skip_errors leave out records with errors, and count them; by default they are listed and nothing is written
    length      the tokens of a row, and the most of a document; by default `max_length` with packing, else those of the longest document.
                Held-out texts need that of the texts to train on: length=data.length
    pad_id      the token that fills up rows; by default the tokenizer's pad_token, or eos_token
    chat_template_kwargs
                variables of the chat template, such as {"enable_thinking": False}; a record's own come before them
    date        the day, as "2026-11-30", for chat templates that write it; by default that of the first call for this `path`
    processes   that tokenize; each has a copy of the tokenizer
    follow      is called with lines of progress and the notices

    Returns the `Texts`; `.counts` has the numbers of documents and tokens, also of those left out. An interrupted call continues where it
    was. Raises MotleyError for invalid arguments, and for records with errors, with the file and the line of the first ones.
    """
    layout_length = _checked(max_length, overflow, length, processes, packing)
    max_length = min(max_length, length or max_length)
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise MotleyError(f"path is {path!r}. Pass the folder to write")
    if not callable(follow):
        raise MotleyError(f"follow is {follow!r}. Pass a function that takes a line, such as print")
    renderer = Renderer(tokenizer, train_on, chat_template_kwargs)
    given_day = _day(date)
    if given_day is not None and not renderer.template.writes_date:
        raise MotleyError("date= has no effect, since the tokenizer's chat template writes no date. Leave it out")
    sources, left_out = sources_of(source, os.fspath(path))
    for line in left_out:
        follow(f"text  {line}")
    settings: Dict[str, Any] = {
        "max_length": max_length, "train_on": train_on, "packing": bool(packing), "overflow": overflow, "skip_errors": bool(skip_errors),
        "length": length, "pad_id": renderer.pad_id(pad_id), "tokenizer": renderer.identity(),
        "chat_template_kwargs": renderer.template.options}
    with _locked(os.path.abspath(os.fspath(path))) as folder:
        before = [_state(source) for source in sources]
        described = [{"name": source.name, "kind": source.kind, "size": source.size, "sha256": source.sha256()} for source in sources]
        written = manifest.read(folder)
        parts = os.path.join(folder, manifest.PARTS)
        if renderer.template.writes_date:
            renderer.template.day = given_day or _earlier_day(written, parts) or datetime.date.today()
        settings["date"] = renderer.template.day and renderer.template.day.isoformat()
        if written is not None and written["settings"] == settings and written["sources"] == described:
            with contextlib.suppress(MotleyError):  # a file is gone or damaged: written anew
                found = Texts(folder, written)
                if rows.hashes(folder, written["files"]) == written["files_sha256"]:
                    follow(f"text  {folder} is up to date: {found.summary()}")
                    return found
        os.makedirs(parts, exist_ok=True)
        _keep_day(renderer.template.day, parts)
        key = manifest.digest({"version": manifest.VERSION, **{name: settings[name] for name in _OF_TOKENS}})
        totals = tokenize(sources, renderer, Limits(max_length, overflow), parts, key, processes, follow)
        _check(totals, skip_errors)
        if [_state(source) for source in sources] != before:
            raise MotleyError("a source changed while it was read. Call motley.text again")
        for source, described_as in zip(sources, described):
            if source.read_sha256 not in (None, described_as["sha256"]):
                raise MotleyError(f"the {source.name} has other rows when it is read a second time. Write it to a .jsonl or .parquet file, and "
                                  "pass its path")
        layout = Layout(layout_length or rows.longest(totals.parts), bool(packing), settings["pad_id"])
        if os.path.exists(os.path.join(folder, manifest.NAME)):
            os.remove(os.path.join(folder, manifest.NAME))
        made = rows.write(totals.parts, layout, folder)
        content = {"version": manifest.VERSION, "settings": settings, "sources": described, "kind": next(iter(totals.kinds)),
                   "answers_found_by": renderer.found_by if totals.kinds.keys() & {"chat"} else None, "ignored": IGNORED, "counts": totals.counts,
                   "first_errors": totals.errors, "rows": made.rows, "length": layout.length, "padding": made.padding, "example": made.example,
                   "files": sorted(layout.dtypes), "files_sha256": rows.hashes(folder, layout.dtypes)}
        manifest.write(folder, content)
        shutil.rmtree(parts, ignore_errors=True)
        found = Texts(folder, content)
        follow(f"text  {folder}: {found.summary()}")
        for notice in manifest.notices(content):
            follow(f"text  {notice}")
        return found


def _checked(max_length: Any, overflow: Any, length: Any, processes: Any, packing: bool) -> Optional[int]:
    """Refuses invalid arguments; returns the length of rows, if it is known."""
    for name, value, least in (("max_length", max_length, 2), ("length", length, 2), ("processes", processes, 1)):
        if (value is not None or name != "length") and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise MotleyError(f"{name} is {value!r}. Pass a whole number of {least} or more")
    if overflow is not None and overflow not in OVERFLOWS:
        raise MotleyError(f"overflow is {overflow!r}. Pass one of {', '.join(map(repr, OVERFLOWS))}")
    return length or (max_length if packing else None)


_OF_TOKENS = ("max_length", "train_on", "overflow", "tokenizer", "chat_template_kwargs", "date")
"""The settings on which the tokens of a record depend."""

_DAY = "date"
"""The file with the day of an unfinished call."""


def _day(given: Any) -> Optional[datetime.date]:
    try:
        return given if given is None else datetime.date.fromisoformat(given)
    except (TypeError, ValueError) as error:
        raise MotleyError(f"date is {given!r}. Pass a day such as \"2026-11-30\"") from error


def _earlier_day(written: Optional[Mapping[str, Any]], parts: str) -> Optional[datetime.date]:
    """That of an interrupted call, or of the texts that are there, whose tokens do not change by themselves from day to day."""
    found = written["settings"].get("date") if written is not None else None
    with contextlib.suppress(OSError, ValueError), open(os.path.join(parts, _DAY), encoding="utf-8") as file:
        found = file.read()
    with contextlib.suppress(TypeError, ValueError):
        return datetime.date.fromisoformat(found)  # type: ignore[arg-type]
    return None


def _keep_day(day: Optional[datetime.date], parts: str) -> None:
    if day is not None:
        with open(os.path.join(parts, _DAY), "w", encoding="utf-8") as file:
            file.write(day.isoformat())


def _state(source: Source) -> Any:
    if source.kind == "rows":
        return None
    try:
        found = os.stat(source.name)
    except OSError as error:
        raise MotleyError(f"{source.name} cannot be read: {error.strerror}") from error
    return found.st_size, found.st_mtime_ns


def _check(totals: Totals, skip_errors: bool) -> None:
    """Refuses sources that were not read to their ends, records with errors, records of several kinds, and sources without a document."""
    count = 0 if skip_errors else totals.counts["errors"]
    if totals.failed or count:
        what = []
        if totals.failed:
            what.append(f"{len(totals.failed):,} {'sources' if len(totals.failed) > 1 else 'source'} cannot be read")
        if count:
            what.append(f"{count:,} {'records have errors' if count > 1 else 'record has an error'}")
        lines = (totals.failed + (totals.errors if count else []))[:LISTED]
        left = len(totals.failed) + count - len(lines)
        remedy = ("Repair the sources or leave them out; skip_errors=True leaves out single records alone" if totals.failed
                  else "Correct them, or pass skip_errors=True, which leaves them out")
        lines += [f"and {left:,} more"] if left else []
        raise MotleyError(f"{', and '.join(what)}:\n  " + "\n  ".join(lines) + f"\n{remedy}")
    if len(totals.kinds) > 1:
        found = ", ".join(f"{_KINDS[kind]} (the first: {place})" for kind, place in totals.kinds.items())
        raise MotleyError(f"the records are of several kinds: {found}. Prepare and train on one kind, or convert the others")
    if totals.counts["documents"] == 0:
        left_out = ", ".join(f"{totals.counts[name]:,} {name.replace('_', ' ')}" for name in ("errors", "empty", "without_answer", "too_long", "blank")
                             if totals.counts[name])
        raise MotleyError(f"no document is left to train on, of {totals.counts['records']:,} records" + (f": {left_out}" if left_out else "")
                          + ". Pass texts, and a max_length= that reaches the answers")


_KINDS = {"chat": "chats", "completion": "pairs of prompt and completion", "instruction": "instructions", "text": "texts"}


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[str]:
    """Creates the folder, which has nothing else in it, and refuses a second call for it at the same time."""
    known = {manifest.NAME, manifest.NAME + ".partial", manifest.PARTS, manifest.LOCK}
    try:
        os.makedirs(folder, exist_ok=True)
        others = [name for name in os.listdir(folder) if name not in known and not name.endswith((".npy", ".npy.partial"))]
        if others:
            raise MotleyError(f"{folder} has other files, such as {others[0]}. Choose a folder for the prepared texts alone")
        lock = os.open(os.path.join(folder, manifest.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise MotleyError(f"{folder} cannot be written: {error.strerror}. Choose another path") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise MotleyError(f"{folder} is being written by another motley.text. Wait for its end, or choose another path") from error
        yield folder
    except OSError as error:
        raise MotleyError(f"{folder} cannot be written: {error}. Free space, or choose another path; the same call continues") from error
    finally:
        os.close(lock)
