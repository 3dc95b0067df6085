"""Trains packages by the program and the same modules by eager PyTorch, for tests and `bench/package_truth`.

Each step uses all the data, so the data order affects only rounding. BatchNorm normalizes per micro-batch: models
with it use one micro-batch per step, others four.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional

import torch
import torch.nn as nn

from support import motley
from motley import losses
from motley.data import Arrays
from make_packages import MODELS

SAMPLES = 24
STEPS = 30
WARMUP = 5

FAMILIES = ("cnn", "resnet-tiny", "vit-tiny", "gpt2-tiny", "llama-tiny")

OPTIMIZERS: Dict[str, Dict[str, float]] = {
    "adamw": {"lr": 3e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95},
    "sgd": {"lr": 3e-2, "weight_decay": 1e-3, "momentum": 0.9},
}


class Case(NamedTuple):
    """A model with its training data."""

    model: nn.Module
    loss: nn.Module
    input: torch.Tensor
    target: torch.Tensor
    micro_batch: int
    target_limit: Optional[int] = None
    """If the loss does not determine it."""


def case(family: str) -> Case:
    torch.manual_seed(7)
    model, loss, batch = MODELS[family]()
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)  # as in transformers; at 1 rounding errors grow quickly
    input, target = batch(SAMPLES)
    statistics = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    return Case(model, loss, input, target, SAMPLES if statistics else SAMPLES // 4)


def write(given: Case, folder: str) -> str:
    """Writes the package, data and configuration; returns the configuration's path."""
    motley.export(motley.split(given.model), given.loss, (given.input[:2], given.target[:2]), os.path.join(folder, "x.motley"),
                  target_limit=given.target_limit)
    data = Arrays((given.input, given.target)).write(os.path.join(folder, "data"))
    config = os.path.join(folder, "job.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[model]\nkind = "package"\npath = "{folder}/x.motley"\n[data]\nkind = "arrays"\npath = "{data["path"]}"\nholdout = 0.0\n'
                   f"[train]\nsteps = {STEPS}\nwarmup_steps = {WARMUP}\nglobal_batch = {SAMPLES}\nmicro_batch = {given.micro_batch}\n"
                   "[checkpoint]\nevery = 0\n[run]\nthreads = 1\n[profile]\nseconds = 2.0\n")
    return config


def program(path: str, config: str, run: str, *words: str, **settings: Any) -> List[float]:
    """The loss of each step of `motley train`."""
    command = [path, "train", config, "--run", run, *words]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('__', '.')}={value}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line)["loss"] for line in file]


def parameters_hash(run: str) -> str:
    """From the final checkpoint."""
    newest = max(os.listdir(os.path.join(run, "checkpoints")))
    with open(os.path.join(run, "checkpoints", newest, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)["parameter_hash"]


def eager(given: Case, optimizer: str) -> List[float]:
    """The loss of each step of a plain PyTorch training loop."""
    options = OPTIMIZERS[optimizer]
    decayed = [p for p in given.model.parameters() if p.dim() >= 2]
    others = [p for p in given.model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": options["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    if optimizer == "adamw":
        steps: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=options["lr"], betas=(options["beta1"], options["beta2"]), eps=1e-8)
    else:
        steps = torch.optim.SGD(groups, lr=options["lr"], momentum=options["momentum"])
    schedule = torch.optim.lr_scheduler.LambdaLR(steps, lambda done: done / WARMUP if done < WARMUP else 0.5 * (
        1 + math.cos(math.pi * (done - WARMUP) / (STEPS - WARMUP))))
    given.model.train()
    curve = []
    for _ in range(STEPS):
        steps.zero_grad()
        total, count = losses.parse(given.loss).terms(given.model(given.input), given.target)
        loss = total / count
        loss.backward()
        torch.nn.utils.clip_grad_norm_(given.model.parameters(), 1.0)
        steps.step()
        schedule.step()
        curve.append(float(loss.detach()))
    return curve


def largest_difference(found: List[float], right: List[float]) -> float:
    """Of the steps' losses, relative."""
    assert len(found) == len(right) > 0, (len(found), len(right))
    return max(abs(a - b) / abs(b) for a, b in zip(found, right))
