"""Steps of gpt2 and mlp match a plain PyTorch loop: gradient accumulation, clipping, warm-up, weights of the loss.

The models in PyTorch are those of tests/models/make_gpt2_golden.py. MOTLEY_PROGRAM names the program.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import subprocess
import sys
import unittest
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy
import torch
import torch.nn.functional as F

from support import Folder

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import make_gpt2_golden as models  # noqa: E402

PROGRAM = os.environ["MOTLEY_PROGRAM"]
STEPS, WARMUP, SAMPLES, MICRO_BATCH, HELD_OUT = 10, 3, 8, 2, 6
SETTINGS = {"lr": 1e-3, "clip": 0.5, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-6}
TOLERANCE = 1e-6


class Loss(NamedTuple):
    """Arguments of PyTorch's cross entropy."""

    weight: Optional[List[float]] = None
    label_smoothing: float = 0.0

    def mean(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        weight = None if self.weight is None else torch.tensor(self.weight, dtype=scores.dtype)
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), weight=weight, label_smoothing=self.label_smoothing)

    def weight_of(self, targets: torch.Tensor) -> float:
        """The divisor of the mean."""
        return float(targets.numel() if self.weight is None else torch.tensor(self.weight)[targets].double().sum())

    def settings(self) -> Dict[str, str]:
        given = {"train.label_smoothing": str(self.label_smoothing)}
        return given if self.weight is None else {**given, "train.class_weights": str(self.weight)}


UNEQUAL = Loss([round(0.3 * (c % 7), 1) for c in range(models.VOCAB)])
BOTH = Loss([0.25 + c / 32 for c in range(models.VOCAB)], 0.1)


class Data(NamedTuple):
    inputs: torch.Tensor
    targets: torch.Tensor

    def write(self, folder: str) -> None:
        os.makedirs(folder)
        for name, values in self._asdict().items():
            numpy.save(os.path.join(folder, name + ".npy"), values.numpy())


def drawn(samples: int, seed: int) -> Data:
    random = torch.Generator().manual_seed(seed)
    return Data(*(torch.randint(models.VOCAB, (samples, models.CONTEXT), generator=random) for _ in range(2)))


def is_decayed(name: str) -> bool:
    return not (name.endswith(".bias") or "norm" in name or "ln_" in name or name.startswith("wpe"))


def rate(step: int) -> float:
    """The learning rate of a step from 1, as transformers' cosine schedule with warm-up has it after step - 1 calls."""
    done = step - 1
    if done < WARMUP:
        return SETTINGS["lr"] * done / WARMUP
    return SETTINGS["lr"] * 0.5 * (1 + math.cos(math.pi * (done - WARMUP) / (STEPS - WARMUP)))


class Plain:
    """Trains by PyTorch alone, in float64, with accumulated gradients of micro-batches."""

    def __init__(self, weights: Dict[str, torch.Tensor], scores: Callable[..., torch.Tensor], loss: Loss) -> None:
        self.weights = {name: value.detach().double().requires_grad_() for name, value in weights.items()}
        self.scores, self.loss = scores, loss
        groups = [{"params": [w for name, w in self.weights.items() if is_decayed(name) == decayed],
                   "weight_decay": SETTINGS["weight_decay"] if decayed else 0.0} for decayed in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(SETTINGS["beta1"], SETTINGS["beta2"]), eps=SETTINGS["epsilon"])

    def step(self, number: int, data: Data) -> Dict[str, float]:
        self.optimizer.zero_grad()
        total, divisor = 0.0, self.loss.weight_of(data.targets)
        for first in range(0, SAMPLES, MICRO_BATCH):
            inputs, targets = (part[first:first + MICRO_BATCH] for part in data)
            share = self.loss.weight_of(targets) / divisor
            mean = self.loss.mean(self.scores(self.weights, inputs), targets) * share
            mean.backward()
            total += float(mean.detach())
        norm = float(torch.nn.utils.clip_grad_norm_(list(self.weights.values()), SETTINGS["clip"]))
        for group in self.optimizer.param_groups:
            group["lr"] = rate(number)
        self.optimizer.step()
        return {"loss": total, "grad_norm": norm, "lr": rate(number)}

    def evaluate(self, data: Data) -> Dict[str, float]:
        with torch.no_grad():
            scores = self.scores(self.weights, data.inputs)
        best = scores.topk(5, -1).indices == data.targets[..., None]
        return {"eval_loss": float(self.loss.mean(scores, data.targets)), "eval_accuracy": float(best[..., 0].double().mean()),
                "eval_top5_accuracy": float(best.any(-1).double().mean())}


