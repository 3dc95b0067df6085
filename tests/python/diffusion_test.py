"""Diffusion models, whose noise and time are drawn inside the step, by `motley.train` and by plain PyTorch. MOTLEY_PROGRAM names the
program."""

from __future__ import annotations

import os
import sys
import unittest
import warnings

from support import Folder, motley

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "diffusion"))

import compare  # noqa: E402

PROGRAM = os.environ["MOTLEY_PROGRAM"]

STEPS = 20


class Diffusion(unittest.TestCase):
    def trains(self, name: str) -> None:
        data, held_out = compare.digits(256), compare.digits(128, seed=1)
        with Folder() as folder:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", motley.ExportWarning)
                run = compare.trained(compare.model_of(name), data, held_out, folder.path("run"), STEPS, motley=PROGRAM)
            metrics = run.metrics()
            losses = [line["loss"] for line in metrics]
            self.assertLess(losses[-1], 0.9 * losses[0], "it learns")
            right = compare.plain_losses(compare.model_of(name), data, STEPS, compare.motleys)
            self.assertLessEqual(compare.largest_difference(losses, right), compare.MOST)
            for stages in (2, 3):
                self.assertTrue(compare.on_stages(run, stages), stages)
            trained = compare.model_of(name)
            trained.load_state_dict(run.state_dict())
            self.assertLessEqual(compare.largest_difference([metrics[-1]["eval_loss"]], [compare.held_out_loss(trained, held_out, compare.motleys)]),
                                 compare.MOST)
            mean, deviation = compare.by_seeds(trained, held_out)
            self.assertLessEqual(abs(metrics[-1]["eval_loss"] - mean), compare.DEVIATIONS * deviation)

    def test_a_transformer(self) -> None:
        self.trains("dit")

    def test_a_u_net(self) -> None:
        self.trains("unet")


if __name__ == "__main__":
    unittest.main()
