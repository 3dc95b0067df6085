"""Trainings on prepared texts, packed and unpacked, have the losses of a plain loop. MOTLEY_PROGRAM names the program."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any, List

import torch
import torch.nn as nn

import runs
from support import Folder, motley
from text_fakes import QUIET, Decoder, Tokenizer, chats
from motley import losses
from motley.text import training_data

PROGRAM = os.environ["MOTLEY_PROGRAM"]

STEPS = 20

LARGEST_DIFFERENCE = 1e-5
"""Tolerance of a step's loss: rounding, accumulated over the steps."""


class Runs(unittest.TestCase):
    def trains(self, packing: bool) -> None:
        torch.manual_seed(7)
        model = Decoder()
        with Folder() as folder:
            data = motley.text(chats(40), Tokenizer(), folder.path("data"), max_length=64, packing=packing, **QUIET)
            held_out = motley.text(chats(10, seed=2), Tokenizer(), folder.path("held"), max_length=64, length=data.length, packing=packing, **QUIET)
            micro_batch = max(size for size in range(1, len(data)) if len(data) % size == 0)
            run = motley.train(model, nn.CrossEntropyLoss(), data, eval_data=held_out, motley=PROGRAM, run=folder.path("run"), steps=STEPS,
                               global_batch=len(data), micro_batch=micro_batch, optimizer="sgd", momentum=0.9, lr=0.1, schedule="constant",
                               warmup_steps=0, clip=0.0, weight_decay=0.0, run__threads=1, eval_every=STEPS, eval_batches=1, **QUIET)
            with open(os.path.join(run.run, "metrics.jsonl"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            found = [line["loss"] for line in lines if "loss" in line][:STEPS]
            with open(os.path.join(run.package, "package.json"), encoding="utf-8") as file:
                names = [entry["name"] for entry in json.load(file)["inputs"]]
            self.assertEqual(sorted(names), sorted(name[7:] for name in data.manifest["files"] if name != "targets"))
            right = self.plain(model, data)
            self.assertLess(right[-1], 0.9 * right[0], "it learns")
            self.assertLessEqual(runs.largest_difference(found, right), LARGEST_DIFFERENCE)
            state = run.state_dict()
            self.assertTrue(all(torch.allclose(state[name], value, atol=1e-5) for name, value in model.state_dict().items()))

    def plain(self, model: nn.Module, data: motley.Texts) -> List[float]:
        """Each document alone, without padding or its neighbours: the loss of a step is the mean over all tokens trained on."""
        documents = []
        for k in range(len(data)):
            row = data[k]
            numbers = row.get("document_ids", row.get("attention_mask"))
            for number in range(1, int(numbers.max()) + 1):
                documents.append([torch.from_numpy(row[name][numbers == number]).long()[None] for name in ("input_ids", "labels")])
        count = sum(int((labels != -100).sum()) for _, labels in documents)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        curve = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            total: Any = 0.0
            for ids, labels in documents:
                scores = model(input_ids=ids, attention_mask=torch.ones_like(ids))["logits"]
                total = total + nn.functional.cross_entropy(scores[0], labels[0], reduction="sum") / count
            total.backward()
            optimizer.step()
            curve.append(float(total.detach()))
        return curve

    def test_packed(self) -> None:
        self.trains(True)

    def test_unpacked(self) -> None:
        self.trains(False)

    def test_a_resume_needs_no_texts(self) -> None:
        with Folder() as folder:
            data = motley.text(chats(12), Tokenizer(), folder.path("data"), max_length=64, packing=True, **QUIET)
            options: Any = dict(motley=PROGRAM, run=folder.path("run"), global_batch=2, schedule="constant", data__holdout=0.0, run__threads=1, **QUIET)
            motley.train(Decoder(), nn.CrossEntropyLoss(), data, steps=2, **options)
            for name in os.listdir(data.path):
                os.remove(os.path.join(data.path, name))
            run = motley.train(Decoder(), nn.CrossEntropyLoss(), data, steps=4, resume=True, **options)
            self.assertTrue(os.path.isdir(os.path.join(run.run, "checkpoints")))
            self.assertIsNone(training_data(motley.text(chats(9), Tokenizer(), folder.path("plain"), **QUIET), None,
                                            losses.parse(nn.CrossEntropyLoss()), None, None).forward(Decoder()))


if __name__ == "__main__":
    unittest.main()
