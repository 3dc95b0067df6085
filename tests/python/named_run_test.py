"""Trainings of models with several inputs by name, on one, two and three stages. MOTLEY_PROGRAM names the program."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from typing import Any

import torch
import torch.nn as nn

import runs
from named_models import Captions, Encoder, pictures, texts
from support import Folder, motley
from motley.data import Arrays

PROGRAM = os.environ["MOTLEY_PROGRAM"]

LARGEST_DIFFERENCE = 1e-4
"""Tolerance of a step's loss against eager PyTorch: rounding, accumulated over the steps."""


def write(folder: str, model: nn.Module, batch: Any, held_out: Any) -> str:
    """The configuration of a training whose steps take all samples, in four micro-batches."""
    inputs, targets = batch
    motley.export(model, nn.CrossEntropyLoss(), ({name: x[:4] for name, x in inputs.items()}, targets[:4]), os.path.join(folder, "x.motley"))
    data = Arrays(batch, held_out).write(os.path.join(folder, "data"))
    config = os.path.join(folder, "job.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[model]\nkind = "package"\npath = "{folder}/x.motley"\n[data]\nkind = "arrays"\npath = "{data["path"]}"\n'
                   f"[train]\nsteps = {runs.STEPS}\nwarmup_steps = {runs.WARMUP}\nglobal_batch = {runs.SAMPLES}\nmicro_batch = {runs.SAMPLES // 4}\n"
                   f"eval_every = {runs.STEPS}\neval_batches = 1\n"
                   "[checkpoint]\nevery = 0\n[run]\nthreads = 1\n[profile]\nseconds = 2.0\n")
    return config


class Runs(unittest.TestCase):
    def trains(self, make: Any, batch: Any) -> None:
        torch.manual_seed(7)
        model = make()
        data, held_out = batch(runs.SAMPLES), batch(runs.SAMPLES)
        settings = {f"train__{key}": value for key, value in runs.OPTIMIZERS["adamw"].items()}
        with Folder() as folder:
            config = write(folder.path(""), model, data, held_out)
            curves, hashes = {}, {}
            for stages, recompute in ((1, "auto"), (2, "auto"), (3, "auto"), (2, "all")):
                run = folder.path(f"run-{stages}-{recompute}")
                curves[stages, recompute] = runs.program(PROGRAM, config, run, "--stages", str(stages), parallel__recompute=recompute, **settings)
                hashes[stages, recompute] = runs.parameters_hash(run)
            for case, curve in curves.items():
                self.assertEqual(curve, curves[1, "auto"], case)
            self.assertEqual(len(set(hashes.values())), 1, hashes)

            class Called(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.model = model

                def forward(self, inputs: Any) -> torch.Tensor:
                    output = self.model(**inputs)
                    return output["logits"] if isinstance(output, dict) else output

            right = runs.eager(runs.Case(Called(), nn.CrossEntropyLoss(), data[0], data[1], 0), "adamw")
            self.assertLess(right[-1], 0.97 * right[0], "it learns")
            self.assertLessEqual(runs.largest_difference(curves[1, "auto"], right), LARGEST_DIFFERENCE)
            self.held_out_is_pytorchs(folder.path("run-2-auto"), Called(), held_out)

    def held_out_is_pytorchs(self, run: str, model: nn.Module, held_out: Any) -> None:
        with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            found = [line["eval_loss"] for line in map(json.loads, file) if line.get("eval_loss") is not None][-1]
        model.eval()
        with torch.no_grad():
            right = float(nn.CrossEntropyLoss()(model(held_out[0]), held_out[1]) if held_out[1].dim() == 1
                          else nn.CrossEntropyLoss()(model(held_out[0]).flatten(0, 1), held_out[1].flatten()))
        self.assertLessEqual(abs(found - right), LARGEST_DIFFERENCE * right)

    def test_an_encoder_with_ids_mask_and_segments(self) -> None:
        self.trains(Encoder, lambda samples: texts(samples, truth_values=True))

    def test_an_image_with_ids(self) -> None:
        self.trains(Captions, pictures)

    def test_from_python(self) -> None:
        torch.manual_seed(7)
        model = Encoder()
        inputs, targets = texts(32)
        with Folder() as folder:
            run = motley.train(model, nn.CrossEntropyLoss(), {**inputs, "labels": targets}, motley=PROGRAM, run=folder.path("run"), steps=4,
                               global_batch=8, data__holdout=0.25, run__threads=1, follow=lambda line: None)
            generated = subprocess.run([PROGRAM, "generate", run.run, "--prompt", "1,2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(generated.returncode, 3, generated.stderr)
            self.assertIn("it takes 3 inputs, and generation has tokens only", generated.stderr)
            state = run.state_dict()
            model.load_state_dict(state)
            self.assertFalse(any(torch.equal(state[name], value) for name, value in Encoder().state_dict().items() if value.dim() > 1))


if __name__ == "__main__":
    unittest.main()
