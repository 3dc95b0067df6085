#!/usr/bin/python3
"""The models for the package benchmarks, with their batches.

    PYTHONPATH=python bench/package_models.py NAME FOLDER

writes the package of one of them.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Callable, Dict, NamedTuple, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

import torch
import torch.nn as nn

import language_models
import motley
import vision_models

VOCABULARY = 8192


class Family(NamedTuple):
    make: Callable[[], nn.Module]
    batch: Callable[[int], Tuple[torch.Tensor, torch.Tensor]]  # of this number of samples
    samples: int  # of a step on one device


def images(channels: int, size: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randn(n, channels, size, size), torch.randint(10, (n,)))


def tokens(length: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randint(VOCABULARY, (n, length)), torch.randint(VOCABULARY, (n, length)))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 14 * 14, 128), nn.ReLU(),
        nn.Linear(128, 10))


FAMILIES: Dict[str, Family] = {
    "cnn": Family(cnn, images(1, 28), 32),
    "resnet": Family(lambda: vision_models.ResNet(width=64), images(3, 112), 4),
    "vit": Family(lambda: vision_models.VisionTransformer(112, 16, 6, 6, 384), images(3, 112), 8),
    "gpt2": Family(lambda: language_models.GPT2LMHeadModel(VOCABULARY, 256, 6, 384, 6), tokens(256), 2),
    "llama": Family(lambda: language_models.LlamaForCausalLM(VOCABULARY, 6, 384, 6, 2), tokens(256), 2),
    # torchvision's resnet50, and ViT-S/16 of the literature.
    "resnet50": Family(vision_models.resnet50, images(3, 224), 4),
    "vit_s_16": Family(lambda: vision_models.VisionTransformer(224, 16, 12, 6, 384), images(3, 224), 4),
}


def export(name: str, model: nn.Module, path: str) -> None:
    motley.export(motley.split(model), nn.CrossEntropyLoss(), FAMILIES[name].batch(2), path)


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if len(sys.argv) != 3 or sys.argv[1] not in FAMILIES:
        sys.exit(__doc__)
    torch.manual_seed(1)
    export(sys.argv[1], FAMILIES[sys.argv[1]].make(), sys.argv[2])


if __name__ == "__main__":
    main()
