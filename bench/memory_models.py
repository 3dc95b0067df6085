#!/usr/bin/python3
"""The packages of bench/package_memory: models in which the placement of the weights determines a worker's memory.

    PYTHONPATH=python bench/memory_models.py NAME FOLDER [--scale S]

writes NAME.motley into FOLDER and, for cases that start from other weights, those too. --scale multiplies all widths
and block counts; 1 gives 100 MB to 1 GB.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

import torch
import torch.nn as nn

import language_models
import motley
import vision_models
from motley import weights

LENGTH = 64


class LoraLinear(nn.Module):
    """A frozen linear layer plus a trained low-rank product."""

    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Masked(nn.Module):
    """A block with lookups in two constant tables, one of integers and one of booleans."""

    def __init__(self, width: int, tables: Tuple[torch.Tensor, torch.Tensor]):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.product = nn.Linear(width, width)
        self.shifts, self.keeps = tables

    def forward(self, x):
        y = self.product(self.norm(x))
        return x + torch.where(self.keeps, y, y * self.shifts.float())


class Case(NamedTuple):
    layers: Any
    loss: nn.Module
    example: Tuple[torch.Tensor, torch.Tensor]
    model: Optional[nn.Module] = None
    start: Optional[torch.dtype] = None  # dtype of the initial weights
    base: Optional[str] = None  # of motley.export


def _frozen(model: nn.Module, trained: Callable[[str], bool]) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trained(name))
    return model


def _tokens(vocabulary: int) -> Tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(vocabulary, (2, LENGTH)), torch.randint(vocabulary, (2, LENGTH))


class Sizes:
    def __init__(self, scale: float):
        self.scale = scale

    def blocks(self, count: int) -> int:
        return max(2, round(count * self.scale))

    def width(self, size: int) -> int:
        return max(32, round(size * self.scale / 32) * 32)

    def vocabulary(self, size: int) -> int:
        return max(256, round(size * self.scale / 64) * 64)


def _llama(s: Sizes, vocabulary: int = 16000, blocks: int = 10, width: int = 768) -> nn.Module:
    return language_models.LlamaForCausalLM(s.vocabulary(vocabulary), s.blocks(blocks), s.width(width), 8, 4)


def _language(model: nn.Module, vocabulary: int, start: Optional[torch.dtype] = None) -> Case:
    return Case(motley.split(model), nn.CrossEntropyLoss(), _tokens(vocabulary), model, start)


def frozen(s: Sizes) -> Case:
    return _language(_frozen(_llama(s), lambda name: name == "model.norm.weight"), s.vocabulary(16000))


def lora(s: Sizes) -> Case:
    model = _frozen(_llama(s), lambda name: False)
    for block in model.model.layers:
        block.self_attn.q_proj = LoraLinear(block.self_attn.q_proj, 8)
        block.self_attn.v_proj = LoraLinear(block.self_attn.v_proj, 8)
    return _language(model, s.vocabulary(16000))


def lora_bf16(s: Sizes) -> Case:
    case = lora(s)
    assert case.model is not None
    for parameter in case.model.parameters():
        if not parameter.requires_grad:
            parameter.data = parameter.data.bfloat16()
    return case


def lora_nf4(s: Sizes) -> Case:
    return lora(s)._replace(base="nf4")


def frozen_embedding(s: Sizes) -> Case:
    model = _frozen(_llama(s, 60000, 4, 512), lambda name: "embed_tokens" not in name)
    return _language(model, s.vocabulary(60000))


def tied(s: Sizes) -> Case:
    model = language_models.GPT2LMHeadModel(s.vocabulary(50000), LENGTH, s.blocks(4), s.width(512), 8)
    return _language(model, s.vocabulary(50000))


def vocabulary(s: Sizes) -> Case:
    return _language(_llama(s, 128000, 2, 256), s.vocabulary(128000))


def bf16_start(s: Sizes) -> Case:
    return _language(_llama(s), s.vocabulary(16000), torch.bfloat16)


def fp16_start(s: Sizes) -> Case:
    model = language_models.GPT2LMHeadModel(s.vocabulary(16000), LENGTH, s.blocks(8), s.width(640), 8)
    return _language(model, s.vocabulary(16000), torch.float16)


def trained(s: Sizes) -> Case:
    return _language(_llama(s, 16000, 8, 640), s.vocabulary(16000))


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def statistics(s: Sizes) -> Case:
    model = vision_models.ResNet(width=s.width(128))
    _frozen(model, lambda name: name.startswith(("layer4", "fc")))
    images = torch.randn(2, 3, 64, 64), torch.randint(10, (2,))
    return Case(motley.split(model), nn.CrossEntropyLoss(), images, model)


def tables(s: Sizes) -> Case:
    width, count = s.width(1024), s.blocks(12)
    shared = torch.randint(2, (LENGTH * 16, width)), torch.rand(LENGTH * 16, width) > 0.5
    blocks = [Masked(width, shared) for _ in range(count)]
    model = nn.Sequential(*blocks, Mean(), nn.Linear(width, 10))
    layers = [(f"{k}", block) for k, block in enumerate(blocks)] + [("head", lambda x: model[-1](model[-2](x)))]
    return Case(layers, nn.CrossEntropyLoss(), (torch.randn(2, LENGTH * 16, width), torch.randint(10, (2,))), model)


CASES: Dict[str, Callable[[Sizes], Case]] = {
    "frozen": frozen, "lora": lora, "lora-bf16": lora_bf16, "lora-nf4": lora_nf4, "frozen-embedding": frozen_embedding, "tied": tied, "vocabulary": vocabulary,
    "bf16-start": bf16_start, "fp16-start": fp16_start, "trained": trained, "statistics": statistics, "tables": tables}


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("name", choices=CASES)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    torch.manual_seed(5)
    case = CASES[options.name](Sizes(options.scale))
    motley.export(case.layers, case.loss, case.example, str(options.folder / f"{options.name}.motley"), model=case.model,
                  base=case.base)
    if case.start is not None:
        assert case.model is not None
        other = {name: value.detach().to(case.start) for name, value in case.model.state_dict().items()}
        other.pop("lm_head.weight" if options.name in ("tied", "fp16-start") else "", None)
        weights.write(str(options.folder / f"{options.name}.safetensors"), other)


if __name__ == "__main__":
    main()
