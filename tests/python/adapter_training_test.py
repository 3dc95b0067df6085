"""`motley.train` of models with adapters: losses, frozen weights, checkpoints and folders. MOTLEY_PROGRAM names the program."""

from __future__ import annotations

import copy
import glob
import json
import os
import sys
import unittest
import warnings
from typing import Any, Dict, List, Tuple

import torch
import torch.nn as nn

import adapted_models
import language_models
from support import Folder, motley
from motley import weights

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "same_steps"))

from data_order import samples_of  # noqa: E402

PROGRAM = os.environ["MOTLEY_PROGRAM"]

SAMPLES, BATCH, STEPS = 12, 4, 20
LR, CLIP = 1e-2, 1.0

LARGEST_DIFFERENCE = 1e-5
"""Relative, of a step's loss: rounding, in another order of additions."""


def texts() -> Tuple[torch.Tensor, torch.Tensor]:
    """Ids of few words, and targets that leave out padding on the right."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(1, 6, (SAMPLES, 9), generator=generator)
    is_text = torch.arange(8) < torch.randint(4, 9, (SAMPLES, 1), generator=generator)
    return ids[:, :-1] * is_text, torch.where(is_text, ids[:, 1:], -100)


def trained(model: nn.Module, folder: Folder, **more: Any) -> Tuple[motley.Run, List[float]]:
    with adapted_models.peft(), warnings.catch_warnings():
        warnings.simplefilter("ignore", motley.ExportWarning)
        run = motley.train(model, nn.CrossEntropyLoss(), texts(), run=folder.path("run"), motley=PROGRAM, steps=STEPS,
                           global_batch=BATCH, lr=LR, warmup_steps=0, schedule="constant", clip=CLIP, beta2=0.999,
                           weight_decay=0.01, data__holdout=0.0, checkpoint__every=0, run__threads=1, profile__seconds=1.0,
                           follow=lambda line: None, **more)
    with open(os.path.join(run.run, "metrics.jsonl"), encoding="utf-8") as file:
        return run, [json.loads(line)["loss"] for line in file]


def plain_losses(model: nn.Module) -> List[float]:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [{"params": [p for p in parameters if p.dim() >= 2]},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, weight_decay=0.01)
    inputs, targets = texts()
    losses = []
    for step in range(STEPS):
        rows = samples_of(step, BATCH, SAMPLES)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[rows]).flatten(0, 1), targets[rows].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


class Adapters(unittest.TestCase):
    def follows(self, model: nn.Module, base: Any = None) -> None:
        frozen = {name: tensor.clone() for name, tensor in model.state_dict().items() if not _trains(model, name)}
        names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        with Folder() as folder:
            run, losses = trained(model, folder, base=base)
            state = run.state_dict()
            self.assertEqual(set(state), set(model.state_dict()))
            for name, before in frozen.items():
                self.assertTrue(torch.equal(model.state_dict()[name], before), f"{name} of the model that was given")
                self.assertEqual(state[name].dtype, before.dtype)
                if base is None:
                    self.assertTrue(torch.equal(state[name], before), name)
            plain = copy.deepcopy(model).float()
            plain.load_state_dict({name: tensor for name, tensor in state.items() if name not in names}, strict=False)
            right = plain_losses(plain)
            for name in names:
                self.assertFalse(torch.equal(state[name], model.state_dict()[name]), f"{name} has learned")
            self.assertLessEqual(max(abs(a - b) / b for a, b in zip(losses, right)), LARGEST_DIFFERENCE)
            self.assertEqual(len(losses), STEPS)

            checkpoint, = glob.glob(os.path.join(run.run, "checkpoints", "step-*"))
            stored = {path: weights.read(path) for path in glob.glob(os.path.join(checkpoint, "*.safetensors"))}
            count = sum(tensor.numel() for tensors in stored.values() for tensor in tensors.values())
            self.assertEqual(count, 3 * sum(state[name].numel() for name in names), "adapters and two moments")

            run.save_pretrained(folder.path("adapter"))
            self.assertEqual(sorted(os.listdir(folder.path("adapter"))), ["adapter_config.json", "adapter_model.safetensors"])
            saved = weights.read(folder.path("adapter/adapter_model.safetensors"))
            self.assertEqual(set(saved), {name.replace(".default", "") for name in names})
            for name in names:
                self.assertTrue(torch.equal(saved[name.replace(".default", "")], state[name]), name)
            with self.assertRaisesRegex(motley.MotleyError, "adapter.* exists"):
                run.save_pretrained(folder.path("adapter"))

    def test_lora(self) -> None:
        linear = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
        self.follows(adapted_models.llama("lora", names=linear))

    def test_dora(self) -> None:
        self.follows(adapted_models.llama("dora"))

    def test_ia3(self) -> None:
        self.follows(adapted_models.llama("ia3", names=("k_proj", "v_proj", "down_proj")))

    def test_a_base_in_bf16(self) -> None:
        self.follows(_in_bf16(adapted_models.llama("lora")))

    def test_a_quantised_base(self) -> None:
        self.follows(adapted_models.llama("lora", width=64), base="nf4")


class Whole(unittest.TestCase):
    def test_a_part_that_trains(self) -> None:
        """What is frozen is in the saved folder, and a warning names what it lacks for transformers."""
        model = language_models.LlamaForCausalLM()
        model.model.requires_grad_(False)
        with Folder() as folder:
            run, _ = trained(model, folder)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run.save_pretrained(folder.path("whole"))
            self.assertEqual([warning.category for warning in said], [motley.ExportWarning])
            self.assertIn("no config.json", str(said[0].message))
            saved, state = weights.read(folder.path("whole/model.safetensors")), run.state_dict()
            self.assertEqual(set(saved), set(state))
            for name, tensor in state.items():
                self.assertTrue(torch.equal(saved[name], tensor), name)


def _trains(model: nn.Module, name: str) -> bool:
    return dict(model.named_parameters())[name].requires_grad if name in dict(model.named_parameters()) else False


def _in_bf16(model: nn.Module) -> nn.Module:
    for parameter in model.parameters():
        if not parameter.requires_grad:
            parameter.data = parameter.data.bfloat16()
    return model


if __name__ == "__main__":
    unittest.main()
