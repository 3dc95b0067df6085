"""Models with adapters whose modules and tensors have the names of peft's, and a module `peft` with what the package uses of it.

Debian has no peft. examples/adapters/compare.py runs the real one.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any, Dict, Iterator, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F

import language_models
from support import imported


class Lora(nn.Module):
    """y = W x + s B A x, with the first of `adapters`; with `dora` normalized by W + s B A, and scaled by trained magnitudes."""

    def __init__(self, base: nn.Linear, rank: int, adapters: Sequence[str], dora: bool):
        super().__init__()
        self.base_layer, self.active, self.scaling = base, adapters[0], 2.0
        self.lora_A = nn.ModuleDict({name: nn.Linear(base.in_features, rank, bias=False) for name in adapters})
        self.lora_B = nn.ModuleDict({name: nn.Linear(rank, base.out_features, bias=False) for name in adapters})
        for layer in self.lora_B.values():
            nn.init.zeros_(layer.weight)
        norms = base.weight.detach().norm(dim=1)
        self.lora_magnitude_vector = nn.ParameterDict({name: nn.Parameter(norms.clone()) for name in adapters if dora})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.lora_A[self.active], self.lora_B[self.active]
        added = b(a(x)) * self.scaling
        if self.active not in self.lora_magnitude_vector:
            return self.base_layer(x) + added
        norm = (self.base_layer.weight + self.scaling * b.weight @ a.weight).norm(dim=1).detach()
        return (self.lora_magnitude_vector[self.active] / norm) * (F.linear(x, self.base_layer.weight) + added)


class Ia3(nn.Module):
    def __init__(self, base: nn.Linear):
        super().__init__()
        self.base_layer = base
        self.ia3_l = nn.ParameterDict({"default": nn.Parameter(torch.ones(base.out_features, 1))})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) * self.ia3_l["default"].flatten()


class Config:
    """As peft's configurations, as far as the package reads them."""

    def __init__(self, is_prompt_learning: bool = False, **values: Any):
        self._values = {"peft_type": "LORA", "inference_mode": False, "task_type": "CAUSAL_LM", "auto_mapping": None,
                        "target_modules": {"v_proj", "q_proj"}, **values}
        self.is_prompt_learning, self.task_type = is_prompt_learning, self._values["task_type"]

    def to_dict(self) -> Dict[str, Any]:
        return dict(self._values)


class Tuner(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model


class PeftModel(nn.Module):
    """Tensors are named base_model.model.…, as peft's."""

    def __init__(self, model: nn.Module, adapters: Sequence[str] = ("default",)):
        super().__init__()
        self.base_model = Tuner(model)
        self.peft_config = {name: Config() for name in adapters}

    def get_base_model(self) -> nn.Module:
        return self.base_model.model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.base_model.model(ids)


class PromptModel(nn.Module):
    """Puts trained vectors before the embeddings of the tokens; with `encoded`, results of a layer of them."""

    def __init__(self, model: language_models.LlamaForCausalLM, count: int, encoded: bool):
        super().__init__()
        self.base_model = model.requires_grad_(False)
        self.active_peft_config = Config(True, peft_type="PROMPT_TUNING")
        self.peft_config = {"default": self.active_peft_config}
        self.count = count
        width = model.lm_head.in_features
        embedding = nn.Embedding(count, width)
        encoder = nn.Sequential(embedding, nn.Linear(width, width)) if encoded else embedding
        self.prompt_encoder = nn.ModuleDict({"default": encoder})

    def prompt(self, samples: int) -> torch.Tensor:
        return self.prompt_encoder["default"](torch.arange(self.count)[None].expand(samples, -1))

    def forward(self, ids: torch.Tensor) -> Dict[str, torch.Tensor]:
        prompt = self.prompt(ids.size(0))
        inner = self.base_model.model
        x = torch.cat([prompt, inner.embed_tokens(ids)], 1)
        length = x.size(1)
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        positions = inner.rotary_emb(x, torch.arange(length)[None])
        for layer in inner.layers:
            x = layer(x, positions, mask)
        return {"logits": self.base_model.lm_head(inner.norm(x))}


def get_peft_model_state_dict(model: nn.Module, adapter_name: str, save_embedding_layers: Any) -> Dict[str, torch.Tensor]:
    if model.peft_config[adapter_name].is_prompt_learning:
        return {"prompt_embeddings": model.prompt(1)[0].detach()}
    marks = ("lora_", "ia3_")
    return {name.replace(f".{adapter_name}", ""): tensor for name, tensor in model.state_dict().items()
            if any(mark in name for mark in marks) and f".{adapter_name}" in name}


@contextlib.contextmanager
def peft() -> Iterator[None]:
    """Inside, `peft` is imported."""
    module = types.ModuleType("peft")
    module.PeftModel = (PeftModel, PromptModel)  # type: ignore[attr-defined]
    module.get_peft_model_state_dict = get_peft_model_state_dict  # type: ignore[attr-defined]
    with imported("peft", module):
        yield


def llama(kind: str = "lora", adapters: Sequence[str] = ("default",), names: Sequence[str] = ("q_proj", "v_proj"),
          width: int = 16) -> PeftModel:
    """A Llama with adapters at its linear layers of these names; only the first adapter trains."""
    torch.manual_seed(0)
    model = language_models.LlamaForCausalLM(width=width).requires_grad_(False)
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and name in names:
                setattr(module, name, Ia3(layer) if kind == "ia3" else Lora(layer, 4, adapters, kind == "dora"))
    adapted = PeftModel(model, adapters)
    for name, parameter in adapted.named_parameters():
        parameter.requires_grad_(("lora_" in name or "ia3_" in name) and f".{adapters[0]}" in name)
    return adapted
