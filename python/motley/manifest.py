"""Which checkpoints a run has, and what their manifests say (docs/formats/checkpoint.md)."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Optional

from .errors import MotleyError


def newest_checkpoint(path: str) -> str:
    """The folder of the newest checkpoint of a run, or `path` where it is one."""
    found = _newest(path)
    if found is None:
        raise MotleyError(f"{path} is no checkpoint and has none. Give a run folder with a committed checkpoint, or a step-N folder")
    return found


def has_checkpoint(run: str) -> bool:
    return _newest(run) is not None


def read_manifest(checkpoint: str) -> Dict[str, Any]:
    """With the keys that this package uses, of the types that they have."""
    path = os.path.join(checkpoint, "manifest.json")
    manifest = read_json(path)
    files = manifest.get("files")
    right = (isinstance(manifest.get("step"), int) and isinstance(manifest.get("config"), dict) and isinstance(files, list)
             and all(isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("bytes"), int) for entry in files))
    if not right:
        raise MotleyError(f"{path} is damaged. `motley ckpt verify {checkpoint}` says more; use an earlier checkpoint")
    return manifest


def read_json(path: str) -> Dict[str, Any]:
    """The object in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise MotleyError(f"{path} cannot be read: {error}. Is it of Motley?") from error
    if not isinstance(value, dict):
        raise MotleyError(f"{path} is no JSON object. Is it of Motley?")
    return value


def _newest(path: str) -> Optional[str]:
    if os.path.isfile(os.path.join(path, "manifest.json")):
        return path
    folder = os.path.join(path, "checkpoints")
    found: Dict[int, str] = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:  # ".step-N.replaced" before "step-N"
        match = re.fullmatch(r"step-(\d{6,})|\.step-(\d{6,})\.replaced", name)
        if match and os.path.isfile(os.path.join(folder, name, "manifest.json")):
            found[int(match[1] or match[2])] = name
    return os.path.join(folder, found[max(found)]) if found else None
