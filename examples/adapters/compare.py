#!/usr/bin/env python3
"""Adapters of peft on small models: 50 steps of motley.train, compared with a plain PyTorch loop on the same samples.

    python3 compare.py [MODEL:METHOD[:BASE]]…

    MODEL   llama, qwen3, gemma3, bert, vit, dit
    METHOD  lora8, lora16 (queries and values), lora8-all, lora16-all (all linear layers), dora, rslora, ia3, prompt
    BASE    fp32, bf16, or int8, int4, nf4 (`base=` of motley.train)

For each it prints
- `loop`: the largest relative difference of a step's loss from a loop in float32 whose base has the values that Motley computes
  with, and from one whose base is neither rounded nor quantised, with the bound that follows from the errors of its matrices;
- whether all frozen tensors have the same bits after the training;
- `checkpoint`: the bytes of its tensors per byte of trained parameters, 3 with the two moments of AdamW;
- `peft`: whether the adapter's folder, opened by peft, gives the logits of the trained model, bit by bit;
- `merged`: whether the merged folder, opened by transformers, gives the logits of the merged model, bit by bit, and their
  distance from the trained model's, relative to the largest logit.

The exit status is 1 if a result is not as it has to be.
"""

from __future__ import annotations

import copy
import glob
import json
import math
import os
import struct
import sys
import tempfile
import warnings
from typing import Any, Dict, List, NamedTuple, Optional

import peft
import torch
import transformers

import motley
from small_models import SAMPLES, Case, case

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "same_steps"))

from data_order import samples_of  # noqa: E402

STEPS, BATCH, VIRTUAL = 50, 4, 6
LR, BETAS, DECAY, CLIP = 2e-3, (0.9, 0.999), 0.01, 1.0
MOST = 1e-5
"""Largest relative difference of a step's loss: sums in another order, over 50 steps."""

LORA = ("lora8", "lora16", "lora8-all", "lora16-all")
DEFAULT = [f"{model}:{method}" for model in ("llama", "qwen3", "gemma3", "vit", "dit") for method in LORA]
DEFAULT += [f"llama:{method}" for method in ("dora", "rslora", "ia3", "prompt")] + ["bert:lora8"]
DEFAULT += [f"{model}:lora8-all:{base}" for model in ("llama", "vit") for base in ("bf16", "int8", "nf4")]


def lora(given: Case, rank: int, modules: List[str], **more: Any) -> torch.nn.Module:
    config = peft.LoraConfig(r=rank, lora_alpha=16, target_modules=modules, task_type=given.task, **more)
    return peft.get_peft_model(given.model, config)


def adapted(given: Case, method: str) -> torch.nn.Module:
    if method in ("dora", "rslora"):
        return lora(given, 8, given.attention, **{f"use_{method}": True})
    if method == "ia3":
        modules, feedforward = ["k_proj", "v_proj", "down_proj"], ["down_proj"]
        config = peft.IA3Config(target_modules=modules, feedforward_modules=feedforward, task_type=given.task)
        return peft.get_peft_model(given.model, config)
    if method == "prompt":
        return peft.get_peft_model(given.model, peft.PromptTuningConfig(num_virtual_tokens=VIRTUAL, task_type=given.task))
    rank, _, modules = method[len("lora"):].partition("-")
    return lora(given, int(rank), given.linear() if modules == "all" else given.attention)


