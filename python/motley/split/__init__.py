"""`motley.split`: the layers of models that are known, and how to give those of others."""

from __future__ import annotations

import torch

from ..errors import ExportError
from ..layers import Layers
from . import gpt2, llama, resnet, sequential, vit

_SPLITTERS = (sequential, gpt2, llama, resnet, vit)


def split(model: torch.nn.Module) -> Layers:
    """The layers of `model`, in order, named as its modules; tensors keep the names of its state_dict.

    Known are `nn.Sequential`, `transformers`' GPT2LMHeadModel and LlamaForCausalLM, `torchvision`'s ResNet and
    VisionTransformer, and models of the same structure and attribute names. Others are split by hand: a list of
    (name, module or function), each called with what the one before returned.
    """
    for splitter in _SPLITTERS:
        if splitter.knows(model):
            return Layers(splitter.layers(model), [("", model)], model)
    children = ", ".join(f'("{name}", model.{name})' for name, _ in list(model.named_children())[:4])
    raise ExportError(
        f"{type(model).__name__} is not among the models that motley.split knows",
        "Give its layers by hand, each called with what the one before returned: "
        f"motley.export([{children}, …], loss, example, path, model=model), or motley.train(…, layers=[…]). Functions of one argument are layers too; a tensor "
        "that passes a layer by is returned beside its result, as a tuple, which the next layer gets")
