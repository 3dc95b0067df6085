"""30 optimizer steps of packages on two stages lie on the curve of eager PyTorch. MOTLEY_PROGRAM names the program."""

from __future__ import annotations

import os
import unittest

import runs
from support import Folder

PROGRAM = os.environ["MOTLEY_PROGRAM"]

LARGEST_DIFFERENCE = 1e-4
"""Of a step's loss: rounding, which 30 steps carry on."""


class Curves(unittest.TestCase):
    def follows(self, family: str, optimizer: str) -> None:
        with Folder() as folder:
            given = runs.case(family)
            config = runs.write(given, folder.path(""))
            settings = {f"train__{key}": value for key, value in runs.OPTIMIZERS[optimizer].items()}
            found = runs.program(PROGRAM, config, folder.path("run"), "--stages", "2", train__optimizer=optimizer, **settings)
            right = runs.eager(given, optimizer)
            self.assertLess(right[-1], 0.97 * right[0], "it learns")
            self.assertLessEqual(runs.largest_difference(found, right), LARGEST_DIFFERENCE)

    def test_cnn_with_batchnorm_by_adamw(self) -> None:
        self.follows("cnn", "adamw")

    def test_a_first_layer_without_parameters_and_targets_left_out(self) -> None:
        self.follows("flat-mlp", "adamw")

    def test_llama_by_adamw(self) -> None:
        self.follows("llama-tiny", "adamw")

    def test_gpt2_with_a_tied_head_by_sgd(self) -> None:
        self.follows("gpt2-tiny", "sgd")

    def test_vit_by_sgd(self) -> None:
        self.follows("vit-tiny", "sgd")


if __name__ == "__main__":
    unittest.main()
