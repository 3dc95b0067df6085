"""The documents of one chunk: tokens, marks and counts, and the errors of its records. Written as a file, so that an interrupted call continues."""

from __future__ import annotations

import io
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional

import numpy

from .messages import BadRecord
from .records import parse
from .rendering import Document, Renderer
from .sources import Chunk

LISTED = 20
"""The most errors of a chunk, and of all sources, that are listed."""

IGNORED = -100
"""The target of a token that is not trained on; nn.CrossEntropyLoss ignores it."""


class Limits(NamedTuple):
    """`overflow`: what becomes of the tokens of a document beyond `max_length`: "truncate", "split" or "drop"; None is "split" for text
    files and "truncate" for records."""

    max_length: int
    overflow: Optional[str]


class Tokenized(NamedTuple):
    """`ids` and `targets` of all documents, one after the other, with `lengths`. A target is the next token of its document, or IGNORED."""

    ids: numpy.ndarray
    targets: numpy.ndarray
    lengths: numpy.ndarray
    counts: Dict[str, int]
    kinds: Dict[str, str]
    """[kind of records] the place of the first one."""
    errors: List[str]
    """The first LISTED; counts["errors"] are all."""

    def write(self, path: str) -> None:
        info = json.dumps({"counts": self.counts, "kinds": self.kinds, "errors": self.errors}).encode()
        content = io.BytesIO()  # zipfile leaves an error of its own behind where a disk is full
        numpy.savez(content, ids=self.ids, targets=self.targets, lengths=self.lengths, info=numpy.frombuffer(info, dtype=numpy.uint8))
        with open(path + ".partial", "wb") as file:
            file.write(content.getbuffer())
        os.replace(path + ".partial", path)

    @staticmethod
    def read(path: str) -> "Tokenized":
        with numpy.load(path, allow_pickle=False) as file:
            info = json.loads(file["info"].tobytes())
            return Tokenized(file["ids"], file["targets"], file["lengths"], info["counts"], info["kinds"], info["errors"])


COUNTS = ("records", "blank", "errors", "empty", "without_answer", "too_long", "truncated", "truncated_tokens", "split", "merged", "documents",
          "tokens", "trained_tokens")


def tokenized(chunk: Chunk, renderer: Renderer, limits: Limits) -> Tokenized:
    """Raises MotleyError where no record of a kind can be trained on."""
    counts: Dict[str, int] = dict.fromkeys(COUNTS, 0)
    kinds: Dict[str, str] = {}
    errors: List[str] = []
    kept: List[Document] = []
    for raw in chunk.records:
        try:
            record = parse(raw, renderer.template.text is not None)
            if record is None:
                counts["blank"] += 1
                continue
            counts["records"] += 1
            kinds.setdefault(record.kind, raw.place)
            if record.is_empty:
                counts["empty"] += 1
                continue
            document = renderer.document(record)
            counts["merged"] += document.merged
            kept += _fitted(document, limits.overflow or ("split" if raw.is_text else "truncate"), limits.max_length, counts)
        except BadRecord as error:
            counts["errors"] += 1
            if len(errors) < LISTED:
                errors.append(f"{raw.place}: {error}")
    ids = numpy.concatenate([numpy.asarray(document.ids, dtype=numpy.int32) for document in kept]) if kept else numpy.zeros(0, numpy.int32)
    targets = numpy.concatenate([_targets(document) for document in kept]) if kept else numpy.zeros(0, numpy.int32)
    counts["documents"], counts["tokens"], counts["trained_tokens"] = len(kept), len(ids), int((targets != IGNORED).sum())
    lengths = numpy.asarray([len(document.ids) for document in kept], dtype=numpy.int64)
    return Tokenized(ids, targets, lengths, counts, kinds, errors)


def _fitted(document: Document, overflow: str, most: int, counts: Dict[str, int]) -> List[Document]:
    """The document in pieces of at most `most` tokens that have something to train on."""
    length = len(document.ids)
    if length > most and overflow == "drop":
        counts["too_long"] += 1
        return []
    if length > most and overflow == "truncate":
        counts["truncated"] += 1
        counts["truncated_tokens"] += length - most
        length = most
    counts["split"] += length > most
    pieces = [Document(document.ids[k:k + most], document.trained[k:k + most]) for k in range(0, length, most)]
    fitted = [piece for piece in pieces if any(piece.trained[1:])]
    counts["without_answer"] += len(pieces) - len(fitted)
    return fitted


def _targets(document: Document) -> Any:
    made = numpy.full(len(document.ids), IGNORED, dtype=numpy.int32)
    following = numpy.asarray(document.ids[1:], dtype=numpy.int32)
    made[:-1] = numpy.where(numpy.asarray(document.trained[1:], dtype=bool), following, IGNORED)
    return made
