"""The model of a Hugging Face folder, as its configuration says, without weights."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Tuple

import torch

from .empty_model import without_weights
from .errors import ExportError, in_words


def opened(folder: Any, loss: Any, example: Any, tokens: Optional[int]) -> Tuple[torch.nn.Module, Any, Any]:
    """The model of a folder, its loss and an example."""
    if folder is None:
        raise ExportError("there is no model", "Give the model, its loss and an example; or folder= and tokens= of a Hugging Face folder")
    model = build(os.fspath(folder))
    if example is None:
        if not isinstance(tokens, int) or tokens < 1:
            raise ExportError(f"tokens= is {tokens!r}" if tokens is not None else "the length of the texts is not known",
                              "Give tokens=, the number of tokens of a sample, e.g. tokens=2048; or example=(input, target)")
        ids = torch.randint(rows(model), (2, tokens), generator=torch.Generator().manual_seed(6))
        example = ids, ids
    return model, torch.nn.CrossEntropyLoss() if loss is None else loss, example


def build(folder: str) -> torch.nn.Module:
    """The model class that config.json names, of transformers, in float32."""
    described = _config(folder)  # also of a config.json alone
    if described.get("auto_map"):
        raise ExportError(f"the model of {folder} has code of its own (auto_map), which is not run", "Make the model in motley.without_weights(): and "
                          "export it with folder=")
    if described.get("quantization_config"):
        raise ExportError(f"the weights of {folder} are quantised", "Give the folder of the model that they were made from; base= quantises frozen weights")
    names = described.get("architectures") or []
    if len(names) != 1:
        raise ExportError(f"config.json of {folder} names {len(names)} architectures", "One says which model class is meant: "
                          '"architectures": ["LlamaForCausalLM"]')
    try:
        import transformers
    except ImportError as error:
        raise ExportError("transformers is not installed, which makes the model of a Hugging Face folder", "pip install transformers; or make the model in "
                          "motley.without_weights(): and export it with folder=") from error
    model_class = getattr(transformers, str(names[0]), None)
    if model_class is None:
        raise ExportError(f"transformers {transformers.__version__} has no {names[0]}", "A newer release may have it")
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        with without_weights():
            model: Any = model_class._from_config(config, **{_dtype_key(transformers): torch.float32})
            model.tie_weights()
    except Exception as error:  # whatever the library raises
        raise ExportError(f"the model of {folder} cannot be made: {in_words(error)}", "Try transformers' own from_pretrained of it") from error
    model.config._name_or_path = folder
    return model  # type: ignore[no-any-return]


def _dtype_key(transformers: Any) -> str:
    """The name of the argument since release 5, and before."""
    return "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"


def _config(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, "config.json") if os.path.isdir(folder) else folder
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
    except (OSError, ValueError) as error:
        raise ExportError(f"{path} cannot be read: {in_words(error)}", "Give the folder of a Hugging Face model, with config.json and safetensors") from error
    if not isinstance(described, dict):
        raise ExportError(f"{path} is no JSON object", "Download the folder again")
    return described


def rows(model: torch.nn.Module) -> int:
    """The number of ids that the model's embedding has."""
    embedding = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    weight = getattr(embedding, "weight", None)
    if weight is None:
        raise ExportError(f"{type(model).__name__} has no embedding of ids", "Give example=(input, target) and the loss")
    return int(weight.size(0))
