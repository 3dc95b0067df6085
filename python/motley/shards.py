"""The tensors of a folder with a trained model: one safetensors file, or several with an index, in the layout of Hugging Face."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

import torch

from . import library_names, outputs, weights
from .errors import ExportError, MotleyError
from .layers import Names
from .virtual import Virtual
from .weights import Stored

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def in_folder(folder: str) -> Dict[str, Stored]:
    """All tensors by their names."""
    found: Dict[str, Stored] = {}
    for file in _files(folder):
        path = os.path.join(folder, file)
        try:
            tensors = weights.stored(path)
        except (OSError, MotleyError) as error:
            raise ExportError(f"the weights cannot be read: {error}", "Download the folder again") from error
        for name, tensor in tensors.items():
            if name in found:
                raise ExportError(f"{name} is in {file} and in {os.path.basename(found[name].path)}", "Download the folder again")
            found[name] = tensor
    return found


def _files(folder: str) -> List[str]:
    """The single file, even if there is an index too, as in transformers; else the files of the index."""
    if os.path.isfile(os.path.join(folder, _SINGLE)):
        return [_SINGLE]
    index = os.path.join(folder, _INDEX)
    if not os.path.isfile(index):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        others = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".gguf"))]
        raise ExportError(f"{folder} has no {_SINGLE} and no {_INDEX}",
                          f"It has {outputs.listed(others)}: open the model with transformers and call save_pretrained, which writes "
                          "safetensors files" if others else "Pass the folder of a model that save_pretrained wrote")
    try:
        with open(index, encoding="utf-8") as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(f"{index} is damaged: {type(error).__name__}: {error}", "Download the folder again") from error
    missing = [name for name in files if os.path.basename(name) != name or not os.path.isfile(os.path.join(folder, name))]
    if missing:
        raise ExportError(f"{folder} lacks {outputs.listed(missing)}, listed in its index", "Download the folder again")
    return files


def of_model(names: Names, model: Optional[torch.nn.Module], stored: Dict[str, Stored], folder: str, has_fewer_rows: bool = False
             ) -> Dict[str, Stored]:
    """[name in the state_dict] the stored values of each parameter. Copies the folder's values of buffers into the model. Refuses
    parameters without values in the folder, and tensors of the folder that the model lacks. `has_fewer_rows`: of some tensors the model
    has only the first rows."""
    stored = library_names.renamed(stored, model, folder)
    prefix = getattr(model, "base_model_prefix", "") or ""
    known = _Known(stored, f"{prefix}." if prefix else "")
    others: Dict[str, List[str]] = {}
    for further, name in names.aliases.items():
        others.setdefault(name, []).append(further)
    found: Dict[str, Stored] = {}
    missing = []
    for name, tensor in names.state.items():
        every = (name, *others.get(name, ()))
        sources = [(each, source) for each in every for source in (known.find(each),) if source is not None]
        for each in every:
            known.use(each)
        if not sources:
            if isinstance(tensor, Virtual):
                missing.append(name)
            continue
        if has_fewer_rows:
            sources = [(each, _first_rows(source, tensor)) for each, source in sources]
        for each, source in sources:
            _check(each, tensor, source)
        _check_equal(sources, folder)
        if isinstance(tensor, Virtual):
            found[name] = sources[0][1]
        else:
            with torch.no_grad():
                tensor.copy_(sources[0][1].values())
    left = [name for name in known.left() if not _is_left_out(name, names, model)]
    if missing:
        raise _lacks(missing, left, model, stored, folder)
    if left:
        raise ExportError(f"{type(model).__name__} has no tensor {outputs.listed(left)} of {folder}",
                          "Use the model class that has them, or remove them: the trained model would lack them")
    return found


def _first_rows(source: Stored, tensor: torch.Tensor) -> Stored:
    """As many rows of a stored tensor as `tensor` has."""
    is_longer = len(source.shape) == tensor.dim() > 0 and source.shape[1:] == tensor.shape[1:] and source.shape[0] > tensor.size(0)
    return source._replace(shape=tuple(tensor.shape)) if is_longer else source


def _check_equal(sources: List[Tuple[str, Stored]], folder: str) -> None:
    """Refuses different values of one tensor under several names, which transformers does not tie."""
    (first, tensor), *others = sources
    for other, further in others:
        if not tensor.equals(further):
            raise ExportError(f"{first} and {other} are one tensor in the model, and have different values in {folder}",
                              'Create the model with both: set "tie_word_embeddings": false in its config.json, as transformers does when '
                              "it loads such a folder. If one of them is outdated, remove it from the folder")


def _lacks(missing: List[str], left: List[str], model: Optional[torch.nn.Module], stored: Dict[str, Stored], folder: str) -> ExportError:
    """The error for parameters without values, where the folder has the tensors `left`, which the model lacks."""
    reason, kind = f"{folder} has no values for {outputs.listed(missing)}", type(model).__name__
    is_from_library = hasattr(model, "config")
    load = "load the model with from_pretrained and export it from memory, motley.export(model, loss, example, path)"
    prefix = next((name[:-len(missing[0])] for name in left if name.endswith(f".{missing[0]}")), None)
    if prefix is not None and all(prefix + name in stored for name in missing):
        return ExportError(f"{folder} has {prefix}{missing[0]}, and {kind} has {missing[0]}: it is a part of the folder's model",
                           "Name the class of the whole model, such as LlamaForCausalLM instead of LlamaModel"
                           + (': "architectures" in config.json' if is_from_library else ""))
    unlisted = [name for name in sorted(os.listdir(folder)) if name.endswith(".safetensors") and any(
        each in missing for each in _names_in(os.path.join(folder, name)))]
    if unlisted:
        return ExportError(f"{reason}: {_INDEX} does not list {outputs.listed(unlisted)}, which has them",
                           "Download the folder again, its index is incomplete")
    if left:
        return ExportError(f"{reason}, and has {outputs.listed(left)}, which {kind} lacks",
                           f"If transformers converts such names when it loads the folder, as those of experts, {load}" if is_from_library
                           else "Use the class of the saved model, or save it with the names of this one")
    return ExportError(reason, "If the folder is incomplete, download it again. If these parameters are new, initialise them: "
                       + (load if is_from_library else "create the model with its weights, load the folder's, and export it from memory"))


def _names_in(path: str) -> Iterable[str]:
    try:
        return weights.stored(path)
    except (OSError, MotleyError):
        return ()


def _check(name: str, tensor: torch.Tensor, source: Stored) -> None:
    if tuple(tensor.shape) != source.shape:
        raise ExportError(f"{name} has the shape {list(source.shape)} in the folder and {list(tensor.shape)} in the model",
                          "The configuration belongs to another model: download the folder again")
    is_convertible = source.dtype in _FLOATS if tensor.is_floating_point() else source.dtype == tensor.dtype
    if not is_convertible:
        raise ExportError(f"{name} is {str(source.dtype)[6:]} in the folder and {str(tensor.dtype)[6:]} in the model",
                          "Convert it: floats may be float32, bfloat16 or float16. A quantised model is dequantised by the library "
                          "that quantised it")


def _is_left_out(name: str, names: Names, model: Optional[torch.nn.Module]) -> bool:
    """Whether the model computes such a tensor, in a buffer outside its state_dict, or its class ignores it."""
    own = {known.partition(" (")[0] for known in names.of.values()}
    patterns: Iterable[Any] = getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ()
    return name in own or name.endswith(".rotary_emb.inv_freq") or any(re.search(pattern, name) for pattern in patterns)


class _Known:
    """Tensors by the names of the whole model, also if the folder has the names of the model without its head."""

    def __init__(self, stored: Dict[str, Stored], prefix: str):
        self._stored = stored
        bare = prefix and not any(name.startswith(prefix) for name in stored)
        self._prefix = prefix if bare else ""
        self._used: Set[str] = set()

    def _key(self, name: str) -> str:
        short = name[len(self._prefix):] if self._prefix and name.startswith(self._prefix) else name
        return short if short in self._stored else name

    def find(self, name: str) -> Optional[Stored]:
        return self._stored.get(self._key(name))

    def use(self, name: str) -> None:
        self._used.add(self._key(name))

    def left(self) -> List[str]:
        return [name for name in self._stored if name not in self._used]
