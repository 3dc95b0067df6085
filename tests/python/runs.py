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
    "lion": {"lr": 3e-4, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99},
    "muon": {"lr": 3e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "muon_momentum": 0.95},
}


class Lion(torch.optim.Optimizer):
    """As published, arXiv 2302.06675."""

    def __init__(self, groups: Any, lr: float, betas: Any):
        super().__init__(groups, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                direction = torch.sign(beta1 * mean + (1 - beta1) * p.grad)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * direction)
                mean.mul_(beta2).add_((1 - beta2) * p.grad)


class Muon(torch.optim.Optimizer):
    """As torch.optim.Muon of PyTorch 2.9 with adjust_lr_fn="match_rms_adamw", but in fp32, for the parameters of groups
    with `by_muon`; the others as by AdamW."""

    def __init__(self, groups: Any, lr: float, betas: Any, momentum: float):
        super().__init__(groups, {"lr": lr, "betas": betas, "momentum": momentum})
        self.steps = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["weight_decay"])
                (self._muon if group["by_muon"] else self._adamw)(p, group)

    def _muon(self, p: torch.Tensor, group: Dict[str, Any]) -> None:
        mean, mu = self.state[p].setdefault("mean", torch.zeros_like(p)), group["momentum"]
        mean.lerp_(p.grad, 1 - mu)
        x = p.grad.lerp(mean, mu).flatten(1)
        tall = x.size(0) > x.size(1)
        x = x.t() if tall else x
        x = x / x.norm().clamp(min=1e-7)
        for _ in range(5):
            gram = x @ x.t()
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        rate = group["lr"] * 0.2 * math.sqrt(max(x.shape))
        p.sub_(rate * (x.t() if tall else x).reshape(p.shape))

    def _adamw(self, p: torch.Tensor, group: Dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean = self.state[p].setdefault("mean", torch.zeros_like(p))
        square = self.state[p].setdefault("square", torch.zeros_like(p))
        mean.mul_(beta1).add_((1 - beta1) * p.grad)
        square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
        root = square.sqrt() / math.sqrt(1 - beta2 ** self.steps) + 1e-8
        p.sub_(group["lr"] / (1 - beta1 ** self.steps) * mean / root)


def hidden_matrices(model: nn.Module) -> List[nn.Parameter]:
    """The weights of linear layers and convolutions, but of the last, and not tied to an embedding."""
    layers = [module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d)) or type(module).__name__ == "Conv1D"]
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    head = next((layer for layer in reversed(layers) if id(layer.weight) in embeddings), layers[-1])
    return [layer.weight for layer in layers if layer is not head]


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
    by_muon = {id(p) for p in hidden_matrices(given.model)} if optimizer == "muon" else set()
    kinds: Dict[Any, List[nn.Parameter]] = {}
    for p in given.model.parameters():
        kinds.setdefault((p.dim() >= 2, id(p) in by_muon), []).append(p)
    groups = [{"params": params, "weight_decay": options["weight_decay"] if decays else 0.0, "by_muon": muon}
              for (decays, muon), params in kinds.items()]
    betas = options.get("beta1"), options.get("beta2")
    if optimizer == "adamw":
        steps: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=options["lr"], betas=betas, eps=1e-8)
    elif optimizer == "lion":
        steps = Lion(groups, lr=options["lr"], betas=betas)
    elif optimizer == "muon":
        steps = Muon(groups, lr=options["lr"], betas=betas, momentum=options["muon_momentum"])
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
