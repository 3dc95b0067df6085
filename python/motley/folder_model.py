"""The model of a Hugging Face folder, created from its configuration, without weights."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch

from . import positions
from .empty_model import without_weights
from .errors import ExportError

_LONGEST_CAUSE = 400

PLAN = ("motley.estimate plans language models of transformers. For another model, create it with or without weights, write it with "
        'motley.export(model, loss, example, path), and run motley plan with [model] kind = "package" and its path')


class Opened(NamedTuple):
    """The model of a folder, its loss, an example, and notices about them."""

    model: torch.nn.Module
    loss: Any
    example: Any
    notices: Tuple[str, ...] = ()


def open_folder(folder: Any, loss: Any, example: Any, tokens: Optional[int], is_estimate: bool = False) -> Opened:
    """With `is_estimate` errors are worded for `motley.estimate`, which has neither an example nor weights."""
    if folder is None:
        raise ExportError("there is no model",
                          "Pass the model, its loss and an example; or folder= and tokens= for a Hugging Face folder")
    path = os.fspath(folder)
    if os.path.isfile(path) and not is_estimate:
        raise ExportError(f"folder= is the file {path}", "Pass the folder with config.json and safetensors files")
    if example is None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1):
        raise ExportError(f"tokens= is {tokens!r}" if tokens is not None else "the length of the texts is unknown",
                          "Pass tokens=, the number of tokens of a sample, e.g. tokens=2048"
                          + ("" if is_estimate else "; or example=(input, target)"))
    model = create(path, example is None, is_estimate)
    if example is None:
        ids = torch.randint(_vocabulary(model, is_estimate), (2, tokens), generator=torch.Generator().manual_seed(6))  # type: ignore[arg-type]
        example = ids, ids
    return Opened(model, torch.nn.CrossEntropyLoss() if loss is None else loss, example, positions.check(model, example))


def with_fewer_ids(folder: str, count: int) -> Optional[torch.nn.Module]:
    """The model of a folder with a vocabulary of `count` ids; None if it has as few, or its configuration has no such number."""
    try:
        return create(folder, is_language_model=True, ids=count)
    except ExportError:
        return None


def _set_ids(config: Any, count: int) -> None:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    if not getattr(text, "vocab_size", 0) > count:
        raise ExportError(f"the vocabulary has no more than {count} ids", "Compare it as it is")
    for part in {id(config): config, id(text): text}.values():
        part.vocab_size = count
        pad = getattr(part, "pad_token_id", None)
        if isinstance(pad, int) and pad >= count:
            part.pad_token_id = count - 1


def create(folder: str, is_language_model: bool = False, is_estimate: bool = False, ids: Optional[int] = None) -> torch.nn.Module:
    """The model of transformers whose class config.json names, in float32. `folder` may be the path of a config.json.
    `is_language_model`: other models are refused. `ids`: a smaller number of ids than that of the configuration."""
    described = _config(folder, is_estimate)
    if described.get("auto_map"):
        raise ExportError(f"the model of {folder} has its own code (auto_map), which is not executed",
                          PLAN if is_estimate else "Create the model in motley.without_weights() and export it with folder=")
    if described.get("quantization_config"):
        raise ExportError(f"the weights of {folder} are quantised", f"Pass the {'config.json' if is_estimate else 'folder'} of the model "
                          f"that was quantised{'' if is_estimate else '; base= quantises frozen weights'}")
    names = described.get("architectures") or []
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        count = f"names {len(names)} architectures" if isinstance(names, list) and all(isinstance(name, str) for name in names) else \
            f'has "architectures": {json.dumps(names)[:80]}'
        raise ExportError(f"config.json of {folder} {count}", 'Name the model class there, as a list: "architectures": ["LlamaForCausalLM"]')
    try:
        import transformers
    except ImportError as error:
        raise ExportError("transformers, which creates the model of a Hugging Face folder, is not installed",
                          "Run pip install transformers" + ("" if is_estimate else "; or create the model in motley.without_weights() and "
                                                            "export it with folder=")) from error
    model_class = getattr(transformers, names[0], None)
    if model_class is None:
        raise ExportError(f"transformers {transformers.__version__} has no {names[0]}",
                          "Install a newer release, which may have it")
    if is_language_model and not _is_language_model(names[0]):
        raise ExportError(f"config.json of {folder} names {names[0]}, which is not a causal language model",
                          'If the model has a head for texts, name its class there, such as LlamaForCausalLM. ' + (
                              PLAN if is_estimate else "tokens= is for such models: for others pass loss= and example=(input, target)"))
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        if ids is not None:
            _set_ids(config, ids)
        with without_weights():
            model: Any = model_class._from_config(config, **{_dtype_key(transformers): torch.float32})
            model.tie_weights()
    except ExportError as error:
        raise ExportError(f"the model of {folder} cannot be created without weights: {error.reason}",
                          PLAN if is_estimate else "Load it with from_pretrained and export it from memory, "
                          "motley.export(model, loss, example, path)") from error
    except Exception as error:  # any that the library raises
        raise ExportError(f"the model of {folder} cannot be created: {_cause(error)}",
                          f"Correct its config.json; transformers.AutoConfig.from_pretrained and {names[0]}(config) show the place") from error
    model.config._name_or_path = folder
    return model  # type: ignore[no-any-return]


def _cause(error: BaseException) -> str:
    """An exception's type and its text in one line: libraries put the cause into the second one."""
    text = " ".join(str(error).split()).rstrip(".")
    if len(text) > _LONGEST_CAUSE:
        text = text[:_LONGEST_CAUSE] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_language_model(name: str) -> bool:
    """Whether a class of transformers computes logits of tokens from ids alone."""
    try:
        auto: Any = importlib.import_module("transformers.models.auto.modeling_auto")
        known = {*auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values(), *auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()}
        encoder_decoders = {*auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values()}
    except (ImportError, AttributeError):
        return True  # another release: the trace decides
    return name in known or name.endswith("ForConditionalGeneration") and name not in encoder_decoders


def _dtype_key(transformers: Any) -> str:
    """The name of the dtype argument: it was renamed in release 5."""
    return "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"


def _config(folder: str, is_estimate: bool) -> Dict[str, Any]:
    path = os.path.join(folder, "config.json") if os.path.isdir(folder) else folder
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
    except (OSError, ValueError) as error:
        raise ExportError(f"{path} cannot be read: {_cause(error)}", "Pass the config.json of a Hugging Face model, or its folder"
                          if is_estimate else "Pass the folder of a Hugging Face model, with config.json and safetensors files") from error
    if not isinstance(described, dict):
        raise ExportError(f"{path} is not a JSON object", "Download the folder again")
    return described


def _vocabulary(model: torch.nn.Module, is_estimate: bool) -> int:
    """The number of rows of the model's embedding."""
    try:
        weight = model.get_input_embeddings().weight
        return int(weight.size(0))
    except Exception as error:  # any that the library raises, such as NotImplementedError
        raise ExportError(f"{type(model).__name__} has no embedding of ids",
                          PLAN if is_estimate else "Pass loss= and example=(input, target)") from error