class Trial(NamedTuple):
    given: Case
    method: str
    base: str

    def call(self, model: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """The logits, without those of virtual tokens."""
        output = self.given.forward(model, inputs)
        return output[:, VIRTUAL:] if self.method == "prompt" else output

    def logits(self, model: torch.nn.Module) -> torch.Tensor:
        """In evaluation, in the type of the model's base."""
        kind = next(model.parameters()).dtype
        inputs = self.given.inputs.to(kind) if self.given.inputs.is_floating_point() else self.given.inputs
        with torch.no_grad():
            return self.call(model.eval(), inputs)

    def train(self, model: torch.nn.Module, folder: str) -> motley.Run:
        return motley.train(
            model, self.given.loss, (self.given.inputs, self.given.targets), forward=lambda inputs: self.call(model, inputs),
            run=folder, base=self.base if self.base in ("int8", "int4", "nf4") else None, steps=STEPS, global_batch=BATCH, lr=LR,
            warmup_steps=0, schedule="constant", clip=CLIP, beta1=BETAS[0], beta2=BETAS[1], weight_decay=DECAY,
            data__holdout=0.0, checkpoint__every=0, profile__seconds=1.0, follow=lambda line: None)

    def plain_losses(self, model: torch.nn.Module) -> List[float]:
        """Trains `model` by PyTorch alone, with the same samples in each step."""
        model.train()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = [{"params": [p for p in trained if p.dim() >= 2], "weight_decay": DECAY},
                  {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=1e-8)
        losses = []
        for step in range(STEPS):
            rows = samples_of(step, BATCH, SAMPLES)
            output, target = self.call(model, self.given.inputs[rows]), self.given.targets[rows]
            if self.given.task == "CAUSAL_LM":
                output, target = output.flatten(0, 1), target.flatten()
            loss = self.given.loss(output, target)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, CLIP)
            optimizer.step()
            losses.append(float(loss.detach()))
        return losses


def in_float32(model: torch.nn.Module, values: Dict[str, torch.Tensor]) -> torch.nn.Module:
    """A copy of `model` in float32 whose frozen parameters have these values."""
    copied = copy.deepcopy(model).float()
    with torch.no_grad():
        for name, parameter in copied.named_parameters():
            if not parameter.requires_grad:
                parameter.copy_(values[name])
    return copied


def with_values(base: torch.nn.Module, values: Dict[str, torch.Tensor]) -> torch.nn.Module:
    """The model without adapters, with the values that the model with adapters has for it."""
    own = {name.replace(".base_layer.", ".").replace(".original_module.", "."): value for name, value in values.items()}
    names = list(base.state_dict())
    prefix = next(words for words in ("base_model.model.", "base_model.") if all(words + name in own for name in names))
    base.load_state_dict({name: own[prefix + name] for name in names})
    return base.eval()


def error_of_base(exact: Dict[str, torch.Tensor], values: Dict[str, torch.Tensor]) -> float:
    """The relative error of the logits, to first order: that of each matrix, taken as independent, adds to the others. A cross
    entropy differs by at most twice the error of a logit."""
    matrices = {name: right for name, right in exact.items() if name.endswith("base_layer.weight")}
    errors = [float((values[name].float() - right).norm() / right.norm()) for name, right in matrices.items()]
    return math.sqrt(sum(error * error for error in errors))


def tensor_bytes(folder: str) -> int:
    """The bytes of all tensors in a checkpoint, without the headers of its files."""
    total = 0
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with open(path, "rb") as file:
            total += os.path.getsize(path) - 8 - struct.unpack("<Q", file.read(8))[0]
    return total


def largest_difference(found: List[float], right: List[float]) -> float:
    assert len(found) == len(right) == STEPS
    return max(abs(a - b) / abs(b) for a, b in zip(found, right))


class Merged(NamedTuple):
    is_equal: Optional[bool]
    """Whether transformers opens the same model; None if it is not one of transformers."""
    distance: float


def merge(trial: Trial, trained: torch.nn.Module, logits: torch.Tensor, folder: str) -> Merged:
    merged = copy.deepcopy(trained).merge_and_unload()
    found = trial.logits(merged)
    distance = float((found - logits).abs().max() / logits.abs().max())
    if not isinstance(merged, transformers.PreTrainedModel):
        return Merged(None, distance)
    merged.save_pretrained(folder)
    opened = type(merged).from_pretrained(folder, dtype=merged.dtype).eval()
    return Merged(torch.equal(trial.logits(opened), found), distance)


def compare(spec: str) -> bool:
    """Prints the results of one model, method and base, and returns whether they are as they have to be."""
    name, method, base = (spec.split(":") + ["fp32"])[:3]
    given, plain = case(name), case(name).model
    for model in (given.model, plain) if base == "bf16" else ():
        for parameter in model.parameters():  # as from_pretrained has it, which leaves buffers of positions in float32
            parameter.data = parameter.data.bfloat16()
    trial, model = Trial(given, method, base), adapted(given, method)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    trained = {key: parameter for key, parameter in model.named_parameters() if parameter.requires_grad}
    with tempfile.TemporaryDirectory() as folder:
        run = trial.train(model, os.path.join(folder, "run"))
        with open(os.path.join(run.run, "metrics.jsonl"), encoding="utf-8") as file:
            losses = [json.loads(line)["loss"] for line in file]
        state = run.state_dict()
        unchanged = all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
        if base in ("fp32", "bf16"):
            unchanged &= all(torch.equal(tensor, before[key]) for key, tensor in state.items() if key not in trained)
        checkpoint, = glob.glob(os.path.join(run.run, "checkpoints", "step-*"))
        ratio = tensor_bytes(checkpoint) / sum(4 * parameter.numel() for parameter in trained.values())

        result = copy.deepcopy(model)
        result.load_state_dict(state)
        logits = trial.logits(result)
        run.save_pretrained(os.path.join(folder, "adapter"))
        opened = peft.PeftModel.from_pretrained(with_values(plain, state), os.path.join(folder, "adapter"))
        is_reopened = torch.equal(trial.logits(opened), logits)
        merged = merge(trial, result, logits, os.path.join(folder, "merged")) if method != "prompt" else None
    difference = largest_difference(losses, trial.plain_losses(in_float32(model, state)))
    words = [f"{spec:22} loss {losses[0]:.4f} to {losses[-1]:.4f}", f"loop {difference:.1e}"]
    within = difference <= MOST
    if base != "fp32":
        exact = adapted(case(name), method)
        exact.load_state_dict({key: before[key] for key in trained}, strict=False)
        most = error_of_base(exact.state_dict(), state) * 2 * float(logits.abs().max()) / min(losses)
        rounded = largest_difference(losses, trial.plain_losses(exact))
        words[-1] += f" and {rounded:.1e} of {most:.1e}"
        within &= rounded <= most
    words += ["frozen unchanged" if unchanged else "frozen CHANGED", f"checkpoint {ratio:g}"]
    words.append("peft equal" if is_reopened else "peft DIFFERENT")
    if merged is not None:
        equal = {True: "equal", False: "DIFFERENT", None: "not of transformers"}[merged.is_equal]
        words.append(f"merged {equal}, distance {merged.distance:.1e}")
    right = within and unchanged and ratio == 3 and is_reopened and (merged is None or merged.is_equal is not False)
    print(", ".join(words) + ("" if right else "  WRONG"), flush=True)
    return right


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    sys.exit(0 if all([compare(spec) for spec in sys.argv[1:] or DEFAULT]) else 1)
