"""manifest.json of prepared texts (docs/formats/texts.md): their origin, their settings and what became of each document."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, List, Mapping, Optional

from ..errors import MotleyError

VERSION = 1

NAME = "manifest.json"
PARTS = "parts"
"""The folder of the tokenized chunks of an unfinished call."""
LOCK = ".lock"


def digest(settings: Mapping[str, Any]) -> str:
    """Of what is JSON."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def read(folder: str) -> Optional[Dict[str, Any]]:
    """None if there is none, or one without a digest, of an earlier Motley, whose texts are prepared anew."""
    path = os.path.join(folder, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise MotleyError(f"{path} cannot be read: {error}. Remove it, and call motley.text again") from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise MotleyError(f"{path} has another version than {VERSION}. Choose another folder, or remove this one")
    written = found.pop("digest", None)
    if written is not None and written != digest(found):
        raise MotleyError(f"{path} is damaged. Remove it, and call motley.text again")
    return found if written is not None else None


def is_prepared(folder: str) -> bool:
    """Whether motley.text wrote the folder, or has begun to."""
    return os.path.exists(os.path.join(folder, LOCK)) and any(os.path.exists(os.path.join(folder, name)) for name in (NAME, PARTS))


def write(folder: str, content: Mapping[str, Any]) -> None:
    path = os.path.join(folder, NAME)
    with open(path + ".partial", "w", encoding="utf-8") as file:
        json.dump({**content, "digest": digest(content)}, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".partial", path)


def notices(content: Mapping[str, Any]) -> List[str]:
    """What a user should know of the prepared texts, as sentences."""
    counts = content["counts"]
    made = []
    if counts["truncated"]:
        made.append(f"{_documents(counts['truncated'])} longer than max_length={content['settings']['max_length']} and truncated, by "
                    f"{counts['truncated_tokens']:,} tokens in all")
    if counts["split"]:
        made.append(f"{_documents(counts['split'])} longer than max_length={content['settings']['max_length']} and split into several")
    for name, what in (("too_long", f"longer than max_length={content['settings']['max_length']} and left out"), ("empty", "empty and left out"),
                       ("without_answer", "left out, or pieces of one are, without a token to train on")):
        if counts[name]:
            made.append(f"{_documents(counts[name])} {what}")
    if content["settings"]["date"] is not None:
        made.append(f"the chat template writes a date, here {content['settings']['date']} in all records; date= chooses another")
    if counts["merged"]:
        made.append(f"{counts['merged']:,} completions begin inside a token of their prompt, which is trained on. End prompts without a space")
    if counts["errors"]:
        made.append(f"{counts['errors']:,} records with errors are left out; the first: {content['first_errors'][0]}")
    if counts["blank"]:
        made.append(f"{counts['blank']:,} blank lines are left out")
    return made


def _documents(count: int) -> str:
    return f"{count:,} documents are" if count != 1 else "1 document is"
