"""The checkpoints of a run and their manifests (docs/formats/checkpoint.md)."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Optional

from .errors import MotleyError


def newest_checkpoint(path: str) -> str:
    """The folder of the newest checkpoint of a run; `path` itself if it is a checkpoint; the one that RUN/checkpoints/best or
    RUN/checkpoints/latest names."""
    folder, name = os.path.split(path)
    run, checkpoints = os.path.split(folder)
    if name in ("best", "latest") and checkpoints == "checkpoints" and not os.path.exists(path):
        return _best_checkpoint(run) if name == "best" else newest_checkpoint(run)
    found = _newest(path)
    if found is None:
        raise MotleyError(f"{path} is not a checkpoint and contains none. Pass a run folder with a committed checkpoint, or a "
                          "step-N folder")
    return found


def has_checkpoint(run: str) -> bool:
    return _newest(run) is not None


def read_manifest(checkpoint: str) -> Dict[str, Any]:
    """The manifest of a checkpoint. The keys that this package uses are present and have the right types."""
    path = os.path.join(checkpoint, "manifest.json")
    manifest = read_json(path)
    files = manifest.get("files")
    right = (isinstance(manifest.get("step"), int) and isinstance(manifest.get("config"), dict) and isinstance(files, list)
             and all(isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("bytes"), int) for entry in files))
    if not right:
        raise MotleyError(f"{path} is damaged. See `motley ckpt verify {checkpoint}`, or use an earlier checkpoint")
    return manifest


def read_json(path: str) -> Dict[str, Any]:
    """The JSON object in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise MotleyError(f"{path} cannot be read: {error}. Check that Motley wrote it") from error
    if not isinstance(value, dict):
        raise MotleyError(f"{path} is not a JSON object. Check that Motley wrote it")
    return value


def _best_checkpoint(run: str) -> str:
    """The checkpoint of the best evaluation, by the same rule as `motley ckpt` (`best_checkpoint` of checkpoint/checkpoint.h)."""
    found = _committed(run)
    for step in sorted(found, reverse=True):
        try:
            evaluations = read_manifest(found[step]).get("evaluations")
        except MotleyError:
            continue  # a damaged one names none
        best = evaluations.get("best_step") if isinstance(evaluations, dict) else None
        if isinstance(best, int) and best in found:
            return found[best]
    raise MotleyError(f"{run} has no checkpoint of a best evaluation. Train with checkpoint__keep_best=True, or use the newest one")


def _newest(path: str) -> Optional[str]:
    if os.path.isfile(os.path.join(path, "manifest.json")):
        return path
    found = _committed(path)
    return found[max(found)] if found else None


def _committed(path: str) -> Dict[int, str]:
    """The folders of the checkpoints of a run, by step."""
    folder = os.path.join(path, "checkpoints")
    found: Dict[int, str] = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:  # ".step-N.replaced" before "step-N"
        match = re.fullmatch(r"step-(\d{6,})|\.step-(\d{6,})\.replaced", name)
        if match and os.path.isfile(os.path.join(folder, name, "manifest.json")):
            found[int(match[1] or match[2])] = os.path.join(folder, name)
    return found
