"""30 optimizer steps of packages on two stages match eager PyTorch. MOTLEY_PROGRAM names the program."""

from __future__ import annotations

import os
import unittest
from typing import Any, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

import runs
from support import Folder

PROGRAM = os.environ["MOTLEY_PROGRAM"]

LARGEST_DIFFERENCE = 1e-4
"""Tolerance of a step's loss: rounding, accumulated over 30 steps."""


class Curves(unittest.TestCase):
    def follows(self, family: str, optimizer: str, loss: Any = None) -> None:
        with Folder() as folder:
            given = runs.case(family)
            given = given if loss is None else given._replace(loss=loss)
            config = runs.write(given, folder.path(""))
            settings = {f"train__{key}": value for key, value in runs.OPTIMIZERS[optimizer].items()}
            found = runs.program(PROGRAM, config, folder.path("run"), "--stages", "2", train__optimizer=optimizer, **settings)
            right = runs.eager(given, optimizer)
            self.assertLess(right[-1], 0.97 * right[0], "it learns")
            if isinstance(loss, nn.Module):
                mean = float(loss(runs.case(family).model(given.input), given.target).detach())
                self.assertLessEqual(abs(found[0] - mean), 1e-6 * mean, "as PyTorch's own mean")
            self.assertLessEqual(runs.largest_difference(found, right), LARGEST_DIFFERENCE)

    def test_cnn_with_batchnorm_by_adamw(self) -> None:
        self.follows("cnn", "adamw")

    def test_a_first_layer_without_parameters_and_targets_left_out(self) -> None:
        self.follows("flat-mlp", "adamw")

    def test_weights_of_classes(self) -> None:
        for weights in (0.02, 0.3, 1.5, 0.7, 0.04), (0.004, 0.006, 0.01, 0.008, 0.002):
            self.follows("flat-mlp", "adamw", nn.CrossEntropyLoss(weight=torch.tensor(weights)))

    def test_a_count_that_is_no_whole_number(self) -> None:
        def by_size(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
            weight = 0.3 * target.abs().mean(1) + 0.01
            return (weight * (output - target).square().mean(1)).sum(), weight.sum()
        self.follows("mlp", "adamw", by_size)

    def test_llama_by_adamw(self) -> None:
        self.follows("llama-tiny", "adamw")

    def test_llama_by_muon(self) -> None:
        self.follows("llama-tiny", "muon")

    def test_gpt2_with_a_tied_head_by_muon(self) -> None:
        self.follows("gpt2-tiny", "muon")

    def test_convolutions_by_muon(self) -> None:
        self.follows("cnn", "muon")

    def test_llama_by_lion(self) -> None:
        self.follows("llama-tiny", "lion")

    def test_gpt2_with_a_tied_head_by_sgd(self) -> None:
        self.follows("gpt2-tiny", "sgd")

    def test_vit_by_sgd(self) -> None:
        self.follows("vit-tiny", "sgd")

    def test_random_numbers_are_the_same_for_any_stages_and_micro_batches(self) -> None:
        class Noisy(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                strength = torch.randint(1, 4, (x.size(0), 1)) * 0.1
                return x + strength * torch.randn_like(x) + 0.1 * torch.rand(x.size(1)) + F.gumbel_softmax(x)

        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(6, 8), Noisy(), nn.Tanh(), nn.Linear(8, 8), Noisy(), nn.Linear(8, 3))
        given = runs.Case(model, nn.MSELoss(), torch.randn(24, 6), torch.randn(24, 3), 6)
        curves = {}
        for micro_batch, stages in ((6, 1), (6, 2), (3, 2), (24, 1)):
            with Folder() as folder:
                config = runs.write(given._replace(micro_batch=micro_batch), folder.path(""))
                curves[micro_batch, stages] = runs.program(PROGRAM, config, folder.path("run"), "--stages", str(stages))
        self.assertEqual(curves[6, 1], curves[6, 2])
        self.assertLessEqual(runs.largest_difference(curves[3, 2], curves[6, 1]), 1e-5)
        self.assertLessEqual(runs.largest_difference(curves[24, 1], curves[6, 1]), 1e-5)

    def test_a_mean_of_no_targets_adds_nothing(self) -> None:
        """A loss of mean times count is 0/0 in a micro-batch without targets."""
        def mean_of_some(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
            count = (target != 0).sum()
            return F.cross_entropy(output, target, ignore_index=0) * count, count

        torch.manual_seed(5)
        curves = []
        target = torch.randint(1, 4, (24,))
        target[:18] = 0  # three of four micro-batches of the one global batch
        model, input = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(24, 6)
        for loss in (mean_of_some, nn.CrossEntropyLoss(ignore_index=0)):
            with Folder() as folder:
                config = runs.write(runs.Case(model, loss, input, target, 6, target_limit=4), folder.path(""))
                curves.append(runs.program(PROGRAM, config, folder.path("run"), "--stages", "2", train__lr=1e-2))
        self.assertTrue(all(value is not None for value in curves[0]), curves[0])
        self.assertLess(curves[0][-1], 0.97 * curves[0][0], "it learns")
        self.assertLessEqual(runs.largest_difference(curves[0], curves[1]), 1e-5)


if __name__ == "__main__":
    unittest.main()
