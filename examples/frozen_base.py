#!/usr/bin/env python3
"""Trains LoRA adapters of peft on a small Llama with a frozen base in bf16, or quantised to int8, int4 or NF4.

    python3 frozen_base.py [bf16|int8|int4|nf4]…

Exports each, runs 50 steps of AdamW with the gradients of the package, computed by this PyTorch, and the same steps with a plain
loop in float32 on the values of the package. Prints the size of the package and the largest differences of losses and adapters.
`motley.train(peft_model, loss, data, base="nf4")` trains the same model on the machines of a cluster.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import warnings
from typing import Dict, Tuple

import peft
import torch
import transformers

import motley
from motley import frozen
from motley.interpret import Package

STEPS, WORDS, LENGTH = 50, 512, 24


def model_of(base: str) -> torch.nn.Module:
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=WORDS, hidden_size=128, intermediate_size=344, num_hidden_layers=3, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=LENGTH)
    model = transformers.LlamaForCausalLM(config)
    model.to(torch.bfloat16 if base == "bf16" else torch.float32)
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "down_proj"], lora_dropout=0.0))
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return adapted


def batch(step: int) -> Tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(WORDS // 8, (4, LENGTH + 1), generator=torch.Generator().manual_seed(step)) * 8
    return ids[:, :-1], ids[:, 1:]


def plain_model(model: torch.nn.Module, package: Package) -> torch.nn.Module:
    """The model in float32, with the values that the package computes with."""
    held: Dict[str, torch.Tensor] = dict(package.tensors)
    held.update({name: frozen.dequantised(entry, held) for name, entry in package.description.get("quantised", {}).items()})
    plain = copy.deepcopy(model).float()
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(held[name])
    return plain.train()


def compare(base: str) -> None:
    model = model_of(base)
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = motley.export(model, torch.nn.CrossEntropyLoss(), batch(0), os.path.join(folder, "llama.motley"), base=None if base == "bf16" else base)
        size = os.path.getsize(os.path.join(done.path, "weights.safetensors"))
        package = Package.open(done.path)
    plain = plain_model(model, package)
    trained = {name: parameter for name, parameter in plain.named_parameters() if parameter.requires_grad}
    adapters = {name: package.tensors[name].clone().requires_grad_() for name in trained}
    package = package.computing(package.node_by, {**package.tensors, **adapters})
    loops = [torch.optim.AdamW(list(tensors.values()), lr=2e-3) for tensors in (trained, adapters)]
    apart, losses = 0.0, []
    for step in range(STEPS):
        ids, targets = batch(step)
        loss = torch.nn.functional.cross_entropy(plain(ids).logits.flatten(0, 1), targets.flatten())
        loops[0].zero_grad()
        loss.backward()
        with torch.no_grad():
            found = package.train(ids, targets)
        for name, tensor in adapters.items():
            tensor.grad = found.gradients[name] / found.count
        losses.append(float(found.loss / found.count))
        apart = max(apart, abs(losses[-1] / float(loss.detach()) - 1))
        for loop in loops:
            loop.step()
    moved = max(float((adapters[name] - trained[name]).detach().norm() / trained[name].detach().norm()) for name in trained)
    values = sum(parameter.numel() for parameter in model.parameters())
    print(f"{base}: {size / 1e6:.2f} MB for {values:,} values, loss {losses[0]:.4f} to {losses[-1]:.4f}; largest difference of losses {apart:.1e}, of adapters {moved:.1e}")
    for notice in done.notices:
        print(f"  {notice}")


if __name__ == "__main__":
    for base in sys.argv[1:] or ("bf16", "nf4"):
        compare(base)