class NativeCurves(unittest.TestCase):
    def run_program(self, folder: Folder, name: str, kind: str, loss: Loss, *words: str) -> List[Dict[str, Any]]:
        """The metrics of each step."""
        settings = {"model.kind": kind, "model.tied": "false", "model.layers": models.LAYERS, "model.width": models.WIDTH,
                    "model.heads": models.HEADS, "model.context": models.CONTEXT, "model.vocab": models.VOCAB,
                    "model.init_from": folder.path("weights.safetensors"), "data.kind": "arrays", "data.path": folder.path("train"),
                    "data.holdout_path": folder.path("val"), "train.steps": STEPS, "train.warmup_steps": WARMUP,
                    "train.global_batch": SAMPLES, "train.micro_batch": MICRO_BATCH, "train.eval_every": STEPS, "train.eval_batches": 3,
                    "run.threads": 1, "profile.seconds": 2, **loss.settings(),
                    **{f"train.{key}": value for key, value in SETTINGS.items()}}
        command = [PROGRAM, "train", folder.path("job.toml"), "--run", folder.path(name), *words]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(os.path.join(folder.path(name), "metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def near(self, found: float, right: float, what: str, tolerance: float = TOLERANCE) -> None:
        self.assertLessEqual(abs(found - right), tolerance * abs(right), f"{what}: {found} instead of {right}")

    def follows(self, kind: str, loss: Loss) -> None:
        weights, scores = {"gpt2": (models.gpt2_weights(False), models.gpt2_scores),
                           "mlp": (models.mlp_weights(), models.mlp_scores)}[kind]
        train, val = drawn(SAMPLES, 11), drawn(HELD_OUT, 12)
        # An evaluation of three batches of 8 has each of the 6 held-out samples four times.
        with Folder() as folder:
            pathlib.Path(folder.path("job.toml")).write_text("[checkpoint]\nevery = 0\n", encoding="utf-8")
            train.write(folder.path("train"))
            val.write(folder.path("val"))
            models.write_safetensors(pathlib.Path(folder.path("weights.safetensors")), weights)
            plain = Plain(weights, scores, loss)
            found = self.run_program(folder, "one", kind, loss, "--stages", "1")
            self.assertEqual(len(found), STEPS)
            for number, metrics in enumerate(found, 1):
                for key, right in plain.step(number, train).items():
                    self.near(metrics[key], right, f"{key} of step {number}")
            for key, right in plain.evaluate(val).items():
                self.near(found[-1][key], right, key)
            profile = os.path.join(folder.path("one"), "profile.json")
            for stages in ("2", "3"):
                again = self.run_program(folder, stages, kind, loss, "--stages", stages, "--profile", profile)
                for key in ("loss", "grad_norm", "eval_loss", "eval_accuracy", "eval_top5_accuracy"):
                    self.assertEqual([step.get(key) for step in again], [step.get(key) for step in found], f"{key} on {stages} stages")

    def test_gpt2(self) -> None:
        self.follows("gpt2", Loss())

    def test_mlp(self) -> None:
        self.follows("mlp", Loss())

    def test_weights_of_classes(self) -> None:
        self.follows("mlp", UNEQUAL)

    def test_label_smoothing(self) -> None:
        self.follows("gpt2", Loss(None, 0.1))

    def test_both(self) -> None:
        self.follows("gpt2", BOTH)
