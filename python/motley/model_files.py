"""Files in a package with which other programs open the trained model: the configuration of a transformers model, the files of
its tokenizer, and the configuration of a peft adapter (docs/formats/package.md, "Model files")."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from .errors import ExportError
from .layers import Names

FOLDER = "files"
"""The folder of these files in a package."""

_CONFIG = "config.json"
_ADAPTER_CONFIG = "adapter_config.json"
_LARGEST = {_CONFIG: 1 << 20}
_LARGEST_OF_OTHERS = 64 << 20


class ModelFiles(NamedTuple):
    files: Dict[str, bytes]
    adapter: Dict[str, str]
    """[trained tensor] its name in an adapter's file; empty if the model has no adapter."""

    def for_trained(self, trained: Set[str]) -> "ModelFiles":
        """Without the adapter if other tensors are trained too, which its file would lack."""
        if set(self.adapter) == trained or _ADAPTER_CONFIG not in self.files:
            return self
        return ModelFiles({name: content for name, content in self.files.items() if name != _ADAPTER_CONFIG}, {})

    def write(self, package: str) -> Dict[str, Any]:
        """Writes the files, and returns their entries of package.json."""
        described: Dict[str, Any] = {}
        if self.files:
            os.mkdir(os.path.join(package, FOLDER))
            described["files"] = []
        for name, content in sorted(self.files.items()):
            with open(os.path.join(package, FOLDER, name), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            described["files"].append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        if self.adapter:
            described["adapter"] = self.adapter
        return described


@functools.lru_cache(maxsize=None)
def companions() -> Tuple[str, ...]:
    """The names of files that are copied together with a model's weights."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "companions.txt"), encoding="utf-8") as file:
        return tuple(line.strip() for line in file if line.strip())


def collect(model: Optional[torch.nn.Module], names: Names, given: Any) -> ModelFiles:
    """The files of the exported model, and those of `given`: a folder, or a tokenizer or processor of transformers."""
    files: Dict[str, bytes] = {}
    adapter: Dict[str, str] = {}
    config = None
    if isinstance(getattr(model, "peft_config", None), dict):  # with adapters, its own configuration does not describe it
        files, adapter = _adapter(model, names)
    else:
        config = _config_of(model)
    if config is not None:
        files[_CONFIG] = config
        generation = getattr(model, "generation_config", None)
        if hasattr(generation, "to_json_string"):
            files["generation_config.json"] = _text_of(generation)
        origin = str(getattr(getattr(model, "config", None), "_name_or_path", "") or "")
        if os.path.isdir(origin):
            files.update({**_in_folder(origin, ""), **files})
    if given is not None:
        files.update(_given(given))
    for name, content in files.items():
        if len(content) > _LARGEST.get(name, _LARGEST_OF_OTHERS):
            raise ExportError(f"{name} has {len(content)} bytes, more than a package may contain",
                              "Pass a folder with other files as files=")
    return ModelFiles(files, adapter)


def _given(given: Any) -> Dict[str, bytes]:
    if hasattr(given, "save_pretrained") and not isinstance(given, torch.nn.Module):
        with tempfile.TemporaryDirectory() as folder:
            given.save_pretrained(folder)
            return _in_folder(folder, type(given).__name__)
    if not isinstance(given, (str, os.PathLike)) or not os.path.isdir(given):
        raise ExportError(f"files= is {given!r}, not an existing folder",
                          "Pass a folder with a tokenizer's files, or the tokenizer of transformers")
    folder = os.fspath(given)
    found = _in_folder(folder, folder, _CONFIG)
    if _CONFIG in found:
        _check_json(found[_CONFIG], os.path.join(folder, _CONFIG))
    return found


def _in_folder(folder: str, required_of: str, *more: str) -> Dict[str, bytes]:
    """The companions in a folder. If `required_of` is not empty, at least one is required."""
    found: Dict[str, bytes] = {}
    for name in companions() + more:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = file.read(_LARGEST_OF_OTHERS + 1)
    if required_of and not found:
        raise ExportError(f"files=: {required_of} has no file that belongs to a model",
                          f"Pass at least one of {', '.join(companions() + more)}")
    return found


def _config_of(model: Optional[torch.nn.Module]) -> Optional[bytes]:
    """The configuration as save_pretrained of transformers writes it, for weights in float32."""
    config = getattr(model, "config", None)
    if not (callable(getattr(config, "to_json_string", None)) and isinstance(getattr(config, "model_type", None), str) and config.model_type):
        return None
    described = _check_json(_text_of(config), f"the configuration of {type(model).__name__}")
    described["architectures"] = [type(model).__name__]
    for key in ("dtype", "torch_dtype"):
        if key in described:
            described[key] = "float32"
    tied = _is_tied(model)
    if tied is not None:
        described["tie_word_embeddings"] = tied
    return (json.dumps(described, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _text_of(config: Any) -> bytes:
    return str(config.to_json_string()).encode("utf-8")


def _check_json(text: bytes, what: str) -> Dict[str, Any]:
    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not valid in JSON")
    try:
        described = json.loads(text.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{what} is not valid JSON: {error}", "Use values that JSON supports") from error
    if not isinstance(described, dict):
        raise ExportError(f"{what} is not a JSON object", "Pass the model's config.json")
    return described


def _is_tied(model: Any) -> Optional[bool]:
    """Whether head and embedding are tied, as `tie_word_embeddings` configures; None if the model lacks one of them."""
    ends: List[Any] = []
    for which in ("get_input_embeddings", "get_output_embeddings"):
        try:
            ends.append(getattr(getattr(model, which)(), "weight", None))
        except (AttributeError, NotImplementedError):
            return None
    return None if any(end is None for end in ends) else ends[0] is ends[1]


def _adapter(model: Any, names: Names) -> Tuple[Dict[str, bytes], Dict[str, str]]:
    """The configuration of a model's only adapter, and the names of its tensors in an adapter's file; empty if it has several."""
    peft = sys.modules.get("peft")
    if peft is None or len(model.peft_config) != 1:
        return {}, {}
    (which, config), = model.peft_config.items()
    described = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    described["inference_mode"] = True
    prefix = "" if isinstance(model, peft.PeftModel) else "base_model.model."
    saved = peft.get_peft_model_state_dict(model, adapter_name=which, save_embedding_layers=False)
    places = {tensor.data_ptr(): name if name.startswith(prefix) else prefix + name for name, tensor in saved.items() if tensor.numel()}
    adapter = {name: places[tensor.data_ptr()] for name, tensor in names.state.items() if tensor.requires_grad and tensor.data_ptr() in places}
    return {_ADAPTER_CONFIG: (json.dumps(described, indent=2, default=str) + "\n").encode("utf-8")}, adapter
