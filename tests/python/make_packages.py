#!/usr/bin/python3
"""Packages of tiny models with eager PyTorch's results, for tests of package readers.

    PYTHONPATH=python /usr/bin/python3 tests/python/make_packages.py FOLDER [NAME…]

writes NAME.motley and NAME.reference.safetensors: `input` and `target` of a batch size that was not traced, `loss` (the sum)
and `count` in training mode, `grad/PARAMETER`, `observed/STATISTIC`, and with the statistics of the package `evaluated_loss`
and `score`, the model's results in evaluation mode. There is no dropout. For frozen weights in narrow types, eager
PyTorch uses their values in float32.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Callable, Dict, Tuple

import torch
import torch.nn as nn

import language_models
import named_models
import vision_models
import motley
from motley import frozen, losses, weights
from motley.named import Input, by_name

Make = Callable[[], Tuple[nn.Module, nn.Module, Callable[[int], Tuple[torch.Tensor, torch.Tensor]]]]


def _without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def _images(channels: int, size: int, classes: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randn(n, channels, size, size), torch.randint(classes, (n,)))


def _tokens(vocabulary: int, length: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randint(vocabulary, (n, length)), torch.randint(vocabulary, (n, length)))


def _some_ignored(n: int) -> Tuple[torch.Tensor, torch.Tensor]:
    targets = torch.randint(5, (n,))
    targets[1::4] = -100
    return torch.randn(n, 3, 4), targets


class _Adapter(nn.Module):
    def __init__(self, base: nn.Linear):
        super().__init__()
        self.base = base
        self.a, self.b = nn.Parameter(torch.randn(2, base.in_features) * 0.1), nn.Parameter(torch.randn(base.out_features, 2) * 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + (x @ self.a.t()) @ self.b.t()


def _adapters(dtype: torch.dtype) -> nn.Module:
    model = nn.Sequential(nn.Embedding(30, 64), nn.LayerNorm(64), _Adapter(nn.Linear(64, 66)), nn.GELU(), _Adapter(nn.Linear(66, 64, bias=False)), nn.Linear(64, 30))
    for name, parameter in model.named_parameters():
        if not name.endswith((".a", ".b")):
            parameter.requires_grad_(False).data = parameter.data.to(dtype)
    return model


FROZEN: Dict[str, Make] = {
    "adapters-bf16": lambda: (_adapters(torch.bfloat16), nn.CrossEntropyLoss(), _tokens(30, 5)),
    "adapters-int8": lambda: (_adapters(torch.float16), nn.CrossEntropyLoss(), _tokens(30, 5)),
    "adapters-nf4": lambda: (_adapters(torch.float32), nn.CrossEntropyLoss(), _tokens(30, 5)),
}
"""Models with frozen weights in narrow types."""

NAMED: Dict[str, Make] = {
    "encoder-tiny": lambda: (named_models.Encoder(blocks=1), nn.CrossEntropyLoss(), lambda n: named_models.texts(n, truth_values=True)),
}
"""Those with several inputs by name: `input/NAME` in place of `input`."""

BASES = {"adapters-int8": "int8", "adapters-nf4": "nf4"}
"""[model] the quantised type of its linear layers."""

MODELS: Dict[str, Make] = {
    "mlp": lambda: (vision_models.mlp(), nn.MSELoss(), lambda n: (torch.randn(n, 12), torch.randn(n, 3))),
    "flat-mlp": lambda: (nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5)), nn.CrossEntropyLoss(), _some_ignored),
    "cnn": lambda: (_without_dropout(vision_models.cnn()), nn.CrossEntropyLoss(), _images(1, 8, 10)),
    "resnet-tiny": lambda: (vision_models.ResNet(), nn.CrossEntropyLoss(), _images(3, 32, 10)),
    "vit-tiny": lambda: (vision_models.VisionTransformer(), nn.CrossEntropyLoss(), _images(3, 16, 10)),
    "gpt2-tiny": lambda: (language_models.GPT2LMHeadModel(), nn.CrossEntropyLoss(), _tokens(50, 8)),
    "llama-tiny": lambda: (language_models.LlamaForCausalLM(), nn.CrossEntropyLoss(), _tokens(50, 8)),
}


def reference(model: nn.Module, loss: nn.Module, input: Input, target: torch.Tensor) -> Dict[str, torch.Tensor]:
    """Eager PyTorch's results for a batch. The buffers of `model` do not change."""
    terms = losses.parse(loss).terms
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    normalizations = {name: module for name, module in model.named_modules() if hasattr(module, "running_mean")}
    momenta = {name: module.momentum for name, module in normalizations.items()}
    for module in normalizations.values():
        module.momentum = 1.0  # the statistics become those of this batch
    model.train()
    total, count = terms(_output(model, input), target)
    model.zero_grad()
    total.backward()
    found = {f"input/{name}" if name else "input": tensor for name, tensor in by_name(input).items()}
    found.update({"target": target, "loss": total.detach(), "count": count})
    found.update({f"grad/{name}": parameter.grad for name, parameter in model.named_parameters() if parameter.requires_grad})
    for name, module in normalizations.items():
        module.momentum = momenta[name]
        for statistic in ("running_mean", "running_var"):
            found[f"observed/{name}.{statistic}"] = getattr(module, statistic).clone()
    model.load_state_dict(kept)
    model.eval()
    with torch.no_grad():
        score = _output(model, input)
        found.update({"evaluated_loss": terms(score, target)[0], "score": score})
    return found


def _output(model: nn.Module, input: Input) -> torch.Tensor:
    output = model(**input) if isinstance(input, dict) else model(input)
    return output["logits"] if isinstance(output, dict) else output


def _load_values(model: nn.Module, path: str) -> None:
    """Sets the model's parameters to the values that its package computes with, in float32."""
    held = weights.read(os.path.join(path, "weights.safetensors"))
    with open(os.path.join(path, "package.json"), encoding="utf-8") as file:
        quantised = json.load(file).get("quantised", {})
    for name, parameter in model.named_parameters():
        parameter.data = (frozen.dequantised({**quantised[name], "type": "float32"}, held) if name in quantised else held[name]).float()


def main(folder: str, *names: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name in names or (*MODELS, *FROZEN, *NAMED):
        torch.manual_seed(7)
        model, loss, batch = {**MODELS, **FROZEN, **NAMED}[name]()
        path = os.path.join(folder, f"{name}.motley")
        motley.export(model if name in NAMED else motley.split(model), loss, batch(2), path, base=BASES.get(name))
        _load_values(model, path)
        found = reference(model, loss, *batch(4))
        weights.write(os.path.join(folder, f"{name}.reference.safetensors"), found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
