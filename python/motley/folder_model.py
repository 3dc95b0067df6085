"""The model of a Hugging Face folder, created from its configuration, without weights."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Tuple

import torch

from .empty_model import without_weights
from .errors import ExportError, summary


def open_folder(folder: Any, loss: Any, example: Any, tokens: Optional[int]) -> Tuple[torch.nn.Module, Any, Any]:
    """The model of a folder, its loss and an example."""
    if folder is None:
        raise ExportError("there is no model",
                          "Pass the model, its loss and an example; or folder= and tokens= for a Hugging Face folder")
    model = create(os.fspath(folder))
    if example is None:
        if not isinstance(tokens, int) or tokens < 1:
            raise ExportError(f"tokens= is {tokens!r}" if tokens is not None else "the length of the texts is unknown",
                              "Pass tokens=, the number of tokens of a sample, e.g. tokens=2048; or example=(input, target)")
        ids = torch.randint(_vocabulary(model), (2, tokens), generator=torch.Generator().manual_seed(6))
        example = ids, ids
    return model, torch.nn.CrossEntropyLoss() if loss is None else loss, example


def create(folder: str) -> torch.nn.Module:
    """The model of transformers whose class config.json names, in float32. `folder` may be the path of a config.json."""
    described = _config(folder)
    if described.get("auto_map"):
        raise ExportError(f"the model of {folder} has its own code (auto_map), which is not executed",
                          "Create the model in motley.without_weights() and export it with folder=")
    if described.get("quantization_config"):
        raise ExportError(f"the weights of {folder} are quantised",
                          "Pass the folder of the model that was quantised; base= quantises frozen weights")
    names = described.get("architectures") or []
    if len(names) != 1:
        raise ExportError(f"config.json of {folder} names {len(names)} architectures",
                          'Name the model class there: "architectures": ["LlamaForCausalLM"]')
    try:
        import transformers
    except ImportError as error:
        raise ExportError("transformers, which creates the model of a Hugging Face folder, is not installed",
                          "Run pip install transformers; or create the model in motley.without_weights() and export it with "
                          "folder=") from error
    model_class = getattr(transformers, str(names[0]), None)
    if model_class is None:
        raise ExportError(f"transformers {transformers.__version__} has no {names[0]}",
                          "Install a newer release, which may have it")
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        with without_weights():
            model: Any = model_class._from_config(config, **{_dtype_key(transformers): torch.float32})
            model.tie_weights()
    except Exception as error:  # any that the library raises
        raise ExportError(f"the model of {folder} cannot be created: {summary(error)}",
                          "Open it with from_pretrained of transformers to reproduce it") from error
    model.config._name_or_path = folder
    return model  # type: ignore[no-any-return]


def _dtype_key(transformers: Any) -> str:
    """The name of the dtype argument: it was renamed in release 5."""
    return "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"


def _config(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, "config.json") if os.path.isdir(folder) else folder
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
    except (OSError, ValueError) as error:
        raise ExportError(f"{path} cannot be read: {summary(error)}",
                          "Pass the folder of a Hugging Face model, with config.json and safetensors files") from error
    if not isinstance(described, dict):
        raise ExportError(f"{path} is not a JSON object", "Download the folder again")
    return described


def _vocabulary(model: torch.nn.Module) -> int:
    """The number of rows of the model's embedding."""
    embedding = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    weight = getattr(embedding, "weight", None)
    if weight is None:
        raise ExportError(f"{type(model).__name__} has no embedding of ids", "Pass example=(input, target) and the loss")
    return int(weight.size(0))
