"""`motley.load`: a checkpoint as a `state_dict`."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Optional, Union

import torch

from . import weights
from .assemble import CONSTANT
from .errors import MotleyError

Path = Union[str, "os.PathLike[str]"]


def load(run: Path, package: Optional[Path] = None) -> Dict[str, torch.Tensor]:
    """The trained `state_dict` of the model that was exported: `model.load_state_dict(motley.load("runs/mine"))`.

    run       a run folder, of which the newest checkpoint is read, or a checkpoint folder (docs/formats/checkpoint.md)
    package   the package that was trained; without it, the one that the checkpoint's configuration names

    Parameters and running statistics come from the checkpoint, what never changes from the package, under all names that
    the model has for them. `num_batches_tracked` is the number of steps.
    """
    folder = _checkpoint(os.fspath(run))
    manifest = _json(os.path.join(folder, "manifest.json"))
    source = os.fspath(package) if package is not None else _package_of(manifest, folder)
    description = _json(os.path.join(source, "package.json"))
    state = {name: tensor for name, tensor in weights.read(os.path.join(source, description["weights"]["file"])).items()
             if not name.startswith(CONSTANT)}
    trained = _trained(folder, manifest)
    moved = [entry["name"] for layer in description["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]]
    for name in dict.fromkeys(moved):
        if name not in trained:
            raise MotleyError(f"{folder} has no {name}, which the package {source} trains. Pass the package of this run as package=")
        if trained[name].shape != state[name].shape:
            raise MotleyError(f"{name} has shape {list(trained[name].shape)} in {folder} and {list(state[name].shape)} in the package "
                              f"{source}. Pass the package of this run as package=")
        state[name] = trained[name]
    for name, tensor in state.items():
        if name.rpartition(".")[2] == "num_batches_tracked":
            state[name] = torch.full_like(tensor, manifest["step"])
    state.update({name: state[first] for name, first in description["aliases"].items()})
    return state


def _checkpoint(path: str) -> str:
    """The folder of the newest checkpoint of a run, or `path` where it is one."""
    if os.path.isfile(os.path.join(path, "manifest.json")):
        return path
    folder = os.path.join(path, "checkpoints")
    found: Dict[int, str] = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:  # ".step-N.replaced" before "step-N"
        match = re.fullmatch(r"step-(\d{6,})|\.step-(\d{6,})\.replaced", name)
        if match and os.path.isfile(os.path.join(folder, name, "manifest.json")):
            found[int(match[1] or match[2])] = name
    if not found:
        raise MotleyError(f"{path} is no checkpoint and has none. Give a run folder with a committed checkpoint, or a step-N folder")
    return os.path.join(folder, found[max(found)])


def _package_of(manifest: Dict[str, Any], folder: str) -> str:
    model = manifest.get("config", {}).get("model", {})
    if model.get("kind") != "package":
        raise MotleyError(f"{folder} is of a model of kind {model.get('kind')!r}, not of a package. Read it with transformers")
    path = str(model.get("path", ""))
    if not os.path.isfile(os.path.join(path, "package.json")):
        raise MotleyError(f"the package {path!r}, which {folder} names, is not there. Pass its folder as package=")
    return path


def _trained(folder: str, manifest: Dict[str, Any]) -> Dict[str, torch.Tensor]:
    found: Dict[str, torch.Tensor] = {}
    for entry in manifest["files"]:
        name = entry["name"]
        if not name.startswith("model-") or not name.endswith(".safetensors"):
            continue
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or os.path.getsize(path) != entry["bytes"]:
            raise MotleyError(f"{path} is missing or not whole. `motley ckpt verify {folder}` says more; use an earlier checkpoint")
        found.update(weights.read(path))
    return found


def _json(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise MotleyError(f"{path} cannot be read: {error}. Is it of Motley?") from error
    if not isinstance(value, dict):
        raise MotleyError(f"{path} is no JSON object. Is it of Motley?")
    return value
