"""`motley.load`: reads a checkpoint as a `state_dict`."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Union

import torch

from . import frozen, weights
from .errors import MotleyError, step
from .manifest import newest_checkpoint, read_json, read_manifest

Path = Union[str, "os.PathLike[str]"]


def load(run: Path, package: Optional[Path] = None) -> Dict[str, torch.Tensor]:
    """The trained `state_dict` of an exported model: `model.load_state_dict(motley.load("runs/mine"))`.

    run       a run folder, whose newest checkpoint is read, or a checkpoint folder (docs/formats/checkpoint.md); also
              RUN/checkpoints/best for the one with the lowest held-out loss, and RUN/checkpoints/latest
    package   the trained package; by default the one in the checkpoint's configuration

    Parameters and running statistics are those of the checkpoint, other tensors those of the package. They have the types of the
    model, and tied tensors are present under all their names. Quantised weights (`base=`) have the values that were used in
    training. `num_batches_tracked` is the number of steps.

    Returns {name: tensor}, with the names and shapes of the model's state_dict. Raises MotleyError if the run has no checkpoint, if
    the checkpoint or the package is damaged, or if one is not of the other.
    """
    with step("reading the trained state"):
        return _state_dict(os.fspath(run), None if package is None else os.fspath(package))


def _state_dict(run: str, package: Optional[str]) -> Dict[str, torch.Tensor]:
    folder = newest_checkpoint(run)
    manifest = read_manifest(folder)
    source = package if package is not None else _package_of(manifest, folder)
    exported = _read_package(source)
    state = dict(exported.tensors)
    trained = _trained(folder, manifest)
    for name in exported.moved:
        if name not in trained:
            raise MotleyError(f"{folder} has no {name}, which is trained in the package {source}. Pass the package of this run "
                              "as package=")
        if trained[name].shape != state[name].shape:
            raise MotleyError(f"{name} has shape {list(trained[name].shape)} in {folder}, but {list(state[name].shape)} in the "
                              f"package {source}. Pass the package of this run as package=")
        state[name] = trained[name]
    for name, tensor in state.items():
        if name.rpartition(".")[2] == "num_batches_tracked":
            state[name] = torch.full_like(tensor, manifest["step"])
    state.update({name: state[first] for name, first in exported.aliases.items()})
    return state


class _Exported(NamedTuple):
    tensors: Dict[str, torch.Tensor]
    """The tensors of the state_dict as they were exported."""
    moved: List[str]
    """The names of parameters and statistics, which training changes."""
    aliases: Dict[str, str]


def _read_package(source: str) -> _Exported:
    description = read_json(os.path.join(source, "package.json"))
    remedy = "Copy the package again, or export the model again"
    try:
        file = os.path.join(source, description["weights"]["file"])
        if weights.sha256(file) != description["weights"]["sha256"]:
            raise MotleyError(f"{file} does not have the SHA-256 of package.json. {remedy}")
        moved = dict.fromkeys(entry["name"] for layer in description["layers"] for kind in ("parameters", "statistics") for entry in layer[kind])
        held = weights.read(file)
        tensors = {name: tensor for name, tensor in held.items() if not name.startswith(frozen.PREFIX)}
        tensors.update({name: frozen.dequantised(entry, held) for name, entry in description.get("quantised", {}).items()})
        missing = sorted({*moved, *description["aliases"].values()} - set(tensors))
        if missing:
            raise MotleyError(f"{file} lacks {missing[0]}. {remedy}")
        return _Exported(tensors, list(moved), description["aliases"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise MotleyError(f"the package {source} is damaged or incomplete: {type(error).__name__}: {error}. {remedy}") from error


def _package_of(manifest: Dict[str, Any], folder: str) -> str:
    model = manifest["config"].get("model")
    kind = model.get("kind") if isinstance(model, dict) else None
    if kind != "package":
        raise MotleyError(f"{folder} is a checkpoint of a model of kind {kind!r}, not of a package. Read it with transformers")
    path = str(model.get("path", ""))
    if not os.path.isfile(os.path.join(path, "package.json")):
        raise MotleyError(f"the package {path!r} in the configuration of {folder} does not exist. Pass its folder as package=")
    return path


def _trained(folder: str, manifest: Dict[str, Any]) -> Dict[str, torch.Tensor]:
    found: Dict[str, torch.Tensor] = {}
    for entry in manifest["files"]:
        name = entry["name"]
        if not name.startswith("model-") or not name.endswith(".safetensors"):
            continue
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or os.path.getsize(path) != entry["bytes"]:
            raise MotleyError(f"{path} is missing or incomplete. See `motley ckpt verify {folder}`, or use an earlier checkpoint")
        found.update(weights.read(path))
    return found
