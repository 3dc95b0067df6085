"""`motley.split`: the layers of models that are known, and how to give those of others."""

from __future__ import annotations

import re

import torch

from ..errors import ExportError
from ..layers import Layers
from . import gpt2, llama, resnet, sequential, vit

_SPLITTERS = (sequential, gpt2, llama, resnet, vit)


def split(model: torch.nn.Module) -> Layers:
    """The layers of `model`, in order, named as its modules; tensors keep the names of its state_dict.

    Known are `nn.Sequential`, `transformers`' GPT2LMHeadModel and LlamaForCausalLM, `torchvision`'s ResNet and
    VisionTransformer, and models of the same structure and attribute names; `export` compares the layers with the model, in
    `train()` and `eval()` mode, and refuses what resembles one of these and is none. Others are split by hand: a list of
    (name, module or function), each called with what the one before returned.
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"a {type(model).__name__} was given in place of a model", "Give a torch.nn.Module")
    inner = _inner(model)
    for splitter in _SPLITTERS:
        try:
            if splitter.knows(inner):
                return Layers(splitter.layers(inner), [("", model)], model, model, "split")
        except Exception:  # it resembles one that is known, and is none
            continue
    gives_logits = type(model).__module__.startswith("transformers.") and re.search("For.*(LM|Classification|Generation)", type(model).__name__)
    call = "lambda x: model(x).logits" if gives_logits else "model"
    raise ExportError(
        f"{type(model).__name__} is not among the models that motley.split knows",
        f'As one layer: motley.export([("all", {call})], loss, example, path, model=model). As several: a list of (name, function), each called '
        f"with what the one before returned, there or in motley.train(…, layers=). {_blocks(model)} "
        "A tensor that passes a layer by is returned beside its result, as a tuple, which the next layer gets")


def _inner(model: torch.nn.Module) -> torch.nn.Module:
    """What a wrapper of peft runs, which has the adapters in it; any other model itself."""
    return model.get_base_model() if isinstance(getattr(model, "peft_config", None), dict) and hasattr(model, "get_base_model") else model


def _blocks(model: torch.nn.Module) -> str:
    """What of a model is repeated, which is what layers are made of."""
    found = [(path, module) for path, module in model.named_modules()
             if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(module) > 1
             and len({type(part) for part in module}) == 1]
    found = [(path, module) for path, module in found if not any(path.startswith(outer + ".") for outer, _ in found if outer)]
    if not found:
        return "What its forward does from input to output, cut into functions, is that list."
    named = ", ".join(f"model.{path} ({len(module)} × {type(next(iter(module))).__name__})" if path else f"its {len(module)} parts"
                      for path, module in found[:4])
    return (f"Its repeated parts are {named}: a layer for each, and before, between and after them functions for what its forward does there "
            "besides, such as embeddings, positions, masks, what a part is given besides the last result, norms and the head. The list "
            "is compared with the model.")
