#!/usr/bin/env python3
"""Compares packages of models as their authors wrote them, at small sizes, with eager PyTorch.

    pip install torch torchvision transformers
    PYTHONPATH=python python3 examples/zoo_check.py [NAME…]

Exports each model, runs the package's graphs at a batch size that was not traced, and compares the loss and every
gradient with autograd through the model's own `forward`. Prints one line per model, and returns 1 if a difference is more
than 1e-5 of the largest element. Dropout is off, since Motley has its own masks; BatchNorm trains.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch
import torch.nn.functional as F

import motley
from motley.interpret import Package

LARGEST_DIFFERENCE = 1e-5
CLASSES = 10
VOCABULARY = 96


class Entry(NamedTuple):
    make: Callable[[], torch.nn.Module]
    batch: Callable[[int], Tuple[torch.Tensor, torch.Tensor]]


def images(size: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randn(n, 3, size, size), torch.randint(CLASSES, (n,)))


def tokens(length: int) -> Callable[[int], Tuple[torch.Tensor, torch.Tensor]]:
    return lambda n: (torch.randint(VOCABULARY, (n, length)), torch.randint(VOCABULARY, (n, length)))


def gpt2(**options: Any) -> torch.nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0,
                                      embd_pdrop=0.0, attn_pdrop=0.0, **options))


def llama(**options: Any) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, **options))


def resnet(name: str) -> torch.nn.Module:
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES)


def vit() -> torch.nn.Module:
    from torchvision.models.vision_transformer import VisionTransformer
    model = VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64, num_classes=CLASSES)
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # the default of zeros would make all other gradients zero
    return model


MODELS: Dict[str, Entry] = {
    "resnet18": Entry(lambda: resnet("resnet18"), images(64)),
    "resnet50": Entry(lambda: resnet("resnet50"), images(64)),
    "vit_b_16 (small)": Entry(vit, images(32)),
    "GPT2LMHeadModel": Entry(gpt2, tokens(16)),
    "GPT2LMHeadModel (eager attention)": Entry(lambda: gpt2(attn_implementation="eager"), tokens(16)),
    "LlamaForCausalLM": Entry(llama, tokens(16)),
    "LlamaForCausalLM (tied)": Entry(lambda: llama(tie_word_embeddings=True), tokens(16)),
}


def largest_difference(entry: Entry, folder: str) -> Tuple[float, str, motley.Exported]:
    torch.manual_seed(1)
    model = entry.make().train()
    done = motley.export(motley.split(model), F.cross_entropy, entry.batch(2), os.path.join(folder, "model.motley"))
    package = Package.open(done.path)
    input, target = entry.batch(4)
    output = model(input)
    output = getattr(output, "logits", output)
    loss = F.cross_entropy(output.flatten(0, -2), target.flatten(), reduction="sum")
    loss.backward()
    step = package.train(input, target)
    worst, where = _relative(step.loss, loss.detach()), "the loss"
    for name, parameter in model.named_parameters():
        difference = _relative(step.gradients[name], parameter.grad)
        if difference > worst:
            worst, where = difference, name
    return worst, where, done


def _relative(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found - right).abs().max()) / max(float(right.abs().max()), 1e-30)


def main(*names: str) -> int:
    wrong = 0
    print(f"torch {torch.__version__}")
    for name in names or MODELS:
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst, where, done = largest_difference(MODELS[name], folder)
            except ImportError as error:
                print(f"{name:36} skipped: {error}")
                continue
            except motley.ExportError as error:
                wrong += 1
                print(f"{name:36} REFUSED {error}")
                continue
        wrong += worst > LARGEST_DIFFERENCE
        print(f"{name:36} {'ok ' if worst <= LARGEST_DIFFERENCE else 'OFF'} {done.layers:3} layers {done.operations:5} operations, largest "
              f"difference {worst:.1e} ({where}), layer by layer {done.largest_difference:.1e}, {time.time() - began:.1f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        sys.exit()
    sys.exit(main(*sys.argv[1:]))
