"""The data files of a folder, and what in it is left out."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, NamedTuple, Tuple

from ..errors import MotleyError
from . import manifest
from .foreign import COMPRESSED_ENDINGS

KINDS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".txt": "text", ".text": "text", ".md": "text"}

_DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json", "generation_config.json",
                 "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "package.json"}
"""Files that describe data or a model."""

_NOTES = {"readme", "license", "licence", "copying", "notice", "changelog", "citation", "contributing", "authors"}
"""Text files that describe the data files beside them."""

_SPLIT = re.compile(r"(?<![a-z])(?:(train|training)|(test|testing)|(validation|valid|val|dev|eval|evaluation))(?![a-z])")

_NAMED = 5
"""The most names in a message."""


class Inside(NamedTuple):
    """`files`: the data files, sorted by path. `left_out`: the others, relative to the folder."""

    files: List[str]
    left_out: List[str]


def kind_of(path: str) -> str:
    """Empty for other files."""
    return KINDS.get(os.path.splitext(path)[1].lower(), "")


def files_of(folder: str, output: str) -> Inside:
    """`output`: the folder that is being written, which is not read. Raises MotleyError without data files, for compressed ones, and for
    those of several splits, such as train and test."""
    found, left_out = [], []
    for path in _walked(folder, output, left_out):
        name = os.path.basename(path)
        inner, ending = os.path.splitext(name)
        if ending.lower() in COMPRESSED_ENDINGS and kind_of(inner):
            raise MotleyError(f"{path} is compressed. Unpack the files of {folder}, or pass the paths of others")
        is_data = kind_of(name) and not name.startswith(".") and name.lower() not in _DESCRIPTIONS
        (found if is_data else left_out).append(path)
    if any(kind_of(path) != "text" for path in found):
        notes = [path for path in found if kind_of(path) == "text" and os.path.splitext(os.path.basename(path))[0].lower() in _NOTES]
        found, left_out = [path for path in found if path not in notes], left_out + notes
    if not found:
        raise MotleyError(_without_data(folder, left_out))
    _check_splits(folder, found)
    return Inside(sorted(found), sorted(os.path.relpath(path, folder) for path in left_out))


def _walked(folder: str, output: str, left_out: List[str]) -> Iterator[str]:
    """All files but those in hidden folders, in links to folders, and in texts that motley.text prepared; these folders are `left_out`."""
    written = os.path.realpath(output)
    for inside, folders, names in os.walk(folder, onerror=_unreadable):
        for name in list(folders):
            path = os.path.join(inside, name)
            if name.startswith(".") or name == "__MACOSX" or os.path.islink(path) or os.path.realpath(path) == written or manifest.is_prepared(path):
                folders.remove(name)
                if os.path.realpath(path) != written:
                    left_out.append(path)
        yield from (os.path.join(inside, name) for name in names)


def _unreadable(error: OSError) -> None:
    raise MotleyError(f"{error.filename} cannot be read: {error.strerror}") from error


def _without_data(folder: str, left_out: List[str]) -> str:
    if any(path.endswith(".arrow") for path in left_out):
        return f"{folder} is a dataset on disk. Pass datasets.load_from_disk({folder!r}), or one of its splits"
    others = f", but {listed([os.path.relpath(path, folder) for path in left_out])}" if left_out else ""
    return f"{folder} has no data file that ends in {', '.join(KINDS)}{others}"


def _check_splits(folder: str, found: List[str]) -> None:
    splits: Dict[str, List[str]] = {}
    for path in sorted(found):
        inside = os.path.relpath(path, folder)
        names = [match for part in reversed(inside.lower().split(os.sep)) for match in _SPLIT.finditer(part)]
        if names:
            split = ("train", "test", "validation")[names[0].lastindex - 1]  # type: ignore[operator]
            splits.setdefault(split, []).append(inside)
    if len(splits) > 1:
        parts = "; ".join(f"{split}: {listed(names)}" for split, names in splits.items())
        raise MotleyError(f"{folder} has files of several splits ({parts}). Pass the paths of those to train on, and "
                          "prepare the others for eval_data=")


def listed(names: List[str]) -> str:
    """The first names, and how many more."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def expanded(paths: List[str], output: str) -> Tuple[List[str], List[str]]:
    """All files, and notices of what is left out."""
    found: List[str] = []
    notices = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = files_of(path, output)
        found += inside.files
        if inside.left_out:
            what = f"{len(inside.left_out):,} files or folders are" if len(inside.left_out) > 1 else "1 file or folder is"
            notices.append(f"{what} left out of {path}: {listed(inside.left_out)}")
    return found, notices
