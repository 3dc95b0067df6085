#!/usr/bin/env python3
"""Eager PyTorch's speed in whole training steps of a GPT-2 on one device. Prints one JSON object.

    bench/device_step_peer.py --device cuda:0 --precision bf16 --batch 8

This is a usual uncompiled training loop: scaled_dot_product_attention, autocast for bf16 and fp16
(with a gradient scaler), fused AdamW where the device supports it, and no device synchronization
between steps. TF32 is off, as in Motley's fp32. --compiled also measures torch.compile. --device
accepts any name known to PyTorch; privateuseone is available after loading MOTLEY_DEVICE_LIBRARY.
The model is that of bench/solo_step_peer.py.
"""
import argparse
import contextlib
import json
import os
import time
import types

import torch
import torch.nn.functional as F

from solo_step_peer import Gpt


def arguments():
    parser = argparse.ArgumentParser()
    for name, value in dict(layers=12, width=768, heads=12, vocab=50257, context=1024, batch=8,
                            steps=9, warmup=3).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--compiled", action="store_true")
    given = parser.parse_args()
    given.dropout = 0.0
    given.fused = hasattr(F, "scaled_dot_product_attention")
    return given


def optimizer_for(model, device):
    if device.type == "cuda":
        return torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    return torch.optim.AdamW(model.parameters(), lr=3e-4)


def autocast(device, low):
    if low is None or device.type == "privateuseone":  # has no autocast kernels; only a functional test
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=low)


def make_step(a, device):
    model = Gpt(a)
    model = model.to(device)
    model.head.weight = model.tokens.weight  # tied again: a copy to a device may separate them
    optimizer = optimizer_for(model, device)
    ids = torch.randint(a.vocab, (a.batch, a.context)).to(device)
    targets = torch.randint(a.vocab, (a.batch, a.context)).to(device)
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(a.precision)
    scaler = torch.cuda.amp.GradScaler() if low is torch.float16 else None
    forward = torch.compile(model) if a.compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(device, low):
            loss = forward(ids, targets)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss

    return step


def load_device_library():
    torch.ops.load_library(os.environ["MOTLEY_DEVICE_LIBRARY"])
    # PyTorch 2 looks up a module with the device's name, which such a library does not provide.
    module = types.ModuleType("torch.privateuseone")
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.manual_seed_all = lambda seed: None
    if hasattr(torch, "_register_device_module"):
        torch._register_device_module("privateuseone", module)


def main():
    a = arguments()
    if a.device.startswith("privateuseone"):
        load_device_library()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    step = make_step(a, torch.device(a.device))
    for _ in range(a.warmup):
        loss = step()
    loss.item()  # synchronizes with the device
    start = time.perf_counter()
    for _ in range(a.steps):
        loss = step()
    last = loss.item()
    seconds = (time.perf_counter() - start) / a.steps
    print(json.dumps({"tokens_per_s": a.batch * a.context / seconds, "step_s": seconds,
                      "precision": a.precision, "loss": last, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
